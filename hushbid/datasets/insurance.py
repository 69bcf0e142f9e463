"""The Allstate purchase data, dealt out as in DPDS §4: Florida's owners, a consumer in Connecticut."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.datasets.partition import Partition, PartitionOptions, Table, limited
from hushbid.protocol.errors import ConfigError, DataError

__all__ = ["insurance"]

OWNERS: Final = 4
OWNERS_SHARE: Final = 0.7
"""Share of Connecticut's customers that one of the owners holds."""
VALIDATION_SHARE: Final = 0.25
"""Share of Connecticut's other customers in D_v."""
LABEL: Final = "G"

NUMERIC: Final[Mapping[str, tuple[float, float]]] = {
    "age_oldest": (18, 75),
    "age_youngest": (16, 75),
    "car_age": (0, 30),
    "duration_previous": (0, 15),
    "cost": (400, 900),
    "group_size": (1, 4),
}
"""Numeric columns with public bounds: scaled to [0, 1], clipped; a missing value becomes 0.5."""

CATEGORIES: Final[Mapping[str, tuple[float | str, ...]]] = {
    "homeowner": (0, 1),
    "married_couple": (0, 1),
    "car_value": tuple("abcdefghi"),
    "risk_factor": (1, 2, 3, 4),
    "C_previous": (1, 2, 3, 4),
    "A": (0, 1, 2),
    "B": (0, 1),
    "C": (1, 2, 3, 4),
    "D": (1, 2, 3),
    "E": (0, 1),
    "F": (0, 1, 2, 3),
}
"""Categorical columns with their values. Each value becomes a column that is 0.5 where it holds and 0
elsewhere; one more column does the same for rows with no value, or with another."""

COLUMNS: Final = len(NUMERIC) + sum(len(values) + 1 for values in CATEGORIES.values())
_WEIGHT: Final = 0.5
_TEXT: Final = ("state", "car_value")
_TAKES: Final = (
    "Give train.csv of Kaggle's Allstate Purchase Prediction Challenge; docs/data.md says where to get it,"
    " and lists the columns."
)


def insurance(path: Path | None, generator: np.random.Generator, options: PartitionOptions) -> Partition:
    """Four owners hold Florida's customers at random, and the first of them 70 % of Connecticut's.

    A quarter of Connecticut's other customers is D_v and the rest is the test set; the seed set is drawn from
    Ohio. A customer's point is its last quote; its label is the level of product G.

    Args:
        path: ``train.csv`` of the Allstate Purchase Prediction Challenge (a customer's quotes in several
            rows, the last of them the purchase), or fewer of its rows; it may be gzipped.
        generator: Draws everything random.
        options: See `PartitionOptions`.

    Raises:
        ConfigError: No path is given.
        DataError: The file cannot be read, lacks one of the competition's columns, or has too few customers
            of one of the three states.
    """
    if path is None:
        raise ConfigError("The insurance dataset needs a path.", advice=_TAKES)
    if not path.exists():
        raise DataError(f"The path of the insurance dataset, {path}, does not exist.", advice=_TAKES)
    if not path.is_file():
        raise DataError(
            f"The path of the insurance dataset, {path}, is not a file but a directory.", advice=_TAKES
        )
    quotes = _last_quotes(_read(path))
    state = quotes["state"]
    florida, connecticut, ohio = (
        generator.permutation(np.flatnonzero(state == name)) for name in ("FL", "CT", "OH")
    )
    bought = round(OWNERS_SHARE * len(connecticut))
    validation = round(VALIDATION_SHARE * (len(connecticut) - bought))
    if len(florida) < OWNERS or validation < 1 or len(ohio) < 1:
        raise DataError(
            f"{path.name} has {len(florida)} customers of FL, {len(connecticut)} of CT and {len(ohio)} of OH,"
            " too few to deal out.",
            advice="Give the whole file.",
        )
    table = Table(_encode(quotes), quotes[LABEL].astype(np.int64))
    shares = np.array_split(florida, OWNERS)
    shares[0] = np.concatenate([shares[0], connecticut[:bought]])
    owners = {
        f"insurer-{number}": table.take(limited(np.sort(share), options.owner_points, generator))
        for number, share in enumerate(shares, start=1)
    }
    rest = connecticut[bought:]
    return Partition(
        owners=owners,
        validation=table.take(rest[:validation]),
        seed_set=table.take(limited(ohio, options.seed_points, generator)),
        test=table.take(rest[validation:]),
        columns=COLUMNS,
        lower=0.0,
        upper=1.0,
        dtype=table.features.dtype,
        suggested={"gamma": 0.1, "dimension": 140, "model": "linear-svm"},
    )


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The columns as arrays: text for `_TEXT`, float64 with NaN for gaps for the others."""
    # Every run imports this module, and one in many reads such a file.
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pacsv

    names = ("customer_ID", "shopping_pt", *_TEXT[:1], *NUMERIC, *CATEGORIES, LABEL)
    types = {name: pa.string() if name in _TEXT else pa.float64() for name in names}
    convert = pacsv.ConvertOptions(include_columns=list(names), column_types=types, strings_can_be_null=True)
    try:
        table = pacsv.read_csv(path, convert_options=convert)
    except (pa.ArrowException, OSError, ValueError, KeyError):
        # pyarrow's message may quote a line of the file.
        raise DataError(
            f"{path} cannot be read as the competition's train.csv: it is of another kind or damaged,"
            " compressed otherwise than by gzip, or lacks one of its columns.",
            advice=_TAKES,
        ) from None
    columns = {}
    for name in names:
        column = table.column(name)
        if name in _TEXT:
            columns[name] = np.asarray(pc.fill_null(column, "").to_pylist(), dtype=np.str_)
        else:
            columns[name] = pc.fill_null(column, np.nan).to_numpy()
    for name in ("customer_ID", "shopping_pt", LABEL):
        if len(bad := np.flatnonzero(np.isnan(columns[name]))):
            raise DataError(
                f"{path.name}: row {bad[0]} (counted from 0) has no {name!r}.", advice="Get the file again."
            )
    return columns


def _last_quotes(quotes: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Each customer's row of the highest shopping point, by customer."""
    customer = quotes["customer_ID"]
    order = np.lexsort((quotes["shopping_pt"], customer))
    last = np.append(np.diff(customer[order]) != 0, True)[: len(order)]
    return {name: values[order[last]] for name, values in quotes.items()}


def _encode(quotes: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    """Features in [0, 1], shape (n, `COLUMNS`): numeric columns, then categories, in the order above."""
    parts = []
    for name, (low, high) in NUMERIC.items():
        scaled = np.clip((quotes[name] - low) / (high - low), 0.0, 1.0)
        parts.append(np.where(np.isnan(scaled), 0.5, scaled)[:, None])
    for name, values in CATEGORIES.items():
        holds = quotes[name][:, None] == np.asarray(values)
        parts.append(_WEIGHT * np.column_stack([holds, ~holds.any(axis=1)]))
    return np.concatenate(parts, axis=1).astype(np.float32)
