"""A private classifier that chooses its own size: four releases, each of which uses those before it.

1. The classes' sizes, from which the number of useful rows follows.
2. A small sketch of each class, the *pilot*, which shows where points lie and how they vary together.
3. A sketch of each class in coordinates in which points vary alike in every direction. Rows of raw columns
hardly see directions of little variation, which often separate classes.
4. The *ballot*: the number of fitted points that each reading of the sketches classifies correctly.

Use of an earlier release costs nothing, and the costs of the four add up. A record changes one size, one cell
of each row of the sketches and one cell of the ballot; under substitution it changes two of each. The ballot
counts every record separately: its reading has the same bits whichever other records there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import L2Family, Points, Sampling
from hushbid.protocol.space.lsh.base import MAX_CELLS
from hushbid.race.counts import count_cells
from hushbid.race.gaussians import GaussianPrior, Scores, fit_own, fit_shared, parameter_count
from hushbid.race.readings import REACH, RowScores, Whitening, scaled
from hushbid.race.release import CHANGED, RaceCalibration, SketchPrivacy, calibrate
from hushbid.race.sketch import Sketch

__all__ = ["READINGS", "FitBudget", "Reading", "StagedReleases", "classifier_rows", "fit_stages"]

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

Reading: TypeAlias = Literal["shared", "own", "rows"]
"""Gaussian classes of one covariance, Gaussian classes of their own, or the product of all rows."""
READINGS: Final[tuple[Reading, ...]] = ("shared", "own", "rows")

SIZES_SHARE: Final = 0.1
PILOT_SHARE: Final = 0.3
BALLOT_SHARE: Final = 0.1
"""Shares of ε; the rest is for the final sketches."""

MOST_ROWS_PER_PARAMETER: Final = 2.0
LEAST_MOST_ROWS: Final = 32
LARGEST_NOISE: Final = 1.0 / 6.0
"""Maximum noise of a cell, as a share of the smallest class: about the share in its fullest cells."""

_PRESENT: Final = 2.0
"""Standard deviations of the noise that the noisy size of a present class exceeds."""
_PILOT_BANDWIDTH: Final = 0.12
_BANDWIDTH: Final = 0.8
"""Bandwidths over √columns, by which projections are wider than columns: with bounds that are 1 apart, and in
whitened coordinates, in which classes have a standard deviation of 1."""
_PILOT_MEANS: Final = (0.5, 0.3)
_PILOT_FACTOR: Final = (0.2, 0.15)
"""Mean and standard deviation of the pilot's prior, as shares of the bounds."""
_MEAN_DEVIATION: Final = 1.0
_FACTOR_DEVIATION: Final = 0.5
"""Standard deviations of the prior from the pilot."""
_LEAST_EIGENVALUE: Final = 1e-5
_CHUNK: Final = 2**14
"""Points counted at a time."""


