"""A session and the faults in it, all drawn from one seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from hushbid.evidence.sweep.small_session import Tendering, goes_with, small_session
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import UNRECORDED, Crash

__all__ = ["FaultKind", "LineFault", "SweepPlan", "Way", "plan_of"]

ROUNDS: Final = (4, 6, 8, 12)
BLIND_ROUNDS: Final = (3, 4, 6, 8)
"""Rounds where the consumer computes the weights, which makes rounds slower."""
BATCHES: Final = (1, 2, 3)
MOST_OWNERS: Final = 5
MOST_ROWS: Final = 12
"""Most rows of an owner. With one to this many rows, many owners run out."""
HASTY: Final = TimeoutSection(
    enrolment=8.0,
    round=2.0,
    pause=5.0,
    delivery=5.0,
    comeback=1.5,
    closing=1.5,
    beat=0.25,
    silence=1.0,
    abandon=8.0,
)
"""Time-outs shorter than faults."""
PATIENT: Final = TimeoutSection(
    enrolment=120.0, round=120.0, pause=120.0, delivery=120.0, comeback=60.0, closing=60.0, abandon=120.0
)
"""Time-outs within which every fault of a mild session is over."""
MILD: Final = 0.6
"""Longest fault of a mild session, in seconds."""
HARD: Final = 4.0
"""Longest fault of any other session, in seconds."""


class FaultKind(StrEnum):
    """A fault of a peer's connection."""

    DELAY = "delay"
    """Frames take longer, each by a different time."""
    DUPLICATION = "duplication"
    """Numbered frames arrive twice."""
    CLOG = "clog"
    """Nothing arrives for a while, and then everything at once."""
    PARTITION = "partition"
    """Nothing arrives, one way or both, and no connection can be made."""
    RESET = "reset"
    """The connection ends and loses some frames in flight; the rest may arrive late."""
    SILENT_LOSS = "silent-loss"
    """The connection silently stops carrying anything; neither end is told."""
    QUEUE_FULL = "queue-full"
    """The curator cannot send to it."""
    GARBLE = "garble"
    """Somebody on the line adds, removes or changes bytes of frames. Whatever does not decrypt is not a
    frame, and ends the connection. A line may be garbled for a while, handshakes included.
    """
    TAKEN_OUT = "taken-out"
    """Somebody on the line removes a whole numbered frame: only the gap before the next one reveals it."""


_UNGARBLED: Final = tuple(kind for kind in FaultKind if kind not in (FaultKind.GARBLE, FaultKind.TAKEN_OUT))
"""Kinds that a seed chooses among first. They are older than garbled lines, so seeds keep their other
faults."""


class Way(StrEnum):
    """The direction of a fault."""

    TO_CURATOR = "to the curator"
    FROM_CURATOR = "from the curator"
    BOTH = "both ways"


class LineFault(NamedTuple):
    """A fault between a peer and the curator.

    Attributes:
        after: Number of frames of the session sent before it begins.
        seconds: How long it lasts. For a reset: the delay of frames that still arrive. For a delay: four
            times its mean. At least one frame is garbled, whenever it comes.
    """

    kind: FaultKind
    peer: str
    after: int
    seconds: float
    way: Way

    @property
    def name(self) -> str:
        """The name under which it is counted."""
        if self.kind is FaultKind.PARTITION:
            return "partition of both ways" if self.way is Way.BOTH else "partition of one way"
        return self.kind.value

    def __str__(self) -> str:
        lasts = f"{self.seconds:.3f} s, after frame {self.after}"
        return f"{self.kind.value} of {self.peer}, {self.way.value}, {lasts}"


