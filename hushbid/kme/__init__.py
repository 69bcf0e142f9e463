"""Release of a dataset as weighted synthetic points (Balog, Tolstikhin, Schölkopf 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.kme.privacy import KmeCalibration as Calibration
from hushbid.kme.privacy import calibrate
from hushbid.kme.reduced_set import reduced_set
from hushbid.kme.release import Estimate, Release, TwoSampleTest
from hushbid.protocol.extras import lazily

if TYPE_CHECKING:
    from hushbid.kme.estimator import KernelMeanRelease
else:  # scikit-learn takes a second to import, and the verbs of the catalogue need none of it
    __getattr__ = lazily(__name__, {"KernelMeanRelease": "estimator"}, "sklearn")

__all__ = [
    "Calibration",
    "Estimate",
    "KernelMeanRelease",
    "Release",
    "TwoSampleTest",
    "calibrate",
    "reduced_set",
]
