"""Tables that are given in place of files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushbid.protocol.data import DataColumns
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.given_tables import keep_table


def test_a_table_that_cannot_be_written_leaves_the_one_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path, columns = tmp_path / "state" / "data.parquet", DataColumns()
    keep_table(pa.table({"a": [1.0]}), path, columns, what="data")
    keep_table(pa.table({"a": [1.0, 2.0]}), path, columns, what="data")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match=r"data\.parquet: cannot be written: No space left"):
        keep_table(pa.table({"a": [3.0]}), path, columns, what="data")
    assert pq.read_table(path)["a"].to_pylist() == [1.0, 2.0]
    assert [each.name for each in path.parent.iterdir()] == ["data.parquet"]
    assert path.stat().st_mode & 0o777 == 0o600
