"""Which rows are charged to which ledger: a list for each user of a machine, which reveals copies of data.

A ledger belongs to a file of data by its name. The same rows under another name, in another format or in
another order would have a ledger of their own, and with it a whole budget. So would rows whose ledger was
removed, emptied, or replaced by an older one. So each charge of a ledger is noted here: a keyed digest of the
rows; the ledger's path, the number of its lines and a digest of them; and whether it has a budget. A ledger
that begins with the noted lines is the noted one, wherever it lies. The file is `hushbid/ledgers` in the
user's state directory (`$XDG_STATE_HOME`, or `~/.local/state`), mode 0600. Ledgers may be shown to others, so
neither they nor logs have the digest of the rows. The list lets its reader check a guess of all rows at once,
or of all lines of a ledger, and nothing less.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from hushbid.protocol.closing import Closing
from hushbid.protocol.data import Dataset, rows_digest
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.line_file import LineFile, malformed, newer, whole_lines

__all__ = ["HeldList", "KnownLedger", "KnownRows", "known_ledgers_path"]

FORMAT: Final = "hushbid-known-ledgers"
VERSION: Final = 1
_WHAT: Final = "the list of known ledgers"
_PATIENCE: Final = 10.0
"""Seconds to wait for the file: all parties of a machine use it, for a moment each."""
_KEY_BYTES: Final = 32
_Noted: TypeAlias = tuple[int, str, bool]
"""Of a ledger: the number of its lines, their digest, and whether it has a budget."""


def known_ledgers_path() -> Path:
    """The path of the list.

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


@dataclass(frozen=True)
class KnownLedger:
    """A ledger as it was when rows were last charged to it.

    Attributes:
        lines: Number of its lines.
        digest: SHA-256 of them.
    """

    path: Path
    lines: int
    digest: str
    capped: bool

    @classmethod
    def of(cls, path: Path, lines: Sequence[bytes], *, capped: bool) -> Self:
        return cls(path.resolve(), len(lines), _digest_of(lines), capped)

    @classmethod
    def noted(cls, path: str, noted: _Noted) -> Self:
        """As the list has it."""
        return cls(Path(path), *noted)

    def goes_on_in(self, lines: Sequence[bytes]) -> bool:
        """Whether a ledger with these lines is this one, complete, and perhaps longer by now."""
        return self.lines <= len(lines) and _digest_of(lines[: self.lines]) == self.digest

    def goes_on_at(self, path: Path) -> bool:
        """The same of the file at a place: True if it cannot be read, False if it is missing."""
        try:
            return self.goes_on_in(whole_lines(path.read_bytes())[0])
        except FileNotFoundError:
            return False
        except OSError:
            return True


class KnownRows:
    """The rows of a dataset, by which `hold` finds the ledger that they were last charged to.

    Args:
        dataset: Its labels and identifiers do not count.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def prepare(self) -> None:
        """Compute the digest before a ledger is held, as it may take longer than others wait for one.

        Raises:
            HushbidError: As `hold`.
        """
        _ = self._digest

    def hold(self) -> HeldList:
        """The list, held for these rows until it is closed: no other process charges any rows meanwhile.

        Raises:
            ConfigError: The list cannot be used.
            DataError: It is damaged.
            HushbidError: The disk is full or fails.
        """
        digest = self._digest  # before the list is held, as it is read for its key
        file = _open()
        try:
            return HeldList(file, digest)
        except BaseException:
            file.close()
            raise

    @cached_property
    def _digest(self) -> str:
        with _open() as file:
            key = bytes.fromhex(file.records[0]["key"])
        return rows_digest(self._dataset.features, key).hex()


class HeldList(Closing):
    """The list of known ledgers while this process holds it. `KnownRows.hold` makes it.

    Attributes:
        known: The ledger that the rows were last charged to, as it was then, if known.
    """

    def __init__(self, file: LineFile, rows: str) -> None:
        self._file = file
        self._rows = rows
        # As the list has them: it may be long, and two of it are looked at.
        self._last: dict[str, _Noted] = {}
        known: tuple[str, _Noted] | None = None
        for number, record in enumerate(file.records[1:], start=2):
            listed, ledger, noted = _listed(file.path, number, record)
            self._last[ledger] = noted
            if listed == rows:
                known = ledger, noted
        self.known = None if known is None else KnownLedger.noted(*known)

    def at(self, path: Path) -> KnownLedger | None:
        """The ledger at a place, as it was when any rows were last charged to it, if known."""
        ledger = str(path.resolve())
        noted = self._last.get(ledger)
        return None if noted is None else KnownLedger.noted(ledger, noted)

    def moved_from(self, path: Path) -> bool:
        """Whether the ledger that was last at a place continues in another known ledger."""
        last, here = self.at(path), str(path.resolve())
        return last is not None and any(last.goes_on_at(Path(other)) for other in self._last if other != here)

    def note(self, ledger: KnownLedger) -> None:
        """Note durably that the rows are charged to a ledger, and its present state.

        Raises:
            HushbidError: The disk is full or fails.
        """
        if self.known != ledger:
            self._file.append(
                {
                    "rows": self._rows,
                    "ledger": str(ledger.path),
                    "lines": ledger.lines,
                    "digest": ledger.digest,
                    "capped": ledger.capped,
                }
            )
            self._last[str(ledger.path)] = ledger.lines, ledger.digest, ledger.capped
            self.known = ledger

    def close(self) -> None:
        self._file.close()


def _listed(path: Path, number: int, record: Mapping[str, Any]) -> tuple[str, str, _Noted]:
    rows, ledger = record.get("rows"), record.get("ledger")
    lines, digest, capped = record.get("lines"), record.get("digest"), record.get("capped")
    if not (isinstance(rows, str) and isinstance(ledger, str)):
        raise malformed(path, number, "it names no rows or no ledger")
    if not (type(lines) is int and lines > 0 and isinstance(digest, str) and isinstance(capped, bool)):
        raise malformed(path, number, "it does not say what the ledger had")
    return rows, ledger, (lines, digest, capped)


def _digest_of(lines: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()


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
    file = LineFile.open(path, what=_WHAT, format_name=FORMAT, patience=_PATIENCE)
    try:
        if not file.records:
            header = {"format": FORMAT, "version": VERSION, "key": os.urandom(_KEY_BYTES).hex()}
            file.begin(header)
            file.records.append(header)
        header = dict(file.records[0])
        if header.get("format") == FORMAT and (later := newer(path, header.get("version"), VERSION, _WHAT)):
            raise later
        if (header.get("format"), header.get("version")) != (FORMAT, VERSION) or not _is_key(
            header.get("key")
        ):
            raise malformed(path, 1, f"it is not a list of known ledgers of format {VERSION}")
    except BaseException:
        file.close()
        raise
    return file


def _is_key(text: object) -> bool:
    try:
        return isinstance(text, str) and len(bytes.fromhex(text)) == _KEY_BYTES
    except ValueError:
        return False
