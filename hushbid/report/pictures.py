"""The figures of a report's pictures: the purchase beside the wanted rows, for the consumer alone.

All of them describe private rows, exact and without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.matching import effective_points
from hushbid.protocol.data.column import MEASURED, Column
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.space.mmd import Vector, kernel_matrix
from hushbid.report.own_rows import Image, ImageColumn, OwnRows
from hushbid.report.rounds import shortened, thinned

__all__ = [
    "BARS",
    "MAP_POINTS",
    "MOST_COLUMNS",
    "MOST_WORDS",
    "Distribution",
    "Pictures",
    "PrincipalMap",
    "Sheet",
    "WeightFigures",
    "pictures_of",
]

MOST_COLUMNS: Final = 24
"""Most columns that are drawn: those in which wanted and bought differ most."""
BARS: Final = 20
"""Most bars of a column of numbers."""
MOST_WORDS: Final = 12
"""Bars of a column of words: the most wanted, and the others in one."""
MAP_POINTS: Final = 1_000
"""Most points of each kind in the map."""
_WANTED_IMAGES: Final = 120
_BOUGHT_IMAGES: Final = 40
"""Most images of each kind, the latter per group of rounds."""
_GROUPS: Final = 8
_TAIL: Final = 0.01
"""Share of the rows on either side that goes into the outermost bars."""
_NO_SPREAD: Final = 1e-12
"""Variance in feature space below which all points count as one."""
_HARDLY: Final = 0.01
"""Share of an equal weight below which a point hardly counts."""

Shares = tuple[float, ...]
Place = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """A column's values, in shares of the rows; with weights, if there are any.

    Attributes:
        edges: Edges of the bars, one more than there are bars; None: each is one of `values`.
        values: The meaning of each bar, in words; None: an interval.
        others: Number of values that the last of `values` stands for, if there are too many; 0: each for one.
        means: Means of wanted, bought and weighted rows; None: values are words.
        apart: Half of the sum of differences between wanted and bought shares, from 0 to 1.
    """

    name: str
    edges: tuple[float, ...] | None
    values: tuple[str, ...] | None
    others: int
    wanted: Shares
    bought: Shares
    weighted: Shares | None
    means: tuple[float, ...] | None
    apart: float
    apart_weighted: float | None


@dataclass(frozen=True, kw_only=True)
class PrincipalMap:
    """Wanted and bought points by their first two kernel principal components.

    `explained` has each component's part of the variance of these in feature space.
    """

    explained: Place
    wanted: tuple[Place, ...]
    bought: tuple[Place, ...]
    offered: tuple[Place, ...] | None


@dataclass(frozen=True, kw_only=True)
class WeightFigures:
    """The distribution of bought points' weights: points by bars, in shares of an equal weight, 1/n.

    `effective` is 1/Σw², and `hardly` counts points below a hundredth of an equal weight.
    """

    edges: tuple[float, ...]
    points: tuple[int, ...]
    effective: float
    hardly: int


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """Images side by side.

    Attributes:
        column: The images' column; None: each is a whole row.
        rounds: The first and the last round that they were bought in; None: they are wanted.
        shown: Which of the `points` images are shown, counted from 1.
    """

    column: str | None
    image: Image
    rounds: tuple[int, int] | None
    points: int
    shown: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pictures:
    """The content of the pictures.

    Attributes:
        image: The grey image that a whole row is; None: it is none.
        sheets: Sheets of images, column by column, the wanted first; empty if there are none.
        pixels: Those of each sheet, 0 at the lower bound and 255 at the upper, shape (n, height, width), with
            a further axis of three channels if they are in colour.
        columns: Those that hold no images, in the order of the session; none if whole rows are images.
        map: None if all points are one.
    """

    image: Image | None
    wanted: int
    bought: int
    offered: int | None
    sheets: tuple[Sheet, ...]
    pixels: tuple[npt.NDArray[np.uint8], ...]
    columns: tuple[Distribution, ...]
    columns_left_out: int
    map: PrincipalMap | None
    weights: WeightFigures | None
    no_weights: str


def pictures_of(rows: OwnRows) -> Pictures:
    """Compute the pictures of these rows."""
    whole = next((each.image for each in rows.images if each.name is None), None)
    sheets = [sheet for column in rows.images for sheet in _sheets(rows, column)]
    columns = list(_distributions(rows)) if whole is None else []
    furthest = sorted(range(len(columns)), key=lambda place: (-columns[place].apart, place))[:MOST_COLUMNS]
    return Pictures(
        image=whole,
        wanted=len(rows.wanted),
        bought=len(rows.bought),
        offered=None if rows.offered is None else len(rows.offered),
        sheets=tuple(sheet for sheet, _ in sheets),
        pixels=tuple(pixels for _, pixels in sheets),
        columns=tuple(columns[place] for place in sorted(furthest)),
        columns_left_out=len(columns) - len(furthest),
        map=_map(rows),
        weights=None if rows.weights is None else _weights(rows.weights),
        no_weights=rows.no_weights,
    )


# -- images -----------------------------------------------------------------------------------------------


def _sheets(rows: OwnRows, column: ImageColumn) -> Iterator[tuple[Sheet, npt.NDArray[np.uint8]]]:
    """A column's sheets: those of D_v, then those of groups of rounds, as even as possible."""

    def sheet(
        points: npt.NDArray[Any], rounds: tuple[int, int] | None, most: int
    ) -> tuple[Sheet, npt.NDArray[np.uint8]]:
        shown = thinned(len(points), most)
        pixels = _pixels(rows, column, points[np.array(shown) - 1])
        made = Sheet(
            column=column.name, image=column.image, rounds=rounds, points=len(points), shown=shown
        )  # fmt: skip
        return made, pixels

    yield sheet(rows.wanted, None, _WANTED_IMAGES)
    last = rows.session.rounds
    for group in np.array_split(np.arange(1, last + 1), min(_GROUPS, last)):
        first, end = int(group[0]), int(group[-1])
        inside = np.flatnonzero((rows.rounds >= first) & (rows.rounds <= end))
        if len(inside):
            yield sheet(rows.bought[inside], (first, end), _BOUGHT_IMAGES)


