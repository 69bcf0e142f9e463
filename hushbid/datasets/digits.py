"""scikit-learn's bundled digits: the demonstration that needs no download."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.datasets.digit_groups import deal_digits
from hushbid.datasets.partition import Partition, PartitionOptions, Table
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import need

__all__ = ["digits"]

_BUNDLED: Final = Path("datasets", "data", "digits.csv.gz")
"""In the folder of scikit-learn."""


def digits(path: Path | None, generator: np.random.Generator, options: PartitionOptions) -> Partition:
    """The MNIST setting of DPDS appendix G (`deal_digits`), on scikit-learn's 1,797 images of 8×8 pixels.

    Half of every digit's images are held out, and D_v is half of the wanted ones among them. A path raises a
    ConfigError, as the data come with scikit-learn.
    """
    if path is not None:
        raise ConfigError(
            "The digits dataset takes no path: its images come with scikit-learn.",
            advice="Leave --data, HUSHBID_DATA and dataset.path out.",
        )
    need("sklearn", "The digits dataset")
    pixels, classes = _bundled()
    table = Table(pixels.astype(np.uint8), classes.astype(np.uint8))

    def half_of_each(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        chosen = np.zeros(len(labels), dtype=np.bool_)
        for label in np.unique(labels):
            positions = np.flatnonzero(labels == label)
            chosen[generator.choice(positions, size=(len(positions) + 1) // 2, replace=False)] = True
        return chosen

    held_out = half_of_each(table.labels)
    return deal_digits(
        table,
        np.flatnonzero(~held_out),
        np.flatnonzero(held_out),
        generator,
        options,
        validation=half_of_each,
        upper=16.0,
        suggested={"gamma": 0.1, "dimension": 140, "model": "logistic"},
    )


def _bundled() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What `sklearn.datasets.load_digits` returns: pixels, shape (1797, 64), and classes, shape (1797,).

    Its file is read without scikit-learn, whose import takes a second, unless the file is not found.
    """
    found = find_spec("sklearn")
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        path = Path(place) / _BUNDLED
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as file:
                rows = np.loadtxt(file, delimiter=",")
            return rows[:, :-1], rows[:, -1]
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    return pixels, classes
