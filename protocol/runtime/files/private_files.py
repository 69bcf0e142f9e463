"""Files that only their owner may read, in formats of this project."""

from __future__ import annotations

import stat
from pathlib import Path

from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.plain_files import read_plain

__all__ = ["read_private"]


def read_private(path: Path, longest: int) -> bytes:
    """The content of a file that only its owner can read.

    Args:
        longest: Most bytes that it may have.

    Raises:
        DataError: It cannot be read, is no regular file, or is longer.
        ConfigError: Others can read or change it.
    """
    try:
        content, status = read_plain(path, longest)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.", advice="Check the path.") from None
    if platform.others_may_use(status):
        raise ConfigError(
            f"{path} holds what is private, and can be used by others than its owner "
            f"(mode {stat.S_IMODE(status.st_mode):04o}).",
            advice=f"Run `chmod 600 {path}`; if others had it, take it for known.",
        )
    if len(content) > longest:
        raise DataError(
            f"{path}: longer than {longest} bytes, the most for this kind of file.",
            advice="Check which file was named.",
        )
    return content