@dataclass(frozen=True)
class SweepPlan:
    """A session and its faults.

    Attributes:
        seed: Determines everything.
        distinct: Whether a point held by several owners is bought once; if so, owners share many points.
        commits: Whether owners commit to their rows first.
        tendering: Terms under `tender`; None: another rule.
        cadence: Seconds per round if rounds end by the clock; None: a round ends with its slowest owner.
        rows: Number of points of each owner.
        mild: Whether no fault outlasts the session's patience and nobody breaks the protocol. The result must
            then be the same as without faults.
        latency: Mean travel time of a frame, in seconds.
        healed: Simulated time after which there are no more faults, in seconds.
        byzantine: Owners that break the protocol, and the share of their frames that they change.
        crashes: Processes that die, if they get as far as the planned step.
    """

    seed: int
    rule: str
    release: str
    rounds: int
    batch: int
    distinct: bool
    commits: bool
    tendering: Tendering | None
    min_owners: int
    cadence: float | None
    rows: tuple[int, ...]
    mild: bool
    latency: float
    healed: float
    byzantine: tuple[tuple[str, float], ...]
    faults: tuple[LineFault, ...]
    crashes: tuple[Crash, ...]

    @property
    def owners(self) -> tuple[str, ...]:
        return _names(len(self.rows))

    @cached_property
    def session(self) -> Session:
        owners = len(self.rows)
        file = _session(
            self.rule,
            release=self.release,
            rounds=self.rounds,
            owners=owners,
            batch=self.batch,
            distinct=self.distinct,
            commits=self.commits,
            tendering=self.tendering,
        ).file
        section = file.session.model_copy(
            update={"min_owners": self.min_owners, "fixed_cadence": self.cadence}
        )
        changes = {"session": section, "timeouts": PATIENT if self.mild else HASTY}
        return open_session(file.model_copy(update=changes))

    @property
    def limit(self) -> float:
        """Simulated seconds within which the session must have ended, by its own time-outs.

        After the faults come: enrolment, and again for the map where owners commit; in each round, bids, an
        ask to every owner in turn, and a wait for a missing peer, or else the cadence; a pause; delivery;
        closing; and finally the time after which a peer that missed the end gives up the curator.
        """
        timeouts = self.session.file.timeouts
        in_a_round = timeouts.round * (1 + len(self.rows)) + timeouts.comeback
        before = timeouts.enrolment * (1 + self.commits) + timeouts.pause + timeouts.delivery
        after = timeouts.closing + timeouts.comeback + timeouts.abandon + timeouts.enrolment
        return self.healed + before + self.rounds * in_a_round + after

    def fewer(self) -> Iterator[SweepPlan]:
        """This plan without one of its faults, for each fault in turn."""
        for name in ("byzantine", "crashes", "faults"):
            items: tuple[Any, ...] = getattr(self, name)
            for place in range(len(items)):
                fewer: Any = {name: (*items[:place], *items[place + 1 :])}
                yield replace(self, **fewer)

    def words(self) -> list[str]:
        told = [
            f"{self.rule} with {self.release}, {self.rounds} rounds of {self.batch}, "
            f"{'each point once, ' if self.distinct else ''}"
            f"{'owners commit, ' if self.commits else ''}{_terms_in_words(self.tendering)}"
            "points of the owners: "
            f"{', '.join(map(str, self.rows))}, min_owners = {self.min_owners}, "
            f"{f'a round every {self.cadence:.2f} s, ' if self.cadence else ''}"
            f"{'mild' if self.mild else 'hard'} faults until {self.healed:.2f} s, "
            f"latency {self.latency:.4f} s"
        ]
        told += [f"{owner} breaks the protocol in {rate:.0%} of its frames" for owner, rate in self.byzantine]
        told += [str(fault) for fault in self.faults]
        for party, step, left, down in self.crashes:
            how = "before that is on record" if left == UNRECORDED else f"after {left} of its frames"
            told.append(f"crash of {party} at step {step}, {how}, for {down:.3f} s")
        return told


def plan_of(seed: int, rules: Sequence[str] = ()) -> SweepPlan:
    """The plan of a seed.

    Args:
        rules: Acquisition rules to choose from; none: all.
    """
    kind, of_faults, of_crashes, sizes, copies, terms, commits, of_garbles = (
        np.random.default_rng([seed, place]) for place in range(8)
    )
    names_of_rules = tuple(rules) or tuple(RULES)
    rule = names_of_rules[int(kind.integers(len(names_of_rules)))]
    blind = RULES[rule].blind
    fewest = max(2, RULES[rule].fewest_owners)
    count = int(kind.integers(fewest, MOST_OWNERS + 1))
    owners = _names(count)
    rounds = int(kind.choice(BLIND_ROUNDS if blind else ROUNDS))
    batch = int(sizes.choice(BATCHES)) if RULES[rule].candidate_with_bid else 1
    mild = bool(kind.random() < 0.25)
    release = tuple(RELEASES)[int(kind.integers(len(RELEASES)))]
    if not goes_with(rule, release):
        release = "filtered-gaussian"
    min_owners = 1 if kind.random() < 0.5 else int(kind.integers(1, count + 1))
    cadence = None if mild or kind.random() < 0.8 else float(kind.uniform(0.1, 0.6))
    longest = MILD if mild else HARD
    garbles = int(of_garbles.choice([0, 0, 1, 1, 2]))
    # The loss of a frame that nothing follows shows only when its round is over, so it is no mild fault.
    on_the_line = (FaultKind.GARBLE,) if mild else (FaultKind.GARBLE, FaultKind.GARBLE, FaultKind.TAKEN_OUT)
    return SweepPlan(
        seed=seed,
        rule=rule,
        release=release,
        rounds=rounds,
        batch=batch,
        # A blind curator cannot tell which points are copies.
        distinct=RULES[rule].candidate_with_bid and not blind and bool(copies.random() < 0.3),
        commits=RULES[rule].sealed and bool(commits.random() < 0.5),
        tendering=_tendering(terms, release, rounds * batch, count) if RULES[rule].herds else None,
        min_owners=min_owners,
        cadence=cadence,
        rows=tuple(int(rows) for rows in kind.integers(1, MOST_ROWS + 1, size=count)),
        mild=mild,
        latency=float(10 ** kind.uniform(-3, -1.5)),
        healed=30.0 if mild else float(kind.uniform(2.0, 15.0)),
        byzantine=() if mild else _byzantine(kind, owners),
        faults=(
            *_faults(
                of_faults, owners, rounds, longest, int(of_faults.integers(0, 7)), _UNGARBLED, blind=blind
            ),
            *_faults(of_garbles, owners, rounds, longest, garbles, on_the_line, blind=blind),
        ),
        crashes=_crashes(of_crashes, owners, rounds, longest, blind=blind),
    )


