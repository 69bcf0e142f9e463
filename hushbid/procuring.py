"""`hushbid.procure`: a whole procurement from DataFrames, in this process, for research.

It runs a cluster of tables in memory as `hushbid simulate` runs one of files: the same machines, bytes and
figures. Noise is simulated, with the distribution that ε needs. Nothing is protected, and the result says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.spatial.distance import pdist

from hushbid.cluster.display_names import handles_of
from hushbid.cluster.file import made_cluster
from hushbid.consumer.delivered import owner_column, table_of_delivery
from hushbid.consumer.drawn_seed_set import DRAWN
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.party import check_disjoint
from hushbid.plan.tables import default_rule, too_many_for_a_tender
from hushbid.plan.verdict import Rehearsing
from hushbid.protocol import ranges
from hushbid.protocol.config.labels import LabelsSection, reading
from hushbid.protocol.config.loading import validated
from hushbid.protocol.data import DataColumns, Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.intervals import stated, within
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.acquisition.ask_all import AskAll
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.report.html import element
from hushbid.results.run import RunResult
from hushbid.running.simulate import AfterRound, simulated
from hushbid.tables.frames import ArrowTable, Frame, as_arrow, like
from hushbid.tables.schema_files import arrays_of
from hushbid.tables.training_table import training_table

__all__ = ["Procured", "procure"]

_RELEASE: Final = "filtered-gaussian"
_OF_ROUNDS: Final = (
    "session.batch",
    "session.jitter",
    "session.seed_weight",
    "session.fixed_cadence",
    "settlement.",
    "summary.",
)
"""Keys of rounds begin so."""
_SEED_SET: Final = b"hushbid seed set"
"""A drawn seed set's own stream: whoever draws rows with the same seed must not draw the same ones."""
_MOST_PAIRS: Final = 1_000
"""Rows of the seed set among which the median distance is looked for."""


@dataclass(frozen=True, eq=False, repr=False)
class Procured:
    """The result of a procurement.

    Attributes:
        points: The bought points, as a table of the validation set's library: the schema's columns, the
            label, and ``owner``, ``round`` and ``weight``, with an underscore behind names that are taken.
        weights: Matching weights of the points, with sum 1, for ``sample_weight``; equal ones if none could
            be made, which `result` says.
        training: What a model is best trained on, as such a table: the validation set's rows with a label,
            and the bought ones; the schema's columns, the label, ``owner`` (null for own rows) and
            ``weight``, for ``sample_weight``. None if no bought row has a label.
        result: All figures (docs/results.md).
        schema: What the columns were encoded by.
    """

    points: Any
    weights: npt.NDArray[np.float64]
    training: Any
    result: RunResult
    schema: Schema

    @property
    def model(self) -> ModelFigures:
        """Whether a model gets better with the points, and by how much."""
        return self.result.model

    @property
    def mmd2(self) -> float | None:
        """MMD² of the points against the validation set, with weights if there are any."""
        return self.result.choices.run.best.mmd2

    @property
    def effective_points(self) -> float | None:
        """How many points of equal weight they are worth: 1/Σw²."""
        return self.result.choices.run.best.effective_points

    @property
    def privacy(self) -> tuple[PrivacyStatement, ...]:
        """The guarantees: none, as noise is simulated, and those that secret noise would give."""
        return self.result.privacy

    @property
    def transcripts(self) -> Mapping[str, Path]:
        """Each party's transcript, if a directory was given."""
        return self.result.transcripts

    @property
    def report(self) -> Path | None:
        """A page on the session, if a directory was given."""
        return self.result.report

    def __str__(self) -> str:
        bought, planned = len(self.weights), self.result.p
        said = f"{bought} points." if bought == planned else f"{bought} of {planned} points."
        standing = self.result.standing
        return " ".join([*self.result.sentences, said, *([] if standing is None else [standing.sentence()])])

    def __repr__(self) -> str:
        return f"Procured({self.result!r})"

    def _repr_html_(self) -> str:
        shown = getattr(self.points, "_repr_html_", None)
        table = shown() if shown is not None else element("pre", str(self.points))
        return f"{self.result._repr_html_()}{table}"


