"""The common base of the estimators that release private data, in `hushbid.kme` and `hushbid.race`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import NoiseSource, SecureNoise

__all__ = ["NeighboursName", "OutOfBounds", "PoorReleaseWarning", "PrivateEstimator", "naming_columns"]

OutOfBounds: TypeAlias = Literal["refuse", "clip"]
"""The treatment of points outside of the public bounds."""
NeighboursName: TypeAlias = Literal["add-remove-one", "substitute-one"]

_NAMED: Final = 3
"""Most columns that an error names."""


def naming_columns(chosen: npt.ArrayLike, names: Sequence[str] | None = None) -> str:
    """Which columns these are, for an error: "column 0", "columns age, rent" or "columns 0, 1, 2 and 4 more".

    Args:
        chosen: Whether a column is one of them, shape (columns,).
        names: Their names; None: they are counted from 0.
    """
    places = np.flatnonzero(chosen).tolist()
    named = ", ".join(str(place if names is None else names[place]) for place in places[:_NAMED])
    more = len(places) - _NAMED
    return f"column{'s' * (len(places) > 1)} {named}" + (f" and {more} more" if more > 0 else "")


class PoorReleaseWarning(UserWarning):
    """A release is likely to say no more than what is public; said before anything is spent."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """The parameters that all these scikit-learn estimators share; parameters are fields.

    Args:
        lower, upper: Public bounds of the data, for each column or for all. They must not follow from data.
        epsilon: ε of the guarantee; None: no noise and no privacy, in estimators that allow it.
        neighbours: The datasets that it compares, ``add-remove-one`` or ``substitute-one``; required with an
            ε.
        out_of_bounds: ``refuse`` or ``clip`` rows out of bounds.
        random_state: Seed of public randomness; a number is the seed itself.
        noise: Makes a fit's own source of noise.
    """

    lower: npt.ArrayLike
    upper: npt.ArrayLike
    epsilon: float | None
    neighbours: NeighboursName | None = None
    out_of_bounds: OutOfBounds = "refuse"
    random_state: int | np.random.RandomState | None = None
    noise: Callable[[], NoiseSource] = SecureNoise

    def _check_out_of_bounds(self) -> None:
        if self.out_of_bounds not in ("refuse", "clip"):
            raise ConfigError(
                f"Points out of bounds were to be treated by {self.out_of_bounds!r}.",
                advice='Use "refuse" or "clip".',
            )

    def _seed(self) -> int:
        """The public seed: `random_state` itself if it is a number."""
        if self.random_state is None:
            return secrets.randbits(63)
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))
