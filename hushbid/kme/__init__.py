"""Release of a dataset as weighted synthetic points (Balog, Tolstikhin, Schölkopf 2018)."""

from __future__ import annotations

from hushbid.protocol.extras import need

need("sklearn", "`hushbid.kme`")  # before what imports it

from hushbid.kme.estimator import KernelMeanRelease
from hushbid.kme.privacy import KmeCalibration as Calibration
from hushbid.kme.privacy import calibrate
from hushbid.kme.reduced_set import reduced_set
from hushbid.kme.release import Estimate, Release, TwoSampleTest

__all__ = [
    "Calibration",
    "Estimate",
    "KernelMeanRelease",
    "Release",
    "TwoSampleTest",
    "calibrate",
    "reduced_set",
]
