"""The privacy spent on one dataset in all its sessions and catalogue entries together.

A party keeps one private file for each dataset, of one JSON object a line::

    {"format": "hushbid-lifetime-ledger", "version": 2, "neighbours": "add-remove-one",
     "budget": {"epsilon": 3.0, "delta": 1e-05}}
    {"kind": "session", "identifier": "…", "date": "2026-03-01", "neighbours": "add-remove-one",
     "epsilon": 1.0, "delta": 1e-05, "costs": […], "transcript": "…"}
    {"kind": "budget", "budget": {"epsilon": 2.0, "delta": 1e-05}, "neighbours": "add-remove-one",
     "lifted": false}

Lines are only ever appended, and the last budget holds. A budget is lowered freely; raising or lifting it
takes an explicit word, which stays on record. A spending is durable before `charge` returns, and so before
anything that it pays for leaves. Format 1 is read too: its lines name no neighbours, and have the first
line's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushbid.protocol.closing import Closing
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.files.line_file import LineFile, malformed, newer, parse_line, whole_lines
from hushbid.protocol.runtime.ledger.cap import Cap, cap_from_record, cap_to_record, next_cap
from hushbid.protocol.runtime.ledger.known_ledgers import HeldList, KnownLedger, KnownRows
from hushbid.protocol.runtime.ledger.spending import Spending, checked_neighbours, epsilon_of_spendings
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log

__all__ = ["LedgerOnRecord", "LifetimeLedger", "may_be_ledger", "read_ledger"]

FORMAT: Final = "hushbid-lifetime-ledger"
VERSION: Final = 2
READ_VERSIONS: Final = (1, VERSION)
_WHAT: Final = "the dataset's lifetime ledger"


@dataclass(frozen=True)
class LedgerOnRecord:
    """The content of a ledger file.

    Attributes:
        cap: The most that may be spent in all; None: no limit.
        neighbours: The datasets that `spent` compares.
        spendings: In the order of their charging.
    """

    cap: Cap | None
    neighbours: str
    spendings: tuple[Spending, ...]

    def spent(self, delta: float) -> float:
        return epsilon_of_spendings(self.spendings, delta, self.neighbours)


def may_be_ledger(path: Path) -> bool:
    """Whether a file is a ledger, by its name or its beginning; True if it is empty or unreadable."""
    if path.suffix == ".ledger":
        return True
    try:
        with path.open("rb") as file:
            begins = file.read(2 * len(FORMAT))
    except OSError:
        return True
    return not begins or FORMAT.encode() in begins


def read_ledger(path: Path) -> LedgerOnRecord:
    """Read a ledger without holding or changing it: a party may use it meanwhile.

    Args:
        path: The file; an empty one has nothing on record.

    Raises:
        ConfigError: It cannot be read.
        DataError: A line is malformed; it names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot read {_WHAT}: {error.strerror}.",
            advice="Name the ledger, or the data that it lies beside.",
        ) from None
    lines, _ = whole_lines(content)  # a last line that is not finished has paid for nothing
    records = [parse_line(path, number, line) for number, line in enumerate(lines, start=1)]
    if not records:
        return LedgerOnRecord(None, Neighbours.SUBSTITUTE_ONE.value, ())
    relation, cap, spendings = _on_record(path, records)
    return LedgerOnRecord(cap, _compared(cap, spendings, relation), tuple(spendings))