def procure(
    *,
    owners: Mapping[str, Frame],
    validation: Frame,
    schema: Schema,
    points: int,
    epsilon: float,
    seed_set: Frame | None = None,
    seed_points: int | None = None,
    test: Frame | None = None,
    label: str | None = None,
    gamma: float | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    directory: Path | str | None = None,
    progress: AfterRound | None = None,
    rehearse: bool = True,
    anyway: bool = False,
) -> Procured:
    """Buy points of these owners that resemble a validation set.

    Args:
        owners: Each one's table, by name: as people have it, such as ``"Hôpital Nord"``. Where a roster
            cannot have that name, files, transcripts and ``result.settlement`` have one that is made of it;
            ``result.display`` has both.
        validation: D_v: what the points are to resemble; its rows are never public.
        schema: The public columns that rows are compared by.
        points: p: how many are bought.
        epsilon: ε of the consumer's guarantee, at δ = 1e-5 unless `settings` say so, and of the owners' in
            rounds. In a tender, which it is unless `settings` say otherwise, theirs is 0. More points than a
            tender chooses are bought in rounds, and a warning says so.
        seed_set: D_init: public rows that the choice begins with.
        seed_points: Draw so many rows within the bounds in place of them.
        test: Held-out rows that points, and a model trained on them, are judged by.
        label: The column of labels, of owners' tables and of `test`.
        gamma: γ of the kernel exp(-γ·‖x - x'‖²) on scaled rows; None: 1 over the median squared distance of
            rows of the seed set, which is public.
        seed: Seed of the simulated noise, the feature map, a drawn seed set and the model.
        settings: Other keys of the cluster file, as ``{"session.batch": 5}`` or ``{"wishes.prices": {"north":
            2.0}}`` (docs/configuration.md).
        directory: Where transcripts and a report are kept; None: they are thrown away.
        progress: Called after every round, with its number and the points bought so far; None: notebooks show
            a bar.
        rehearse: Play the session first, with owners made of the validation set (docs/plan.md); what came of
            it is `result.verdict`.
        anyway: Go on with a hopeless session. It stays on record.

    Raises:
        Hopeless: A rehearsal is, and the session is not to go on anyway. Nothing was made.
        ConfigError: Settings that do not go together.
        DataError: A table that does not fit the schema; column and row are named, and no value.
        HushbidError: The session did not end well.
    """
    given: Any = schema, owners  # whatever their types were to be
    if not isinstance(given[0], Schema):
        raise ConfigError("The schema is not a hushbid.Schema.", advice="Use `Schema.of` or `Schema.read`.")
    _check_owners(given[1])
    _check_others(settings=settings, label=label, directory=directory, progress=progress)
    points, epsilon, seed_points = map(_plain, (points, epsilon, seed_points))
    _check_epsilon(epsilon)
    begin: Any = _plain(seed)
    if not _is_whole(ranges.ModelSeed, begin):  # it is a model's seed too
        raise ConfigError(
            f"The seed is {_shortly(begin)}.",
            advice=f"Give a whole number from 0 to {stated(ranges.ModelSeed).whole[1]}.",
        )
    seed = begin
    if (seed_set is None) == (seed_points is None):
        raise ConfigError(
            "A choice begins with a seed set: give `seed_set` or `seed_points`, and not both.",
            advice="`seed_set` is a public table; `seed_points` draws so many rows that the schema allows.",
        )
    if seed_set is None and not _is_whole(ranges.DrawnPoints, seed_points):
        raise ConfigError(
            f"`seed_points` is {_shortly(seed_points)}.",
            advice=f"Give a whole number from 1 to {stated(ranges.DrawnPoints).whole[1]}.",
        )
    handles = handles_of(owners)
    settings = _by_handle(settings or {}, handles)
    read = _reading(schema, label, settings)
    consumer = _of_consumer(validation, test, schema, read)
    if seed_set is not None:
        seeds = schema.encode(as_arrow(seed_set, "seed_set", replace(read, label=None)), name="seed_set")
    else:
        seeds = schema.drawn(int(seed_points or 0), np.random.default_rng([seed, *_SEED_SET]))
        check_disjoint(
            Dataset.from_arrays("validation", consumer["validation"]["features"]),
            Dataset.from_arrays(DRAWN, seeds),
            column_values=_plain(settings.get("session.column_values")),
        )
    consumer["seed_set"] = {"features": seeds}
    rule = _rule(points, settings)
    sections: dict[str, Any] = {
        "session": {"name": "procured", "points": points, "allow_nonprivate": True},
        "features": {
            **({} if _keeps_the_map(rule) else {"seed": seed}),
            "gamma": _median_gamma(seeds, schema) if gamma is None else gamma,
            "columns": schema.width,
            "lower": list(schema.lower),
            "upper": list(schema.upper),
        },
        "target": _release(epsilon, Neighbours.SUBSTITUTE_ONE),
        "summary": _release(epsilon, Neighbours.ADD_REMOVE_ONE),
        "acquisition": {"rule": rule},
        "owners": {handle: {} if handle == name else {"display": name} for name, handle in handles.items()},
        "consumer": {"seed": seed},
    }
    sold = _of_owners(owners, schema, read, _labels_of(consumer))
    cluster = made_cluster(sections, of="procure", held=True, settings=settings)
    found = simulated(
        cluster,
        cluster.holding({handles[name]: arrays for name, arrays in sold.items()}, consumer),
        record=None if directory is None else Path(directory),
        progress=progress,
        rehearsing=Rehearsing(
            wanted=rehearse,
            anyway=anyway,
            anyway_by="`anyway=True`",
            drawn=seed_set is None,
            schema=schema,
        ),
    )
    bought, result = found.arrays, found.result
    if bought is None:
        raise DataError("The owners have no points, so that none was bought.", advice="Ask others.")
    table = _shown(table_of_delivery(schema, bought, label=label or "label"), schema, result.display)
    weights = np.array(bought["weights"] if "weights" in bought else np.full(len(table), 1.0 / len(table)))
    training = None
    if label is not None and "training_weights" in bought:
        rows = _training(schema, consumer["validation"], table, bought["training_weights"])
        training = like(validation, rows)
    return Procured(like(validation, table), weights, training, result, schema)


