"""RACE sketches: counts of the cells of hash functions, with discrete Laplace noise on each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from protocol.errors import ConfigError, LocalProtocolError
from protocol.privacy.accounting import Cost, count_epsilon, epsilon_of, shifted_count_cost
from protocol.privacy.noise import Draw
from protocol.privacy.releases.base import (
    Guarantee,
    MechanismParameters,
    Neighbours,
    PrivateParameters,
    ReleaseMechanism,
    Setting,
    check_delta,
)
from protocol.privacy.releases.random_walk import STEP_VARIANCE, RandomWalkFilter
from protocol.space.features.lsh import row_unit
from protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["RaceParameters", "RaceRelease"]

SMALLEST_SCALE: Final = 2.0**-5
"""Below it noise is 0 but for one value in 10^13, and hides nothing."""


class RaceParameters(PrivateParameters):
    """The table of `race` in a session file: at least one of the last two.

    Attributes:
        epsilon: ε of all releases together, at the session's δ: the scale follows from it. With `scale`, a
            budget.
        scale: Of the noise on a count, P(x) ∝ exp(-|x|/scale): the paper's Laplace(R/ε) is R/ε.
    """

    epsilon: float | None = Field(default=None, gt=0)
    scale: float | None = Field(default=None, ge=SMALLEST_SCALE)

    @model_validator(mode="after")
    def _has_noise(self) -> RaceParameters:
        if self.epsilon is None and self.scale is None:
            raise ValueError("either `epsilon`, the ε of all releases together, or `scale` has to be given")
        return self


class RaceRelease(ReleaseMechanism[RaceParameters]):
    """Counts of the points in each cell of each row (`LshSpace`), each with discrete Laplace noise.

    Owners score a point by the broadcast weight at its cells: a kernel sum that is read off the sketches of
    target and summary, as RACE §3 reads one off.

    Sensitivity: one point in the place of another changes 2 counts of each row by one at most, 2R in all, and
    that is what differs between neighbours of either relation: by the lemma of DESIGN §1 one point of a
    summary stands in the place of another, and a record of D_v is another. (Where owners run out of points,
    one more record is one point more: R counts.) Each of these counts is a release of its own, and its noise
    makes it exactly randomised response (`shifted_count_cost`): p releases are 2R·p of them. The accountant
    composes them, which for many is far less than the sum of their ε, the paper's way. With the printed noise
    Laplace(R/ε) a release is ε-DP for one record more or less, and 2ε-DP for one in the place of another.

    Post-processing, which costs nothing:

    - The points of a mean are a public number n, and each row counts each of them once: the counts of a row
      are moved by one number to have the sum n.
    - Filter (`RandomWalkFilter`), as `filtered-gaussian`: n·c is taken off the counts, c being the seed set's
      mean, and what is left for a random walk. A total that is released once is not filtered.
    - The public points' counts are added without noise.

    Counts that come out negative are left so: making them nonnegative, row by row, made the choice worse.

    Status: private. Source: RACE Algorithm 1 and Theorem 3 (Coleman and Shrivastava 2020), with sound noise.

    Raises:
        ConfigError: The map is not `lsh`; or the scale that is given costs more than the ε that is given.
    """

    name: ClassVar[str] = "race"
    private: ClassVar[bool] = True
    Parameters: ClassVar[type[MechanismParameters]] = RaceParameters
    small_features: ClassVar[Mapping[str, Any]] = {"map": "lsh"}

    def __init__(self, parameters: RaceParameters, setting: Setting) -> None:
        super().__init__(parameters, setting)
        if setting.rows == 0:
            raise ConfigError(
                "Release mechanism 'race' counts points in cells, and the feature map has none.",
                advice='Set map = "lsh" in [features].',
            )
        self.rows = setting.rows
        if parameters.scale is not None and parameters.epsilon is not None:
            self._check_budget(parameters.scale, parameters.epsilon)
        self._unit = row_unit(setting.rows)
        self._filter: RandomWalkFilter | None = None

    def draws(self, index: int) -> tuple[Draw, ...]:
        """One discrete Laplace a count; none for public points alone."""
        self.check_index(index)
        if index == 0 and self.setting.starts_public:
            return ()
        return (Draw("discrete-laplace", self.scale, self.dimension),)

    @property
    def error(self) -> float | None:
        """That of a count, 1/√R in units of φ, but for what moving rows to their sums takes (`_of_sum`)."""
        if self.setting.charged == 0:
            return 0.0
        (draw,) = self.draws(self.releases - 1)
        left = self.noise_directions / self.dimension
        return math.sqrt(draw.variance * left) * self._unit * FEATURE_UNIT

    @property
    def noise_directions(self) -> int:
        """One fewer in each row than it has cells: a row's sum is known."""
        return self.dimension - self.rows

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """By composition of 2R counts a release."""
        Neighbours(neighbours)
        check_delta(delta)
        charged = self.setting.charged
        epsilon = epsilon_of([self._cost(self.scale, charged)], delta) if charged else 0.0
        return Guarantee(epsilon=epsilon, delta=delta, claimed_epsilon=None, claimed_delta=None)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        """That of 2R counts that differ by one."""
        Neighbours(neighbours)
        self.check_index(index)
        return () if index == 0 and self.setting.starts_public else (self._cost(self.scale, 1),)

    def _cost(self, scale: float, releases: int) -> Cost:
        return shifted_count_cost(1.0 / scale, 2 * self.rows * releases)

    @cached_property
    def scale(self) -> float:
        """Of the noise on a count; 0 where no release is charged.

        Worked out when it is asked for: composing takes a second, and owners draw no noise.
        """
        given, charged = self.parameters, self.setting.charged
        if charged == 0:
            return 0.0
        if given.scale is not None:
            return given.scale
        if given.epsilon is None:
            raise LocalProtocolError("Counts have neither an ε nor a scale, past validation.")
        return 1.0 / count_epsilon(given.epsilon, self.setting.delta, 2 * self.rows * charged)

    def _check_budget(self, scale: float, epsilon: float) -> None:
        charged, delta = self.setting.charged, self.setting.delta
        if charged == 0:
            return
        spent = epsilon_of([self._cost(scale, charged)], delta)
        if spent > epsilon:
            raise ConfigError(
                f"Release mechanism 'race': with scale = {scale:g}, {charged} releases cost "
                f"ε = {spent:.4g} at δ = {delta:g}, over the budget of {epsilon:g}.",
                advice="Leave scale out, so that it follows from epsilon; or ask for fewer rounds.",
            )

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        counts, rest = np.divmod(total, self._unit)
        if rest.any():
            raise LocalProtocolError("A total to be released as counts is no sum of the map's features.")
        prior, private = self.prior(), self.private_count(count)
        # In units of φ, 1/√R a count, as the filter's variances are.
        expected = prior.centre * FEATURE_UNIT * private
        if noise:
            observed = self._of_sum(private, counts + noise[0]) * (self._unit * FEATURE_UNIT)
            deviations = self._filtered(observed - expected)
        else:
            deviations = total * FEATURE_UNIT - expected  # of public points alone
        embedded = expected + deviations
        embedded += self.public_sum() * FEATURE_UNIT
        return np.asarray(embedded / count, dtype=np.float64)

    def _of_sum(self, points: int, counts: Totals) -> npt.NDArray[np.float64]:
        """Counts moved, row by row, to have the sum that those of so many points have."""
        rows = counts.reshape(self.rows, -1)
        excess = rows.sum(axis=1, keepdims=True) - points
        return np.asarray((rows - excess / rows.shape[1]).ravel(), dtype=np.float64)

    def _filtered(self, deviations: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        if self._filter is None:
            spread = self.prior().spread * FEATURE_UNIT
            (draw,) = self.draws(self.releases - 1)
            self._filter = RandomWalkFilter(
                noise=draw.variance * (self._unit * FEATURE_UNIT) ** 2,
                step=STEP_VARIANCE * self.setting.batch * spread**2 / self.dimension,
                start=np.zeros(self.dimension) if self.setting.starts_public else None,
            )
        estimate = self._filter.after(deviations)
        self.deviation = math.sqrt(self._filter.variance)
        return estimate
