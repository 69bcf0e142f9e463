"""The contract of every loader in the registry; a new one is tested once its format can be written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from hushbid.protocol.data import LOADERS, DataColumns, check_dataset, load_dataset
from hushbid.protocol.errors import DataError

FEATURES = np.array([[0.5, 3.0], [1.5, 4.0], [0.25, 0.0]])
LABELS = [3, 4, 3]
IDENTIFIERS = ["first", "second", "third"]


def table() -> pa.Table:
    return pa.table({"a": FEATURES[:, 0], "b": FEATURES[:, 1], "label": LABELS, "name": IDENTIFIERS})


def csv_writer(separator: str, packed: str | None = None) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with pa.output_stream(str(path), compression=packed) as file:
            pacsv.write_csv(table(), file, pacsv.WriteOptions(delimiter=separator))

    return write


BESIDE = DataColumns(label="label", identifier="name")

WRITERS: dict[str, tuple[Callable[[Path], object], DataColumns]] = {
    ".npy": (lambda path: np.save(path, FEATURES), DataColumns()),
    ".npz": (
        lambda path: np.savez(
            path, features=FEATURES, labels=np.array(LABELS), identifiers=np.array(IDENTIFIERS)
        ),
        DataColumns(),
    ),
    ".csv": (csv_writer(","), BESIDE),
    ".csv.gz": (csv_writer(",", "gzip"), BESIDE),
    ".csv.zst": (csv_writer(",", "zstd"), BESIDE),
    ".tsv": (csv_writer("\t"), BESIDE),
    ".tsv.gz": (csv_writer("\t", "gzip"), BESIDE),
    ".tsv.zst": (csv_writer("\t", "zstd"), BESIDE),
    ".parquet": (lambda path: pq.write_table(table(), path), BESIDE),
}
"""How to write the same points in every format. A loader without an entry fails the first test."""

every_loader = pytest.mark.parametrize("suffix", LOADERS)


@every_loader
def test_it_reads_what_was_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"points{suffix}"
    write, columns = WRITERS[suffix]
    write(path)
    dataset = load_dataset(path, columns)
    assert dataset.name == path.name
    assert len(dataset) == 3
    assert np.array_equal(dataset.features, FEATURES)
    assert not dataset.features.flags.writeable
    check_dataset(dataset, columns=2, lower=0.0, upper=4.0)
    if dataset.labels is not None:
        assert dataset.labels.tolist() == LABELS
    if dataset.identifiers is not None:
        assert dataset.identifiers.tolist() == IDENTIFIERS
    assert len({len(dataset.attributes(row)) for row in range(3)}) == 1


@every_loader
def test_the_ending_may_be_in_capitals(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"points{suffix}"
    write, columns = WRITERS[suffix]
    write(path)
    renamed = path.rename(tmp_path / f"POINTS{suffix.upper()}")
    assert len(load_dataset(renamed, columns)) == 3


@every_loader
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 99, b"secret word \xff" * 99], ids=["empty", "zeros", "other"]
)
def test_what_it_cannot_parse_is_a_data_error_that_names_the_file(
    suffix: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"points{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_dataset(path, DataColumns())
    assert path.name in str(caught.value)
    assert "secret" not in str(caught.value)


@every_loader
def test_a_file_that_was_cut_short_is_a_data_error_or_has_fewer_rows(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"points{suffix}"
    write, columns = WRITERS[suffix]
    write(path)
    whole = path.read_bytes()
    for size in range(1, len(whole), max(1, len(whole) // 97)):
        path.write_bytes(whole[:size])
        # Only text says nothing of its length: a cut at a line's end, or in its last cell, stays unseen.
        expected = (
            contextlib.suppress(DataError)
            if suffix in (".csv", ".tsv")
            else pytest.raises(DataError, match="points")
        )
        with expected:
            assert len(load_dataset(path, columns)) <= 3


@every_loader
def test_a_missing_file_is_a_data_error(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_dataset(tmp_path / f"gone{suffix}", DataColumns())
