"""Which rows are charged to which ledger: a list that each user of a machine has, so that a copy is seen.

A ledger belongs to a file of data by its name. The same rows under another name, in another format or in
another order would have a ledger of their own, and with it a whole budget. So whoever charges a ledger notes
here for which rows: a keyed digest of the rows, and the ledger's path. The file is `hushbid/ledgers` in the
user's state directory (`$XDG_STATE_HOME`, or `~/.local/state`), mode 0600. The digest is in no ledger and in
no log, as a ledger may be shown to others. Whoever has the list can check a guess of all rows at once, and
nothing less.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Final

from protocol.data import Dataset, rows_digest
from protocol.errors import ConfigError
from protocol.runtime.line_file import LineFile, malformed

__all__ = ["KnownRows", "known_ledgers_path"]

FORMAT: Final = "hushbid-known-ledgers"
VERSION: Final = 1
_WHAT: Final = "the list of known ledgers"
_PATIENCE: Final = 10.0
"""Seconds to wait for the file: all parties of a machine use it, for a moment each."""
_KEY_BYTES: Final = 32


def known_ledgers_path() -> Path:
    """Where the list lies.

    Raises:
        ConfigError: The user has no home.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    try:
        base = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise ConfigError(
            "There is no home directory to keep the list of known ledgers in.",
            advice="Set XDG_STATE_HOME to a directory that outlives the session.",
        ) from None
    return base / "hushbid" / "ledgers"


class KnownRows:
    """The rows of a dataset, and the ledger that they were last charged to.

    Args:
        dataset: The rows; its labels and identifiers do not count.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def prepare(self) -> None:
        """Compute the digest, before a ledger is held: it may take longer than others wait for one.

        Raises:
            HushbidError: As `ledger`.
        """
        _ = self._digest

    def ledger(self) -> Path | None:
        """The ledger that these rows were last charged to; None: to none that is known here.

        Raises:
            ConfigError: The list cannot be used.
            DataError: It is damaged.
            HushbidError: The disk is full or fails.
        """
        digest, found = self._digest, None
        with _open() as file:
            for number, record in enumerate(file.records[1:], start=2):
                rows, ledger = record.get("rows"), record.get("ledger")
                if not (isinstance(rows, str) and isinstance(ledger, str)):
                    raise malformed(file.path, number, "it names no rows or no ledger")
                if rows == digest:
                    found = Path(ledger)
        return found

    def charge_to(self, ledger: Path) -> None:
        """Note durably that these rows are charged to a ledger.

        Raises:
            HushbidError: As `ledger`.
        """
        if self.ledger() != ledger.resolve():
            with _open() as file:
                file.append({"rows": self._digest, "ledger": str(ledger.resolve())})

    @cached_property
    def _digest(self) -> str:
        with _open() as file:
            key = bytes.fromhex(file.records[0]["key"])
        return rows_digest(self._dataset.features, key).hex()


def _open() -> LineFile:
    path = known_ledgers_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot keep {_WHAT} there: {error.strerror}.",
            advice="Set XDG_STATE_HOME to a directory that this user can write to, and that outlives the "
            "session.",
        ) from None
    file = LineFile.open(path, what=_WHAT, patience=_PATIENCE)
    try:
        if not file.records:
            header = {"format": FORMAT, "version": VERSION, "key": os.urandom(_KEY_BYTES).hex()}
            file.begin(header)
            file.records.append(header)
        header = dict(file.records[0])
        if (header.get("format"), header.get("version")) != (FORMAT, VERSION) or not _is_key(
            header.get("key")
        ):
            raise malformed(path, 1, f"it is no list of known ledgers of format {VERSION}")
    except BaseException:
        file.close()
        raise
    return file


def _is_key(text: object) -> bool:
    try:
        return isinstance(text, str) and len(bytes.fromhex(text)) == _KEY_BYTES
    except ValueError:
        return False
