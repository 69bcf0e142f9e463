"""What the consumer and the curator broadcast: one interface for every release mechanism (DESIGN §2)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from protocol.errors import ConfigError, LocalProtocolError
from protocol.grid import FEATURE_BITS, FEATURE_UNIT, Totals
from protocol.noise import Draw

__all__ = [
    "Guarantee",
    "MechanismParameters",
    "Neighbours",
    "ReleaseMechanism",
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


P = TypeVar("P", bound=MechanismParameters)


class ReleaseMechanism(ABC, Generic[P]):
    """Releases the mean embedding of one set of points, once or once a round.

    An instance serves one dataset: its post-processing state goes from release to release. It draws no
    noise itself; the driver draws what `draws` names, records it, and hands it to `release`.

    Args:
        parameters: Of this mechanism.
        dimension: Coordinates d of φ.
        releases: How many releases will be made, at least 1.
        norm_bound: Largest ‖φ‖ of the feature map in use (`FeatureMap.norm_bound`).
    """

    name: ClassVar[str]
    private: ClassVar[bool]
    Parameters: ClassVar[type[MechanismParameters]]

    def __init__(self, parameters: P, *, dimension: int, releases: int, norm_bound: float) -> None:
        self.parameters = parameters
        self.dimension = dimension
        self.releases = releases
        self.norm_bound = norm_bound

    @classmethod
    def build(
        cls, parameters: Mapping[str, Any], *, dimension: int, releases: int, norm_bound: float
    ) -> ReleaseMechanism[Any]:
        """Validate `parameters` and make the mechanism.

        Raises:
            ConfigError: Names the first key that is unknown, missing, of a wrong type or out of range.
        """
        try:
            checked = cls.Parameters.model_validate(dict(parameters))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            key = ".".join(str(part) for part in first["loc"]) or "parameters"
            raise ConfigError(
                f"Release mechanism {cls.name!r}, key {key!r}: {first['msg']}.",
                advice=f"Its keys are: {', '.join(cls.Parameters.model_fields) or 'none'}.",
            ) from None
        return cls(cast("P", checked), dimension=dimension, releases=releases, norm_bound=norm_bound)

    @abstractmethod
    def draws(self, index: int) -> tuple[Draw, ...]:
        """The noise that release number `index`, from 0, needs. Never depends on data."""

    @abstractmethod
    def _release(
        self, index: int, total: Totals, count: int, noise: tuple[npt.NDArray[Any], ...]
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

    def release(
        self, index: int, total: Totals, count: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """Release number `index`: the mean embedding of `count` points whose features sum to `total`.

        Args:
            index: From 0 to `releases` - 1, in order.
            total: Σφ, int64 in units of 2^-15, shape (d,).
            count: Number of points, public, at least 1.
            noise: What a noise source answered to each of `draws(index)`, in order.

        Returns:
            float64 in units of φ (not of the grid), shape (d,), read-only.

        Raises:
            LocalProtocolError: An argument that does not fit; the mechanism's state is as it was.
        """
        wanted = self.draws(index)
        if total.shape != (self.dimension,) or total.dtype != np.int64 or count < 1:
            raise LocalProtocolError(
                f"Release {index} was asked for {count} points whose total is {total.dtype} {total.shape}."
            )
        if len(noise) != len(wanted) or any(
            given.shape != (draw.size,) or given.dtype != _dtype(draw)
            for given, draw in zip(noise, wanted, strict=False)
        ):
            raise LocalProtocolError(f"Release {index} was handed other noise than its draws name.")
        released = self._release(index, total, count, noise)
        released.flags.writeable = False
        return released

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

    √(2/d) before rounding; a pair of coordinates on the circle of that radius moves by √½ at most (and
    1/16 of slack in the square, for float64: `PairedMap.admits`).
    """
    radius = 2.0**FEATURE_BITS * math.sqrt(2.0 / dimension)
    return math.isqrt(math.floor((radius + math.sqrt(0.5)) ** 2 + 1 / 16))


def largest_norm(dimension: int) -> float:
    """Largest ‖φ‖ that any feature map of this dimension has, rounding included: about √2."""
    return math.sqrt(dimension) * largest_coordinate(dimension) * FEATURE_UNIT


def _dtype(draw: Draw) -> type[np.float64] | type[np.int64]:
    return np.int64 if draw.distribution == "discrete-gaussian" else np.float64
