"""Private marginals: a noisy histogram of each column, and its mean, deviation and quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import IsotonicRegression

from hushbid.protocol.errors import DataError
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.race.release import RaceCalibration, SketchPrivacy, check_noise

__all__ = ["Marginals", "measure_marginals"]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Estimated distribution of each column alone. Columns are scaled to [-1, 1].

    Attributes:
        size: N̂, as released.
        values: The histograms' steps, evenly from -1 to 1: float64 of shape (steps,).
        cumulative: P(column ≤ value) for each of them: shape (columns, steps), rising to 1.
        means: Shape (columns,).
        deviations: Standard deviations, at least that within one step: shape (columns,).
        mean_errors: Standard errors of the means by noise, in deviations: shape (columns,).
        deviation_errors: Relative standard errors of the deviations by noise, shape (columns,).
    """

    size: int
    values: npt.NDArray[np.float64]
    cumulative: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    deviations: npt.NDArray[np.float64]
    mean_errors: npt.NDArray[np.float64]
    deviation_errors: npt.NDArray[np.float64]

    def quantiles(self, probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Quantiles of the first m columns, in [-1, 1], interpolated within steps.

        Args:
            probabilities: Shape (n, m), as the result.
        """
        half = (self.values[1] - self.values[0]) / 2.0
        edges = np.clip(np.append(self.values - half, 1.0 + half), -1.0, 1.0)
        columns = zip(self.cumulative, probabilities.T, strict=False)
        return np.stack([np.interp(p, [0.0, *column], edges) for column, p in columns], axis=1)


def measure_marginals(
    points: npt.NDArray[np.float64],
    steps: int,
    calibration: RaceCalibration | None,
    source: NoiseSource | None,
) -> tuple[Marginals, SketchPrivacy | None]:
    """Release the histograms of a dataset's columns, and compute marginals from them alone.

    Args:
        points: float64 of shape (n, columns), in [-1, 1].
        steps: Bins of a histogram, at least 2. The two at the bounds are half as wide.
        calibration: For a sketch with a row of `steps` cells for each column, as a record changes a histogram
            like such a row (`calibrate`); None: no noise, no privacy.
        source: Draws the noise; None without noise.

    Returns:
        The marginals, and the guarantee of the release.

    Raises:
        DataError: The noisy size is not positive.
        LocalProtocolError: A calibration without a source, or a source without one.
    """
    check_noise(calibration, source)
    columns = points.shape[1]
    values = np.linspace(-1.0, 1.0, steps)
    bins = np.rint((points + 1.0) / 2.0 * (steps - 1)).astype(np.int64) + steps * np.arange(columns)
    counts = np.bincount(bins.ravel(), minlength=columns * steps)
    size = len(points)
    privacy = None
    if calibration is not None and source is not None:
        counts = counts + source.draw(calibration.cells)
        size += 0 if calibration.sizes is None else int(source.draw(calibration.sizes)[0])
        privacy = calibration.privacy(source)
    if size <= 0:
        raise DataError(
            "A dataset's noisy size is not positive: it has fewer points than its noise hides.",
            advice="Use more points, or raise epsilon.",
        )
    return _marginals(counts.reshape(columns, steps), values, size, privacy), privacy


def _marginals(
    counts: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    size: int,
    privacy: SketchPrivacy | None,
) -> Marginals:
    # Moving all bins alike is the least squares estimate of a histogram that sums to N.
    shares = (counts + (size - counts.sum(axis=1, keepdims=True)) / len(values)) / size
    # Shrunk towards the uniform distribution, by the noise on a mean of prior variance 1/3.
    noise = 0.0 if privacy is None else math.sqrt(privacy.cell_variance) / size
    weight = 1.0 / (1.0 + 3.0 * noise**2 * float((values**2).sum()))
    shares = weight * shares + (1.0 - weight) / len(values)
    # A cumulative distribution rises: the nearest one that does, in [0, 1].
    isotonic = IsotonicRegression(y_min=0.0, y_max=1.0)
    cumulative = np.array([isotonic.fit_transform(values, column) for column in np.cumsum(shares, axis=1)])
    cumulative[:, -1] = 1.0
    shares = np.diff(cumulative, axis=1, prepend=0.0)
    means = shares @ values
    # A column that is constant within a step still varies by rounding to steps.
    variances = np.maximum(shares @ values**2 - means**2, (values[1] - values[0]) ** 2 / 12.0)
    deviations = np.sqrt(variances)
    return Marginals(
        size=size,
        values=values,
        cumulative=cumulative,
        means=means,
        deviations=deviations,
        mean_errors=weight * noise * math.sqrt(float((values**2).sum())) / deviations,
        deviation_errors=weight * noise * math.sqrt(float((values**4).sum())) / variances / 2.0,
    )
