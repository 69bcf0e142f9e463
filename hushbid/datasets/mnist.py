"""MNIST, dealt out as in DPDS appendix G."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from hushbid.datasets.digit_groups import deal_digits
from hushbid.datasets.idx import read_idx
from hushbid.datasets.partition import Partition, PartitionOptions, Table
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError

__all__ = ["mnist"]

VALIDATION_PROBABILITY: Final = 0.25
TRAINING_IMAGES: Final = 60_000
IMAGES: Final = 70_000
PIXELS: Final = 784

_TAKES: Final = (
    "Give the directory with the four IDX files of MNIST, or an .npz file with `images` and `labels`;"
    " docs/data.md says where to get them."
)


def mnist(path: Path | None, generator: np.random.Generator, options: PartitionOptions) -> Partition:
    """Owners hold the training images; a wanted test image is in D_v with probability 0.25 (`deal_digits`).

    Args:
        path: Either an ``.npz`` file with ``images`` (70000, 784) and ``labels``, the 60,000 training
            images first, or a directory with the four IDX files as published, gzipped or not.
        generator: Draws everything random.
        options: See `PartitionOptions`.

    Raises:
        ConfigError: No path is given.
        DataError: A file is missing, damaged, or does not hold MNIST.
    """
    if path is None:
        raise ConfigError("The mnist dataset needs a path.", advice=_TAKES)
    if not path.exists():
        raise DataError(f"The path of the mnist dataset, {path}, does not exist.", advice=_TAKES)
    table = _read_directory(path) if path.is_dir() else _read_archive(path)
    return deal_digits(
        table,
        np.arange(TRAINING_IMAGES),
        np.arange(TRAINING_IMAGES, IMAGES),
        generator,
        options,
        validation=lambda labels: generator.random(len(labels)) < VALIDATION_PROBABILITY,
        upper=255.0,
        suggested={"gamma": 0.01, "dimension": 140, "model": "mlp"},
    )


def _read_archive(path: Path) -> Table:
    if not path.name.lower().endswith(".npz"):
        raise DataError(
            f"{path} is neither a directory nor an .npz file, so it does not hold MNIST.", advice=_TAKES
        )
    try:
        dataset = load_dataset(path, DataColumns(features=("images",), label="labels"))
    except DataError as error:
        # Its advice is for a party with a file of its own making.
        raise DataError(f"{path} does not hold MNIST: {error.what}", advice=_TAKES) from None
    shape, labels = dataset.features.shape, dataset.labels
    if shape != (IMAGES, PIXELS) or dataset.features.dtype != np.uint8 or labels is None:
        raise DataError(
            f"{path.name} does not hold MNIST: `images` must be uint8 of shape ({IMAGES}, {PIXELS}).",
            advice="Save the 60,000 training images and then the 10,000 test images, a row each.",
        )
    return _checked(path, Table(dataset.features, labels))


def _read_directory(path: Path) -> Table:
    images, labels = [], []
    for part in ("train", "t10k"):
        images.append(read_idx(_find(path, f"{part}-images", 3), axes=3))
        labels.append(read_idx(_find(path, f"{part}-labels", 1), axes=1))
    counts = (TRAINING_IMAGES, IMAGES - TRAINING_IMAGES)
    for count, image, label in zip(counts, images, labels, strict=True):
        if image.shape != (count, 28, 28) or label.shape != (count,):
            raise DataError(
                f"{path} does not hold MNIST: {len(image)} images and {len(label)} labels where {count} of"
                " 28×28 pixels are expected.",
                advice="Get the four files again.",
            )
    features = np.concatenate(images).reshape(IMAGES, PIXELS)
    return _checked(path, Table(features, np.concatenate(labels)))


def _find(directory: Path, stem: str, axes: int) -> Path:
    # Published with a hyphen; some unpackers write a dot instead.
    names = [f"{stem}{mark}idx{axes}-ubyte{end}" for mark in "-." for end in ("", ".gz")]
    for name in names:
        if (directory / name).is_file():
            return directory / name
    raise DataError(f"{directory} has no file {names[0]} (or {names[1]}).", advice=_TAKES)


def _checked(path: Path, table: Table) -> Table:
    if table.labels.dtype.kind not in "iu" or set(np.unique(table.labels)) != set(range(10)):
        raise DataError(
            f"{path} does not hold MNIST: its labels are not the ten digits.", advice="Get it again."
        )
    return table
