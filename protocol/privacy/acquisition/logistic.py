"""`logistic`: owners are asked by a coin whose odds fall with their bid's rank. For K far above 1000."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import BoundedRangeCost, Cost, ask_epsilon
from hushbid.protocol.privacy.acquisition.base import AcquisitionRule, BidStanding, Noise
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.registry import Keys, Parameters

__all__ = ["Logistic", "LogisticParameters"]

_EPSILONS: Final = tuple(1.25**power for power in range(8, 48))
"""Values so large that they protect nobody; with few owners the rule accepts no others."""

COINS: Final = 2**53
"""Values of a coin: the multiples of 2^-53 in [0, 1)."""

LEAST_PROBABILITY: Final = 2.0**-26
"""Least probability of an ask, at any rank. A coin of 53 bits represents it, and its neighbours on the curve,
to 1 in 2^27. It adds an ask every 2^26/K rounds.
"""

MISSED_SHARE: Final = 0.1
"""Largest probability of any miss, as a share of δ (DESIGN §3)."""

SLACK_SHARE: Final = 0.25
"""Largest share of δ for misses; `Logistic.epsilon` is met at the rest."""


class LogisticParameters(Parameters):
    """Keys of `logistic`."""

    epsilon: ranges.Epsilon
    """Bound on what all rounds' asks together reveal to an owner about one record of another owner."""