@dataclass(frozen=True, kw_only=True)
class FitBudget:
    """The budget of a fit, and its source of noise.

    Attributes:
        epsilon, delta: Of all releases together; `epsilon` None: nothing is private, and there is no noise.
        neighbours: The datasets that the guarantee compares.
        source: Source of the noise, for this fit alone; None without noise.

    Raises:
        ConfigError: An ε or δ out of its range.
    """

    epsilon: float | None
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE_ONE
    source: NoiseSource | None = None

    def __post_init__(self) -> None:
        if self.epsilon is None:
            return
        if not (math.isfinite(self.epsilon) and self.epsilon > 0.0 and 0.0 <= self.delta < 1.0):
            raise ConfigError(
                f"A classifier was to be private at epsilon = {self.epsilon} and delta = {self.delta}.",
                advice="Set epsilon to a positive number, and delta to 0 or a small one.",
            )

    def part(self, share: float | None) -> float | None:
        """ε of a release; `share` None: the rest, rounded down."""
        if self.epsilon is None or share is not None:
            return None if self.epsilon is None else self.epsilon * float(share or 0.0)
        others = [self.epsilon * each for each in (SIZES_SHARE, PILOT_SHARE, BALLOT_SHARE)]
        return math.nextafter(self.epsilon - math.fsum(others), 0.0)

    def calibration(
        self, share: float | None, *, rows: int, cells: int, delta: float = 0.0
    ) -> RaceCalibration | None:
        """Noise for `part(share)`, where a record changes one cell per row; None without noise."""
        epsilon = self.part(share)
        if epsilon is None:
            return None
        return calibrate(
            rows=rows, cells=cells, sizes=0, neighbours=self.neighbours, epsilon=epsilon, delta=delta
        )

    def noise(self, calibration: RaceCalibration | None, cells: int) -> Whole:
        """Newly drawn noise of a release, or zeros."""
        if calibration is None or self.source is None:
            return np.zeros(cells, dtype=np.int64)
        return np.array(self.source.draw(calibration.cells), dtype=np.int64)

    def statement(
        self, *releases: RaceCalibration | None, cells: RaceCalibration | None, sizes: RaceCalibration | None
    ) -> SketchPrivacy | None:
        """The guarantee for all of these releases, with the noise of some cells and of some sizes."""
        if self.source is None or cells is None or sizes is None:
            return None
        costs = tuple(cost for release in releases if release is not None for cost in release.costs)
        together = RaceCalibration(self.neighbours, self.delta, cells.cells, sizes.cells, costs)
        return together.privacy(self.source)


@dataclass(frozen=True, eq=False, kw_only=True)
class StagedReleases:
    """The releases of a fit in stages, and functions of them.

    Attributes:
        sizes: Sizes of all K classes, with noise: int64 of shape (K,).
        present: Indices of the classes whose sizes stand out from their noise, or of the largest one.
        sketches: Sketches of all classes, in whitened coordinates; none if only one class is present.
        whitening: These coordinates; None if only one class is present.
        scorings: For each reading, log likelihoods of the present classes up to a constant, shape
            (n, present), of whitened points of shape (n, columns).
        shares: Share of the fitted points that each reading classifies correctly, by the ballot.
        share_error: Standard deviation of the noise on such a share.
        privacy: Guarantee for all releases together; None without noise.
    """

    sizes: Whole
    present: npt.NDArray[np.intp]
    sketches: tuple[Sketch, ...] = ()
    whitening: Whitening | None = None
    scorings: dict[Reading, Callable[[Points], Reals]]
    shares: dict[Reading, float]
    share_error: float = 0.0
    privacy: SketchPrivacy | None

    @property
    def points(self) -> float:
        """The number of points, at least 1."""
        return max(1.0, float(self.sizes.sum()))

    @property
    def largest_share(self) -> float:
        """The largest class's share of the points."""
        return min(1.0, max(0.0, float(self.sizes.max())) / self.points)

    @property
    def largest_error(self) -> float:
        """Standard deviation of `largest_share` by the noise on that class's size."""
        return 0.0 if self.privacy is None else math.sqrt(self.privacy.size_variance) / self.points

    def scores(self, points: Points, reading: Reading, *, weighed: bool) -> Reals:
        """Log likelihoods of the present classes up to a constant, shape (n, present).

        Args:
            points: Within the public bounds, shape (n, columns).
            reading: One of `READINGS`.
            weighed: Whether likelihoods are multiplied by the classes' sizes.
        """
        if self.whitening is None:
            return np.zeros((len(points), 1))
        scores = self.scorings[reading](self.whitening(points))
        return scores + np.log(np.maximum(self.sizes[self.present], 1)) if weighed else scores


