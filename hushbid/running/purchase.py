"""What a consumer has of a session that is over, from its state directory alone, for `hushbid results`.

The state directory says which session it is of, by the transcript, and what the consumer took part with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.parties import keep
from hushbid.consumer.learners import MODELS
from hushbid.consumer.process import drawn_path
from hushbid.consumer.store import RESULT_FILE, SETTINGS_FILE
from hushbid.protocol import platform
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.extras import missing
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.protocol.runtime.party import transcript_path
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.running.report import REPORT, write_report
from hushbid.tables.delivery import read_delivered
from hushbid.tables.options import ResultsOptions, ValueOptions, WeighOptions
from hushbid.tables.training import train
from hushbid.tables.valuing import value_owners
from hushbid.tables.weighing import named_table, weigh
from hushbid.text_files import check_directory_place
from hushbid.transcripts.replay import opened_session

__all__ = ["Purchase", "open_purchase", "results"]

DIRECTORY: Final = "results"
_LONGEST: Final = 2**24
"""Most bytes of a file of JSON that a state directory has."""


@dataclass(frozen=True)
class Purchase:
    """A consumer's state directory of a session that is over.

    Attributes:
        state: It.
        session: The session, as the transcript has it.
        file: The private file that the consumer took part with.
        result: Its result, with which it ended; None: an older version kept none.
    """

    state: Path
    session: Session
    file: ConsumerFile
    result: dict[str, Any] | None

    @property
    def delivered(self) -> Path:
        return self.state / "delivered.npz"

    @property
    def transcript(self) -> Path:
        return transcript_path(self.state, CONSUMER)

    @property
    def columns(self) -> DataColumns:
        """How the consumer's tables are read."""
        return self.session.file.reading(self.file.columns.columns())

    @property
    def label(self) -> str:
        return self.file.columns.label or "label"


def open_purchase(state: Path, config: Path | None = None) -> Purchase:
    """Read the state directory of a consumer whose session is over.

    Args:
        state: The directory; or that of its party, or of a run.
        config: The consumer's private file, where none is found.

    Raises:
        ConfigError: It is no consumer's, its session is not over, or its private file is nowhere.
        DataError: A file of it cannot be read, or is of another session.
        TranscriptDamaged: Its transcript's start does not hold.
    """
    place = _place_of(state)
    _check_over(place)
    path = transcript_path(place, CONSUMER)
    with TranscriptReader(path) as reader:
        header, first = reader.header, next(reader, None)
    if first is None:
        raise DataError(f"{path}: the transcript has no record.", advice="Its session never began.")
    session = opened_session(path, header, first)
    if not (place / "delivered.npz").is_file():
        raise DataError(
            f"{place}: the session {session.file.session.name} delivered no points.",
            advice="`hushbid transcript show` says how it ended; `hushbid ledger` says what was charged.",
        )
    return Purchase(place, session, _file_of(place, config), _result_of(place, header.session))


def results(options: ResultsOptions) -> dict[str, Any]:
    """Weigh, train, value and write what a consumer bought. Nothing leaves this machine.

    Returns:
        ``session``, ``identifier``, ``directory``, ``result`` (the consumer's own), ``weigh``, ``train`` and
        ``value`` (as those verbs print; null, and ``train_why`` and ``value_why``), and ``files``.

    Raises:
        HushbidError: As `open_purchase` says; or the points cannot be weighed, or a file not be written.
    """
    keep_one_blas_thread()
    found = open_purchase(options.state, options.config)
    place = (options.output or found.state / DIRECTORY).absolute()
    check_directory_place(place)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    session = place / "session.toml"
    session.unlink(missing_ok=True)
    keep(session, found.session.file, mode=platform.PRIVATE)
    file, points = found.file, place / "points.npz"
    weighed = weigh(
        WeighOptions(
            delivered=found.delivered,
            validation=file.validation,
            test=file.test,
            session=session,
            columns=found.columns,
            ridge=file.ridge,
            label_weight=file.label_weight,
            model=file.model,
            seed=file.seed,
            output=points,
        )
    )
    files = {"session": session, "npz": points, **_tables(found, points)}
    trained, train_why = _or_why(lambda: _train(found, points, session, options.estimator, place))
    valued, value_why = _or_why(lambda: _value(found, points, session))
    if trained is not None and trained["output"]:
        files["model"] = Path(trained["output"])
    report, report_why = _or_why(lambda: {"path": str(_report(found, place))})
    if report is not None:
        files["report"] = Path(report["path"])
    return {
        "session": found.session.file.session.name,
        "identifier": found.session.identifier.hex(),
        "directory": str(place),
        "result": found.result,
        "weigh": weighed.as_json(),
        "train": trained,
        "train_why": train_why,
        "value": valued,
        "value_why": value_why,
        "report_why": report_why,
        "files": {name: str(path) for name, path in files.items()},
    }


def _place_of(given: Path) -> Path:
    if not given.is_dir():
        raise ConfigError(
            f"{given} is no directory.", advice="Name the consumer's state directory, or that of a run."
        )
    for place in (given, given / "state", given / "parties" / CONSUMER / "state"):
        if transcript_path(place, CONSUMER).is_file():
            return place
    others = sorted(given.glob("*.transcript"))
    if others:
        raise ConfigError(
            f"{given} is the state directory of {others[0].stem}: only the consumer has results.",
            advice=f"`hushbid report {others[0]}` writes a page of what it saw.",
        )
    raise ConfigError(
        f"{given} has no transcript of a consumer: no session has begun with it.",
        advice="Name the `state` of the consumer's private file, or the directory of a run.",
    )


