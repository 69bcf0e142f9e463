"""What the consumer and the curator broadcast: one interface for every release mechanism (DESIGN §2)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Generic, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.errors import ConfigError, LocalProtocolError
from protocol.faults import faults
from protocol.privacy.accounting import Cost, merge_costs
from protocol.privacy.noise import Draw, drawn_type
from protocol.privacy.releases.prior import Prior
from protocol.privacy.releases.statistic import Statistic
from protocol.space.grid import FEATURE_BITS, FEATURE_UNIT, Totals

__all__ = [
    "Guarantee",
    "MechanismParameters",
    "Neighbours",
    "PrivateParameters",
    "ReleaseMechanism",
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
        claimed_epsilon: What the source paper's own arithmetic gives; None where that is `epsilon`.
        claimed_delta: The δ of that arithmetic; None with `claimed_epsilon`.
    """

    epsilon: float | None
    delta: float
    claimed_epsilon: float | None
    claimed_delta: float | None


class MechanismParameters(BaseModel):
    """A mechanism's table in the session file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def in_force(self) -> Self:
        """The same parameters, without keys that say what holds without them: for the session's digest."""
        return self


class PrivateParameters(MechanismParameters):
    """The table of a mechanism that protects somebody.

    Attributes:
        neighbours: The datasets that the guarantee compares. There is no default: what ε means depends on it.
    """

    neighbours: Annotated[Neighbours, Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a mechanism is to release, besides its own parameters: all of it is public.

    Attributes:
        dimension: Coordinates d of φ.
        releases: How many releases will be made, at least 1.
        norm_bound: Largest ‖φ‖ of the feature map in use (`FeatureMap.norm_bound`).
        delta: The δ at which a target ε is to hold, in (0, 1).
        offset: Σφ of the public points that a mean is over besides the private ones, which enters without
            noise: the seed set's, for a summary. int64 of shape (d,) in units of 2^-15; None: there are none.
        starts_public: Whether release 0 is of the public points alone, so that it costs nobody anything.
        prior: What the public seed set tells of private points (`protocol.privacy.releases.prior`); None:
            nothing, or not known yet.
        seed_weight: s, what a public point counts for beside a private one, in (0, 1].
        batch: b, how many private points more each release has than the one before.
        rows: Rows of the feature map, in each of which one coordinate of a point is not 0
            (`FeatureSpace.rows`); 0: features are of another kind.
    """

    dimension: int
    releases: int
    norm_bound: float
    delta: float
    offset: Totals | None = None
    starts_public: bool = False
    prior: Prior | None = None
    rows: int = 0
    seed_weight: float = 1.0
    batch: int = 1

    @property
    def charged(self) -> int:
        """How many of the releases have private points in them."""
        return self.releases - 1 if self.starts_public else self.releases


P = TypeVar("P", bound=MechanismParameters)

_NEIGHBOURS_ADVICE: Final = (
    'Say what ε compares: neighbours = "substitute-one" in [target], "add-remove-one" in [summary].'
)


class ReleaseMechanism(ABC, Generic[P]):
    """Releases the mean embedding of one set of points, once or once a round.

    The private points enter as the sum of a statistic of each (`statistic`), the public ones as
    `Setting.offset`. An instance serves one dataset: its post-processing state goes from release to release.
    It draws no noise itself; the driver draws what `draws` names, records it, and hands it to `release`.

    Attributes:
        directions: Directions of the seed set that it has to know (`Prior.basis`); 0: none.
        deviation: Standard deviation of what noise left on a coordinate of Σφ in the last release, in units
            of φ; 0.0: there was no noise, or what it leaves is not known. It never depends on data.

    Args:
        parameters: Of this mechanism.
        setting: What it is to release.
    """

    name: ClassVar[str]
    private: ClassVar[bool]
    directions: int = 0
    deviation: float = 0.0
    Parameters: ClassVar[type[MechanismParameters]]
    planned_keys: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Keys that a plan gives it besides its ε, by ``target`` and ``summary``."""
    small_keys: ClassVar[Mapping[str, Any]] = {}
    """Keys that a session of eight features gives it besides its ε: sweeps and audits make such."""
    small_features: ClassVar[Mapping[str, Any]] = {}
    """Keys of ``[features]`` in such a session, where it is not for the default map."""

    def __init__(self, parameters: P, setting: Setting) -> None:
        self.parameters = parameters
        self.setting = setting
        self.dimension = setting.dimension
        self.releases = setting.releases

    @classmethod
    def build(cls, parameters: Mapping[str, Any], setting: Setting) -> ReleaseMechanism[Any]:
        """Validate `parameters` and make the mechanism.

        Raises:
            ConfigError: Names the first key that is unknown, missing, of a wrong type or out of range.
        """
        try:
            checked = cls.Parameters.model_validate(dict(parameters))
        except ValidationError as error:
            first = faults(error)[0]
            key = ".".join(first.place) or "parameters"
            raise ConfigError(
                f"Release mechanism {cls.name!r}, key {key!r}: {first.words}.",
                advice=_NEIGHBOURS_ADVICE
                if key == "neighbours"
                else f"Its keys are: {', '.join(cls.Parameters.model_fields) or 'none'}.",
            ) from None
        return cls(cast("P", checked), setting)

    @abstractmethod
    def draws(self, index: int) -> tuple[Draw, ...]:
        """The noise that release number `index`, from 0, needs. Never depends on data, nor on the prior."""

    @abstractmethod
    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """`release`, after its arguments were checked."""

    @abstractmethod
    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """What all `releases` releases together guarantee.

        Args:
            neighbours: The datasets that are compared.
            delta: The δ to state ε for, in (0, 1).

        Raises:
            ConfigError: `delta` outside of (0, 1).
        """

    @abstractmethod
    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """What release number `index` costs, for an accountant; nothing, if it shows public points alone.

        Args:
            index: From 0 to `releases` - 1.
            neighbours: The datasets that are compared.
        """

    def costs(self, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """What all releases cost together; those after the first are alike.

        Args:
            neighbours: The datasets that are compared.
        """
        first = self.cost(0, neighbours=neighbours)
        if self.releases == 1:
            return first
        one = self.cost(1, neighbours=neighbours)
        more = [replace(cost, count=cost.count * (self.releases - 1)) for cost in one]
        return merge_costs([*first, *more])

    def statistic(self) -> Statistic:
        """What of a point enters the total that is released: φ itself, unless a mechanism says otherwise.

        Raises:
            LocalProtocolError: It depends on a prior that is not known yet.
        """
        return Statistic.identity(self.dimension)

    @property
    def error(self) -> float | None:
        """Standard deviation of the noise on a coordinate of Σφ in a release that no filter has seen.

        In units of φ, the root mean square over the d coordinates; it never depends on data. 0.0 where there
        is no noise; None where what noise leaves is not known.
        """
        return None if self.private else 0.0

    @property
    def noise_directions(self) -> int:
        """In how many directions of φ a release has noise, in all of them alike."""
        return self.statistic().width

    def embedding(self, total: Totals, points: int) -> npt.NDArray[np.float64]:
        """What a release tells of private points but for its noise: linear in their total.

        Args:
            total: Sum of their `statistic`, int64 of shape (statistic().width,).
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
            total: Sum of the private points' `statistic`, int64 of shape (statistic().width,).
            count: Number of points that the mean is over, the public ones among them by their weight; public
                and positive.
            noise: What a noise source answered to each of `draws(index)`, in order.

        Returns:
            float64 in units of φ (not of the grid), shape (d,), read-only.

        Raises:
            LocalProtocolError: An argument that does not fit; the mechanism's state is as it was.
        """
        wanted = self.draws(index)
        if total.shape != (self.statistic().width,) or total.dtype != np.int64 or not count > 0:
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

    def prior(self) -> Prior:
        """What the public seed set tells.

        Raises:
            LocalProtocolError: It is not known yet.
        """
        if self.setting.prior is None:
            raise LocalProtocolError(f"A {self.name} release was asked for before the seed set was known.")
        return self.setting.prior

    def private_count(self, count: float) -> int:
        """How many of the points that a mean is over are private; public (`release`)."""
        public = 0.0 if self.setting.offset is None else self.setting.seed_weight * self.prior().size
        return round(count - public)

    def public_sum(self) -> npt.NDArray[np.float64] | float:
        """Σφ of the public points by their weight, in units of 2^-15: it needs no noise."""
        offset = self.setting.offset
        return 0.0 if offset is None else self.setting.seed_weight * offset.astype(np.float64)

    def with_offset(self, total: Totals) -> npt.NDArray[np.float64]:
        """Σφ of the private points of that total and the public ones: for mechanisms whose statistic is φ."""
        return np.asarray(total + self.public_sum(), dtype=np.float64)

    def check_index(self, index: int) -> None:
        """Refuse a release beyond those that the guarantee covers.

        Raises:
            LocalProtocolError: `index` is not in 0..releases - 1.
        """
        if not 0 <= index < self.releases:
            raise LocalProtocolError(f"Release {index} of {self.releases} was asked for.")


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
