"""`hushbid.procure` of a table with an image column, as in notebooks: arrays in a DataFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import hushbid
from hushbid import Schema

SCHEMA = Schema.of([{"name": "scan", "kind": "image", "size": [8, 8]}])


@pytest.fixture(scope="module")
def scans() -> pd.DataFrame:
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.images))
    # 0 to 16 there.
    pixels = (digits.images[order] * 15).astype(np.uint8)
    return pd.DataFrame({"scan": list(pixels), "digit": digits.target[order]})


def test_images_in_arrays_are_bought_and_come_back_as_such(scans: pd.DataFrame) -> None:
    wanted, others = scans[scans.digit.isin([3, 4])], scans[~scans.digit.isin([3, 4])]
    owners = {"north": pd.concat([wanted[100:200], others[:100]]), "south": others[100:200]}
    procured = hushbid.procure(
        owners=owners,
        validation=wanted[:100],
        seed_set=others[200:230],
        schema=SCHEMA,
        points=50,
        epsilon=100.0,
        label="digit",
        rehearse=False,
    )
    points = procured.points
    assert np.stack(points["scan"]).shape == (50, 8, 8)
    for name, frame in owners.items():
        offered = {(scan.tobytes(), digit) for scan, digit in zip(frame.scan, frame.digit, strict=True)}
        mine = points[points.owner == name]
        assert {
            (scan.astype(np.uint8).tobytes(), digit)
            for scan, digit in zip(mine.scan, mine.digit, strict=True)
        } <= offered
    # There is hardly any noise; a third of what is offered is wanted (a draw of 50 has 0.6 once in 30,000).
    assert points.digit.isin([3, 4]).mean() > 0.6
