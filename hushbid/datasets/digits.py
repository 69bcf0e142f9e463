"""scikit-learn's bundled digits: the demonstration that needs no download."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.datasets.digit_groups import DIGIT_GROUPS, WANTED_DIGITS, deal_to_owners, thin_second_digit
from hushbid.datasets.partition import Partition, PartitionOptions, Table, limited
from protocol.errors import ConfigError
from protocol.extras import need

__all__ = ["digits"]

SEED_POINTS: Final = 150


def digits(path: Path | None, generator: np.random.Generator, options: PartitionOptions) -> Partition:
    """The MNIST setting of DPDS appendix G, on the 1,797 images of 8×8 pixels that scikit-learn brings.

    Half of every digit's images are held out. Of the held-out 3s and 4s, at 0.7 to 0.3, half are D_v and
    half are the test set; the seed set is drawn from the other held-out digits. Owners get the rest, by
    groups of digits.

    Args:
        path: None: the data come with scikit-learn.
        generator: Draws all that is random.
        options: See `PartitionOptions`.

    Raises:
        ConfigError: A path is given.
    """
    if path is not None:
        raise ConfigError(
            "The digits dataset takes no path: its images come with scikit-learn.",
            advice="Leave --data, HUSHBID_DATA and dataset.path out.",
        )
    need("sklearn", "The digits dataset")
    # All of scikit-learn takes a second to import, for whatever reads a cluster file.
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    table = Table(pixels.astype(np.uint8), classes.astype(np.uint8))
    held_out = _half_of_each_digit(table.labels, generator)
    kept = np.setdiff1d(np.arange(len(table)), held_out)

    wanted = thin_second_digit(held_out, table.labels, generator)
    validation = _half_of_each_digit(table.labels[wanted], generator)
    others = held_out[~np.isin(table.labels[held_out], WANTED_DIGITS)]
    seed_set = limited(others, options.seed_points or SEED_POINTS, generator)
    return Partition(
        owners=deal_to_owners(table, kept, DIGIT_GROUPS, options.owner_points, generator),
        validation=table.take(wanted[validation]),
        seed_set=table.take(seed_set),
        test=table.take(np.delete(wanted, validation)),
        columns=table.features.shape[1],
        lower=0.0,
        upper=16.0,
        dtype=table.features.dtype,
        suggested={"gamma": 0.1, "dimension": 140, "model": "logistic"},
    )


def _half_of_each_digit(
    labels: npt.NDArray[np.uint8], generator: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Half of the positions of each label, drawn at random, in order."""
    chosen = []
    for label in np.unique(labels):
        positions = np.flatnonzero(labels == label)
        chosen.append(generator.choice(positions, size=(len(positions) + 1) // 2, replace=False))
    return np.sort(np.concatenate(chosen))
