"""Releases by the consumer and the curator: one interface for every release mechanism (DESIGN §2).

A mechanism is frozen and answers questions; its streams each release one dataset and hold state.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.privacy.accounting import Cost, merge_costs
from hushbid.protocol.privacy.noise import Draw, drawn_type
from hushbid.protocol.privacy.registry import Parameters
from hushbid.protocol.privacy.releases.aim import Aim
from hushbid.protocol.privacy.releases.prior import Prior
from hushbid.protocol.privacy.releases.random_walk import RandomWalk
from hushbid.protocol.privacy.releases.statistic import Statistic
from hushbid.protocol.space.grid import FEATURE_BITS, FEATURE_UNIT, Totals

__all__ = [
    "Guarantee",
    "Neighbours",
    "PrivateParameters",
    "ReleaseMechanism",
    "ReleaseStream",
    "Setting",
    "largest_coordinate",
    "largest_norm",
]


class Neighbours(StrEnum):
    """The datasets that a guarantee compares. It is stated with every ε, never assumed.

    Under either relation, one point of Σφ is replaced, which changes it by up to 2·max‖φ‖.
    """

    ADD_REMOVE_ONE = "add-remove-one"
    """One record of one owner is added or removed. By the lemma of DESIGN §1 the summary S then differs by
    one substituted point.
    """
    SUBSTITUTE_ONE = "substitute-one"
    """One record of the released set itself, the consumer's D_v, is replaced. Its size is public."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ) of all releases of a mechanism together.

    Attributes:
        epsilon: The ε that holds; None if nothing is guaranteed.
        claimed_epsilon: The ε by the source paper's own arithmetic; None if that equals `epsilon`.
        claimed_delta: The δ of that arithmetic; None with `claimed_epsilon`.
    """

    epsilon: float | None
    delta: float
    claimed_epsilon: float | None
    claimed_delta: float | None


class PrivateParameters(Parameters):
    """The table of a mechanism with a privacy guarantee.

    Attributes:
        neighbours: The datasets that the guarantee compares; without a default, as ε has no meaning without
            it.
    """

    advice: ClassVar[Mapping[str, str]] = {
        "neighbours": 'Say what ε compares: neighbours = "substitute-one" in [target], "add-remove-one" in '
        "[summary]."
    }

    neighbours: Annotated[Neighbours, Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Setting:
    """A mechanism's public task, apart from its own parameters.

    Attributes:
        releases: Number of releases, at least 1.
        norm_bound: Largest ‖φ‖ of the feature map in use (`FeatureMap.norm_bound`).
        delta: The δ for a target ε, in (0, 1).
        starts_public: Whether release 0 contains only public points and so costs nothing.
        seed_weight: s, the weight of a public point relative to a private one, in (0, 1].
        batch: b, the number of private points added in each release.
        rows: Rows of the feature map, if each of them has exactly one nonzero coordinate of a point
            (`FeatureSpace.rows`); 0 for features of another kind.
    """

    dimension: int
    releases: int
    norm_bound: float
    delta: float
    starts_public: bool = False
    rows: int = 0
    seed_weight: float = 1.0
    batch: int = 1

    @property
    def charged(self) -> int:
        """Number of releases that contain private points."""
        return self.releases - 1 if self.starts_public else self.releases


class ReleaseStream:
    """The releases of one dataset, with the state that carries over; `ReleaseMechanism.stream` makes one.

    This class releases the total itself, with its noise. A mechanism that does more overrides `_release` in
    its own `Stream`.

    Attributes:
        deviation: Standard deviation of the remaining noise on a coordinate of Σφ in the last release, in
            units of φ; 0.0 if there was no noise, or the remainder is unknown. It never depends on data.
    """

    mechanism: ReleaseMechanism
    deviation: float = 0.0

    def __init__(self, mechanism: Any, offset: Totals | None, prior: Prior | None) -> None:
        self.mechanism = mechanism
        self._offset = offset
        self._prior = prior

    @property
    def prior(self) -> Prior:
        """Public facts from the seed set (`ReleaseMechanism.known`)."""
        return self.mechanism.known(self._prior)

    @cached_property
    def statistic(self) -> Statistic:
        """The vector that each point adds to a total (`ReleaseMechanism.statistic`)."""
        return self.mechanism.statistic(self._prior)

    @property
    def unit(self) -> float:
        """Root mean square of a coordinate of φ that corresponds to 1 in the statistic's units."""
        return 1.0

    @property
    def error(self) -> float | None:
        """Standard deviation of the noise on a coordinate of Σφ in an unfiltered release.

        It is in units of φ, the root mean square over the d coordinates, and never depends on data. 0.0
        without noise; None if the remaining noise is unknown.
        """
        mechanism = self.mechanism
        if mechanism.sigma is None:
            return None
        return self.unit * mechanism.sigma * math.sqrt(mechanism.noise_directions / mechanism.width)

    def embedding(self, total: Totals, points: int) -> npt.NDArray[np.float64]:
        """The noiseless part of a release about private points, which is linear in their total.

        Args:
            total: Sum of their `statistic`, int64 of shape (statistic.width,).
            points: Their number; positive.

        Returns:
            Their mean, float64 in units of φ, shape (d,).
        """
        return np.asarray(total * (FEATURE_UNIT / points), dtype=np.float64)

    def release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """Make release number `index`: the mean embedding of the public and the private points.

        Args:
            index: From 0 to `releases` - 1, in order.
            total: Sum of the private points' `statistic`, int64 of shape (statistic.width,).
            count: Number of points in the mean, counting public points by their weight; public and positive.
            noise: The noise source's answer to each of `draws(index)`, in order.

        Returns:
            float64 in units of φ (not of the grid), shape (d,), read-only.

        Raises:
            LocalProtocolError: An argument does not fit; the stream's state is unchanged.
        """
        wanted = self.mechanism.draws(index)
        if total.shape != (self.mechanism.width,) or total.dtype != np.int64 or not count > 0:
            raise LocalProtocolError(
                f"Release {index} was asked for {count} points whose total is {total.dtype} {total.shape}."
            )
        if len(noise) != len(wanted) or any(
            given.shape != (draw.size,) or given.dtype != drawn_type(draw)
            for given, draw in zip(noise, wanted, strict=False)
        ):
            raise LocalProtocolError(f"Release {index} was handed other noise than its draws name.")
        released = self._release(index, total, count, noise)
        released.flags.writeable = False
        return released

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """`release`, after its arguments were checked."""
        self.deviation = (self.error or 0.0) if noise else 0.0
        noisy = (total + noise[0] if noise else total) + self.public_sum()
        return np.asarray(noisy * (FEATURE_UNIT / count), dtype=np.float64)

    def private_count(self, count: float) -> int:
        """Number of private points in a mean; public (see `release`)."""
        public = 0.0 if self._offset is None else self.mechanism.setting.seed_weight * self.prior.size
        return round(count - public)

    def public_sum(self) -> npt.NDArray[np.float64] | float:
        """Σφ of the public points times their weight, in units of 2^-15; it needs no noise."""
        if self._offset is None:
            return 0.0
        return self.mechanism.setting.seed_weight * self._offset.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ReleaseMechanism(ABC):
    """How the mean embedding of a set of points is released, once or once a round: the fixed part.

    It answers every question that needs no data, and makes streams, which release (`stream`). It draws no
    noise itself: the driver draws what `draws` requests, records it, and passes it to
    `ReleaseStream.release`.

    Args:
        parameters: This mechanism's keys: an instance of `Parameters`.
    """

    parameters: Any
    setting: Setting

    name: ClassVar[str]
    private: ClassVar[bool]
    Parameters: ClassVar[type[Parameters]] = Parameters
    Stream: ClassVar[type[ReleaseStream]] = ReleaseStream
    planned_keys: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Keys that a plan adds besides its ε, by ``target`` and ``summary``."""
    small_keys: ClassVar[Mapping[str, Any]] = {}
    """Keys besides its ε in a session of eight features, as sweeps and audits run."""
    small_features: ClassVar[Mapping[str, Any]] = {}
    """Keys of ``[features]`` in such a session, if it does not work with the default map."""

    def __post_init__(self) -> None:  # noqa: B027 - optional
        """Check what the parameters' model cannot check without the setting.

        Raises:
            ConfigError: The parameters do not suit this setting.
        """

    @property
    def dimension(self) -> int:
        """Coordinates d of φ."""
        return self.setting.dimension

    @property
    def releases(self) -> int:
        """Number of releases."""
        return self.setting.releases

    @property
    def directions(self) -> int:
        """Number of the seed set's directions that it needs (`Prior.basis`); 0 if none."""
        return 0

    @property
    def width(self) -> int:
        """Coordinates of a point's statistic."""
        return self.dimension

    @property
    def noise_directions(self) -> int:
        """Number of directions of φ in which a release has noise, equally in all of them."""
        return self.width

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the noise on each coordinate of a total, in units of φ.

        0.0 without noise; None if the noise is not on the total.
        """
        return None if self.private else 0.0

    @abstractmethod
    def draws(self, index: int) -> tuple[Draw, ...]:
        """The noise that release number `index`, from 0, needs; independent of data and of the prior."""

    @abstractmethod
    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """The guarantee of all `releases` releases together, at δ.

        Raises:
            ConfigError: `delta` outside of (0, 1).
        """

    @abstractmethod
    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The cost of release number `index`, from 0; empty if it contains only public points."""

    def costs(self, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The cost of all releases together; all but the first cost the same."""
        first = self.cost(0, neighbours=neighbours)
        if self.releases == 1:
            return first
        one = self.cost(1, neighbours=neighbours)
        more = [replace(cost, count=cost.count * (self.releases - 1)) for cost in one]
        return merge_costs([*first, *more])

    def statistic(self, prior: Prior | None) -> Statistic:
        """The integer vector that each point adds to a released total: φ, unless overridden.

        Raises:
            LocalProtocolError: It depends on a prior that is not known yet.
        """
        return Statistic.identity(self.dimension)

    def aim(self, embedding: npt.NDArray[np.float64], prior: Prior) -> Aim:
        """What rows whose statistic this is have to come to, to have a released mean embedding.

        Args:
            embedding: As released, shape (d,).
        """
        return Aim.of(self.statistic(prior), embedding / FEATURE_UNIT)

    def walk(self, prior: Prior) -> RandomWalk | None:
        """The filter's model of noisy totals; None if there is no filter."""
        return None

    def stream(self, offset: Totals | None = None, prior: Prior | None = None) -> ReleaseStream:
        """A new stream of releases of one dataset.

        Args:
            offset: Σφ of the public points that enter a mean besides the private ones, without noise: the
                seed set's, for a summary. int64 of shape (d,) in units of 2^-15; None: there are none.
            prior: Public facts about private points, from the seed set, if any.
        """
        return self.Stream(self, offset, prior)

    def known(self, prior: Prior | None) -> Prior:
        """The prior, which must be known.

        Raises:
            LocalProtocolError: It is not known yet.
        """
        if prior is None:
            raise LocalProtocolError(f"A {self.name} release was asked for before the seed set was known.")
        return prior

    def shows_public(self, index: int) -> bool:
        """Whether a release contains only public points.

        Raises:
            LocalProtocolError: `index` is not in 0..releases - 1: no guarantee covers it.
        """
        if not 0 <= index < self.releases:
            raise LocalProtocolError(f"Release {index} of {self.releases} was asked for.")
        return index == 0 and self.setting.starts_public


def largest_coordinate(dimension: int) -> int:
    """Largest |φ_i| that any feature map of this dimension has, in grid units, rounding included.

    √(2/d) before rounding, which moves a pair of coordinates on the circle of that radius by √½ at most;
    1/16 in the square is slack for the float64 of this function.
    """
    radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / dimension)
    return math.isqrt(math.floor((radius + math.sqrt(0.5)) ** 2 + 1 / 16))


def largest_norm(dimension: int) -> float:
    """Largest ‖φ‖ that any feature map of this dimension has, rounding included: about √2."""
    return math.sqrt(dimension) * largest_coordinate(dimension) * FEATURE_UNIT
