"""Arrays in memory become the dataset, or the error, that a file of them does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.data import DataColumns, Dataset, dataset_digest, load_dataset
from hushbid.protocol.data.arrays import Arrays, dataset_of_arrays
from hushbid.protocol.data.dataset import Allowed
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError

ROWS = np.array([[0.5, 3.0], [1.5, 9.0], [0.25, 0.0]])
SCHEMA = Schema.of(
    [
        {"name": "job", "kind": "category", "categories": ["clerk", "nurse"]},
        {"name": "age", "kind": "integer", "lower": 0, "upper": 99},
    ]
)
WITHIN = Allowed(0.0, 4.0)
CASES: dict[str, tuple[Arrays, DataColumns]] = {
    "features": ({"features": ROWS}, DataColumns()),
    "in the order of Fortran": ({"features": np.asfortranarray(ROWS)}, DataColumns()),
    "whole numbers": ({"features": ROWS.astype(np.int16), "labels": np.arange(3)}, DataColumns()),
    "text": (
        {"features": ROWS, "labels": np.array(["a", "b", "a"]), "identifiers": np.arange(3)},
        DataColumns(),
    ),
    "other names": (
        {"points": ROWS, "kind": np.arange(3), "number": np.arange(3)},
        DataColumns(features=("points",), label="kind", identifier="number"),
    ),
    "gaps": ({"features": ROWS, "labels": np.array([1.0, np.nan, 2.0])}, DataColumns().with_gaps()),
    "flags": (
        {"features": ROWS, "labels": np.array(["a", "", "b"]), "labelled": np.array([True, False, True])},
        DataColumns().with_gaps(),
    ),
    "clipped": ({"features": ROWS}, DataColumns(outside="clip", allowed=WITHIN)),
    "dropped": (
        {"features": ROWS, "labels": np.array(["a", "b", ""])},
        DataColumns(outside="drop", allowed=WITHIN),
    ),
    "an array for each column": (
        {"job": np.array(["nurse", "clerk"]), "age": np.array([3, 4])}, DataColumns(schema=SCHEMA)
    ),
    "columns of two lengths": (
        {"job": np.array(["nurse", "clerk"]), "age": np.array([3])}, DataColumns(schema=SCHEMA)
    ),
    "a missing array": ({"points": ROWS}, DataColumns()),
    "a missing label": ({"features": ROWS}, DataColumns(label="kind")),
    "two arrays of features": ({"x": ROWS, "y": ROWS}, DataColumns(features=("x", "y"))),
    "labels that are too few": ({"features": ROWS, "labels": np.arange(2)}, DataColumns()),
    "a label that is missing": ({"features": ROWS, "labels": np.array(["a", "", "b"])}, DataColumns()),
    "one axis": ({"features": ROWS[0]}, DataColumns()),
    "complex numbers": ({"features": ROWS * 1j}, DataColumns()),
    "no row that fits": ({"features": ROWS + 9.0}, DataColumns(outside="drop", allowed=WITHIN)),
}  # fmt: skip


def told(read: Callable[[], Dataset]) -> tuple[Any, ...]:
    """All that there is of a dataset, or its error."""
    try:
        dataset = read()
    except DataError as error:
        return error.what, error.advice
    return dataset.name, dataset_digest(dataset), dataset.features.flags.f_contiguous, dataset.changes


@pytest.mark.parametrize("case", CASES)
def test_arrays_in_memory_are_read_as_those_of_a_file(case: str, tmp_path: Path) -> None:
    arrays, columns = CASES[case]
    path = tmp_path / "north.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    expected = told(partial(load_dataset, path, columns))
    assert told(partial(dataset_of_arrays, "north.npz", arrays, columns)) == expected


def test_whoever_gave_the_arrays_keeps_them() -> None:
    rows = ROWS.copy()
    clipped = dataset_of_arrays("north", {"features": rows}, DataColumns(outside="clip", allowed=WITHIN))
    assert clipped.features.max() == 4.0
    assert np.array_equal(rows, ROWS)
    assert rows.flags.writeable