class Logistic(AcquisitionRule):
    """The owner of rank r is asked with probability p_r = 1/(1 + e^(η(r - r0))), by its own coin each round.

    It is for K far above 1000: r0 is hundreds to thousands, and with fewer owners nearly everyone would be
    asked. The rule is then refused, and `sealed` or `ask-all` is right.

    **Asks.** One record of another owner shifts a rank by at most one
    (`hushbid.protocol.privacy.acquisition.ranks`), hence the log-odds of an ask by at most η: a mechanism of
    bounded range η, and η²/8-zCDP, in each of p rounds. η is the largest with which p rounds meet `epsilon`
    at three quarters of δ. Neighbours: one record of one other owner more or less.

    **Misses.** The best available point, if it is a bid, has rank 1, and is not asked for with probability
    q = 1/(1 + e^(η(r0 - 1))). If it is missed, S is not the greedy one, and the lemma behind the sensitivity
    of every release, and behind that of ranks, does not hold: *all that is stated holds on the event that no
    round missed the best*, and its complement is charged. r0 is the smallest with p·q ≤ δ/10, and with what
    is charged at most δ/4.

    Let M be the session, and let M̃ take the best point in every round, asked for or not, and be (ε, δ')-DP.
    The two sessions differ only by misses. In M̃, what owner i sees does not depend on others' coins. Let C
    be the views by which i is not asked in a round whose best point, with D', is its bid: view and D' decide
    that. With D its rank is then at most 2, so that P(C) ≤ p·q·e^η. Given any other view, M̃ with D' has no
    miss with probability (1 - q)^p at least, as only others' coins can miss. With p·q for a miss with D,

        P(M(D) ∈ E) ≤ p·q·(1 + e^η) + δ' + e^ε·(1 - q)^-p·P(M(D') ∈ E).

    That is `slack`: -p·ln(1 - q) on ε, and p·q·(1 + e^η) on δ. (The bound for any two mechanisms that differ
    with probability p·q, (1 + e^ε)·p·q on δ, with the ε of releases and asks together, is more than all of δ
    from ε = 2.2 on.)

    **Coins.** A coin is a multiple of 2^-53, and is compared with a whole number of these, p_r rounded up, so
    that q is at most as stated. In the far tail the log-odds of rounded probabilities would differ by ln 2,
    and then by infinity; p_r is at least 2^-26 instead. The η that is charged is the largest difference of
    log-odds that the rounded probabilities have; the slope of the curve is smaller by what rounding takes.

    **Stages.** A coin serves its owner for the whole round. If an asked owner does not deliver, it is absent
    and others' ranks improve; the owners whose coins now suffice are asked.

    **Not covered**: the stage of an ask, which its time reveals; and an owner other than i that bids and then
    fails when it is asked. Whether it is asked, and so whether it becomes absent, depends on others' data: S
    may differ by one more point for each. Absences with any other cause are covered, and so is anything that
    i does itself.
    """

    name = "logistic"
    Parameters = LogisticParameters
    private = True
    candidate_with_bid = False
    one_at_a_time = "what its asks tell is priced for one point a round"
    even_owners = "what its asks tell is worked out for ranks of scores, with every owner in every round"
    exact = False
    ranked = True
    fewest_owners = 3  # r0 > 2
    against = "every other owner by itself"
    learns = (
        "in every round, whether it was asked, by a coin that its rank weighs: as much as ε says, while "
        "owners that are asked deliver; the time of an ask may tell more"
    )
    curator_sees = (
        "the curator is handed every point that it asks for, in the clear, hundreds for each that is chosen, "
        "and the consumer the chosen ones: owners have to trust them with these"
    )

    @classmethod
    def small_keys(cls, *, owners: int, rounds: int, delta: float) -> Keys:
        """An ε that is large enough for few owners, and not too large for the coins."""
        for epsilon in _EPSILONS:
            with suppress(ConfigError):
                cls(LogisticParameters(epsilon=epsilon), owners=owners, rounds=rounds, delta=delta)
                return {"epsilon": epsilon}
        raise ConfigError(
            f"The rule {cls.name} is not for {owners} owners and {rounds} rounds.",
            advice=f"Give more owners, at least {cls.fewest_owners}, or fewer rounds.",
        )

    def __init__(self, parameters: LogisticParameters, *, owners: int, rounds: int, delta: float) -> None:
        super().__init__(parameters, owners=owners, rounds=rounds, delta=delta)
        target = ask_epsilon(parameters.epsilon, (1.0 - SLACK_SHARE) * delta, rounds)
        missed = min(MISSED_SHARE, SLACK_SHARE / (1.0 + math.exp(min(target, 700.0)))) * delta / rounds
        # n_r is off by less than one, and its log-odds by less than 2 over the smaller of n_r and 2^53 - n_r.
        rounding = 4.0 / (COINS * min(missed, LEAST_PROBABILITY))
        if rounding > 0.1 * target:
            raise ConfigError(
                f"acquisition.rule: logistic cannot have epsilon = {parameters.epsilon:g} in {rounds} rounds "
                f"at delta = {delta:g}: its coins of 53 bits are too coarse to miss the best point with "
                f"probability {missed:.2g} where odds change by a factor of e^{target:.2g} per rank.",
                advice="Choose the rule sealed, or ask-all, or another epsilon or delta.",
            )
        self.slope = target - rounding
        """Slope of the log-odds per rank: η up to rounding."""
        self.middle = 1.0 + math.log(1.0 / missed - 1.0) / self.slope
        """r0: the rank that is asked with probability one half."""
        if self.middle >= owners:
            raise ConfigError(
                f"acquisition.rule: logistic is not for {owners} owners. With epsilon = "
                f"{parameters.epsilon:g}, delta = {delta:g} and {rounds} rounds it asks nearly all down "
                f"to rank r0 = {self.middle:.0f}, so that it would ask nearly all.",
                advice="Choose the rule sealed, or ask-all: logistic is for thousands of owners.",
            )
        accepted = _accepted_coins(self.slope, self.middle, owners)
        self.probabilities: npt.NDArray[np.float64] = accepted / COINS
        """Probabilities of being asked, by rank from 1: float64 of shape (K,), multiples of 2^-53. Exact."""
        self.probabilities.flags.writeable = False
        self.eta = _largest_step(accepted)
        """η: the largest difference of log-odds between neighbouring ranks."""
        self.missed = 1.0 - float(self.probabilities[0])
        """q: probability that the best available point is not asked for in a round."""

    @property
    def failure(self) -> float:
        """p·q: upper bound on the probability that any round misses the best available point."""
        return self.rounds * self.missed

    @property
    def expected_points(self) -> float:
        """About p·r0, and less than p·(r0 + ln 2/η) + p·K·2^-26; more with many bids of equal score."""
        return self.rounds * float(self.probabilities.sum())

    def costs(self) -> tuple[Cost, ...]:
        """The cost of all p rounds, as ranks may differ in any of them."""
        return (BoundedRangeCost(eta=self.eta, count=self.rounds),)

    @property
    def slack(self) -> tuple[float, float]:
        """-p·ln(1 - q) on ε, p·q·(1 + e^η) on δ."""
        return -self.rounds * math.log1p(-self.missed), self.failure * (1.0 + math.exp(self.eta))

    def draws(self) -> tuple[Draw, ...]:
        """A coin per owner."""
        return (Draw("uniform", 1.0, self.owners),)

    def ask(
        self, stage: int, standings: Sequence[BidStanding], obtained: frozenset[str], noise: Noise
    ) -> tuple[str, ...]:
        """The owners whose coin is low enough for their rank, and whose point has not arrived."""
        (coins,) = noise
        return tuple(
            standing.owner
            for standing in standings
            if standing.owner not in obtained
            and coins[standing.position] < self.probabilities[standing.rank - 1]
        )


def _accepted_coins(slope: float, middle: float, owners: int) -> npt.NDArray[np.float64]:
    """2^53·p_r, rounded up, for ranks 1 to K: whole numbers, float64 of shape (K,)."""
    distances = slope * (np.arange(1, owners + 1) - middle)
    smaller = 1.0 / (1.0 + np.exp(np.minimum(np.abs(distances), 700.0)))
    # The smaller of the two probabilities is accurate; the larger is computed as its complement.
    asked = np.ceil(COINS * np.maximum(smaller, LEAST_PROBABILITY))
    accepted: npt.NDArray[np.float64] = np.where(distances < 0.0, COINS - np.floor(COINS * smaller), asked)
    return accepted


def _largest_step(accepted: npt.NDArray[np.float64]) -> float:
    """The largest difference of ln(n/(2^53 - n)) between neighbouring ranks, plus a margin for float64."""
    log_odds = np.log(accepted) - np.log(COINS - accepted)
    return float(np.abs(np.diff(log_odds)).max()) * (1.0 + 1e-9) + 1e-12