def _pixels(rows: OwnRows, column: ImageColumn, points: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    image = column.image
    shape = (len(points), image.height, image.width, *([] if image.channels == 1 else [image.channels]))
    if column.name is not None:  # by the session's columns, whose numbers are pixels already
        numbers = slice(column.first, column.first + image.height * image.width * image.channels)
        return points[:, numbers].astype(np.uint8).reshape(shape)
    # A value saved as float32 may exceed a bound by its rounding.
    grey = np.rint(255.0 * rows.session.space.scale(points).clip(0.0, 1.0)).astype(np.uint8)
    return grey.reshape(shape)


# -- columns ----------------------------------------------------------------------------------------------


def _distributions(rows: OwnRows) -> Iterator[Distribution]:
    schema, first = rows.session.file.rows, 0
    if schema is not None:
        for column in schema.columns:
            part = slice(first, first + column.width)
            first += column.width
            wanted, bought = rows.wanted[:, part], rows.bought[:, part]
            if column.kind == "image":
                continue
            if column.kind in MEASURED:
                yield _measured(column.name, wanted[:, 0], bought[:, 0], rows.weights)
            else:
                yield _listed(column, wanted, bought, rows.weights)
        return
    for place in range(rows.bought.shape[1]):
        name = f"column {place}" if rows.names is None else rows.names[place]
        yield _measured(name, rows.wanted[:, place], rows.bought[:, place], rows.weights)


def _measured(
    name: str, wanted: npt.NDArray[Any], bought: npt.NDArray[Any], weights: Vector | None
) -> Distribution:
    wanted = np.asarray(wanted, dtype=np.float64)
    edges = _edges(np.concatenate([wanted, bought]))
    means = [wanted.mean(), bought.mean(), *([] if weights is None else [weights @ bought])]

    def counted(values: npt.NDArray[Any], each: Vector | None) -> npt.NDArray[Any]:
        return np.histogram(values.clip(edges[0], edges[-1]), edges, weights=each)[0]

    shares = _shares(counted, wanted, bought, weights)
    return _distribution(name, shares, edges=_told(edges), means=_told(means))


def _edges(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A bar for each whole number, if there are few; else bars of one width, the outermost with the tails."""
    low, high = float(values.min()), float(values.max())
    if high - low < BARS and (values == np.floor(values)).all():
        return np.arange(low, high + 2.0) - 0.5
    ends = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    if ends[0] < ends[1]:
        low, high = float(ends[0]), float(ends[1])
    return np.linspace(low, high, BARS + 1) if low < high else np.array([low - 0.5, low + 0.5])


def _listed(
    column: Column, wanted: npt.NDArray[Any], bought: npt.NDArray[Any], weights: Vector | None
) -> Distribution:
    """Bars of words: all of them, or the most wanted ones, with the others in one."""
    if column.kind == "boolean":
        words = ["no", "yes"]
    else:
        words = [str(value) for value in column.categories or ()] + (["(gap)"] if column.own_gap else [])

    def counted(numbers: npt.NDArray[Any], each: Vector | None) -> npt.NDArray[Any]:
        places = numbers.argmax(axis=1) if column.kind == "category" else numbers[:, 0].astype(np.int64)
        return np.bincount(places, weights=each, minlength=len(words))

    shares = _shares(counted, wanted, bought, weights)
    others = len(words) - MOST_WORDS + 1 if len(words) > MOST_WORDS else 0
    if others:
        order = sorted(range(len(words)), key=lambda place: (-shares[0][place], -shares[1][place], place))
        kept, rest = sorted(order[:-others]), order[-others:]
        words = [words[place] for place in kept] + [f"{others} others"]
        shares = [np.append(each[kept], each[rest].sum()) for each in shares]
    return _distribution(column.name, shares, values=tuple(words), others=others)


def _shares(
    counted: Callable[[npt.NDArray[Any], Vector | None], npt.NDArray[Any]],
    wanted: npt.NDArray[Any],
    bought: npt.NDArray[Any],
    weights: Vector | None,
) -> list[Vector]:
    """Shares of wanted rows, of bought ones, and of their weights if there are any."""
    shares = [counted(rows, None) / len(rows) for rows in (wanted, bought)]
    return shares + ([] if weights is None else [counted(bought, weights)])


def _distribution(
    name: str,
    shares: Sequence[Vector],
    *,
    edges: tuple[float, ...] | None = None,
    values: tuple[str, ...] | None = None,
    others: int = 0,
    means: tuple[float, ...] | None = None,
) -> Distribution:
    wanted, bought = shares[:2]
    weighted = shares[2] if len(shares) > 2 else None

    def apart(found: Vector) -> float:
        return shortened(float(np.abs(found - wanted).sum()) / 2.0)

    return Distribution(
        name=name,
        edges=edges,
        values=values,
        others=others,
        wanted=_told(wanted),
        bought=_told(bought),
        weighted=None if weighted is None else _told(weighted),
        means=means,
        apart=apart(bought),
        apart_weighted=None if weighted is None else apart(weighted),
    )


# -- map and weights --------------------------------------------------------------------------------------


def _map(rows: OwnRows) -> PrincipalMap | None:
    """Kernel PCA (Schölkopf, Smola and Müller 1998) with the session's exact kernel on scaled points."""
    from sklearn.decomposition import KernelPCA

    space = rows.session.space

    def scaled(kind: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return space.scale(np.asarray(kind)[np.array(thinned(len(kind), MAP_POINTS)) - 1])

    wanted, points = scaled(rows.wanted), np.concatenate([scaled(rows.wanted), scaled(rows.bought)])
    kernel = kernel_matrix(points, space.gamma)
    spread = float(kernel.trace() - kernel.sum() / len(kernel))
    if spread <= _NO_SPREAD * len(kernel):
        return None
    found = KernelPCA(n_components=2, kernel="precomputed", eigen_solver="dense")
    with one_blas_thread():  # SciPy's as well, which scikit-learn may have loaded just now
        places = _places(found.fit_transform(kernel))
    first, second = (shortened(float(value) / spread) for value in found.eigenvalues_)
    offered = None
    if rows.offered is not None:
        from scipy.spatial.distance import cdist

        beside = np.exp(-space.gamma * cdist(scaled(rows.offered), points, "sqeuclidean"))
        offered = _places(found.transform(beside))
    return PrincipalMap(
        explained=(first, second),
        wanted=places[: len(wanted)],
        bought=places[len(wanted) :],
        offered=offered,
    )


def _places(found: npt.NDArray[np.float64]) -> tuple[Place, ...]:
    return tuple((shortened(float(x)), shortened(float(y))) for x, y in found)


def _weights(weights: Vector) -> WeightFigures:
    relative = weights * len(weights)
    points, edges = np.histogram(relative, bins=BARS, range=(0.0, float(relative.max())))
    return WeightFigures(
        edges=_told(edges),
        points=tuple(points.tolist()),
        effective=effective_points(weights),
        hardly=int((relative < _HARDLY).sum()),
    )


def _told(values: Sequence[float] | npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(shortened(float(value)) for value in values)
