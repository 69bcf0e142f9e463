"""The one writer of whole files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import pytest

from hushbid.protocol.runtime.files.durable import in_place_of, new_file

WRITERS = pytest.mark.parametrize("writer", [new_file, in_place_of])


@WRITERS
def test_a_file_is_whole_and_private(
    tmp_path: Path, writer: Callable[[Path], AbstractContextManager[BinaryIO]]
) -> None:
    with writer(tmp_path / "file") as stream:
        stream.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@WRITERS
def test_nothing_is_left_of_what_failed(
    tmp_path: Path, writer: Callable[[Path], AbstractContextManager[BinaryIO]]
) -> None:
    def interrupted() -> None:
        with writer(tmp_path / "file") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["file", "link"])
def test_a_new_file_replaces_nothing(tmp_path: Path, there: str) -> None:
    path = tmp_path / "file"
    if there == "file":
        path.write_bytes(b"old")
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError), new_file(path) as stream:
        stream.write(b"new")
    assert there == "link" or path.read_bytes() == b"old"
    assert not (tmp_path / "elsewhere").exists()


def test_a_reader_finds_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    secret = tmp_path / "secret"
    secret.write_bytes(b"another's")
    (tmp_path / ".file.partial").symlink_to(secret)  # what a stranger, or a killed process, left there
    with in_place_of(path, 0o644) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert secret.read_bytes() == b"another's"
    assert not (tmp_path / ".file.partial").exists()