def fit_stages(
    points: Points,
    labels: npt.NDArray[np.intp],
    classes: int,
    *,
    lower: Reals,
    upper: Reals,
    budget: FitBudget,
    weighed: bool,
    sampling: Sampling,
    seed: int,
    threads: int | None,
) -> StagedReleases:
    """Make the four releases.

    Args:
        points: float64 of shape (n, columns), within the bounds.
        labels: Label of each point, from 0 to `classes` - 1, shape (n,).
        classes: K.
        lower, upper: Public bounds, shape (columns,).
        budget: For all releases together.
        weighed: Whether the ballot's readings weigh classes by their sizes.
        sampling, seed: Of the hash functions; public.
        threads: As `count_cells`.

    Raises:
        ConfigError: Bounds that enclose no interval.
        DataError: Points outside of the bounds.
    """
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise ConfigError(
            "A column's bounds enclose no interval.", advice="Set each lower bound below its upper one."
        )
    columns, unit = points.shape[1], scaled(points, lower, upper)
    for_sizes = budget.calibration(SIZES_SHARE, rows=1, cells=classes)
    sizes = budget.noise(for_sizes, classes) + np.bincount(labels, minlength=classes)
    hidden = 0.0 if for_sizes is None else _PRESENT * math.sqrt(for_sizes.cells.variance)
    present = np.flatnonzero(sizes > hidden)
    if len(present) < 2:
        # The rest of ε is not spent: there is nothing to tell apart.
        return StagedReleases(
            sizes=sizes,
            present=present if len(present) else np.array([sizes.argmax()]),
            scorings={},
            shares={},
            privacy=budget.statement(for_sizes, cells=for_sizes, sizes=for_sizes),
        )
    ballot_cells = 2 ** len(READINGS)
    for_ballot = budget.calibration(BALLOT_SHARE, rows=1, cells=ballot_cells)
    spent = [for_sizes, for_ballot]

    def sketched(
        share: float | None, low: Reals, high: Reals, bandwidth: float, number: int, placed: Points
    ) -> tuple[L2Family, tuple[Sketch, ...]]:
        """A sketch of each class, on noise that is drawn first. Absent classes' cost nothing more."""
        smallest = float(sizes[present].min())
        rows = classifier_rows(columns, smallest, budget.part(share), neighbours=budget.neighbours)
        family = L2Family(
            rows=rows,
            width=MAX_CELLS,
            lower=low,
            upper=high,
            seed=seed + number,
            bandwidth=bandwidth * math.sqrt(columns),
            sampling=sampling,
        )
        cells = int(family.cells.sum())
        calibration = budget.calibration(share, rows=rows, cells=cells * classes, delta=budget.delta / 2.0)
        spent.append(calibration)
        noise = budget.noise(calibration, cells * classes).reshape(classes, cells)
        privacy = budget.statement(*spent, cells=calibration, sizes=for_sizes)
        return family, tuple(
            Sketch(
                family,
                drawn + count_cells(family, placed[labels == index], threads=threads),
                int(sizes[index]),
                privacy,
            )
            for index, drawn in enumerate(noise)
        )

    box = np.zeros(columns), np.ones(columns)
    functions, pilot = sketched(PILOT_SHARE, *box, _PILOT_BANDWIDTH, 0, unit)
    whitening, prior = _whitened(functions, [pilot[index] for index in present], lower, upper)
    functions, sketches = sketched(None, whitening.lower, whitening.upper, _BANDWIDTH, 1, whitening(points))
    main = [sketches[index] for index in present]
    counts, found, variance = [sketch.counts for sketch in main], _sizes(main), _variance(main)
    shared, _ = fit_shared(functions, counts, found, variance, prior)
    own = fit_own(functions, counts, found, variance, shared)
    scorings: dict[Reading, Callable[[Points], Reals]] = {
        "shared": Scores(shared, REACH),
        "own": Scores(own, REACH),
        "rows": RowScores(main, found),
    }
    staged = StagedReleases(
        sizes=sizes,
        present=present,
        sketches=sketches,
        whitening=whitening,
        scorings=scorings,
        shares={},
        privacy=sketches[0].privacy,
    )
    ballot = budget.noise(for_ballot, ballot_cells)
    for start in range(0, len(points), _CHUNK):
        part, truth = points[start : start + _CHUNK], labels[start : start + _CHUNK]
        right = np.zeros(len(part), dtype=np.int64)
        for bit, reading in enumerate(READINGS):
            told = present[staged.scores(part, reading, weighed=weighed).argmax(axis=1)]
            right += (told == truth).astype(np.int64) << bit
        ballot += np.bincount(right, minlength=ballot_cells)
    return _elected(staged, ballot, for_ballot)


