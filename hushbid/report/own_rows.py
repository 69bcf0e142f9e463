"""The consumer's own rows, wanted and bought, for the pictures of its report: nobody else has both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.store import DELIVERED_FILE
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.mmd import mmd2
from hushbid.report.sources import TranscriptSource
from hushbid.tables.delivery import read_delivered

__all__ = ["ConsumerRows", "Image", "ImageColumn", "OwnRows", "own_rows", "read_image"]

_CLOSE: Final = 1e-9
"""Largest difference between two MMD² of the same rows."""


@dataclass(frozen=True)
class Image:
    """The size of an image in pixels, line by line from the top, and the numbers per pixel: 1 or 3."""

    width: int
    height: int
    channels: int = 1


@dataclass(frozen=True)
class ImageColumn:
    """An image in every row: that of a column, from a row's `first` number on, or without a name the row."""

    name: str | None
    image: Image
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class ConsumerRows:
    """The files of the consumer's rows.

    Attributes:
        validation: The file of D_v.
        columns: Which of its columns are features, as in the consumer's own file.
        image: The size of a row's grey image; None: rows are no images.
        offered: Owners' files, which whoever runs all parties has; their columns are named as D_v's are.
    """

    validation: Path
    columns: DataColumns
    image: Image | None = None
    offered: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnRows:
    """The wanted and the bought rows of the consumer, as numbers of the session's columns.

    Attributes:
        names: Names of the columns in the consumer's file; None: it gives none.
        wanted: D_v, shape (m, columns).
        bought: The points that are not disputed, in the order of delivery, float64, shape (n, columns).
        rounds: The round in which each was chosen, shape (n,).
        weights: Weight of each, with sum 1; None: there are none, for the reason of `no_weights`.
        images: The session's columns of images, or the grey image that a row is.
        offered: The points that owners offered, shape (n, columns); None: their files were not given.
    """

    session: Session
    names: tuple[str, ...] | None
    wanted: npt.NDArray[Any]
    bought: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None
    no_weights: str
    images: tuple[ImageColumn, ...]
    offered: npt.NDArray[np.float64] | None


def read_image(text: str) -> Image:
    """The image size in a text like 28x28, width first.

    Raises:
        ConfigError: It is none.
    """
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if not found:
        raise ConfigError(
            "--image is not of the form WIDTHxHEIGHT.", advice="Give both in pixels, as in --image 28x28."
        )
    return Image(int(found[1]), int(found[2]))


def own_rows(sources: Sequence[TranscriptSource], wanted: ConsumerRows) -> OwnRows:
    """The rows of a consumer, for a report made from its transcript alone.

    Raises:
        ConfigError: The transcripts are not the consumer's alone, or its private fields were removed; rows
            are no images of that size.
        DataError: D_v cannot be read, or is not the session's; an owner's file cannot be read, or has no
            points of the session; nothing was bought.
    """
    source, machine = _consumers(sources)
    session = source.session
    bought = [entry for entry in machine.delivered if entry.candidate is not None and not entry.dispute]
    if machine.mmd2 is None or not bought:
        raise DataError(
            f"{source.path}: nothing was bought that a picture could show.",
            advice="Leave --validation out: the report has everything else.",
        )
    if wanted.image is not None:
        _check_image(session, wanted.image)
    dataset = load_dataset(wanted.validation, session.file.reading(wanted.columns).with_gaps())
    session.file.check_points(dataset)
    readable = [entry.candidate.point for entry in machine.delivered if entry.candidate is not None]
    distance = mmd2(
        session.space.scale(_stacked(readable)), session.space.scale(dataset.features), session.space.gamma
    )
    sizes = source.course.sizes
    if (sizes is not None and sizes[0] != len(dataset)) or abs(distance - machine.mmd2[-1]) > _CLOSE:
        raise DataError(
            f"{dataset.name} is not the validation set of this session.",
            advice="Name the file that the session was run with, and its columns as then (`--features`, "
            "`--label`).",
        )
    points = _stacked([entry.candidate.point for entry in bought if entry.candidate is not None])
    weights, why = _weights(source.path.with_name(DELIVERED_FILE), points)
    return OwnRows(
        session=session,
        names=dataset.feature_names,
        wanted=dataset.features,
        bought=points,
        rounds=np.array([entry.chosen_round for entry in bought], dtype=np.int64),
        weights=weights,
        no_weights=why,
        images=_images(session) if wanted.image is None else (ImageColumn(None, wanted.image),),
        offered=_offered(session, wanted) if wanted.offered else None,
    )


def _offered(session: Session, wanted: ConsumerRows) -> npt.NDArray[np.float64]:
    found = []
    for path in wanted.offered:
        dataset = load_dataset(path, session.file.reading(wanted.columns))
        session.file.check_points(dataset)
        found.append(np.asarray(dataset.features, dtype=np.float64))
    return np.concatenate(found)


def _consumers(sources: Sequence[TranscriptSource]) -> tuple[TranscriptSource, ConsumerMachine]:
    for source in sources:
        if source.header.role != "consumer":
            raise ConfigError(
                f"Pictures show the consumer's private rows, and {source.path} is of {source.header.party}.",
                advice="Give the consumer's transcript alone, or leave --validation out.",
            )
    source = sources[0]
    if source.consumer is None:
        raise ConfigError(
            f"{source.path} is redacted: what was bought was taken out of it.",
            advice="Give the file that the consumer itself recorded, or leave --validation out.",
        )
    return source, source.consumer


def _images(session: Session) -> tuple[ImageColumn, ...]:
    found, first = [], 0
    for column in session.file.columns:
        if column.size is not None:
            found.append(ImageColumn(column.name, Image(*column.size, column.channels or 1), first))
        first += column.width
    return tuple(found)


def _check_image(session: Session, image: Image) -> None:
    space = session.space
    if image.width * image.height != space.columns:
        raise ConfigError(
            f"--image {image.width}x{image.height} has {image.width * image.height} pixels, and a row of the "
            f"session {space.columns} columns.",
            advice="Give the width and height of the images in the rows.",
        )
    if np.ptp(space.lower) or np.ptp(space.range):
        raise ConfigError(
            "Rows are no images: the session has other bounds for one column than for another.",
            advice="Leave --image out; columns are then drawn one by one.",
        )
    if session.file.rows is not None and session.file.rows.images:
        raise ConfigError(
            "The session's columns say which of them are images, and of what size.",
            advice="Leave --image out.",
        )


def _stacked(points: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Points as one array: owners may hold the same columns in different number types."""
    return np.stack([np.asarray(point, dtype=np.float64) for point in points])


def _weights(path: Path, points: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64] | None, str]:
    """The weights of these points in the file beside the transcript; None, and why there are none."""
    try:
        arrays = read_delivered(path)
    except DataError:
        return None, f"no {DELIVERED_FILE} that can be read lies beside the transcript"
    if not np.array_equal(np.asarray(arrays["features"], dtype=np.float64), points):
        return None, f"the {DELIVERED_FILE} beside the transcript has other points"
    weights = arrays.get("weights")
    if weights is None:
        return None, f"the {DELIVERED_FILE} beside the transcript has none"
    # NaN is neither.
    if weights.dtype != np.float64 or not (weights.min() >= 0.0 and abs(weights.sum() - 1.0) < _CLOSE):
        return None, f"what the {DELIVERED_FILE} beside the transcript has are no weights"
    return weights, ""
