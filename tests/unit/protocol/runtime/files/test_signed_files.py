"""Files that another party sent: whatever is in their place, reading neither hangs nor takes long."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hushbid.protocol import limits
from hushbid.protocol.config.key_request import key_request
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.signed_files import read_invitation, read_key_request
from hushbid.protocol.runtime.keys import new_keypair

READERS: list[tuple[Callable[[Path], Any], int]] = [
    (read_key_request, limits.MAX_REQUEST_FILE_BYTES),
    (read_invitation, limits.MAX_INVITATION_FILE_BYTES),
]
each_kind = pytest.mark.parametrize(("read", "longest"), READERS, ids=["request", "invitation"])


def request_of(size: int, place: Path) -> Path:
    """A valid request that a comment makes that long."""
    text = tomli_w.dumps(key_request("north", "owner", new_keypair())) + "#"
    path = place / "north.request"
    path.write_text(text + "x" * (size - len(text)), encoding="utf-8")
    assert path.stat().st_size == size
    return path


def test_a_request_may_be_as_long_as_is_allowed_and_no_longer(tmp_path: Path) -> None:
    longest = limits.MAX_REQUEST_FILE_BYTES
    assert read_key_request(request_of(longest, tmp_path)).name == "north"
    with pytest.raises(ConfigError, match=f"longer than {longest} bytes"):
        read_key_request(request_of(longest + 1, tmp_path))


@each_kind
def test_of_a_file_of_any_length_no_more_is_read_than_may_be_there(
    tmp_path: Path, read: Callable[[Path], Any], longest: int
) -> None:
    path = tmp_path / "sent"
    path.touch()
    os.truncate(path, 2**40)  # a hole: reading all of it would end in want of memory
    with pytest.raises(ConfigError, match=f"longer than {longest} bytes") as caught:
        read(path)
    assert caught.value.advice


@each_kind
def test_a_pipe_a_device_or_a_directory_is_refused(
    tmp_path: Path, read: Callable[[Path], Any], longest: int
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ConfigError, match="not a plain file"):
            read(path)  # must not wait for a writer
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read(tmp_path)


@each_kind
def test_a_file_that_is_missing_or_no_text_is_refused(
    tmp_path: Path, read: Callable[[Path], Any], longest: int
) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "nowhere")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8 text"):
        read(tmp_path / "bytes")