def classifier_rows(columns: int, smallest: float, epsilon: float | None, *, neighbours: Neighbours) -> int:
    """R of a sketch of each class: as many as Gaussian classes can use, with legible cells.

    A cell has noise of the standard deviation √2·s·R/ε, with s = 1 or 2 cells of a row that a record changes.
    R keeps it below `LARGEST_NOISE` of the smallest class.

    Args:
        columns: Columns of the points.
        smallest: Size of the smallest class: released, or a public prior.
        epsilon: ε of the sketches alone, δ = 0; None without noise.
        neighbours: The datasets that it compares.

    Returns:
        From twice the columns, or 8, to twice a class's parameters, or 32, whichever is more.
    """
    most = max(LEAST_MOST_ROWS, round(MOST_ROWS_PER_PARAMETER * parameter_count(columns)))
    if epsilon is None:
        return most
    legible = LARGEST_NOISE * smallest * epsilon / (math.sqrt(2.0) * CHANGED[Neighbours(neighbours)])
    return round(min(max(legible, 8.0, 2.0 * columns), most))


def _whitened(
    family: L2Family, pilot: list[Sketch], lower: Reals, upper: Reals
) -> tuple[Whitening, GaussianPrior]:
    """Coordinates in which the pilot's classes vary alike, and the prior of classes in them.

    The pilot's error is added to its covariance, so that a direction of little evidence is not stretched.
    """
    columns, sizes = family.columns, _sizes(pilot)
    mean, deviation = _PILOT_MEANS
    factor, factor_deviation = _PILOT_FACTOR
    prior = GaussianPrior(
        np.full((len(pilot), columns), mean), deviation, factor * np.eye(columns), factor_deviation
    )
    classes, error = fit_shared(family, [sketch.counts for sketch in pilot], sizes, _variance(pilot), prior)
    covariance = classes.factors[0] @ classes.factors[0].T + error
    eigenvalues, vectors = np.linalg.eigh(covariance)
    matrix = (vectors / np.sqrt(np.maximum(eigenvalues, _LEAST_EIGENVALUE))) @ vectors.T
    # Within the bounds, so that 0 is a value of each coordinate.
    centre = np.clip(np.average(classes.means, axis=0, weights=sizes), 0.0, 1.0)
    means = (classes.means - centre) @ matrix.T
    whitening = Whitening(lower, upper, matrix, matrix @ centre)
    return whitening, GaussianPrior(means, _MEAN_DEVIATION, np.eye(columns), _FACTOR_DEVIATION)


def _sizes(sketches: list[Sketch]) -> list[float]:
    return [max(1.0, sketch.size_estimate) for sketch in sketches]


def _variance(sketches: list[Sketch]) -> float:
    privacy = sketches[0].privacy
    return 0.0 if privacy is None else privacy.cell_variance


def _elected(staged: StagedReleases, ballot: Whole, calibration: RaceCalibration | None) -> StagedReleases:
    """The fit with the ballot: half of its cells count points that a reading classifies correctly."""
    shares: dict[Reading, float] = {}
    for bit, reading in enumerate(READINGS):
        right = ballot[(np.arange(len(ballot)) >> bit) % 2 == 1].sum()
        shares[reading] = min(1.0, max(0.0, float(right) / staged.points))
    variance = 0.0 if calibration is None else calibration.cells.variance * len(ballot) / 2.0
    return replace(staged, shares=shares, share_error=math.sqrt(variance) / staged.points)
