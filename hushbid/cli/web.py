"""`hushbid status --watch --web` (or `hushbid watch --web`): a running session as a page for browsers."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushbid.cli.watch import TITLES, WATCH_SECONDS, Look, Watcher, cells
from hushbid.protocol import platform
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.command import json_line, tell
from hushbid.replay.facts import Facts
from hushbid.replay.following import Follower, left_out
from hushbid.replay.page import BROKEN, broken_copies, live_page_of, waiting_page
from hushbid.replay.serving import PageServer, Served

__all__ = ["LiveState", "pause_after", "served"]

_REST: Final = 4.0
"""Ratio of a watch's rest to its reading time: it takes at most a fifth of one processor."""
_FIRST: Final = Look((), ())
_OVER: Final = "The session is over. Ctrl-C ends the page."
_GOES_ON: Final = "The session goes on again."


def served(places: Sequence[Path], *, port: int | None, as_json: bool) -> dict[str, Any]:
    """Serve a session until Ctrl-C or SIGTERM, even after it is over; its parties may start later.

    A session that was over goes on where a party is started again: so it is looked at all the time.

    Args:
        port: None: the system chooses one.

    Raises:
        ConfigError: A place is no directory, the places are of several sessions, or the port is taken.
    """
    for place in places:
        if place.exists() and not place.is_dir():
            raise ConfigError(f"{place} is no directory.", advice="Name state or run directories.")
    course = LiveState(places)
    with PageServer(port or 0, course.served) as server:
        try:
            with _ending_as_by_ctrl_c():
                _say({"address": server.address}, f"The page is {server.address}", as_json=as_json)
                _serve(course, server, as_json=as_json)
        except KeyboardInterrupt:
            return {
                **course.look.as_json(),
                "address": server.address,
                "over": course.ended,
                "steps": 0 if course.facts is None else len(course.facts.steps.round),
            }
    raise AssertionError("a page is served until it is interrupted")


def _serve(course: LiveState, server: PageServer, *, as_json: bool) -> None:
    said = False
    while True:
        seconds = time.perf_counter()
        if course.go_on(time.time()):
            server.serve(course.served)
        if course.ended != said:
            said = course.ended
            _say({"over": said}, _OVER if said else _GOES_ON, as_json=as_json)
        time.sleep(pause_after(time.perf_counter() - seconds))


def pause_after(seconds: float) -> float:
    """Seconds to wait after a reading of this length: one, or four times its length."""
    return max(WATCH_SECONDS, _REST * seconds)


@contextmanager
def _ending_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and similar signals do what Ctrl-C does."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in platform.ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(told: Mapping[str, Any], words: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_line(told))
    else:
        tell(words)
    sys.stdout.flush()


class LiveState:
    """A session's present state, from its parties' statuses and the public part of their transcripts.

    Args:
        places: State directories, parties' directories, or run directories; they need not exist yet.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._watcher = Watcher(places)
        self._follower = Follower(places)
        self.look = _FIRST
        self.ended = False
        """Whether the session is over, and all of it was read."""
        self._told: dict[str, Any] = {}
        self._version = self._facts_version = 0
        self._facts = b"null"
        self.served = self._as_served()

    @property
    def facts(self) -> Facts | None:
        return self._follower.facts

    def go_on(self, now: float) -> bool:
        """Look again; returns whether there is anything new to serve.

        Args:
            now: Seconds since 1970.

        Raises:
            ConfigError: The transcripts are of several sessions, or two are one party's.
        """
        # A party reports its end only after it has written everything: a later reading is complete.
        self.look = self._watcher.look(now)
        newer = self._follower.look()
        self.ended = self.look.over
        told = self._tell()
        if told == self._told and not newer:
            return False
        self._told = told
        self._version += 1
        if newer and self.facts is not None:
            self._facts_version = self._version
            self._facts = _packed(self.facts.as_json())
        self.served = self._as_served()
        return True

    def _tell(self) -> dict[str, Any]:
        awaited = [*self.look.awaited, *((str(path), why) for path, why in self._follower.unread)]
        return {
            "begun": self.facts is not None or bool(self.look.parties),
            "over": self.ended,
            "titles": TITLES,
            "parties": [cells(party) for party in self.look.parties],
            "awaited": [[printable(place), printable(why)] for place, why in awaited],
            "notices": [] if self.facts is None else list(_notices(self.facts, self.look)),
        }

    def _as_served(self) -> Served:
        told = {"begun": False, "over": False, "titles": TITLES, "parties": [], "awaited": [], "notices": []}
        short = _packed(told | self._told | {"version": self._version})
        page = _Page(self.facts)
        return Served(
            self._version,
            page,
            news=_with_facts(short, self._facts),
            facts_version=self._facts_version,
            without_facts=_with_facts(short, b"null"),
        )


def _packed(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _with_facts(told: bytes, facts: bytes) -> bytes:
    """A JSON object with one more field: facts are long, and are encoded only once."""
    return told.removesuffix(b"}") + b',"facts":' + facts + b"}"


@dataclass(frozen=True)
class _Page:
    facts: Facts | None

    def __call__(self) -> str:
        return waiting_page() if self.facts is None else live_page_of(self.facts)


def _notices(facts: Facts, look: Look) -> Iterator[dict[str, Any]]:
    if broken := broken_copies(facts):
        yield {"title": BROKEN, "lines": broken, "alert": True}
    if look.gone:
        gone = [printable(party.status.party) for party in look.gone]
        yield {"title": "Gone without having ended:", "lines": gone, "alert": True}
    yield {"title": "What is left out here.", "lines": left_out(facts), "alert": False}
