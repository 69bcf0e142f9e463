"""`hushbid status --watch`, formerly `hushbid watch`: a live view of a session from its status files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hushbid.cli.health import (
    PortOption,
    StateOption,
    StatesArgument,
    WebOption,
    check_port,
    named_places,
)
from hushbid.cli.health_check import MAX_AGE_SECONDS, statuses_in, trouble
from hushbid.cli.progress import bought, left, rate, waiting
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.command import json_line, verb
from hushbid.protocol.runtime.standard_streams import is_unread
from hushbid.protocol.runtime.telemetry.status_file import Status, status_files

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "TITLES",
    "Look",
    "WatchedParty",
    "Watcher",
    "cells",
    "look_once",
    "shown",
    "view",
    "watch_command",
    "watched",
]

WATCH_SECONDS: Final = 1.0
"""Time between two looks."""
WIDE: Final = 110
"""Terminal width from which on every figure has a column of its own."""


@verb()
def watch_command(
    context: typer.Context,
    states: StatesArgument = None,
    state: StateOption = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; all parties must have started.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per look on stdout, each on a line.")
    ] = False,
    web: WebOption = False,
    port: PortOption = None,
) -> dict[str, Any]:
    """Watch a session until it is over: how far it is, how fast, and who is missing."""
    check_port(port, web=web)
    if once and web:
        raise ConfigError("--web goes on, and --once looks once.", advice="Give one of them.")
    if web:
        from hushbid.cli.web import served

        return served(named_places(context, states, state), port=port, as_json=as_json)
    looks = look_once if once else watched
    return looks(named_places(context, states, state), as_json=as_json)


def look_once(places: Sequence[Path], *, as_json: bool) -> dict[str, Any]:
    """Show what parties are doing now; all must have started."""
    from hushbid.cli.terminal import Terminal

    statuses = statuses_in(places)
    now = time.time()
    found = Look(tuple(WatchedParty(status, now) for status in statuses), ())
    if not as_json:
        console = Terminal()
        console.print(view(found, console.width))
    return found.as_json()


def watched(places: Sequence[Path], *, as_json: bool) -> dict[str, Any]:
    """Show what parties are doing, until their session is over; they need not have started yet."""
    from hushbid.cli.terminal import Terminal

    watcher = Watcher(places)
    with nullcontext(_print_unless_over) if as_json else shown(Terminal()) as show:
        while True:
            look = watcher.look(time.time())
            show(look)
            if look.over or is_unread():
                return look.as_json()
            time.sleep(WATCH_SECONDS)


def _print_unless_over(look: Look) -> None:
    """Print a look as a line of JSON, except the last one, which is the verb's result."""
    if not look.over:
        sys.stdout.write(json_line(look.as_json()))
        sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class WatchedParty:
    """One party at one look, in seconds since 1970; `unreadable` says why only an older status is known."""

    status: Status
    at: float
    unreadable: str = ""

    @property
    def trouble(self) -> str | None:
        """The party's problem; None if it is well, or has ended well."""
        return trouble(self.status, self.at, max_age=MAX_AGE_SECONDS, ready=False)

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self.status),
            "age": round(self.at - self.status.beat, 3),
            "trouble": self.trouble,
            "unreadable": self.unreadable or None,
        }


@dataclass(frozen=True, slots=True)
class Look:
    """The parties seen at one look, and the places without a readable status yet, with the reasons."""

    parties: tuple[WatchedParty, ...]
    awaited: tuple[tuple[str, str], ...]

    @property
    def gone(self) -> tuple[WatchedParty, ...]:
        """Parties that will never end: their curator has ended well, and their processes are gone.

        For a party on another machine, whose process cannot be seen, the last turn of its loop decides.
        """
        statuses = [party.status for party in self.parties]
        done = {each.session for each in statuses if each.role == "curator" and each.exit_code == 0}
        return tuple(
            party
            for party in self.parties
            if not party.status.finished
            and party.status.session in done
            and party.at - party.status.beat > MAX_AGE_SECONDS
            and not party.status.is_running
        )

    @property
    def over(self) -> bool:
        """Whether all have ended, not counting those that are gone."""
        gone = self.gone
        return not self.awaited and all(party.status.finished or party in gone for party in self.parties)

    def as_json(self) -> dict[str, Any]:
        return {
            "parties": [party.as_json() for party in self.parties],
            "gone": [party.status.party for party in self.gone],
            "awaited": [{"place": place, "why": why} for place, why in self.awaited],
        }


