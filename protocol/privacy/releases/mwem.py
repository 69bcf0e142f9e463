"""Algorithm 2 of DPDS (its h2): multiplicative weights on noisy coordinate sums, in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import field_validator, model_validator

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import (
    BoundedRangeCost,
    Cost,
    LaplaceCost,
    compose_as_claimed,
    epsilon_of,
    mwem_step_epsilon,
)
from hushbid.protocol.privacy.accounting.validation import check_delta
from hushbid.protocol.privacy.noise import Draw
from hushbid.protocol.privacy.registry import Keys
from hushbid.protocol.privacy.releases.base import (
    Guarantee,
    Neighbours,
    PrivateParameters,
    ReleaseMechanism,
    ReleaseStream,
    largest_coordinate,
)
from hushbid.protocol.space.grid import FEATURE_UNIT, Totals

__all__ = ["MwemParameters", "MwemRelease", "tilted_mean"]

SENSITIVITY: Final = 2.0
"""Sensitivity of a scaled coordinate sum, and so of every score ψ_i: a point in [-1, 1] is replaced."""

LARGEST_EXPONENT: Final = 600.0
SMALLEST_TOTAL: Final = 1e-200


class MwemParameters(PrivateParameters):
    """The table of `mwem` in a session file.

    Attributes:
        calibration: ``published``, the printed noise; or ``sound``, where a step costs `step_epsilon`.
        step_epsilon: ε of a step.
        epsilon: Instead of `step_epsilon`, for ``sound`` only: ε of all releases together, at the session's
            δ.
        steps: T, steps of a release.
        eta: Spacing of the grid over [-1, 1]; 2/eta is whole.
        first_epsilon, first_steps: Replace `step_epsilon` and `steps` in release 0, if it contains only the
            public seed set.
    """

    calibration: Literal["published", "sound"]
    step_epsilon: ranges.Epsilon | None = None
    epsilon: ranges.Epsilon | None = None
    steps: ranges.Count
    eta: ranges.Share
    first_epsilon: ranges.Epsilon | None = None
    first_steps: ranges.Count | None = None

    def in_force(self, *, columns: int, owners: int) -> Self:
        """The keys without a first release that equals the others; see `Parameters.in_force`."""
        alike = {"first_steps": self.steps, "first_epsilon": self.step_epsilon}
        return self.model_copy(
            update={name: None for name, value in alike.items() if getattr(self, name) == value}
        )

    @field_validator("eta")
    @classmethod
    def _divides(cls, eta: float) -> float:
        if abs(2.0 / eta - round(2.0 / eta)) > 1e-9 * (2.0 / eta):
            raise ValueError("2/eta must be a whole number")
        return eta

    @model_validator(mode="after")
    def _has_one_epsilon(self) -> MwemParameters:
        if (self.step_epsilon is None) == (self.epsilon is None):
            raise ValueError("one of `step_epsilon` and `epsilon` has to be given")
        if self.epsilon is not None and self.calibration == "published":
            raise ValueError("`epsilon` is for the sound calibration: the published one has `step_epsilon`")
        if self.epsilon is not None and self.first_epsilon is not None:
            raise ValueError("`epsilon` is divided among all steps: leave `first_epsilon` out")
        return self


class MwemStream(ReleaseStream):
    """Releases that start from the distribution fitted by the previous one."""

    mechanism: MwemRelease
    _fitted: tuple[list[float], list[float]] | None = None
    """θ_i of each coordinate, and the mean of P that belongs to it; None: all are 0."""

    def _release(
        self, index: int, total: Totals, count: float, noise: tuple[npt.NDArray[Any], ...]
    ) -> npt.NDArray[np.float64]:
        mechanism, unit = self.mechanism, largest_coordinate(self.mechanism.dimension)
        epsilon, steps = mechanism.schedule(index)
        rate = mechanism.selection_rate(epsilon)
        sums = (total + self.public_sum()) / unit
        uniforms = noise[0].tolist()
        answers = (mechanism.noise_scale(epsilon) * noise[1]).tolist()
        none = [0.0] * mechanism.dimension
        tilts, means = map(list, self._fitted or (none, none))
        targets = sums.tolist()
        # Σ_t w(P_t)/q: a step changes one coordinate, for all steps that are left.
        means_over_steps = [mean * steps for mean in means]
        half_step = mechanism.parameters.eta / 2.0
        half_width = 1.0 + half_step  # half of n·η, for the n = 2/η + 1 points of S
        cumulative = np.empty(mechanism.dimension)
        last = mechanism.dimension - 1
        offset, weights = _weights(rate, count, means, sums)
        for step in range(steps):
            np.cumsum(weights, out=cumulative)
            mass = float(cumulative[-1])
            if mass < SMALLEST_TOTAL:
                offset, weights = _weights(rate, count, means, sums)
                np.cumsum(weights, out=cumulative)
                mass = float(cumulative[-1])
            i = min(int(cumulative.searchsorted(uniforms[step] * mass, "right")), last)
            old = means[i]
            tilts[i] += (targets[i] + answers[step] - count * old) / (2.0 * count)
            means[i] = new = tilted_mean(tilts[i], half_width, half_step)
            means_over_steps[i] += (new - old) * (steps - step)
            exponent = rate * abs(count * new - targets[i]) - offset
            if exponent > LARGEST_EXPONENT:
                offset, weights = _weights(rate, count, means, sums)
            else:
                weights[i] = math.exp(exponent)
        self._fitted = tilts, means
        return np.asarray(means_over_steps) * (unit * FEATURE_UNIT / steps)


class MwemRelease(ReleaseMechanism):
    """Sums of the d coordinates, fitted by a distribution that noisy answers tilt (DPDS Algorithm 2).

    The distribution P over S^d, S = {-1, -1 + η, …, 1}, stays a product with P(s_i) ∝ exp(θ_i·s_i): the
    state is one number θ_i a coordinate, and a step is θ_i += (μ - w(P, i))/(2q) and one tilted mean. θ
    goes from release to release (DPDS §4: "small incremental changes … matched incrementally").

    Sums are those of features on the 2^-15 grid, divided by the largest coordinate that the grid allows
    (√(2/d), up to rounding), so that each point adds a number in [-1, 1]. That grid stands in for the random
    quantisation of eq. 5, which would add variance and change no guarantee.

    Sensitivity: 2 per scaled sum under either relation, since one point replaces another (`Neighbours`). A
    step is two adaptive releases, a selection and a measurement:

    - ``published``: weights exp(ε·ψ), of bounded range 4ε; Laplace(1/ε), which is 2ε-DP. Together 6ε,
      where the paper counts ε.
    - ``sound``: each half costs ε' = ε/2. Weights exp(ε'·ψ/(2Δ)) with Δ = 2, of bounded range ε', and
      Laplace(Δ/ε').

    A release that shows the public seed set alone (`Setting.starts_public`) is charged to nobody;
    everything else is charged.

    Status: for reproduction; `gaussian` has less error at equal cost. Noise: a step takes one uniform
    (inverse CDF of the selection) and one Laplace of scale 1.
    """

    parameters: MwemParameters
    name = "mwem"
    private = True
    Parameters = MwemParameters
    Stream = MwemStream
    planned_keys: ClassVar[Mapping[str, Keys]] = {
        "target": {"calibration": "sound", "steps": 1656, "eta": 0.1},
        "summary": {"calibration": "sound", "steps": 5, "first_steps": 1656, "eta": 0.1},
    }
    """The steps of DPDS §4."""
    small_keys: ClassVar[Keys] = {"calibration": "sound", "steps": 4, "eta": 0.05}

    def __post_init__(self) -> None:
        parameters, setting = self.parameters, self.setting
        if setting.rows:
            raise ConfigError(
                "Release mechanism 'mwem' needs features whose coordinates are at most √(2/d); those of the "
                "map 'lsh' are larger.",
                advice="Choose another feature map, or the release 'race'.",
            )
        has_first = parameters.first_epsilon is not None or parameters.first_steps is not None
        if has_first and self.releases < 2:
            raise ConfigError(
                "Release mechanism 'mwem', key 'first_epsilon' or 'first_steps': there is one release only.",
                advice="They are for a summary's first round; set `step_epsilon` and `steps` instead.",
            )
        _ = self.step_epsilon  # raises if no step meets the ε

    def draws(self, index: int) -> tuple[Draw, ...]:
        """One uniform and one Laplace of scale 1 for each step."""
        self.shows_public(index)
        steps = self.schedule(index)[1]
        return (Draw("uniform", 1.0, steps), Draw("laplace", 1.0, steps))

    def guarantee(self, *, neighbours: Neighbours, delta: float) -> Guarantee:
        """The sound ε of all steps; for ``published`` also the paper's (`compose_as_claimed`)."""
        check_delta(delta)
        charged = self._charged(neighbours)
        costs = [cost for step in charged.items() for cost in self._costs(*step)]
        sound = epsilon_of(costs, delta) if costs else 0.0
        if self.parameters.calibration == "sound" or not charged:
            return Guarantee(epsilon=sound, delta=delta, claimed_epsilon=None, claimed_delta=None)
        claimed = compose_as_claimed(list(charged), delta, counts=list(charged.values()))
        return Guarantee(epsilon=sound, delta=delta, claimed_epsilon=claimed, claimed_delta=delta)

    def cost(self, index: int, *, neighbours: Neighbours) -> tuple[Cost, ...]:
        if self.shows_public(index) and self._first_is_free(neighbours):
            return ()
        return self._costs(*self.schedule(index))

    def _costs(self, epsilon: float, steps: int) -> tuple[Cost, ...]:
        return (
            BoundedRangeCost(eta=2.0 * SENSITIVITY * self.selection_rate(epsilon), count=steps),
            LaplaceCost(epsilon=SENSITIVITY / self.noise_scale(epsilon), count=steps),
        )

    def _first_is_free(self, neighbours: Neighbours) -> bool:
        return Neighbours(neighbours) is Neighbours.ADD_REMOVE_ONE and self.setting.starts_public

    def _charged(self, neighbours: Neighbours) -> dict[float, int]:
        """ε of a step → number of such steps."""
        free = self._first_is_free(neighbours)
        charged: dict[float, int] = {}
        for index, times in ((0, 0 if free else 1), (1, self.releases - 1)):
            epsilon, steps = self.schedule(index)
            if times:
                charged[epsilon] = charged.get(epsilon, 0) + steps * times
        return charged

    @cached_property
    def step_epsilon(self) -> float:
        """ε of a step, except in a first release with its own."""
        given, setting = self.parameters, self.setting
        if given.step_epsilon is not None:
            return given.step_epsilon
        assert given.epsilon is not None
        steps = given.steps * (setting.releases - 1)
        if not setting.starts_public:
            steps += given.first_steps or given.steps
        if steps == 0:
            return given.epsilon  # one release, of public points: nothing is charged
        return mwem_step_epsilon(given.epsilon, setting.delta, steps=steps)

    def schedule(self, index: int) -> tuple[float, int]:
        """(ε of a step, steps) of a release."""
        given = self.parameters
        if index > 0:
            return self.step_epsilon, given.steps
        return given.first_epsilon or self.step_epsilon, given.first_steps or given.steps

    def selection_rate(self, epsilon: float) -> float:
        """The factor c in the selection's weights exp(c·ψ)."""
        return epsilon if self.parameters.calibration == "published" else epsilon / (4.0 * SENSITIVITY)

    def noise_scale(self, epsilon: float) -> float:
        """Scale of the Laplace noise on a scaled sum in a step with that ε."""
        return 1.0 / epsilon if self.parameters.calibration == "published" else 2.0 * SENSITIVITY / epsilon


def tilted_mean(tilt: float, half_width: float, half_step: float) -> float:
    """Mean of P(s) ∝ exp(θs) over n points with spacing η, symmetric about 0.

    ∂/∂θ of ln Σ exp(θs) = ln sinh(nηθ/2) - ln sinh(ηθ/2). Written with the Langevin function
    L(x) = coth x - 1/x, in which both poles at θ = 0 are gone.

    Args:
        tilt: θ.
        half_width: nη/2.
        half_step: η/2.
    """
    return half_width * _langevin(half_width * tilt) - half_step * _langevin(half_step * tilt)


def _langevin(x: float) -> float:
    """Coth x - 1/x, to 1e-14."""
    if -0.05 < x < 0.05:
        square = x * x
        return x * (1.0 / 3.0 - square * (1.0 / 45.0 - square * (2.0 / 945.0 - square / 4725.0)))
    return 1.0 / math.tanh(x) - 1.0 / x


def _weights(
    rate: float, count: float, means: list[float], sums: npt.NDArray[np.float64]
) -> tuple[float, npt.NDArray[np.float64]]:
    """(o, exp(rate·ψ_i - o)) with the largest weight 1: exp(rate·ψ) alone overflows."""
    exponents = rate * np.abs(count * np.asarray(means) - sums)
    offset = float(exponents.max())
    return offset, np.exp(exponents - offset)
