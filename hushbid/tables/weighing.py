"""Matching weights of delivered points, for `hushbid weigh`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.appraisal import Judge, Judgement
from hushbid.consumer.balance import Group, balanced_groups
from hushbid.consumer.downstream import known_labels
from hushbid.consumer.judgement import judged
from hushbid.consumer.label_part import check_label_weight
from hushbid.consumer.learners import check_model
from hushbid.consumer.matching import check_ridge
from hushbid.consumer.model_figures import ModelFigures
from hushbid.consumer.store import weight_arrays
from hushbid.protocol.config.party import LABEL_WEIGHT, RIDGE
from hushbid.protocol.data.dataset import Changes
from hushbid.protocol.data.formats import WRITTEN
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.tables.delivery import MASKED, NOT_OURS, DeliveredTables, is_same, writing
from hushbid.tables.options import WeighOptions
from hushbid.text_files import check_file_place

if TYPE_CHECKING:
    from hushbid.tables.frames import ArrowTable

__all__ = ["WeighedTables", "named_table", "weigh"]

_ENDINGS: Final = (".npz", *WRITTEN)


@figures(frozen=True, kw_only=True)
class WeighedTables(Figures):
    """The outcome of weighing.

    Attributes:
        points: Number of points that now have weights.
        judgement: Their quality, with these and without.
        output: The file that has them.
        older: A table beside it with the earlier weights; None: there is none.
        formulas: Cells that spreadsheets would take for formulas, by column.
        gamma: γ.
        balance: The origin of label shares; None: not balanced.
        model: Whether the consumer's model improves.
        privacy: The session's guarantees, as far as the session is known.
        outside: Changes to tables, by their files' names.
        labels_unused: Whether points have labels, and no row of the validation set has one.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset({"judgement"})
    TOLD: ClassVar[Mapping[str, str]] = {"judgement": "sentences"}

    points: int
    judgement: Judgement
    output: Path
    older: Path | None
    formulas: Mapping[str, int]
    gamma: float
    balance: str | None
    model: ModelFigures
    privacy: tuple[PrivacyStatement, ...] = ()
    outside: Mapping[str, Changes] = Field(default_factory=dict)
    labels_unused: bool = False

    @property
    def sentences(self) -> tuple[str, str]:
        """Whether the model improved, and which guarantee protects whom."""
        return judged(self.model, self.privacy)


@one_blas_thread()
def weigh(options: WeighOptions) -> WeighedTables:
    """Weigh delivered points, and write them with their weights.

    Raises:
        ConfigError: An option is invalid; or γ and the bounds are missing.
        DataError: A file cannot be read or written, or points cannot be weighed or balanced.
    """
    delivered, test = options.delivered, options.test
    ridge = RIDGE if options.ridge is None else options.ridge
    check_ridge(ridge)
    strength = LABEL_WEIGHT if options.label_weight is None else options.label_weight
    check_label_weight(strength)
    check_model(options.model, trained=False)  # whether there are labels for the evaluation turns out later
    place = options.output or delivered
    if any(is_same(place, other) for other in (options.validation, test)):
        raise ConfigError(f"{place} would be overwritten.", advice="Name another file with --output.")
    if place.suffix not in _ENDINGS:
        raise ConfigError(
            f"{place}: nothing is written to files with that ending.",
            advice=f"Name one that ends with {', '.join(_ENDINGS)}.",
        )
    if place != delivered:
        check_file_place(place)
    columns = options.columns or (options.features, options.label)
    found = DeliveredTables.read(delivered, options.session, columns, options.outside)
    width = found.gamma(options.gamma)
    # Each was checked in its own number type on delivery, and may exceed a bound by its rounding.
    points = found.points
    resembled, wanted = found.table(options.validation, label_gaps=True)
    own = resembled.known
    held = None
    if test is not None:
        held_out, judged_points = found.table(test)
        held = (judged_points, held_out.known)
    judge = Judge(
        wanted,
        width,
        test=held,
        model=options.model,
        seed=options.seed,
        ridge=ridge,
        wanted_labels=own,
        label_weight=strength,
        amounts=found.amounts,
    )
    labels = found.known
    plain = judge.quality(points, labels)
    groups: tuple[Group, ...] = ()
    if options.balance is not None:
        groups = balanced_groups(labels, options.balance, own)
    judgement, matching = judge.weighed(plain, points, labels, groups=groups)
    if matching is None:
        raise DataError(f"{delivered}: {judgement.why}", advice="Weigh a part of the points.")
    model, training = judge.model_figures(points, labels, matching)
    arrays = {name: array for name, array in found.arrays.items() if name != "training_weights"}
    made = weight_arrays(matching, width, training)
    formulas = _written(place, arrays | found.public | made)
    older = place.with_suffix(".parquet")
    return WeighedTables(
        points=len(points),
        judgement=judgement,
        output=place.resolve(),
        older=older if older != place and older.exists() else None,
        formulas=formulas,
        gamma=width,
        balance=options.balance,
        model=model,
        privacy=found.privacy(),
        outside=found.outside,
        labels_unused=bool(known_labels(labels)) and (own is None or not known_labels(own)),
    )


def _written(place: Path, arrays: dict[str, Any]) -> dict[str, int]:
    if place.suffix == ".npz":
        with writing(place, what="the points", advice=NOT_OURS) as stream:
            np.savez(stream, **arrays)
    else:
        from hushbid.tables.frames import write_table  # needed only here, and half of this verb's imports

        return write_table(named_table(arrays), place)
    return {}


def named_table(
    arrays: dict[str, Any], names: Sequence[str] | None = None, *, label: str = "label"
) -> ArrowTable:
    """A delivery's arrays as a table: its columns, then label, identifier, owner, round and weights.

    Names that the columns already have get a trailing underscore.

    Args:
        names: Of the columns; None: ``x0``, ``x1``, ….
        label: Name of the label column.
    """
    import pyarrow as pa

    from hushbid.consumer.delivered import free_name

    features = arrays["features"]
    named = names or [f"x{number}" for number in range(features.shape[1])]
    columns: dict[str, Any] = {name: features[:, number] for number, name in enumerate(named)}
    for name, mask, attribute in MASKED:
        column = label if attribute == "label" else attribute
        if name in arrays:
            columns[free_name(column, columns)] = pa.array(arrays[name], mask=~arrays[mask])
    for name, column in (
        ("owners", "owner"),
        ("rounds", "round"),
        ("weights", "weight"),
        ("training_weights", "training_weight"),
    ):
        if name in arrays:
            columns[free_name(column, columns)] = pa.array(arrays[name])
    return pa.table(columns)
