"""Rows without a label: read where they may be, refused elsewhere, and never taken for a class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.protocol.data import DataColumns, Dataset, dataset_digest, load_dataset, read_attributes
from hushbid.protocol.errors import DataError

COLUMNS = DataColumns(features=("a", "b"), label="y")
FEATURES = np.arange(8.0).reshape(4, 2)


def csv(place: Path, labels: list[str]) -> Path:
    path = place / "rows.csv"
    rows = (f"{a},{b},{label}\n" for (a, b), label in zip(FEATURES, labels, strict=True))
    path.write_text("a,b,y\n" + "".join(rows))
    return path


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        (["1", "", "2", "NA"], [1, None, 2, None]),
        (["1.5", "2.5", "", "nan"], [1.5, 2.5, None, None]),
        (["up", "down", "", "up"], ["up", "down", None, "up"]),
        (["true", "", "false", "true"], [1, None, 0, 1]),
        (["", "", "", ""], None),
        (["1", "2", "3", "4"], [1, 2, 3, 4]),
    ],
    ids=["integers", "amounts", "text", "booleans", "none", "all"],
)
def test_an_empty_cell_is_a_row_without_a_label(tmp_path: Path, cells: list[str], known: Any) -> None:
    path = csv(tmp_path, cells)
    found = load_dataset(path, COLUMNS.with_gaps())
    labels = found.known
    assert (labels if labels is None else list(labels)) == known
    assert len(found) == 4
    if known is None or None in known:
        with pytest.raises(DataError, match=r"row \d \(counted from 0\), column 'y' is missing"):
            load_dataset(path, COLUMNS)
    if known == [1, None, 2, None]:
        assert found.labels is not None
        assert found.labels.dtype.kind == "i", "gaps do not make fractions of whole numbers"


def test_parquet_has_nulls_blanks_and_categories(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    for labels, known in (
        (pa.array(["up", " ", None, "down"]), ["up", None, None, "down"]),
        (pa.array(["up", None, "down", "up"]).dictionary_encode(), ["up", None, "down", "up"]),
        (pa.array([None] * 4, pa.int64()), None),
        (pa.array([None, 2, 3, None]), [None, 2, 3, None]),
    ):
        pq.write_table(pa.table({"a": FEATURES[:, 0], "b": FEATURES[:, 1], "y": labels}), path)
        assert load_dataset(path, COLUMNS.with_gaps()).known == known


def test_arrays_say_which_rows_are_labelled_or_have_nan(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    np.savez(path, features=FEATURES, labels=np.array([7, 8, 0, 0]), labelled=np.arange(4) < 2)
    for columns in (DataColumns(), DataColumns().with_gaps()):
        assert load_dataset(path, columns).known == [7, 8, None, None]
    np.savez(path, features=FEATURES, labels=np.array([0.5, np.nan, 1.5, 2.0]))
    assert load_dataset(path, DataColumns().with_gaps()).known == [0.5, None, 1.5, 2.0]
    with pytest.raises(DataError, match="row 1"):
        load_dataset(path, DataColumns())
    np.savez(path, features=FEATURES, labels=np.arange(4), labelled=np.arange(4))
    with pytest.raises(DataError, match="whether it is labelled"):
        load_dataset(path, DataColumns())


def test_a_row_without_a_label_travels_without_one_and_in_the_same_size() -> None:
    some = Dataset.from_arrays("d", FEATURES, np.array(["a", "bb", "?", "a"]), labelled=np.arange(4) != 2)
    packed = [some.attributes(row) for row in range(4)]
    own = [packed for row in range(4) for packed in some.own_attributes_of([row])]
    assert list(some.each_own_attributes()) == own
    assert [read_attributes(each).label for each in packed] == ["a", "bb", None, "a"]
    assert len({len(each) for each in packed}) == 1


def test_which_rows_are_labelled_is_part_of_the_digest_and_full_labels_are_as_before() -> None:
    labels = np.arange(4)
    full, every = Dataset.from_arrays("d", FEATURES, labels), np.ones(4, dtype=bool)
    assert dataset_digest(full) == dataset_digest(Dataset.from_arrays("d", FEATURES, labels, labelled=every))
    digests = {
        dataset_digest(Dataset.from_arrays("d", FEATURES, np.zeros(4, int), labelled=np.arange(4) != row))
        for row in range(4)
    }
    assert len(digests) == 4
    assert dataset_digest(Dataset.from_arrays("d", FEATURES, labels, labelled=~every)) == dataset_digest(
        Dataset.from_arrays("d", FEATURES)
    )