class LifetimeLedger(Closing):
    """A ledger file that this process holds. Make one with `LifetimeLedger.open`, and close it.

    Attributes:
        cap: The most that may be spent in all; None: no limit, which is recorded.
        cut: Bytes of an incomplete last line, found at opening. Nothing that they would have paid for was
            ever released.
        elsewhere: Another ledger that the same rows were charged to, if known.
    """

    def __init__(self, file: LineFile, *, neighbours: str, rows: KnownRows | None) -> None:
        self.path = file.path
        self.cap: Cap | None = None
        self.cut = file.cut
        self.elsewhere: Path | None = None
        self._file = file
        self._neighbours = neighbours
        self._rows = rows
        self._rows_unknown = ""
        self._lift = False
        self._lifting = False
        self._spendings: list[Spending] = []

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        budget: BudgetSection | None,
        neighbours: str,
        rows: KnownRows | None,
        record: bool = True,
    ) -> LifetimeLedger:
        """Open or begin a dataset's ledger, and hold it until it is closed.

        Args:
            path: The file; its directory exists.
            budget: The party's. A change is recorded and holds from now on; None leaves the recorded one in
                force.
            neighbours: The datasets that a first budget compares, unless `budget` names some.
            rows: The dataset's; None: unknown, and nothing is to be charged.
            record: Whether to record findings and the party's budget; False: nothing is written, and no file
                is made, for mere inquiries.

        Raises:
            ConfigError: It cannot be opened, others may use it, or another process holds it; the recorded
                budget would be raised without the word; or the rows are charged to another ledger, or this
                one has lost lines since, so that a budget would be allowed twice.
            DataError: A line is malformed; it names the line.
            HushbidError: The disk is full or fails.
        """
        relation = _required(path, neighbours)
        if rows is not None:
            with suppress(ConfigError, DataError):  # `_check_rows` decides what follows from it
                rows.prepare()
        if not path.exists():
            # Refusals come before the file is made: an empty file would look like a ledger.
            absent = cls(LineFile.absent(path, what=_WHAT), neighbours=relation, rows=rows)
            absent._begin(budget, record=False)
            if not record:
                return absent
        ledger = cls(LineFile.open(path, what=_WHAT, format_name=FORMAT), neighbours=relation, rows=rows)
        try:
            ledger._begin(budget, record=record)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @property
    def spendings(self) -> tuple[Spending, ...]:
        return tuple(self._spendings)

    @property
    def neighbours(self) -> str:
        """The datasets that a total compares (`_compared`)."""
        return _compared(self.cap, self._spendings, self._neighbours)

    def spent(self, delta: float) -> float:
        """ε of all spendings together at δ, for `neighbours`: the budget that they need.

        Returns:
            ε; infinite if none can be stated.

        Raises:
            ConfigError: `delta` outside of (0, 1).
        """
        return epsilon_of_spendings(self._spendings, delta, self.neighbours)

    def check(self, spending: Spending) -> bool:
        """Refuse what `charge` would refuse, without recording anything.

        Returns:
            False if it is on record already, at the same cost.

        Raises:
            BudgetExceeded, ConfigError: As `charge`.
        """
        for earlier in self._spendings:
            if (earlier.kind, earlier.identifier) == (spending.kind, spending.identifier):
                self._check_same(earlier, spending)
                return False
        if self.cap is not None:
            self._check_cap(self.cap, spending)
        return True

    def charge(self, spending: Spending) -> bool:
        """Record a spending durably, if all spendings together stay within the budget.

        Returns:
            False if it is on record already, at the same cost: a restarted session has paid.

        Raises:
            BudgetExceeded: It exceeds the remaining budget; nothing was recorded.
            ConfigError: The same spending is on record at another cost; or the rows are charged to another
                ledger by now, and there is a budget.
            HushbidError: The disk is full or fails: it is not recorded, and must not take place.
        """
        with self._held_list() as listed:
            if listed is not None:
                # Again, as another process may have charged them elsewhere since this ledger was opened.
                self._check_rows(listed)
            fresh = self.check(spending)
            if fresh:
                if self._lifting:
                    self._append_cap(lifted=True)
                self._file.append(spending.as_record())
                self._spendings.append(spending)
            if listed is not None:
                self._note_rows(listed)
        return fresh

    def warn(self) -> None:
        """Log findings at opening that were no obstacle."""
        path = str(self.path)
        if self.cut:
            log(LogEvent.LEDGER_CUT, path=path, bytes=self.cut)
        if self.elsewhere is not None:
            log(LogEvent.LEDGER_ELSEWHERE, path=path, other=str(self.elsewhere))
        if self._rows_unknown:
            log(LogEvent.LEDGERS_UNKNOWN, path=path, reason=self._rows_unknown)

    def close(self) -> None:
        self._file.close()

    def _begin(self, wish: BudgetSection | None, *, record: bool) -> None:
        """Take in the records and the party's budget."""
        records, self._lift = self._file.records, wish is not None and wish.lift
        held: Cap | None = None
        if records:
            self._neighbours, held, self._spendings = _on_record(self.path, records)
        self.cap = next_cap(self.path, held, wish, neighbours=self._neighbours)
        with self._held_list() as listed:
            if listed is not None:
                self._check_rows(listed)
            if not record:
                return
            if not records:
                header = {"format": FORMAT, "version": VERSION, "neighbours": self._compared_by_cap}
                self._file.begin(header | {"budget": cap_to_record(self.cap)})
            elif self.cap != held:
                lowered = self.cap is not None and held is not None and self.cap.allows_no_more_than(held)
                self._append_cap(lifted=held is not None and not lowered)
            if listed is not None and self._is_to_be_noted(listed):
                self._note_rows(listed)

    def _is_to_be_noted(self, listed: HeldList) -> bool:
        """Whether the list is behind: about the ledger of these rows, or a ledger older than the list."""
        # A budget binds copies of the rows from when it is on record, whether anything is spent or not.
        if not (self._spendings or self.cap) or self._lifting or self.elsewhere is not None:
            return False
        # Another ledger is noted by a charge alone: it may have been named by mistake.
        return listed.known is not None or listed.at(self.path) is None or not self._spendings

    def _append_cap(self, *, lifted: bool) -> None:
        self._file.append(
            {
                "kind": "budget",
                "budget": cap_to_record(self.cap),
                "neighbours": self._compared_by_cap,
                "lifted": lifted,
            }
        )

    @property
    def _compared_by_cap(self) -> str:
        return self._neighbours if self.cap is None else self.cap.neighbours

    @contextmanager
    def _held_list(self) -> Iterator[HeldList | None]:
        """The held list of known ledgers; None if it is unavailable and no budget needs it."""
        held: HeldList | None = None
        if self._rows is not None and not self._rows_unknown:
            try:
                held = self._rows.hold()
            except (ConfigError, DataError) as error:
                if self.cap is not None:
                    raise
                self._rows_unknown = error.what
        with held or nullcontext():
            yield held

    def _check_rows(self, listed: HeldList) -> None:
        """Refuse a second ledger of the same rows, or one that lost lines: a budget would count twice."""
        self.elsewhere, self._lifting = None, False
        lines = self._file.lines
        # Whatever rows were charged to the ledger of this name: it is to have its lines still.
        here = listed.at(self.path)
        lost = here is not None and not here.goes_on_in(lines) and not listed.moved_from(self.path)
        known = listed.known or here
        if known is None or (listed.known is None and not lost):
            return
        there, same = _is_there(known.path), _are_one(known.path, self.path)
        whole = known.goes_on_in(lines)
        if not same and there and whole:
            there = known.goes_on_at(known.path)  # else another ledger has taken its place
        elif not same and whole:
            last = listed.at(known.path)  # other rows may have been charged to it since
            whole = last is not None and last.goes_on_in(lines)
        if whole and not lost and (same or not there):
            return  # this one; or moved with its data
        capped = known.capped or (lost and here is not None and here.capped)
        if self._lift:
            self._lifting = True
        elif self.cap is not None or capped or (there and not same and _is_capped(known.path)):
            if here is not None and lost and (whole or listed.known is None):
                raise self._has_lost(here)
            raise self._elsewhere(known, there=there, same=same)
        self.elsewhere = known.path

    def _note_rows(self, listed: HeldList) -> None:
        listed.note(KnownLedger.of(self.path, self._file.lines, capped=self.cap is not None))

    def _elsewhere(self, known: KnownLedger, *, there: bool, same: bool) -> ConfigError:
        if same and self._spendings:
            return self._has_lost(known)
        found = "which is not there any more, or empty" if same or not there else "which is another file"
        # A ledger of one line has a budget, and nothing is spent in it.
        have = "were charged to" if known.lines > 1 else "have a budget in"
        return ConfigError(
            f"{self.path}: the rows of these data {have} {known.path}, {found}. Their budget would "
            "be allowed twice.",
            advice="Restore that ledger, or name it: `ledger` in the party's file or in its section of a "
            "cluster file; a party's own verb takes `--ledger` too. If a new one is meant, say so: "
            "`lift = true` in [budget], or `--lift-budget`.",
        )

    def _has_lost(self, known: KnownLedger) -> ConfigError:
        return ConfigError(
            f"{self.path}: this ledger does not begin with the {known.lines} lines that it had when it "
            "was last charged. Budget that is already spent would be allowed again.",
            advice="Restore the ledger as it was then. If what it had is to be forgotten, say so: "
            "`lift = true` in [budget], or `--lift-budget`.",
        )

    def _check_same(self, earlier: Spending, again: Spending) -> None:
        if (earlier.charged, earlier.delta, earlier.neighbours) != (
            again.charged,
            again.delta,
            again.neighbours,
        ):
            raise ConfigError(
                f"{self.path}: the {again.kind} {again.identifier!r} was charged on {earlier.date} at "
                "another cost than now.",
                advice="Its parameters were changed since. Give what has changed a name of its own.",
            )

    def _check_cap(self, cap: Cap, spending: Spending) -> None:
        delta = cap.budget.delta
        before = self.spent(delta)
        total = epsilon_of_spendings([*self._spendings, spending], delta, cap.neighbours)
        if total <= cap.budget.epsilon:
            return
        asked = f"{self.path}: the {spending.kind} {spending.identifier!r}"
        stated = f"at δ = {delta:.4g} ({cap.neighbours})"
        advice = "Nothing was charged. Choose a smaller ε, raise the dataset's budget, or stay out."
        every = (*self._spendings, spending)
        if any(each.charged is not None and each.charged_by(cap.neighbours) is None for each in every):
            other = Neighbours.SUBSTITUTE_ONE.value
            advice = (
                f"Nothing was charged. A release that is private only by {other} has no ε by "
                f"{cap.neighbours}; the other way it has one. Have the budget compare the former: in "
                f'[budget], neighbours = "{other}" and lift = true.'
            )
        if math.isfinite(before) and before > cap.budget.epsilon:
            raise BudgetExceeded(
                f"{asked} cannot be paid for: the dataset's budget is {_text(cap.budget.epsilon)} {stated}, "
                f"and {_text(before)} is spent already.",
                advice="This dataset takes part in nothing more, unless its budget is raised: by "
                "`--budget-epsilon` and `--lift-budget`, or in the party's file.",
            )
        raise BudgetExceeded(
            f"{asked} would bring what was spent of the dataset to {_text(total)} {stated}, over its budget "
            f"of {_text(cap.budget.epsilon)}; {_text(before)} was spent before.",
            advice=advice,
        )