class Watcher:
    """Looks at directories, and tolerates what is missing or unreadable at the moment.

    Args:
        places: The arguments of `hushbid status`: state directories, parties' directories, or run
            directories.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._places = places
        self._known: dict[Path, Status] = {}

    def look(self, now: float) -> Look:
        parties: list[WatchedParty] = []
        awaited: list[tuple[str, str]] = []
        for place in self._places:
            files = status_files(place)
            for path in files:
                why = self._read(path)
                if path in self._known:
                    parties.append(WatchedParty(self._known[path], now, why))
                else:
                    awaited.append((path.stem, why))
            missing = [each for each in sorted(place.glob("parties/*/")) if not status_files(each)]
            if files and files[0].parent in (place, place / "state"):
                missing = []  # the party's own status, whatever else is there
            awaited += [(each.name, "has not started yet") for each in missing]
            if not files and not missing:
                why = "no party has started with it yet" if place.is_dir() else "is not there yet"
                awaited.append((str(place), why))
        return Look(tuple(parties), tuple(awaited))

    def _read(self, path: Path) -> str:
        try:
            self._known[path] = Status.read(path)
        except HushbidError as error:
            return error.what.removeprefix(f"{path}: ").rstrip(".")
        return ""


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Look], None]]:
    """Shows looks: in place on a terminal; otherwise one below the other, when more than figures change."""
    if not console.is_terminal:
        before: list[Any] = []

        def say(look: Look) -> None:
            now = [*map(_news, look.parties), *look.awaited, len(look.gone)]
            if now != before:
                before[:] = now
                console.print(view(look, console.width))

        yield say
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        yield lambda look: live.update(view(look, console.width), refresh=True)


def view(look: Look, width: int) -> RenderableType:
    """A look as a table. In a narrow terminal a party's figures share a column."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    wide = width >= WIDE
    for name in ("party", "state", *(_FIGURES if wide else ("session",))):
        table.add_column(name)
    rows: list[Sequence[str]] = []
    for party in look.parties:
        figures = [figure(party) for figure in _FIGURES.values()]
        told = figures if wide else [", ".join(each for each in _labelled(figures) if each)]
        rows.append((_name(party.status), _state(party), *told))
    rows += [(place, why) for place, why in look.awaited]
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    if not look.gone:
        return table
    names = printable(", ".join(party.status.party for party in look.gone))
    return Group(table, Text(f"The session is over. Gone without having ended: {names}."))


def _news(party: WatchedParty) -> tuple[object, ...]:
    """Changes that call for a new table when tables stand one below the other."""
    status = party.status
    wrong = bool(party.unreadable or party.trouble)
    state = status.phase, status.paused, status.connected, status.finished, wrong
    return status.party, status.pid, state, _missing(party)


def _name(status: Status) -> str:
    return status.party if status.party == status.role else f"{status.party} ({status.role})"


def _state(party: WatchedParty) -> str:
    status = party.status
    if status.finished:
        return "ended" if status.exit_code == 0 else f"ended with exit code {status.exit_code}"
    wrong = party.unreadable or party.trouble
    state = "paused" if status.paused else status.phase
    done = "" if status.busy_share is None else f", {status.busy_share:.0%}"
    busy = f" ({status.busy}{done})" if status.busy not in (None, state) else ""
    away = ", not connected" if status.connected is False and status.ready else ""
    return f"{state}{busy}{away}{f': {wrong}' if wrong else ''}"


def _round(party: WatchedParty) -> str:
    status = party.status
    return "" if status.role == "consumer" and not status.round else f"{status.round} of {status.rounds}"


def _missing(party: WatchedParty) -> str:
    return "" if party.status.finished else waiting(party.status.progress)


def _faults(party: WatchedParty) -> str:
    counted = []
    for one in ("absence", "fault", "refusal"):
        count = party.status.counters.get(f"{one}s", 0)
        total = count if isinstance(count, int) else sum(count.values())
        if total:
            counted.append(f"{total} {one}{'' if total == 1 else 's'}")
    return ", ".join(counted)


def _spent(party: WatchedParty) -> str:
    own, owners = party.status.spent, party.status.spent_of_owners
    told = [
        f"{whose}{spent['epsilon']:.3g} at δ = {spent['delta']:.1g}"
        for whose, spent in (("", own), ("of the owners' records ", owners))
        if spent is not None
    ]
    return ", ".join(told)


_AGE: Final = "last turn"
_FIGURES: Final[Mapping[str, Callable[[WatchedParty], str]]] = {
    "round": _round,
    "points": lambda party: bought(party.status.progress),
    "rate": lambda party: rate(party.status.points_per_second),
    "time left": lambda party: "" if party.status.finished else left(party.status.seconds_left),
    "missing": _missing,
    "faults": _faults,
    "ε spent": _spent,
    _AGE: lambda party: f"{party.at - party.status.beat:.1f} s ago",
}


TITLES: Final = ("party", "state", *(name for name in _FIGURES if name != _AGE))
"""The headings of `cells`."""


def cells(party: WatchedParty) -> list[str]:
    """A party's row without the age of its loop's last turn, which changes at every look."""
    figures = [figure(party) for name, figure in _FIGURES.items() if name != _AGE]
    return [printable(cell) for cell in (_name(party.status), _state(party), *figures)]


def _labelled(figures: Sequence[str]) -> Iterator[str]:
    """Figures labelled with their meaning, for a column whose heading does not give it."""
    forms = ("round {}", "{} points", "{}", "{}", "missing: {}", "{}", "ε = {}", "seen {}")
    for form, figure in zip(forms, figures, strict=True):
        yield form.format(figure) if figure else ""
