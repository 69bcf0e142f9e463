"""A consumer's view of a finished session, from its state directory alone, for `hushbid results`.

The transcript there identifies the session, and the files that the consumer took part with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic.dataclasses import dataclass as figures

from hushbid.cluster.parties import keep
from hushbid.consumer.learners import MODELS
from hushbid.consumer.process import drawn_path
from hushbid.consumer.result import ConsumerResult
from hushbid.consumer.store import DELIVERED_FILE, RESULT_FILE, read_settings
from hushbid.protocol import platform
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.extras import missing
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.party import transcript_path
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.report.sources import consumer_state_in
from hushbid.running.report import REPORT, write_report
from hushbid.tables.delivery import read_delivered
from hushbid.tables.options import ResultsOptions, ValueOptions, WeighOptions
from hushbid.tables.training import Trained, train
from hushbid.tables.valuing import Worth, value_owners
from hushbid.tables.weighing import WeighedTables, named_table, weigh
from hushbid.text_files import check_directory_place
from hushbid.transcripts.replay import opened_session

if TYPE_CHECKING:
    from hushbid.tables.frames import ArrowTable

__all__ = ["KeptResult", "PurchaseDirectory", "Results", "open_purchase", "results"]

DIRECTORY: Final = "results"
_LONGEST: Final = 2**24
"""Most bytes of a JSON file in a state directory."""
_TABLES: Final = {"parquet": "points.parquet", "csv": "points.csv", "training": "training.parquet"}
"""File names of tables."""

_Made = TypeVar("_Made")


@figures(frozen=True, kw_only=True)
class KeptResult(ConsumerResult):
    """A consumer's result as stored in its state directory, with the session's `identifier`."""

    identifier: str


@dataclass(frozen=True)
class PurchaseDirectory:
    """A consumer's state directory of a finished session.

    Attributes:
        session: As the transcript has it.
        file: The private file that the consumer took part with.
        result: The result that the consumer ended with; None: an older version kept none.
    """

    state: Path
    session: Session
    file: ConsumerFile
    result: KeptResult | None

    @property
    def delivered(self) -> Path:
        return self.state / DELIVERED_FILE

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


@figures(frozen=True, kw_only=True)
class Results(Figures):
    """Everything that a consumer has of its purchase.

    Attributes:
        session, identifier: The session's name and identifier.
        directory: The directory of the files.
        result: The result that the consumer ended with; None: an older version kept none.
        weigh: The outcome of weighing the points.
        train, value: The model and the owners' worth; None, and `train_why` and `value_why` say why.
        report_why, csv_why: Why there is no such file; empty if there is one.
        formulas: Cells of the CSV file that spreadsheets would take for formulas, by column.
        files: The written files, by their content.
        details: Whether people want to read every accuracy.
    """

    session: str
    identifier: str
    directory: Path
    result: KeptResult | None
    weigh: WeighedTables
    train: Trained | None
    train_why: str
    value: Worth | None
    value_why: str
    report_why: str
    csv_why: str
    formulas: Mapping[str, int]
    files: Mapping[str, Path]
    details: bool = False


def open_purchase(state: Path, config: Path | None = None) -> PurchaseDirectory:
    """Read the state directory of a consumer whose session is over.

    Args:
        state: The directory; or that of its party, or of a run.
        config: The consumer's private file, if none is found.

    Raises:
        ConfigError: It is no consumer's, its session is not over, or its private file is missing.
        DataError: A file of it cannot be read, or is of another session.
        TranscriptDamaged: Its transcript's start is damaged.
    """
    place = _place_of(state)
    _check_over(place)
    path = transcript_path(place, CONSUMER)
    with TranscriptReader(path) as reader:
        header, first = reader.header, next(reader, None)
    if first is None:
        raise DataError(f"{path}: the transcript has no record.", advice="Its session never began.")
    session = opened_session(path, header, first)
    if not (place / DELIVERED_FILE).is_file():
        raise DataError(
            f"{place}: the session {session.file.session.name} delivered no points.",
            advice="`hushbid transcript show` says how it ended; `hushbid ledger` says what was charged.",
        )
    return PurchaseDirectory(place, session, _file_of(place, config), _result_of(place, header.session))


@one_blas_thread()
def results(options: ResultsOptions) -> Results:
    """Weigh, train, value and export what a consumer bought. Nothing leaves this machine.

    Raises:
        HushbidError: As `open_purchase`; or the points cannot be weighed, or a file cannot be written.
    """
    from hushbid.tables.frames import columns_of_images, write_table

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
    tables = _tables(found, points)
    csv_why = ""
    if images := columns_of_images(tables["parquet"]):
        csv_why = f"CSV holds no images, and column {images[0]!r} has some."
    else:
        tables["csv"] = tables["parquet"]
    files: dict[str, Path] = {"session": session, "npz": points}
    formulas: dict[str, int] = {}
    for name, table in tables.items():
        files[name] = place / _TABLES[name]
        formulas |= write_table(table, files[name])
    trained, train_why = _or_why(lambda: _train(found, weighed, points, session, options.estimator))
    valued, value_why = _or_why(lambda: _value(found, points, session))
    report, report_why = _or_why(lambda: _report(found, place))
    files |= {} if trained is None or trained.output is None else {"model": trained.output}
    files |= {} if report is None else {"report": report}
    return Results(
        session=found.session.file.session.name,
        identifier=found.session.identifier.hex(),
        directory=place,
        result=found.result,
        weigh=weighed,
        train=trained,
        train_why=train_why,
        value=valued,
        value_why=value_why,
        report_why=report_why,
        csv_why=csv_why,
        formulas=formulas,
        files=files,
        details=options.details,
    )


def _place_of(given: Path) -> Path:
    if not given.is_dir():
        raise ConfigError(
            f"{given} is no directory.", advice="Name the consumer's state directory, or that of a run."
        )
    if (place := consumer_state_in(given)) is not None:
        return place
    others = sorted(given.glob("*.transcript"))
    if others:
        raise ConfigError(
            f"{given} is the state directory of {others[0].stem}: only the consumer has results.",
            advice=f"`hushbid report {others[0]}` writes a page on what it saw.",
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
        at = f"in round {status.round} of {status.rounds}" if status.round else f"in phase {status.phase}"
        raise ConfigError(
            f"The session {status.session} of {place} is still running: it is {at}.",
            advice=f"`hushbid status --watch {place}` shows it until it is over.",
        )
    raise ConfigError(
        f"The session {status.session} of {place} was stopped before its end, in phase {status.phase}.",
        advice="Start `hushbid consumer` again in the same way: with this state directory it goes on.",
    )


def _file_of(place: Path, config: Path | None) -> ConsumerFile:
    if config is not None:
        return load_toml(ConsumerFile, config).resolved(config.parent)
    if (kept := read_settings(place)) is not None:
        return kept
    for path in sorted(place.parent.glob("*.toml")):  # as run directories and separate machines have it
        try:
            file = load_toml(ConsumerFile, path).resolved(path.parent)
        except HushbidError:
            continue
        if file.state == place.resolve():
            return file
    raise ConfigError(
        f"{place} does not name its consumer's private file: an older version, or a simulation, made it.",
        advice="Name the consumer's private file with --config.",
    )


def _result_of(place: Path, identifier: str) -> KeptResult | None:
    path = place / RESULT_FILE
    if not path.is_file():
        return None
    advice = "Move it away; `hushbid consumer`, started again with this state directory, writes its own."
    try:
        values = json.loads(read_plain(path, _LONGEST)[0])
        if values["identifier"] == identifier:
            return KeptResult.from_json(values)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise DataError(f"{path} is no result of a consumer, or is damaged.", advice=advice) from None
    raise DataError(f"{path} is of another session than the transcript beside it.", advice=advice)


def _or_why(made: Callable[[], _Made]) -> tuple[_Made | None, str]:
    """A part of the result; or why it is missing, which does not prevent the others."""
    try:
        return made(), ""
    except HushbidError as error:
        return None, " ".join(filter(None, (error.what, error.advice)))


def _tables(found: PurchaseDirectory, points: Path) -> dict[str, ArrowTable]:
    """The points as a table, from the same arrays as the ``.npz``, and with own rows to train on."""
    from hushbid.consumer.delivered import delivered_table
    from hushbid.tables.training_table import training_table

    columns, arrays = found.columns, read_delivered(points)
    own = load_dataset(found.file.validation, columns.with_gaps())
    schema, names = columns.schema, own.feature_names or found.file.columns.features
    if schema is not None:
        table = delivered_table(schema, points, label=found.label)
    else:
        table = named_table(arrays, names, label=found.label)
    if "training_weights" not in arrays:
        return {"parquet": table}

    def rows(features: Any) -> ArrowTable:
        return named_table({"features": features}, names) if schema is None else schema.decode(features)

    labels, weights = own.labels, arrays["training_weights"]
    if labels is None:
        training = training_table(rows(own.features[:0]), None, table, weights)
    else:
        held = slice(None) if own.labelled is None else own.labelled
        training = training_table(rows(own.features[held]), labels[held], table, weights)
    return {"parquet": table, "training": training}


def _train(
    found: PurchaseDirectory, weighed: WeighedTables, points: Path, session: Path, estimator: str | None
) -> Trained:
    """The named model, or the one that weighing judged: for classes or amounts, by the labels it found."""
    name, parameters = estimator or weighed.model.estimator, None
    if not name:
        raise DataError(f"{weighed.model.why}.", advice="`--estimator` names a model.")
    if estimator is None:
        options = {each: more for _, each, more in MODELS.get(found.file.model, ())}
        parameters = options.get(name)
    return train(
        points,
        name,
        test=found.file.test,
        validation=found.file.validation,
        columns=found.columns,
        session=session,
        parameters=parameters,
        seed=found.file.seed,
        output=None if missing("skops") else points.with_name("model.skops"),
        judgement=weighed.model if estimator is None else None,
    )


def _value(found: PurchaseDirectory, points: Path, session: Path) -> Worth:
    return value_owners(
        ValueOptions(
            delivered=points,
            validation=found.file.validation,
            seed_set=found.file.seed_set or drawn_path(found.file),
            session=session,
            columns=found.columns,
        )
    )


def _report(found: PurchaseDirectory, place: Path) -> Path:
    output = place / REPORT
    kept = found.state / RESULT_FILE
    write_report([found.transcript], output, evaluation=kept if kept.is_file() else None)
    return output