def _on_record(path: Path, records: Sequence[Mapping[str, Any]]) -> tuple[str, Cap | None, list[Spending]]:
    """The relation of the first line, the budget in force, and all spendings.

    Raises:
        DataError: A line is malformed; it names the line.
    """
    header = records[0]
    if header.get("format") == FORMAT and (later := newer(path, header.get("version"), VERSION, _WHAT)):
        raise later
    if header.get("format") != FORMAT or header.get("version") not in READ_VERSIONS:
        raise DataError(
            f"{path}, line 1: not a lifetime ledger of format {' or '.join(map(str, READ_VERSIONS))}, which "
            "this version reads.",
            advice="Name the dataset's own ledger file.",
        )
    cap: Cap | None = None
    relation = ""
    spendings: list[Spending] = []
    for number, record in enumerate(records, start=1):
        try:
            if number == 1:
                relation = checked_neighbours(record["neighbours"])
            if number == 1 or record.get("kind") == "budget":
                cap = cap_from_record(record, neighbours=relation)
            else:
                spendings.append(Spending.from_record(record, neighbours=relation))
        except (
            ConfigError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
        ) as error:
            raise malformed(path, number, str(error).removesuffix(".")) from None
    return relation, cap, spendings


def _compared(cap: Cap | None, spendings: Sequence[Spending], neighbours: str) -> str:
    """The datasets that a total compares: the budget's; without one, what every spending has an ε for."""
    if cap is not None:
        return cap.neighbours
    stated = {spending.neighbours for spending in spendings} or {neighbours}
    return Neighbours.SUBSTITUTE_ONE.value if len(stated) > 1 else stated.pop()


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True


def _are_one(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_capped(path: Path) -> bool:
    """Whether another ledger has a budget; True if it cannot be read."""
    try:
        lines, _ = whole_lines(path.read_bytes())
        records = [parse_line(path, number, line) for number, line in enumerate(lines, start=1)]
        return bool(records) and _on_record(path, records)[1] is not None
    except (OSError, DataError):
        return True


def _required(path: Path, neighbours: str) -> str:
    if not neighbours:
        raise ConfigError(
            f"{path}: no neighbour relation was named for the dataset's lifetime ledger.",
            advice='Say what its budget compares, such as neighbours = "add-remove-one".',
        )
    return checked_neighbours(neighbours)


def _text(epsilon: float) -> str:
    return f"ε = {epsilon:.6g}" if math.isfinite(epsilon) else "no ε that could be stated"
