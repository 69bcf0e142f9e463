"""Releases of the consumer and the curator: one interface for every release mechanism (DESIGN §2).

A mechanism is frozen and answers questions; a stream of it releases one dataset, and keeps state.
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

from protocol.errors import ConfigError, LocalProtocolError
from protocol.privacy.accounting import Cost, merge_costs
from protocol.privacy.noise import Draw, drawn_type
from protocol.privacy.registry import Parameters
from protocol.privacy.releases.prior import Prior
from protocol.privacy.releases.random_walk import RandomWalk
from protocol.privacy.releases.statistic import Statistic
from protocol.space.grid import FEATURE_BITS, FEATURE_UNIT, Totals

__all__ = [
    "Guarantee",
    "Neighbours",
    "PrivateParameters",
    "ReleaseMechanism",
    "ReleaseStream",
    "Setting",
    "check_delta",
    "largest_coordinate",
    "largest_norm",
]


class Neighbours(StrEnum):
    """Which datasets a guarantee compares. Stated wherever ε is, never assumed.

    Either way Σφ changes by one point for another, hence by up to 2·max‖φ‖.
    """

    ADD_REMOVE_ONE = "add-remove-one"
    """One record of one owner is there or not. By the lemma of DESIGN §1 the summary S then differs by
    one substituted point."""
    SUBSTITUTE_ONE = "substitute-one"
    """One record of the released set itself, the consumer's D_v, is another. Its size is public."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ) of all releases of a mechanism together.

    Attributes:
        epsilon: The ε that holds; None where nothing is guaranteed.
        delta: The δ it holds with.
        claimed_epsilon: The ε by the source paper's own arithmetic; None where that is `epsilon`.
        claimed_delta: The δ of that arithmetic; None with `claimed_epsilon`.
    """

    epsilon: float | None
    delta: float
    claimed_epsilon: float | None
    claimed_delta: float | None


class PrivateParameters(Parameters):
    """The table of a mechanism that protects somebody.

    Attributes:
        neighbours: The datasets that the guarantee compares. There is no default: what ε means depends on it.
    """

    advice: ClassVar[Mapping[str, str]] = {
        "neighbours": 'Say what ε compares: neighbours = "substitute-one" in [target], "add-remove-one" in '
        "[summary]."
    }

    neighbours: Annotated[Neighbours, Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Setting:
    """The public task of a mechanism, besides its own parameters.

    Attributes:
        dimension: Coordinates d of φ.
        releases: How many releases will be made, at least 1.
        norm_bound: Largest ‖φ‖ of the feature map in use (`FeatureMap.norm_bound`).
        delta: The δ at which a target ε is to hold, in (0, 1).
        starts_public: Whether release 0 is of the public points alone, so that it costs nobody anything.
        seed_weight: s, what a public point counts for beside a private one, in (0, 1].
        batch: b, how many private points more each release has than the one before.
        rows: Rows of the feature map, in each of which one coordinate of a point is not 0
            (`FeatureSpace.rows`); 0: features are of another kind.
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
        """How many of the releases have private points in them."""
        return self.releases - 1 if self.starts_public else self.releases


