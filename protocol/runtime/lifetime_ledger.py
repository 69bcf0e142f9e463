"""What was spent of one dataset's privacy in all its sessions and catalogue entries together.

A party keeps one file for each dataset, readable by itself alone, of one JSON object a line::

    {"format": "hushbid-lifetime-ledger", "version": 1, "neighbours": "add-remove-one",
     "budget": {"epsilon": 3.0, "delta": 1e-05}}
    {"kind": "session", "identifier": "…", "date": "2026-03-01", "epsilon": 1.0, "delta": 1e-05, "costs": […]}
    {"kind": "budget", "budget": {"epsilon": 2.0, "delta": 1e-05}}

Lines are only ever appended; the budget that holds is the last. A spending is durable before `charge`
returns, and so before anything that it pays for leaves. A file belongs to one process at a time.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from protocol.accounting import Budget
from protocol.errors import BudgetExceeded, ConfigError, DataError, HushbidError
from protocol.runtime.spending import Spending, epsilon_of_spendings

__all__ = ["LifetimeLedger"]

FORMAT: Final = "hushbid-lifetime-ledger"
VERSION: Final = 1
LOCK_SECONDS: Final = 1.0
"""How long to wait for another process that holds the file."""
_MODE: Final = 0o600


class LifetimeLedger:
    """A ledger file that this process holds. Make one with `LifetimeLedger.open`, and close it.

    Attributes:
        path: The file.
        neighbours: The datasets that every spending compares.
        budget: The most that may be spent in all; None: anything, which is recorded.
        cut: Bytes of a last line that a crash had left unfinished, and that were cut off when the file was
            opened. Nothing that they were to pay for was ever released.
    """

    def __init__(self, path: Path, descriptor: int, *, neighbours: str, budget: Budget | None) -> None:
        self.path = path
        self.neighbours = neighbours
        self.budget = budget
        self.cut = 0
        self._descriptor = descriptor
        self._size = 0
        self._spendings: list[Spending] = []
        self._closed = False

    @classmethod
    def open(
        cls, path: Path, *, budget: Budget | None, neighbours: str, keep_budget: bool = False
    ) -> LifetimeLedger:
        """Open a dataset's ledger, or begin it, and hold it until it is closed.

        Args:
            path: The file; its directory exists.
            budget: The most that may be spent in all. A change is recorded, and holds from now on.
            neighbours: The datasets that every spending compares; a ledger has one relation for its life.
            keep_budget: Whether a budget that is on record holds where `budget` is None.

        Raises:
            ConfigError: It cannot be opened, others may use it, another process holds it, or it is kept for
                another neighbour relation.
            DataError: A line is malformed; it names the line.
            HushbidError: The disk is full or fails.
        """
        if not neighbours:
            raise ConfigError(
                f"{path}: no neighbour relation was named for the dataset's lifetime ledger.",
                advice='Say what its budget compares, such as neighbours = "add-remove-one".',
            )
        descriptor = _open_alone(path)
        ledger = cls(path, descriptor, neighbours=neighbours, budget=budget)
        try:
            ledger._read(keep_budget=keep_budget)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """Every spending on record, in order."""
        return tuple(self._spendings)

    def spent(self, delta: float) -> float:
        """ε of all spendings together at δ; infinite where it cannot be stated, or nothing is guaranteed.

        Raises:
            ConfigError: `delta` outside of (0, 1).
        """
        return epsilon_of_spendings(self._spendings, delta)

    def check(self, spending: Spending) -> bool:
        """Refuse what `charge` would refuse; nothing is recorded.

        Returns:
            False if it is on record already, at the same cost.

        Raises:
            BudgetExceeded, ConfigError: As `charge`.
        """
        for earlier in self._spendings:
            if (earlier.kind, earlier.identifier) == (spending.kind, spending.identifier):
                self._check_same(earlier, spending)
                return False
        if self.budget is not None:
            self._check_budget(self.budget, spending)
        return True

    def charge(self, spending: Spending) -> bool:
        """Record a spending durably, if all spendings together stay within the budget.

        Returns:
            False if it is on record already, at the same cost: a session that starts again has paid.

        Raises:
            BudgetExceeded: It does not fit into what is left; nothing was recorded.
            ConfigError: The same thing is on record at another cost.
            HushbidError: The disk is full or fails: it is not recorded, and must not take place.
        """
        if not self.check(spending):
            return False
        self._append(spending.as_record())
        self._spendings.append(spending)
        return True

    def close(self) -> None:
        """Give the file back. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_same(self, earlier: Spending, again: Spending) -> None:
        if earlier.charged != again.charged or earlier.delta != again.delta:
            raise ConfigError(
                f"{self.path}: the {again.kind} {again.identifier!r} was charged on {earlier.date} at "
                "another cost than now.",
                advice="Its parameters were changed since. Give what has changed a name of its own.",
            )

    def _check_budget(self, budget: Budget, spending: Spending) -> None:
        before = self.spent(budget.delta)
        total = epsilon_of_spendings([*self._spendings, spending], budget.delta)
        if total <= budget.epsilon:
            return
        asked = f"{self.path}: the {spending.kind} {spending.identifier!r}"
        stated = f"at δ = {budget.delta:.4g} ({self.neighbours})"
        if before > budget.epsilon:
            raise BudgetExceeded(
                f"{asked} cannot be paid for: the dataset's budget is {_text(budget.epsilon)} {stated}, and "
                f"{_text(before)} was spent before it was set to that.",
                advice="This dataset takes part in nothing more, unless its budget is raised: by "
                "`--budget-epsilon`, or in the party's file.",
            )
        raise BudgetExceeded(
            f"{asked} would bring what was spent of the dataset to {_text(total)} {stated}, over its budget "
            f"of {_text(budget.epsilon)}; {_text(before)} was spent before.",
            advice="Nothing was charged. Choose a smaller ε, raise the dataset's budget, or stay out.",
        )

    def _read(self, *, keep_budget: bool) -> None:
        content = _read_all(self._descriptor)
        whole = content.rfind(b"\n") + 1
        self._size = len(content)
        if _is_record(content[whole:]):
            # Whole but for its end: it may have been relied on, so that it counts.
            self._end_line()
            content += b"\n"
            whole = len(content)
        self.cut = len(content) - whole
        self._size = whole
        if self.cut:
            self._truncate()
        lines = content[:whole].splitlines()
        if not lines:
            self._append(_header(self.neighbours, self.budget))
            _sync_directory(self.path.parent)
            return
        held = self._read_header(_parse(self.path, 1, lines[0]))
        for number, line in enumerate(lines[1:], start=2):
            record = _parse(self.path, number, line)
            try:
                if record.get("kind") == "budget":
                    held = _budget_from_record(record["budget"])
                else:
                    self._spendings.append(Spending.from_record(record))
            except (ConfigError, KeyError, TypeError, ValueError, AttributeError) as error:
                raise _malformed(self.path, number, str(error)) from None
        if keep_budget and self.budget is None:
            self.budget = held
        if held != self.budget:
            self._append({"kind": "budget", "budget": _budget_to_record(self.budget)})

    def _read_header(self, header: Mapping[str, Any]) -> Budget | None:
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise DataError(
                f"{self.path}, line 1: not a lifetime ledger of format {VERSION}, the only one that this "
                "version reads.",
                advice="Name the dataset's own ledger file.",
            )
        if header.get("neighbours") != self.neighbours:
            raise ConfigError(
                f"{self.path}: the ledger is kept for the neighbour relation {header.get('neighbours')!r}, "
                f"and {self.neighbours!r} was asked for.",
                advice="What both relations spend cannot be added up. Keep to the ledger's, or keep another "
                "ledger for the other one, named by `--ledger`.",
            )
        try:
            return _budget_from_record(header["budget"])
        except (ConfigError, KeyError, TypeError, AttributeError) as error:
            raise _malformed(self.path, 1, str(error)) from None

    def _append(self, record: Mapping[str, Any]) -> None:
        """Append one line wholly and durably, or leave the file as it was."""
        data = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, memoryview(data)[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            # After a failed fsync too: only writing again, not another fsync, could make it durable.
            with suppress(OSError):
                self._truncate()
            raise HushbidError(
                f"{self.path}: cannot write the dataset's lifetime ledger: {error.strerror}.",
                advice="Nothing that it was to pay for has left. Make room on the disk, then start again.",
            ) from error
        self._size += len(data)

    def _end_line(self) -> None:
        try:
            os.write(self._descriptor, b"\n")
            os.fsync(self._descriptor)
        except OSError as error:
            raise HushbidError(
                f"{self.path}: cannot write the dataset's lifetime ledger: {error.strerror}.",
                advice="Make room on the disk, then start again.",
            ) from error

    def _truncate(self) -> None:
        os.ftruncate(self._descriptor, self._size)
        os.fsync(self._descriptor)


def _open_alone(path: Path) -> int:
    """A descriptor of the file, made if it was not there, that no other process has locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, _MODE)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot open the dataset's lifetime ledger: {error.strerror}.",
            advice="Name a file in a directory that exists and that this user can write to.",
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(
                f"{path}: the lifetime ledger is not a plain file.", advice="Name the file itself."
            )
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(
                f"{path}: the lifetime ledger can be used by others than its owner "
                f"(mode {stat.S_IMODE(status.st_mode):04o}).",
                advice=f"See that nothing in it was changed, then run `chmod 600 {path}`.",
            )
        _lock(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lock(path: Path, descriptor: int) -> None:
    """Lock the file, after `LOCK_SECONDS` at most: a process that charges is done in a moment."""
    give_up = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise ConfigError(
                    f"{path}: another process holds the dataset's lifetime ledger.",
                    advice="Wait until it has ended: two sessions of a dataset cannot be charged at once.",
                ) from None
            time.sleep(LOCK_SECONDS / 50.0)
        else:
            return


def _read_all(descriptor: int) -> bytes:
    parts = []
    os.lseek(descriptor, 0, os.SEEK_SET)
    while part := os.read(descriptor, 2**20):
        parts.append(part)
    return b"".join(parts)


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise _malformed(path, number, "it is not JSON") from None
    if not isinstance(record, dict):
        raise _malformed(path, number, "it is not a JSON object")
    return record


def _header(neighbours: str, budget: Budget | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "neighbours": str(neighbours),
        "budget": _budget_to_record(budget),
    }


def _budget_to_record(budget: Budget | None) -> dict[str, float] | None:
    return None if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta}


def _budget_from_record(record: Mapping[str, float] | None) -> Budget | None:
    return None if record is None else Budget(**record)


def _text(epsilon: float) -> str:
    return f"ε = {epsilon:.6g}" if math.isfinite(epsilon) else "no ε that could be stated"


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _malformed(path: Path, number: int, why: str) -> DataError:
    return DataError(
        f"{path}, line {number}: malformed: {why}.",
        advice="Restore the ledger from a copy. A ledger with a line left out would promise what is not so.",
    )
