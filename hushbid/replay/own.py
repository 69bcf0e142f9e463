"""The consumer's own files, where its state directory was given: its rows, and how it judged its purchase."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np

from hushbid.consumer.appraisal import Evaluation
from hushbid.consumer.events import Delivered
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.process import consumer_seed_set
from hushbid.consumer.store import DELIVERED_FILE, RESULT_FILE, SETTINGS_FILE, read_settings
from hushbid.protocol.data import dataset_digest, load_dataset
from hushbid.protocol.errors import DataError, HushbidError
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.mmd import Vector
from hushbid.report.sources import consumer_state_in, transcripts_of
from hushbid.tables.delivery import read_delivered

__all__ = ["OwnFiles", "ReplayFiles", "own_files"]

_LONGEST_RESULTS: Final = 1 << 26
_SETTINGS: Final = f"the consumer’s {SETTINGS_FILE}"


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnFiles:
    """What a consumer took part with (its validation and test rows, and its model), and what its results are.

    Attributes:
        training: Weights of its undisputed points in the training of the model, shape (n,); None: there are
            none, as there are no labels to learn from.
        results: The figures of that model; None: no results are there.
    """

    by: Evaluation
    training: Vector | None
    results: ModelFigures | None


@dataclass(frozen=True)
class ReplayFiles:
    """What a replay is made of.

    Attributes:
        transcripts: At least one.
        own: The consumer's state directory, whose files tell more; None: transcripts alone tell.
    """

    transcripts: Sequence[Path]
    own: Path | None = None

    @classmethod
    def at(cls, places: Sequence[Path], *, files: bool = True) -> Self:
        """Transcripts, or directories of state, of parties or of runs.

        Args:
            files: Whether the consumer's files are taken as well, where a directory is its own or a run's.

        Raises:
            ConfigError: A directory has no transcript.
        """
        states = [state for place in places if (state := consumer_state_in(place)) is not None]
        return cls(transcripts_of(*places), states[0] if files and states else None)


def own_files(state: Path, session: Session, data: bytes, delivered: Sequence[Delivered]) -> OwnFiles | str:
    """Read a consumer's own files as they were in its session.

    Args:
        data: The digest of its data that is on record.
        delivered: Its bought points.

    Returns:
        Or why they are not known, in a clause that names no place.
    """
    try:
        file = read_settings(state)
    except DataError:
        return f"{_SETTINGS} is damaged, or of another version"
    if file is None:
        return f"{_SETTINGS} is not beside its transcript: its session is not over, or was simulated"
    columns = session.file.reading(file.columns.columns())
    try:
        validation = load_dataset(file.validation, columns.with_gaps())
        seed_set = consumer_seed_set(session, file, validation, when_missing="refuse")
        test = None if file.test is None else load_dataset(file.test, columns)
    except HushbidError:
        return f"a file of rows that {_SETTINGS} names cannot be read"
    if dataset_digest(validation, seed_set) != data:
        return f"the rows that {_SETTINGS} names are others than those of the session"
    by = Evaluation(validation, test, file.model, file.seed, file.ridge, file.label_weight)
    return OwnFiles(by=by, training=_training(state, delivered), results=_results(state, session))


def _training(state: Path, delivered: Sequence[Delivered]) -> Vector | None:
    try:
        arrays = read_delivered(state / DELIVERED_FILE)
    except DataError:
        return None
    points = [entry.candidate.point for entry in delivered if entry.candidate and not entry.dispute]
    weights = arrays.get("training_weights")
    if weights is None or not np.array_equal(arrays["features"], np.array(points)):
        return None
    fits = weights.shape == (len(points),) and weights.dtype.kind == "f"
    return weights if fits and np.isfinite(weights).all() and (weights >= 0).all() else None


def _results(state: Path, session: Session) -> ModelFigures | None:
    try:
        values = json.loads(read_plain(state / RESULT_FILE, _LONGEST_RESULTS)[0])
        if values["identifier"] == session.identifier.hex():
            return ModelFigures.from_json(values["model"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    return None
