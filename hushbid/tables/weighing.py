"""Matching weights of delivered points, for `hushbid weigh`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushbid.consumer.appraisal import Judge, Judgement
from hushbid.consumer.balance import Group, balanced_groups
from hushbid.consumer.label_part import check_label_weight
from hushbid.consumer.learners import check_model
from hushbid.consumer.matching import check_ridge
from hushbid.consumer.store import weight_arrays
from hushbid.protocol.config.party import LABEL_WEIGHT, RIDGE
from hushbid.protocol.data.formats import WRITTEN
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.tables.delivery import MASKED, NOT_OURS, Delivery, is_same, writing
from hushbid.tables.options import WeighOptions

if TYPE_CHECKING:
    from hushbid.tables.frames import ArrowTable

__all__ = ["weigh"]

_ENDINGS: Final = (".npz", *WRITTEN)


def weigh(options: WeighOptions) -> dict[str, Any]:
    """Weigh delivered points, and write them with their weights.

    Returns:
        The judgement (`Judgement.as_json`), with ``model``, ``points``, ``gamma``, ``balance``,
        ``output``, ``formulas``, and what was changed of tables, ``outside``.

    Raises:
        ConfigError: An option that cannot hold; or γ and the bounds are nowhere.
        DataError: A file that cannot be read or written, or points that cannot be weighed or balanced.
    """
    delivered, test = options.delivered, options.test
    ridge = RIDGE if options.ridge is None else options.ridge
    check_ridge(ridge)
    strength = LABEL_WEIGHT if options.label_weight is None else options.label_weight
    check_label_weight(strength)
    check_model(options.model, trained=False)  # whether there are labels to judge by, is seen later
    found = Delivery.read(delivered, options.session, (options.features, options.label), options.outside)
    place = options.output or delivered
    if any(is_same(place, other) for other in (options.validation, test)):
        raise ConfigError(f"{place} would be written over.", advice="Name another file with --output.")
    if place.suffix not in _ENDINGS:
        raise ConfigError(
            f"{place}: nothing is written to files of that name.",
            advice=f"Name one that ends with {', '.join(_ENDINGS)}.",
        )
    width = found.gamma(options.gamma)
    # Each was judged by its own number type when it was delivered, and may be at a bound by that.
    points = found.points
    resembled, wanted = found.table(options.validation, label_gaps=True)
    judged = None
    if test is not None:
        held_out, judged_points = found.table(test)
        judged = (judged_points, held_out.known)
    judge = Judge(
        wanted,
        width,
        test=judged,
        model=options.model,
        seed=options.seed,
        ridge=ridge,
        wanted_labels=resembled.known,
        label_weight=strength,
        amounts=found.amounts,
    )
    labels = found.known
    plain = judge.quality(points, labels)
    groups: tuple[Group, ...] = ()
    if options.balance is not None:
        groups = balanced_groups(labels, options.balance, resembled.known)
    judgement, matching = judge.weighed(plain, points, labels, groups=groups)
    if matching is None:
        raise DataError(f"{delivered}: {judgement.why}", advice="Weigh a part of the points.")
    model, training = judge.model_figures(points, labels, matching)
    arrays = {name: array for name, array in found.arrays.items() if name != "training_weights"}
    made = weight_arrays(matching, width, training)
    written = _written(place, arrays | found.public | made, judgement)
    return written | {
        "gamma": width,
        "balance": options.balance,
        "model": model.as_json(),
        "outside": found.outside,
    }


def _written(place: Path, arrays: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
    formulas: dict[str, int] = {}
    if place.suffix == ".npz":
        with writing(place, what="the points", advice=NOT_OURS) as stream:
            np.savez(stream, **arrays)
    else:
        from hushbid.tables.frames import write_table  # of use here alone, and half of what this verb imports

        formulas = write_table(_table(arrays), place)
    older = place.with_suffix(".parquet")
    return {
        "points": len(arrays["features"]),
        **judgement.as_json(),
        "output": str(place.resolve()),
        "older": str(older) if older != place and older.exists() else None,
        "formulas": formulas,
    }


def _table(arrays: dict[str, Any]) -> ArrowTable:
    import pyarrow as pa

    features = arrays["features"]
    columns: dict[str, Any] = {f"x{number}": features[:, number] for number in range(features.shape[1])}
    for name, mask, column in MASKED:
        if name in arrays:
            columns[column] = pa.array(arrays[name], mask=~arrays[mask])
    for name, column in (
        ("owners", "owner"),
        ("rounds", "round"),
        ("weights", "weight"),
        ("training_weights", "training_weight"),
    ):
        if name in arrays:
            columns[column] = pa.array(arrays[name])
    return pa.table(columns)
