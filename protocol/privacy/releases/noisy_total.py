"""Integer noise on a total, calibrated to a target (ε, δ): the common part of Gaussian and Laplace noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import Cost, epsilon_of
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.releases.base import (
    Guarantee,
    Neighbours,
    PrivateParameters,
    ReleaseMechanism,
    ReleaseStream,
)
from hushbid.protocol.privacy.releases.random_walk import RandomWalk
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["FilteredStream", "NoisyTotalParameters", "NoisyTotalRelease"]


class NoisyTotalParameters(PrivateParameters):
    """Keys of a mechanism with noise on a total: `epsilon`, the noise's own key, or both.

    Attributes:
        epsilon: ε of all releases together, at the session's δ; it determines the noise. If the noise is
            given too, it is a budget.
    """

    noise_key: ClassVar[str]
    """The key that states the noise directly."""

    epsilon: ranges.Epsilon | None = None

    @property
    def noise(self) -> float | None:
        """The given noise; None if it follows from ε."""
        given: float | None = getattr(self, self.noise_key)
        return given

    @model_validator(mode="after")
    def _has_noise(self) -> NoisyTotalParameters:
        if self.epsilon is None and self.noise is None:
            raise ValueError(
                f"either `epsilon`, the ε of all releases together, or `{self.noise_key}` has to be given"
            )
        return self


class NoisyTotalRelease(ReleaseMechanism):
    """A mechanism that adds an independent integer to each coordinate of a total.

    All charged releases cost the same. A release of public points only (`Setting.starts_public`) has no noise
    and costs nothing.

    Raises:
        ConfigError: The given noise costs more than the given ε.
    """

    parameters: NoisyTotalParameters
    private = True

    def __post_init__(self) -> None:
        given, charged, delta = self.parameters, self.setting.charged, self.setting.delta
        if charged == 0 or given.noise is None or given.epsilon is None:
            return
        spent = epsilon_of([self._cost(given.noise, charged)], delta)
        if spent > given.epsilon:
            raise ConfigError(
                f"Release mechanism {self.name!r}: with {given.noise_key} = {given.noise:g}, {charged} "
                f"releases cost ε = {spent:.4g} at δ = {delta:g}, over the budget of {given.epsilon:g}.",
                advice=f"Leave {given.noise_key} out, so that it follows from epsilon; or ask for fewer "
                "rounds.",
            )

    @abstractmethod
    def _cost(self, noise: float, releases: int) -> Cost:
        """The cost of that many releases with that noise."""

    @abstractmethod
    def _calibrated(self, epsilon: float, releases: int) -> float:
        """The noise with which that many releases have that ε, at the setting's δ."""

    @abstractmethod
    def _draw(self) -> Draw:
        """The noise of a charged release."""

    @cached_property
    def noise(self) -> float:
        """The noise, in units of `NoisyTotalParameters.noise`; 0 if no release is charged.

        It is computed on demand: composing can take a second, and owners draw no noise.
        """
        given, charged = self.parameters, self.setting.charged
        if charged == 0:
            return 0.0
        if given.noise is not None:
            return given.noise
        if given.epsilon is None:
            raise LocalProtocolError(f"{self.name} has neither an ε nor noise, past validation.")
        return self._calibrated(given.epsilon, charged)

    def draws(self, index: int) -> tuple[Draw, ...]:
        """One integer per coordinate; none if all points are public."""
        return () if self.shows_public(index) else (self._draw(),)

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        Neighbours(neighbours)
        check_delta(delta)
        charged = self.setting.charged
        epsilon = epsilon_of([self._cost(self.noise, charged)], delta) if charged else 0.0
        return Guarantee(epsilon=epsilon, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        Neighbours(neighbours)
        return () if self.shows_public(index) else (self._cost(self.noise, 1),)


class FilteredStream(ReleaseStream, ABC):
    """Releases whose noisy totals go through a filter (`ReleaseMechanism.walk`).

    A total becomes an observation, and the filter's estimate becomes the private points' Σφ. The public
    points are added without noise.
    """

    mechanism: Any
    _estimate: npt.NDArray[np.float64] | float = 0.0
    _variance: float | None = None

    @abstractmethod
    def _observed(
        self, total: Totals, points: int, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        """The observation of that many private points; without noise there is none."""

    @abstractmethod
    def _embedded(self, moved: npt.NDArray[np.float64], points: int) -> npt.NDArray[np.float64]:
        """Σφ of that many private points, in units of φ, from an observation or an estimate."""

    @cached_property
    def _walk(self) -> RandomWalk:
        walk: RandomWalk = self.mechanism.walk(self.prior)
        return walk

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        points = self.private_count(count)
        moved = self._observed(total, points, noise)
        if noise:
            gain, self._variance = self._walk.after(self._variance)
            self._estimate = moved = self._estimate + gain * (moved - self._estimate)
            self.deviation = self.unit * math.sqrt(self._variance)
        embedded = self._embedded(moved, points)
        embedded += self.public_sum() * FEATURE_UNIT
        return np.asarray(embedded / count, dtype=np.float64)