def _check_over(place: Path) -> None:
    path = status_path(place, CONSUMER)
    if not path.is_file():
        return  # a simulation has none
    status = Status.read(path)
    if status.finished:
        return
    if status.is_running:
        at = f"in round {status.round} of {status.rounds}" if status.round else f"in its phase {status.phase}"
        raise ConfigError(
            f"The session {status.session} of {place} is still running: it is {at}.",
            advice=f"`hushbid status --watch {place}` shows it until it is over.",
        )
    raise ConfigError(
        f"The session {status.session} of {place} was stopped before its end, in its phase {status.phase}.",
        advice="Start `hushbid consumer` again as it was started: with this state directory it goes on.",
    )


def _file_of(place: Path, config: Path | None) -> ConsumerFile:
    if config is not None:
        return load_toml(ConsumerFile, config).resolved(config.parent)
    kept = place / SETTINGS_FILE
    if kept.is_file():
        try:
            return ConsumerFile.model_validate_json(read_plain(kept, _LONGEST)[0])
        except (OSError, ValueError):
            raise DataError(
                f"{kept} is damaged, or of another version.", advice="Name the private file with --config."
            ) from None
    for path in sorted(place.parent.glob("*.toml")):  # as run directories and separate machines have it
        try:
            file = load_toml(ConsumerFile, path).resolved(path.parent)
        except HushbidError:
            continue
        if file.state == place.resolve():
            return file
    raise ConfigError(
        f"{place} does not say what its consumer took part with: an older version, or a simulation, made it.",
        advice="Name the consumer's private file with --config.",
    )


def _result_of(place: Path, identifier: str) -> dict[str, Any] | None:
    path = place / RESULT_FILE
    if not path.is_file():
        return None
    advice = "Move it away; `hushbid consumer`, started again with this state directory, writes its own."
    try:
        values = json.loads(read_plain(path, _LONGEST)[0])
        of = str(values["identifier"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise DataError(f"{path} is no result of a consumer, or is damaged.", advice=advice) from None
    if of != identifier:
        raise DataError(f"{path} is of another session than the transcript beside it.", advice=advice)
    return dict(values)


def _or_why(made: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any] | None, str]:
    """A part of the result; or why there is none, which does not keep the others."""
    try:
        return made(), ""
    except HushbidError as error:
        return None, " ".join(filter(None, (error.what, error.advice)))


def _tables(found: Purchase, points: Path) -> dict[str, Path]:
    """The points as tables, of the very arrays that the ``.npz`` has."""
    from hushbid.consumer.delivered import delivered_table
    from hushbid.tables.frames import ArrowTable, write_table
    from hushbid.tables.training_table import training_table

    columns, arrays = found.columns, read_delivered(points)
    own = load_dataset(found.file.validation, columns.with_gaps())
    schema, names = columns.schema, own.feature_names or found.file.columns.features

    def rows(features: Any) -> ArrowTable:
        if schema is not None:
            return schema.decode(features)
        return named_table({"features": features}, names, label=found.label)

    if schema is not None:
        table = delivered_table(schema, points, label=found.label)
    else:
        table = named_table(arrays, names, label=found.label)
    made = {"parquet": table, "csv": table}
    if "training_weights" in arrays:
        labels = None if own.labels is None else own.labels
        held = slice(0) if labels is None else own.labelled if own.labelled is not None else slice(None)
        made["training"] = training_table(
            rows(own.features[held]),
            None if labels is None else labels[held],
            table,
            arrays["training_weights"],
        )
    places = {"parquet": "points.parquet", "csv": "points.csv", "training": "training.parquet"}
    written = {}
    for name, each in made.items():
        written[name] = points.with_name(places[name])
        write_table(each, written[name])
    return written


def _named(names: Sequence[str] | None, label: str, features: Any) -> Any:
    return named_table({"features": features}, names, label=label)


def _train(
    found: Purchase, points: Path, session: Path, estimator: str | None, place: Path
) -> dict[str, Any]:
    amounts = bool(found.session.file.labels_are_amounts)
    if found.session.file.labels_are_amounts is None:
        labels = read_delivered(points).get("labels")
        amounts = labels is not None and labels.dtype.kind == "f"
    short = MODELS.get(found.file.model)
    name = estimator or (found.file.model if short is None else short[amounts][1])
    parameters = None if short is None or estimator is not None else short[amounts][2]
    return train(
        points,
        name,
        test=found.file.test,
        validation=found.file.validation,
        columns=found.columns,
        session=session,
        parameters=parameters,
        seed=found.file.seed,
        output=None if missing("skops") else place / "model.skops",
    ).as_json()


def _value(found: Purchase, points: Path, session: Path) -> dict[str, Any]:
    return value_owners(
        ValueOptions(
            delivered=points,
            validation=found.file.validation,
            seed_set=found.file.seed_set or drawn_path(found.file),
            session=session,
            columns=found.columns,
        )
    ).as_json()


def _report(found: Purchase, place: Path) -> Path:
    output = place / REPORT
    kept = found.state / RESULT_FILE
    write_report([found.transcript], output, evaluation=kept if kept.is_file() else None)
    return output