def _by_handle(settings: Mapping[str, Any], handles: Mapping[str, str]) -> dict[str, Any]:
    """Settings with owners by their names on the roster, where wishes name them."""

    def renamed(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {handles.get(name, name): renamed(each) for name, each in value.items()}

    return {key: renamed(value) if key.startswith("wishes") else value for key, value in settings.items()}


def _shown(table: ArrowTable, schema: Schema, display: Mapping[str, str]) -> ArrowTable:
    """Bought points with their owners' names as they were given."""
    if not display:
        return table
    name = owner_column(table, len(schema.columns))
    place = table.column_names.index(name)
    owners = [display.get(owner, owner) for owner in table.column(name).to_pylist()]
    return table.set_column(place, name, pa.array(owners, pa.string()))


def _training(
    schema: Schema,
    own: Mapping[str, npt.NDArray[Any]],
    bought: ArrowTable,
    weights: npt.NDArray[np.float64],
) -> ArrowTable:
    """What a model is best trained on (`training_table`)."""
    if "labels" not in own:
        return training_table(schema.decode(own["features"][:0]), None, bought, weights)
    held = own.get("labelled", np.ones(len(own["labels"]), dtype=np.bool_))
    return training_table(schema.decode(own["features"][held]), own["labels"][held], bought, weights)


def _rule(points: Any, settings: Mapping[str, Any]) -> str:
    """The rule: the one that is named; else that of rounds where a key has a meaning in these alone."""
    named = settings.get("acquisition.rule")
    if named is not None:
        return str(named)
    if any(key.startswith(_OF_ROUNDS) for key in settings) or not isinstance(points, int):
        return AskAll.name
    if told := too_many_for_a_tender(points):
        warnings.warn(told, stacklevel=3)
    return default_rule(points)


def _keeps_the_map(rule: str) -> bool:
    """Whether a rule keeps the feature map from the curator, so that no file says its seed."""
    return rule in RULES and RULES[rule].sealed


def _check_owners(given: Any) -> None:
    if not (isinstance(given, Mapping) and all(isinstance(name, str) for name in given)):
        raise ConfigError("The owners are no mapping from names to tables.", advice='Give {"north": table}.')
    if not given:
        raise ConfigError("There are no owners.", advice='Give one table at least: {"north": table}.')


def _check_others(**given: Any) -> None:
    """Refuse arguments whose types are not those of `procure`."""
    settings, directory = given["settings"], given["directory"]
    by_key = isinstance(settings, Mapping) and all(isinstance(key, str) for key in settings)
    if settings is not None and not by_key:
        raise ConfigError("`settings` is no mapping from keys.", advice='Give {"session.batch": 5}.')
    if not (given["label"] is None or isinstance(given["label"], str)):
        raise ConfigError("`label` is not the name of one column.", advice='Give its name, such as "risk".')
    if not (directory is None or (isinstance(directory, str | Path) and "\0" not in str(directory))):
        raise ConfigError("`directory` is no path.", advice='Give one, such as "bought", or leave it out.')
    if not (given["progress"] is None or callable(given["progress"])):
        raise ConfigError(
            "`progress` cannot be called.", advice="Give a function of a round and the points so far."
        )


def _is_whole(kind: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and within(kind, value)


def _shortly(value: Any) -> str:
    """A value in an error; Python writes out no whole number of thousands of digits."""
    return "too large" if isinstance(value, int) and value.bit_length() > 128 else f"{value!r:.40}"


def _check_epsilon(given: Any) -> None:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (number and within(ranges.Epsilon, given)):
        raise ConfigError(
            f"`epsilon` is {given!r}.",
            advice="Give a positive number, such as 1.0: the ε of the guarantees.",
        )


def _reading(schema: Schema, label: str | None, settings: Mapping[str, Any]) -> DataColumns:
    """How tables are read: labels by what the settings declare of them."""
    keys = {key.partition(".")[2]: value for key, value in settings.items() if key.startswith("labels.")}
    labels = validated(LabelsSection, keys, where="settings") if keys else None
    return reading(DataColumns(label=label), schema, settings.get("session.labels"), labels, (0.0, 1.0))


def _of_consumer(
    validation: Frame, test: Frame | None, schema: Schema, read: DataColumns
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The arrays of the validation set and, if there are held-out rows, of these."""
    wanted = as_arrow(validation, "validation", read)
    if wanted.num_rows == 0:
        raise DataError("The validation set has no rows.", advice="Give rows like those that are wanted.")
    # Labels of D_v tell what is worth how much, and it may have none.
    label = read.label if read.label in wanted.column_names else None
    own = replace(read, label=label, label_gaps=True)
    found = {"validation": arrays_of(schema, wanted, "validation", own)}
    if test is not None:
        found["test"] = arrays_of(schema, as_arrow(test, "test", read), "test", read)
    return found


def _of_owners(
    owners: Mapping[str, Frame], schema: Schema, read: DataColumns, wanted: npt.NDArray[Any] | None
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Each owner's arrays. Labels are of one kind: 1 and "1" would be two classes to a model."""
    found = {}
    first = "" if wanted is None else f"{_label_kind(wanted)} with the validation set"
    for name, frame in owners.items():
        label = read.label
        arrays = arrays_of(schema, as_arrow(frame, name, read), name, read)
        if label is not None:
            kind = _label_kind(arrays["labels"])
            first = first or f"{kind} with {name}"
            if not first.startswith(kind):
                raise DataError(
                    f"The labels in column {label!r} are {first}, and {kind} with {name}.",
                    advice="Give the labels one type everywhere.",
                )
        found[name] = arrays
    return found


def _labels_of(consumer: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> npt.NDArray[Any] | None:
    """D_v's labels; None if no row has one, whatever type an empty column has."""
    own = consumer["validation"]
    return None if "labels" not in own or not own.get("labelled", np.ones(1)).any() else own["labels"]


def _label_kind(labels: npt.NDArray[Any]) -> str:
    return "text" if labels.dtype.kind == "U" else "numbers"


def _release(epsilon: float, neighbours: Neighbours) -> dict[str, Any]:
    return {"mechanism": _RELEASE, "epsilon": epsilon, "neighbours": neighbours.value}


def _median_gamma(public: npt.NDArray[np.float64], schema: Schema) -> float:
    if len(public) < 2:
        raise ConfigError(
            "There is no γ, and one row of a seed set, from which none follows.",
            advice="Give `gamma`, which must not follow from private rows.",
        )
    lower, upper = np.array(schema.lower), np.array(schema.upper)
    scaled = ((public - lower) / (upper - lower))[:_MOST_PAIRS]
    median = float(np.median(pdist(scaled, "sqeuclidean")))
    if median <= 0.0:
        raise ConfigError(
            "Most rows of the seed set are equal, so that no γ follows from it.", advice="Give `gamma`."
        )
    return 1.0 / median


def _plain(given: Any) -> Any:
    return given.item() if isinstance(given, np.generic) else given
