"""`hushbid bench scale`: the cost of a session over K, p, b, n and d, fitted and extrapolated.

Each cell, a session simulated in a process of its own (`scale_cell`), differs from a base cell in one size.
Costs are fitted by nonnegative least squares of relative errors. Terms follow from the parties' work, so that
every coefficient is a time or a size with a name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

from hushbid.lab.bench.scale_cell import ScaleCell, ScaleCost, default_batch
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.running.fork_server import party_environment

__all__ = ["SIZES", "TERMS", "Fit", "bench_scale", "cells_around", "exponents", "extended", "fitted"]

Term = Callable[[ScaleCell], float]

TERMS: Final[Mapping[str, Mapping[str, tuple[str, Term]]]] = {
    "curator_seconds": {
        "owner": ("K", lambda cell: cell.owners),
        "bid": ("K·T", lambda cell: cell.owners * cell.rounds),
        "point_handed_over": ("K·p", lambda cell: cell.owners * _handed(cell)),
        "coordinate_screened": (
            "K·p·T·d/2",
            lambda cell: cell.owners * _handed(cell) * cell.rounds * cell.dimension / 2,
        ),
    },
    "owners_seconds": {
        "owner": ("K", lambda cell: cell.owners),
        "bid": ("K·T", lambda cell: cell.owners * cell.rounds),
        "point_handed_over": ("K·p", lambda cell: cell.owners * _handed(cell)),
        "coordinate_hashed": ("K·n·d", lambda cell: cell.owners * cell.owner_points * cell.dimension),
        "coordinate_scored": (
            "K·n·d·T",
            lambda cell: cell.owners * cell.owner_points * cell.dimension * cell.rounds,
        ),
    },
    "peak_bytes": {
        "process": ("1", lambda _: 1.0),
        "owner": ("K", lambda cell: cell.owners),
        "point_handed_over": ("K·p", lambda cell: cell.owners * _handed(cell)),
        "coordinate_handed_over": ("K·p·d", lambda cell: cell.owners * _handed(cell) * cell.dimension),
        "coordinate_held": ("K·n·d", lambda cell: cell.owners * cell.owner_points * cell.dimension),
    },
    "received_bytes": {
        "owner": ("K", lambda cell: cell.owners),
        "bid": ("K·T", lambda cell: cell.owners * cell.rounds),
        "point_handed_over": ("K·p", lambda cell: cell.owners * _handed(cell)),
        "coordinate_handed_over": ("K·p·d", lambda cell: cell.owners * _handed(cell) * cell.dimension),
    },
    "sent_bytes": {
        "owner": ("K", lambda cell: cell.owners),
        "bid": ("K·T", lambda cell: cell.owners * cell.rounds),
        "coordinate_broadcast": ("K·T·d", lambda cell: cell.owners * cell.rounds * cell.dimension),
    },
}
"""The terms of each cost: a name, a formula in the papers' letters, and the term's value for a cell."""


SIZES: Final = {"owners": "K", "owner_points": "n", "points": "p", "batch": "b", "dimension": "d"}
"""The sizes of a cell that are varied, and their letters in the papers."""


def _handed(cell: ScaleCell) -> int:
    """Points that an owner hands over where every bid contains its points."""
    return min(cell.rounds * cell.batch, cell.owner_points)


@dataclass(frozen=True, slots=True)
class Fit:
    """A cost as a sum of terms.

    Attributes:
        coefficients: Coefficient of each term by name in `TERMS`, in seconds or bytes.
        worst: The largest relative error over the fitted cells.
    """

    coefficients: Mapping[str, float]
    worst: float


def cells_around(base: ScaleCell) -> tuple[ScaleCell, ...]:
    """The base cell and cells with one size changed: K, n, d, and p and b where the rule has batches."""
    sizes: list[dict[str, Any]] = [{}]
    sizes += [{"owners": max(2, base.owners // 4)}, {"owners": max(2, base.owners // 2)}]
    sizes += [{"owners": 2 * base.owners}]
    sizes += [{"owner_points": 10 * base.owner_points}, {"owner_points": 40 * base.owner_points}]
    sizes += [{"dimension": base.dimension // 2}, {"dimension": 2 * base.dimension}]
    sizes += [{"points": base.points // 2}]
    sizes += [{"points": 2 * base.points, "owner_points": 2 * base.owner_points}]
    if RULES[base.rule].herds:
        sizes += [{"batch": base.batch // 2}, {"batch": 2 * base.batch}]
    elif base.batch > 1:
        sizes += [{"batch": 1}, {"batch": 5 * base.batch}]
    return tuple(replace(base, **changes) for changes in sizes)


def fitted(measured: Sequence[tuple[ScaleCell, ScaleCost]]) -> Mapping[str, Fit]:
    """Fit each cost of `TERMS` as a sum of its terms, by nonnegative least squares of relative errors."""
    found = {}
    for cost, terms in TERMS.items():
        values = np.array([float(getattr(each, cost)) for _, each in measured])
        matrix = np.array([[term(cell) for _, term in terms.values()] for cell, _ in measured])
        relative = matrix / values[:, None]
        scale = np.linalg.norm(relative, axis=0)
        scale[scale == 0.0] = 1.0
        solution, _ = nnls(relative / scale, np.ones(len(values)))
        coefficients = solution / scale
        worst = float(np.abs(relative @ coefficients - 1.0).max())
        found[cost] = Fit(dict(zip(terms, coefficients.tolist(), strict=True)), worst)
    return found


def exponents(
    base: ScaleCell, measured: Sequence[tuple[ScaleCell, ScaleCost]]
) -> Mapping[str, Mapping[str, float]]:
    """The power of each size by which each cost of `TERMS` grows around the base: slopes of logarithms.

    A cost's other terms make the powers smaller than they are far from the base. Above 1 is faster than the
    size.

    Args:
        measured: `cells_around` the base, each with its cost.

    Returns:
        Cost → size of `SIZES` → power; only sizes that vary.
    """
    found: dict[str, dict[str, float]] = {cost: {} for cost in TERMS}
    for size in SIZES:
        # With more points an owner also has more rows, so that it has some to hand over.
        same = [other for other in SIZES if other != size and (size, other) != ("points", "owner_points")]
        cells = [
            (cell, cost)
            for cell, cost in measured
            if all(getattr(cell, other) == getattr(base, other) for other in same)
            and (size != "points" or cell.points != base.points or cell == base)
        ]
        steps = np.log([getattr(cell, size) for cell, _ in cells])
        if np.ptp(steps) == 0.0:
            continue
        for name, powers in found.items():
            values = np.log([float(getattr(cost, name)) for _, cost in cells])
            powers[size] = float(np.polyfit(steps, values, 1)[0])
    return found


def extended(fits: Mapping[str, Fit], cell: ScaleCell) -> dict[str, float]:
    """The cost of a cell by the fits, with ``owner_seconds``, the time of one owner."""
    costs = {
        cost: sum(fit.coefficients[name] * term(cell) for name, (_, term) in TERMS[cost].items())
        for cost, fit in fits.items()
    }
    return costs | {"owner_seconds": costs["owners_seconds"] / cell.owners}


_BEYOND: Final[Sequence[Mapping[str, Any]]] = (
    {"owners": 10_000, "owner_points": 100, "points": 100},
    {"owners": 10_000, "owner_points": 10_000, "points": 1_000},
    {"owners": 100_000, "owner_points": 10_000, "points": 1_000},
    {"owners": 1_000_000, "owner_points": 10_000, "points": 1_000},
)
"""Sizes to extrapolate to, in fifty rounds; the last has 10¹⁰ rows."""
_ROUNDS: Final = 50
_SUBMITTED: Final = 50
"""Points that an owner submits in the base session of a tender."""


def bench_scale(*, rule: str, owners: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure cells around K owners of 100 points each, p = 100 and d = 140; fit and extrapolate their cost.

    Raises:
        ConfigError: There is no such rule, or it is not for so many owners.
        HushbidError: A session did not end well.
    """
    batch = default_batch(rule)
    base = ScaleCell(rule, owners, batch=_SUBMITTED if RULES[rule].herds else batch)
    cells = cells_around(base)
    measured = []
    for number, cell in enumerate(cells, start=1):
        say(f"session {number} of {len(cells)}: {_named(cell)}")
        measured.append((cell, in_own_process(cell)))
    fits = fitted(measured)
    beyond = []
    for sizes in _BEYOND:
        batch = sizes["points"] // (1 if RULES[rule].herds else _ROUNDS)
        cell = replace(base, **sizes, batch=1 if base.batch == 1 else batch)
        beyond.append({**asdict(cell), **extended(fits, cell)})
    return {
        "rule": rule,
        "measured": [{**asdict(cell), **asdict(cost)} for cell, cost in measured],
        "fits": {
            cost: {
                "terms": {
                    name: {"of": TERMS[cost][name][0], "each": value}
                    for name, value in fit.coefficients.items()
                },
                "worst": fit.worst,
            }
            for cost, fit in fits.items()
        },
        "exponents": exponents(base, measured),
        "beyond": beyond,
    }


def in_own_process(cell: ScaleCell) -> ScaleCost:
    """Measure a cell's cost in a process that holds nothing else.

    Raises:
        HushbidError: The session is impossible or failed; the process has printed why.
    """
    # -P: do not import from the working directory.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "hushbid.lab.bench.scale_cell"],
        input=json.dumps(asdict(cell)),
        env=party_environment(os.environ),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != ExitCode.DONE:
        raise HushbidError(f"The session of {_named(cell)} failed.", advice="See what it said above.")
    return ScaleCost(**json.loads(done.stdout))


def _named(cell: ScaleCell) -> str:
    return (
        f"{cell.rule}, K = {cell.owners}, n = {cell.owner_points}, p = {cell.points}, b = {cell.batch}, "
        f"d = {cell.dimension}"
    )
