"""A settlement with its noise, and the numbers that owners should be paid by, which pay nothing for noise.

The exact settlement (`hushbid.protocol.session.settling.settle`) adds up gains of J in the order of purchase.
Its sum shows the total gain, but not who contributed it. Once there are many points of a kind, further ones
lose, whoever owns them; later points of other owners compensate for that and get the credit.

The statement divides the same gain independently of any order. Let c be the seed set's mean, δ = g̃ - c and
a_i = Σ (e(x) - c)/n over owner i's points. n counts the bought points, and the seed set's by their weight.
e(x) is the noiseless part of a release of x alone (`ReleaseStream.embedding`: clipped if the target's points
were). Then

    value_i = a_iᵀ(2δ - Σ_j a_j),        Σ_i value_i = ‖δ‖² - ‖δ - Σ_j a_j‖²:

which is the decrease of the squared distance to the released target, starting from the seed set's mean. This
is the Aumann-Shapley value of J: each point's marginal gain, averaged along the path on which all points
enter together. Copies of an owner under another name change no other owner's value.

Noise. Only g̃ is noisy here, as the curator has φ of the bought points. Both numbers are linear in g̃, so the
standard error is that of g̃, σ/m per coordinate, times the length of the factor of g̃: 2·a_i here, Σ 2/(q +
1)·(φ(x) - g) in the exact settlement. That holds for given points, but the same noise chose them. If g̃ is
mostly noise, the points lie in its direction, and their numbers come out at two or three standard errors. So
two rules precede a payment:

1. Nobody is paid unless ‖δ‖² exceeds what noise alone gives in 99 of 100 sessions, and does not exceed the
   squared distance of the two farthest possible points: a target farther out is all noise.
2. An owner is paid its value if that is at least two standard errors, and otherwise nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hushbid.protocol.privacy.payment import Errors
from hushbid.protocol.privacy.releases import ReleaseStream, Statistic
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import Disputed, HandedOver, additions
from hushbid.protocol.space.grid import features_to_float
from hushbid.protocol.space.mmd import Vector
from hushbid.protocol.wire.messages import Target

__all__ = ["GAINED", "Noise", "gain_errors", "shared_gains", "target_noise"]

GAINED: Final = "gain, shared out without an order"
"""The unit of `shared_gains`."""

_QUANTILE: Final = 2.3263
"""Quantile 0.99 of the standard normal distribution."""
_ROWS: Final = 4096
"""Points whose statistic is computed at a time."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What is known about the noise of g̃.

    Attributes:
        deviation: Standard deviation in any of its directions, in units of φ; None if unknown.
        directions: Number of its directions.
        square: ‖g̃ - c‖², where c is the seed set's mean.
        farthest: Largest possible distance between two points, and so between means.
    """

    deviation: float | None
    directions: int
    square: float
    farthest: float

    @property
    def signal(self) -> bool | None:
        """Whether g̃ lies farther from the seed set than noise alone does in 99 of 100 sessions.

        False if it lies farther than any points: it is then mostly noise.
        """
        if self.deviation is None:
            return None
        return self.deviation**2 * _largest_square(self.directions) < self.square <= self.farthest**2

    def error(self, slope: Vector) -> float | None:
        """Standard error of slopeᵀg̃, slope of shape (d,); an upper bound if noise has fewer directions."""
        return None if self.deviation is None else self.deviation * float(np.linalg.norm(slope))


def _largest_square(directions: int) -> float:
    """Quantile 0.99 of χ² (Wilson and Hilferty 1931): to 1 % from 3 directions on."""
    share = 2.0 / (9.0 * directions)
    return directions * (1.0 - share + _QUANTILE * math.sqrt(share)) ** 3


def target_noise(session: Session, target: Target) -> Noise:
    """The noise of a session's target, from its mechanism; it does not depend on data."""
    stream = _stream(session, target)
    directions, dimension = session.target.noise_directions, session.target.dimension
    error = stream.error
    # Of d coordinates alike; where noise has fewer directions, each has more of it.
    deviation = None if error is None else error / target.size * math.sqrt(dimension / directions)
    offset = target.embedding - features_to_float(stream.prior.centre)
    return Noise(deviation, directions, float(offset @ offset), 2.0 * session.space.norm_bound)


def gain_errors(
    wins: Sequence[HandedOver],
    disputed: Disputed,
    owners: Sequence[str],
    target: Target,
    noise: Noise,
    seed_weight: float,
) -> Errors:
    """Standard error of each owner's number in the exact settlement (`settle`, with its arguments)."""
    slopes = {owner: np.zeros(len(target.embedding)) for owner in owners}
    for win, features, mean, size in additions(wins, target.seed_total, target.seed_size, seed_weight):
        if not win.is_in(disputed):
            # Slope of J(S+x) - J(S) in g̃ (`hushbid.protocol.space.mmd.gain_constant`).
            slopes[win.owner] += 2.0 / (size + 1) * (features - mean)
    return {owner: noise.error(slope) for owner, slope in slopes.items()}


def shared_gains(
    wins: Sequence[HandedOver],
    disputed: Disputed,
    owners: Sequence[str],
    session: Session,
    target: Target,
    noise: Noise,
) -> tuple[Mapping[str, float], Errors]:
    """Each owner's value and its standard error (see above), without unit, like squared distances of φ.

    The arguments are those of `gain_errors`; wins may be in any order.
    """
    stream = _stream(session, target)
    centre = features_to_float(stream.prior.centre)
    count = len(wins) + session.file.seed_weight * target.seed_size

    def moved(chosen: Sequence[HandedOver]) -> Vector:
        """Σ (e(x) - c)/n."""
        if not chosen:
            return np.zeros(len(centre))
        embedded = stream.embedding(_total(chosen, stream.statistic), len(chosen))
        return np.asarray((embedded - centre) * (len(chosen) / count))

    way = 2.0 * (target.embedding - centre) - moved(wins)
    parts = {owner: moved(paid) for owner, paid in _by_owner(wins, disputed, owners).items()}
    values = {owner: float(part @ way) for owner, part in parts.items()}
    return values, {owner: noise.error(2.0 * part) for owner, part in parts.items()}


def _by_owner(
    wins: Sequence[HandedOver], disputed: Disputed, owners: Sequence[str]
) -> Mapping[str, list[HandedOver]]:
    found: dict[str, list[HandedOver]] = {owner: [] for owner in owners}
    for win in wins:
        if not win.is_in(disputed):
            found[win.owner].append(win)
    return found


def _total(wins: Sequence[HandedOver], statistic: Statistic) -> Any:
    """Σ of the points' statistic, int64 of shape (width,)."""
    of: Callable[[Any], Any] = statistic.of
    parts = [wins[start : start + _ROWS] for start in range(0, len(wins), _ROWS)]
    return sum(of(np.stack([win.candidate.features for win in part])).sum(axis=0) for part in parts)


def _stream(session: Session, target: Target) -> ReleaseStream:
    return session.target.stream(prior=prior_of(target))
