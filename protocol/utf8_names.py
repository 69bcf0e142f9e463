"""Names that the system gives in bytes: of files, and in arguments and variables. They must be UTF-8.

Libraries take paths in UTF-8 alone, and the files of a session, which name each other, can hold no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.printable import printable

__all__ = ["check_utf8", "resolved"]


def check_utf8(names: Iterable[str]) -> None:
    """Refuse names of the system, such as paths, that have bytes which are not UTF-8.

    Raises:
        ConfigError: One has.
    """
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            shown = printable(name).replace(r"\udc", r"\x")  # as Python has such a byte in a text
            raise ConfigError(
                f"{shown}: this name is not UTF-8, and hushbid takes no other.",
                advice="Rename the file or the directory.",
            ) from None


def resolved(path: Path) -> Path:
    """The absolute path, links followed, for a file that names it.

    Raises:
        ConfigError: It is not UTF-8.
    """
    found = path.resolve()
    check_utf8([str(found)])
    return found