class ReleaseStream:
    """The releases of one dataset, with the state that goes from one to the next.

    This one releases the total itself, with the noise that is on it. Where more is done, a mechanism's own
    `Stream` overrides `_release`.

    Attributes:
        mechanism: The mechanism of these releases.
        deviation: Standard deviation of what noise left on a coordinate of Σφ in the last release, in units
            of φ; 0.0: there was no noise, or what it leaves is not known. It never depends on data.

    Args:
        mechanism: As above.
        offset: As `ReleaseMechanism.stream` has it.
        prior: Likewise.
    """

    mechanism: ReleaseMechanism
    deviation: float = 0.0

    def __init__(self, mechanism: Any, offset: Totals | None, prior: Prior | None) -> None:
        self.mechanism = mechanism
        self._offset = offset
        self._prior = prior

    @property
    def prior(self) -> Prior:
        """What the public seed set tells (`ReleaseMechanism.known`)."""
        return self.mechanism.known(self._prior)

    @cached_property
    def statistic(self) -> Statistic:
        """What each point adds to a total (`ReleaseMechanism.statistic`)."""
        return self.mechanism.statistic(self._prior)

    @property
    def unit(self) -> float:
        """Root mean square of a coordinate of φ, in its units, where those of the statistic have 1."""
        return 1.0

    @property
    def error(self) -> float | None:
        """Standard deviation of the noise on a coordinate of Σφ in a release that no filter has seen.

        In units of φ, the root mean square over the d coordinates; it never depends on data. 0.0 where there
        is no noise; None where what noise leaves is not known.
        """
        mechanism = self.mechanism
        if mechanism.sigma is None:
            return None
        return self.unit * mechanism.sigma * math.sqrt(mechanism.noise_directions / mechanism.width)

    def embedding(self, total: Totals, points: int) -> npt.NDArray[np.float64]:
        """The noiseless part of a release about private points: linear in their total.

        Args:
            total: Sum of their `statistic`, int64 of shape (statistic.width,).
            points: How many they are; positive.

        Returns:
            Their mean, float64 in units of φ, shape (d,).
        """
        return np.asarray(total * (FEATURE_UNIT / points), dtype=np.float64)

    def release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """Release number `index`: the mean embedding of the public points and the private ones.

        Args:
            index: From 0 to `releases` - 1, in order.
            total: Sum of the private points' `statistic`, int64 of shape (statistic.width,).
            count: Number of points that the mean is over, the public ones among them by their weight; public
                and positive.
            noise: What a noise source answered to each of `draws(index)`, in order.

        Returns:
            float64 in units of φ (not of the grid), shape (d,), read-only.

        Raises:
            LocalProtocolError: An argument that does not fit; the stream's state is as it was.
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
        """How many of the points that a mean is over are private; public (`release`)."""
        public = 0.0 if self._offset is None else self.mechanism.setting.seed_weight * self.prior.size
        return round(count - public)

    def public_sum(self) -> npt.NDArray[np.float64] | float:
        """Σφ of the public points by their weight, in units of 2^-15: it needs no noise."""
        if self._offset is None:
            return 0.0
        return self.mechanism.setting.seed_weight * self._offset.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ReleaseMechanism(ABC):
    """How the mean embedding of a set of points is released, once or once a round: all that is fixed of it.

    It answers whatever can be asked without data, and makes streams, which release (`stream`). It draws no
    noise itself: the driver draws what `draws` names, records it, and hands it to `ReleaseStream.release`.

    Args:
        parameters: Keys of this mechanism: an instance of `Parameters`.
        setting: What it is to release.
    """

    parameters: Any
    setting: Setting

    name: ClassVar[str]
    private: ClassVar[bool]
    Parameters: ClassVar[type[Parameters]] = Parameters
    Stream: ClassVar[type[ReleaseStream]] = ReleaseStream
    planned_keys: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Keys that a plan gives it besides its ε, by ``target`` and ``summary``."""
    small_keys: ClassVar[Mapping[str, Any]] = {}
    """Keys that a session of eight features gives it besides its ε: sweeps and audits make such."""
    small_features: ClassVar[Mapping[str, Any]] = {}
    """Keys of ``[features]`` in such a session, where it is not for the default map."""

    def __post_init__(self) -> None:  # noqa: B027 - optional
        """Check what the parameters' model cannot, for which it does not know the setting.

        Raises:
            ConfigError: They are not for this setting.
        """

    @property
    def dimension(self) -> int:
        """Coordinates d of φ."""
        return self.setting.dimension

    @property
    def releases(self) -> int:
        """How many releases there are."""
        return self.setting.releases

    @property
    def directions(self) -> int:
        """Directions of the seed set that it has to know (`Prior.basis`); 0: none."""
        return 0

    @property
    def width(self) -> int:
        """Coordinates of a point's statistic."""
        return self.dimension

    @property
    def noise_directions(self) -> int:
        """In how many directions of φ a release has noise, in all of them alike."""
        return self.width

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the noise on each coordinate of a total, in units of φ.

        0.0 where there is no noise; None where noise is on something else than the total.
        """
        return None if self.private else 0.0

    @abstractmethod
    def draws(self, index: int) -> tuple[Draw, ...]:
        """The noise that release number `index`, from 0, needs. Never depends on data, nor on the prior."""

    @abstractmethod
    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """The guarantee of all `releases` releases together.

        Args:
            neighbours: The datasets that are compared.
            delta: The δ to state ε for, in (0, 1).

        Raises:
            ConfigError: `delta` outside of (0, 1).
        """

    @abstractmethod
    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The cost of release number `index`, for an accountant; nothing, if it shows public points alone.

        Args:
            index: From 0 to `releases` - 1.
            neighbours: The datasets that are compared.
        """

    def costs(self, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The cost of all releases together; those after the first are alike.

        Args:
            neighbours: The datasets that are compared.
        """
        first = self.cost(0, neighbours=neighbours)
        if self.releases == 1:
            return first
        one = self.cost(1, neighbours=neighbours)
        more = [replace(cost, count=cost.count * (self.releases - 1)) for cost in one]
        return merge_costs([*first, *more])

    def statistic(self, prior: Prior | None) -> Statistic:
        """The integer vector that each point adds to a total that is released: φ, unless overridden.

        Args:
            prior: What the seed set tells; None: not known yet.

        Raises:
            LocalProtocolError: It depends on a prior that is not known yet.
        """
        return Statistic.identity(self.dimension)

    def walk(self, prior: Prior) -> RandomWalk | None:
        """The filter's model of noisy totals; None: they go through none."""
        return None

    def stream(self, offset: Totals | None = None, prior: Prior | None = None) -> ReleaseStream:
        """The releases of one dataset, none of which is made yet.

        Args:
            offset: Σφ of the public points that a mean is over besides the private ones, which enters
                without noise: the seed set's, for a summary. int64 of shape (d,) in units of 2^-15; None:
                there are none.
            prior: Public facts about private points, from the seed set; None: nothing.
        """
        return self.Stream(self, offset, prior)

    def known(self, prior: Prior | None) -> Prior:
        """The prior.

        Raises:
            LocalProtocolError: It is not known yet.
        """
        if prior is None:
            raise LocalProtocolError(f"A {self.name} release was asked for before the seed set was known.")
        return prior

    def shows_public(self, index: int) -> bool:
        """Whether a release is of the public points alone.

        Raises:
            LocalProtocolError: `index` is not in 0..releases - 1: no guarantee covers it.
        """
        if not 0 <= index < self.releases:
            raise LocalProtocolError(f"Release {index} of {self.releases} was asked for.")
        return index == 0 and self.setting.starts_public


def check_delta(delta: float) -> None:
    """Raises ConfigError unless 0 < `delta` < 1."""
    if not 0.0 < delta < 1.0:
        raise ConfigError(
            f"delta is {delta}; no guarantee can be stated for it.", advice="Set delta between 0 and 1."
        )


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