def _tendering(rng: np.random.Generator, release: str, points: int, owners: int) -> Tendering:
    """Terms that allow this many points to be bought, if owners have enough."""
    fewest = -(-points // owners)
    submission = points if rng.random() < 0.5 else int(rng.integers(fewest, points + 1))
    prices = tuple(map(int, rng.integers(1, 5, size=owners))) if rng.random() < 0.4 else ()
    caps = tuple(map(int, rng.integers(fewest, points + 1, size=owners))) if rng.random() < 0.4 else ()
    budget = None
    if prices and rng.random() < 0.5:
        budget = int(rng.integers(_least(points, submission, prices, caps), points * max(prices) + 1))
    can_nest = "epsilon_curator" in RELEASES[release].Parameters.model_fields
    return Tendering(
        messages=int(rng.integers(1, 4)),
        submission=submission,
        prices=prices,
        budget=budget,
        caps=caps,
        nested=can_nest and bool(rng.random() < 0.5),
    )


def _least(points: int, submission: int, prices: Sequence[int], caps: Sequence[int]) -> int:
    """The least cost of this many points, if each owner has as many as it submits."""
    room = caps or [submission] * len(prices)
    one_each = sorted(
        price for price, most in zip(prices, room, strict=True) for _ in range(min(most, submission))
    )
    return sum(one_each[:points])


def _terms_in_words(tender: Tendering | None) -> str:
    if tender is None:
        return ""
    told = [f"{tender.submission} points of each owner in up to {tender.messages} messages"]
    told += [f"prices {', '.join(map(str, tender.prices))}"] if tender.prices else []
    told += [f"a budget of {tender.budget}"] if tender.budget is not None else []
    told += [f"caps {', '.join(map(str, tender.caps))}"] if tender.caps else []
    told += ["a finer release for the curator"] if tender.nested else []
    return f"{', '.join(told)}, "


def _byzantine(rng: np.random.Generator, owners: Sequence[str]) -> tuple[tuple[str, float], ...]:
    if rng.random() < 0.5:
        return ()
    chosen = rng.permutation(len(owners))[: int(rng.integers(1, len(owners)))]
    return tuple((owners[place], float(rng.choice([0.05, 0.2, 0.5]))) for place in sorted(chosen))


def _faults(
    rng: np.random.Generator,
    owners: Sequence[str],
    rounds: int,
    longest: float,
    many: int,
    kinds: Sequence[FaultKind],
    *,
    blind: bool,
) -> tuple[LineFault, ...]:
    peers = (*owners, CONSUMER)
    frames = len(peers) * 3 + rounds * len(owners) * 2
    if blind:  # the consumer takes part in every round
        peers, frames = (*peers, CONSUMER), frames + 2 * rounds
    found = []
    for _ in range(many):
        # Some faults begin after the last round.
        after = int(rng.integers(1, frames + len(peers)))
        kind, way = kinds[int(rng.integers(len(kinds)))], tuple(Way)[int(rng.integers(len(Way)))]
        seconds = float(longest * rng.random() ** 2)
        if kind is FaultKind.RESET:
            seconds = float(min(seconds, 1.0) * (rng.random() < 0.5))
        found.append(LineFault(kind, peers[int(rng.integers(len(peers)))], after, seconds, way))
    return tuple(sorted(found, key=lambda fault: fault.after))


def _crashes(
    rng: np.random.Generator, owners: Sequence[str], rounds: int, longest: float, *, blind: bool
) -> tuple[Crash, ...]:
    parties = (CURATOR, CONSUMER, *owners)
    in_rounds = 2 * rounds if blind else 0  # the curator's steps for the consumer's frames
    found = []
    for _ in range(int(rng.choice([0, 0, 1, 1, 2, 3]))):
        # The curator takes most steps, so half of the crashes are its own.
        party = CURATOR if rng.random() < 0.4 else parties[int(rng.integers(len(parties)))]
        if blind and party != CURATOR and rng.random() < 0.4:
            party = CONSUMER
        steps = {
            CURATOR: 3 * len(parties) + rounds * len(owners) + in_rounds,
            CONSUMER: 6 + rounds if blind else 7,
        }.get(party, 6 + rounds)
        step, left = int(rng.integers(steps)), int(rng.integers(UNRECORDED, 3))
        found.append(Crash(party, step, left, float(0.01 + longest * rng.random() ** 2)))
    return tuple(sorted(found))


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"owner-{number}" for number in range(count))


_session: Final = lru_cache(maxsize=256)(small_session)
