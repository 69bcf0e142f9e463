"""The software and the clock that a party runs by."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from typing import Final

import zmq

from hushbid.preflight.subject import Subject
from protocol import __version__
from protocol.errors import ConfigError
from protocol.runtime.party import transcript_path

__all__ = ["clock", "installed", "versions"]

WATCHED_SECONDS: Final = 0.2
MOST_APART_SECONDS: Final = 0.05
MOST_AHEAD_SECONDS: Final = 60.0


def versions(_subject: Subject) -> str:
    """Whether the packages are those that hushbid is made for, and encryption is among them."""
    if not zmq.has("curve"):
        raise ConfigError(
            f"libzmq {zmq.zmq_version()} was built without CURVE: nothing could be encrypted.",
            advice="Install pyzmq from its own wheel: `pip install --force-reinstall --no-cache-dir pyzmq`.",
        )
    others = [
        f"{name} {there} in place of {pinned}"
        for name, pinned in _pins()
        if (there := _there(name)) != pinned
    ]
    if others:
        raise ConfigError(
            f"hushbid {__version__} is installed with {', '.join(others)}.",
            advice="Install what requirements.lock says: with others, figures may come out differently.",
        )
    return (
        f"hushbid {__version__}, Python {platform.python_version()}, numpy {_there('numpy')}, "
        f"pyzmq {_there('pyzmq')}, libzmq {zmq.zmq_version()} with CURVE"
    )


def installed() -> dict[str, str]:
    """Versions of everything that results depend on: hushbid, Python, libzmq, and the packages it needs."""
    found = {"hushbid": __version__, "python": platform.python_version(), "libzmq": zmq.zmq_version()}
    return found | {name: _there(name) for name, _ in _pins()}


def _pins() -> list[tuple[str, str]]:
    """The packages that hushbid needs to run, with their versions; none if hushbid is not installed."""
    try:
        required = importlib.metadata.requires("hushbid") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [(name, pin) for text in required if ";" not in text for name, _, pin in [text.partition("==")]]


def _there(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def clock(subject: Subject) -> str:
    """Whether the clock runs evenly, and is not behind what this machine wrote before.

    How it stands to the curator's is not asked, for no party compares times with another: every limit of a
    session is measured by who sets it, on a clock that cannot be set (`protocol.runtime.clock`).
    """
    wall, steady = time.time(), time.monotonic()
    time.sleep(WATCHED_SECONDS)
    apart = abs((time.time() - wall) - (time.monotonic() - steady))
    if apart > MOST_APART_SECONDS:
        raise ConfigError(
            f"The wall clock went {apart:.2f} s astray within {WATCHED_SECONDS} s: it is being set.",
            advice="Wait until the machine's time is synchronised; ledgers are dated by it.",
        )
    own = [
        transcript_path(subject.file.state, subject.name),
        *([subject.file.key] if subject.file.key else []),
    ]
    ahead = max((path.stat().st_mtime - time.time() for path in own if path.exists()), default=0.0)
    if ahead > MOST_AHEAD_SECONDS:
        raise ConfigError(
            f"The clock is behind: a file of this party was written {ahead:.0f} s from now.",
            advice="Set the machine's clock; ledgers are dated by it.",
        )
    return "runs evenly and is not behind this party's files (that of the curator is not compared: no need)"
