"""RACE sketches: counts of hash codes, made private once, for any number of kernel sums (docs/race.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.protocol.extras import lazily
from hushbid.race.counts import Counts, count_cells, row_starts
from hushbid.race.release import PoorModelWarning, SketchPrivacy, calibrate, optimal_rows
from hushbid.race.release import RaceCalibration as Calibration
from hushbid.race.sketch import Sketch
from hushbid.race.staged import classifier_rows

if TYPE_CHECKING:
    from hushbid.race.classifier import RaceClassifier
    from hushbid.race.density import RaceDensity
    from hushbid.race.enough import least_points
    from hushbid.race.estimator import RaceSketch, make_family
    from hushbid.race.regressor import RaceRegressor
else:  # scikit-learn takes a second to import, and the verbs of the catalogue need none of it
    __getattr__ = lazily(
        __name__,
        {
            "RaceClassifier": "classifier",
            "RaceDensity": "density",
            "RaceRegressor": "regressor",
            "RaceSketch": "estimator",
            "least_points": "enough",
            "make_family": "estimator",
        },
        "sklearn",
    )

__all__ = [
    "Calibration",
    "Counts",
    "PoorModelWarning",
    "RaceClassifier",
    "RaceDensity",
    "RaceRegressor",
    "RaceSketch",
    "Sketch",
    "SketchPrivacy",
    "calibrate",
    "classifier_rows",
    "count_cells",
    "least_points",
    "make_family",
    "optimal_rows",
    "row_starts",
]
