"""Rank owners, and choices of owners, by their distance to the consumer's target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np

from hushbid.catalogue.candidates import CatalogueCandidate
from hushbid.catalogue.estimates import MmdEstimate, NoisyMean, best_mixture, mmd2, point_weights
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.intervals import within

__all__ = ["OwnerRow", "Ranking", "Subset", "rank"]

MOST_SUBSETS: Final = 2000
"""Maximum number of subsets to try exhaustively; beyond it owners are added one by one."""
_IDLE: Final = 5e-4
"""Weights below this are shown as 0."""
SHOWN: Final = 10
"""Number of reported subsets of each size."""


@dataclass(frozen=True)
class OwnerRow:
    """One owner.

    Attributes:
        estimate: MMD² of all its points to the target.
        weight: Its weight in the nearest mixture of all owners.
        point_mass: Total weight of its synthetic points when all owners' points are weighted freely: the
            share of its mass that the consumer wants. None if an entry has no points.
    """

    candidate: CatalogueCandidate
    estimate: MmdEstimate
    weight: float
    point_mass: float | None

    def as_json(self) -> dict[str, Any]:
        described = self.candidate.entry.described()
        return {
            "owner": described.pop("name"),
            "file": str(self.candidate.path),
            **{name: value for name, value in described.items() if name not in ("kind", "points")},
            "mmd2": self.estimate.value,
            "standard_error": self.estimate.standard_error,
            "weight": self.weight,
            "point_mass": self.point_mass,
        }


@dataclass(frozen=True)
class Subset:
    """A choice of owners.

    Attributes:
        owners: Their names.
        weights: Weights of the nearest mixture, in their order.
        estimate: MMD² of that mixture.
        by_size: MMD² of all their points together.
    """

    owners: tuple[str, ...]
    weights: tuple[float, ...]
    estimate: MmdEstimate
    by_size: MmdEstimate

    def as_json(self) -> dict[str, Any]:
        return {
            "owners": list(self.owners),
            "weights": list(self.weights),
            "mmd2": self.estimate.value,
            "standard_error": self.estimate.standard_error,
            "mmd2_by_size": self.by_size.value,
            "standard_error_by_size": self.by_size.standard_error,
        }


@dataclass(frozen=True)
class Ranking:
    """The result of a screening.

    Attributes:
        owners: Nearest first.
        subsets: Subsets of each size, nearest first.
        search: Whether all subsets were tried, or owners were added one by one.
        chosen: The nearest of the largest subsets.
        why_so_many, why_these: Why so many, and why these, with how a tie was broken: for people.
    """

    owners: tuple[OwnerRow, ...]
    subsets: tuple[Subset, ...]
    search: Literal["all", "greedy"]
    chosen: Subset
    why_so_many: str
    why_these: str


def rank(target: NoisyMean, candidates: Sequence[CatalogueCandidate], *, best: int) -> Ranking:
    """Rank owners, with one candidate each, and choices of up to `best` of them by their distance to g̃.

    Raises:
        ConfigError: `best` is less than 1.
    """
    if not within(ranges.Count, best):
        raise ConfigError(f"The best {best} owners were asked for.", advice="Ask for at least one.")
    largest = min(best, len(candidates))
    means = [each.mean for each in candidates]

    @cache
    def judged(places: tuple[int, ...]) -> Subset:
        parts = [means[place] for place in places]
        weights = best_mixture(target, parts)
        sizes = np.array([part.size for part in parts])
        return Subset(
            tuple(candidates[place].owner for place in places),
            tuple(weights.tolist()),
            mmd2(target, parts, weights),
            mmd2(target, parts, sizes / sizes.sum()),
        )

    count = sum(math.comb(len(means), size) for size in range(1, largest + 1))
    if count <= MOST_SUBSETS:
        tried = [list(combinations(range(len(means)), size)) for size in range(1, largest + 1)]
    else:
        tried = _greedy(len(means), largest, judged)
    subsets: list[Subset] = []
    for places in tried:
        subsets += sorted(map(judged, places), key=_order)[:SHOWN]
    weights = best_mixture(target, means)
    masses = _point_masses(target, candidates)
    rows = [
        OwnerRow(each, mmd2(target, [each.mean], [1.0]), float(weight), mass)
        for each, weight, mass in zip(candidates, weights, masses, strict=True)
    ]
    rows.sort(key=lambda row: (row.estimate.value, row.candidate.owner))
    chosen, *others = (each for each in subsets if len(each.owners) == largest)
    fewer = next((each for each in subsets if len(each.owners) == largest - 1), None)
    return Ranking(
        owners=tuple(rows),
        subsets=tuple(subsets),
        search="all" if count <= MOST_SUBSETS else "greedy",
        chosen=chosen,
        why_so_many=_why_so_many(chosen, fewer, best=best),
        why_these=_why_these(chosen, others[0] if others else None),
    )


def _why_so_many(chosen: Subset, fewer: Subset | None, *, best: int) -> str:
    count = len(chosen.owners)
    said = f"--best asks for {best} (without it 2)"
    if count < best:
        said = f"--best asks for {best}, and no more than {count} can be compared"
    if fewer is not None:
        said += f"; {_named(fewer)} alone: MMD² {_figure(fewer.estimate)}"
    idle = [owner for owner, weight in zip(chosen.owners, chosen.weights, strict=True) if weight < _IDLE]
    if idle:
        said += f"; of weight 0 in the best mixture: {', '.join(idle)}"
    return said


def _why_these(chosen: Subset, next_best: Subset | None) -> str:
    """The figure of `_order` that puts the choice before the next."""
    if next_best is None:
        return "there is no other choice of this size"
    (nearest, by_size, _), (farther, by_size_too, _) = _order(chosen), _order(next_best)
    name = _named(next_best)
    if nearest != farther:
        said = f"nearest by the best mixture; next is {name}: MMD² {_figure(next_best.estimate)}"
        if farther - nearest < next_best.estimate.standard_error:
            said += ", a difference within the noise"
        return said
    tie = f"a tie with {name}, whose best mixture is as near"
    if by_size != by_size_too:
        return f"{tie}: all points together are nearer, {by_size:.5f} against {by_size_too:.5f} by size"
    return f"{tie}, as are all points together: the first by name is chosen"


def _named(subset: Subset) -> str:
    return " and ".join(subset.owners)


def _figure(estimate: MmdEstimate) -> str:
    return f"{estimate.value:.5f} ± {estimate.standard_error:.5f}"


def _order(subset: Subset) -> tuple[float, float, tuple[str, ...]]:
    # An owner with weight 0 changes only the last digits: then all points together decide.
    return round(subset.estimate.value, 9), subset.by_size.value, subset.owners


def _greedy(
    owners: int, largest: int, judged: Callable[[tuple[int, ...]], Subset]
) -> list[list[tuple[int, ...]]]:
    """The subsets of each size that add one owner to the nearest subset of the previous size."""
    tried: list[list[tuple[int, ...]]] = []
    held: tuple[int, ...] = ()
    for _ in range(largest):
        ahead = [tuple(sorted((*held, place))) for place in range(owners) if place not in held]
        held = min(ahead, key=lambda places: _order(judged(places)))
        tried.append(ahead)
    return tried


def _point_masses(target: NoisyMean, candidates: Sequence[CatalogueCandidate]) -> list[float | None]:
    """The total weight of each owner's synthetic points; None if some owner has none."""
    hashed = []
    for each in candidates:
        features = each.entry.release.point_features()
        if features is None:
            return [None] * len(candidates)
        hashed.append(features)
    weights = point_weights(target, np.concatenate(hashed))
    ends = np.cumsum([len(features) for features in hashed])[:-1]
    return [float(part.sum()) for part in np.split(weights, ends)]
