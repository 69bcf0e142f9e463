"""The software and the clock that a party depends on."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from pathlib import Path
from typing import Final

import zmq
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hushbid.preflight.subject import Subject, Warned
from hushbid.protocol import __version__
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import EXTRA

__all__ = ["clock", "installed", "versions"]

_LOCK: Final = Path(__file__).parents[1] / "requirements.lock"
WATCHED_SECONDS: Final = 0.2
MOST_APART_SECONDS: Final = 0.05
MOST_AHEAD_SECONDS: Final = 60.0


def versions(_subject: Subject) -> str | Warned:
    """Whether the packages are the tested versions, and support encryption."""
    if not zmq.has("curve"):
        raise ConfigError(
            f"libzmq {zmq.zmq_version()} was built without CURVE: nothing could be encrypted.",
            advice="Install pyzmq from its own wheel: `pip install --force-reinstall --no-cache-dir pyzmq`.",
        )
    needed = _required()
    there = {each.name: _there(each.name) for each in needed}
    required = {each.name: each.specifier for each in needed if there[each.name] or not each.marker}
    refused = [
        f"{name} {there[name] or 'missing'} in place of {allowed}"
        for name, allowed in required.items()
        if not allowed.contains(there[name] or "0", prereleases=True)
    ]
    if refused:
        raise ConfigError(
            f"hushbid {__version__} is installed with {', '.join(refused)}.",
            advice="Reinstall it with pip, which respects these versions.",
        )
    tested = _tested()
    others = [
        f"{name} {there[name]} (tested: {tested[name]})"
        for name in required
        if tested.get(name, there[name]) != there[name]
    ]
    if others:
        return Warned(
            f"hushbid {__version__} runs with {', '.join(others)}: the same seed may give other bytes",
            f"To install the tested versions: `pip install --constraint {_LOCK} hushbid`.",
        )
    return (
        f"hushbid {__version__}, Python {platform.python_version()}, numpy {_there('numpy')}, "
        f"pyzmq {_there('pyzmq')}, libzmq {zmq.zmq_version()} with CURVE"
    )


def installed() -> dict[str, str]:
    """Versions of everything that results depend on: hushbid, Python, libzmq, and the required packages."""
    found = {"hushbid": __version__, "python": platform.python_version(), "libzmq": zmq.zmq_version()}
    return found | {each.name: _there(each.name) or "none" for each in _required()}


def _required() -> list[Requirement]:
    """The required packages, then the extra's, which have a marker; none if hushbid is not installed."""
    try:
        texts = importlib.metadata.requires("hushbid") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = [Requirement(text) for text in texts]
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": EXTRA})]


def _tested() -> dict[str, str]:
    """The versions of requirements.lock, which is installed beside hushbid's modules."""
    lines = _LOCK.read_text(encoding="utf-8").splitlines() if _LOCK.exists() else []
    pins = [line.partition("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in pins}


def _there(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def clock(subject: Subject) -> str:
    """Whether the clock runs evenly, and is not behind this machine's earlier files.

    The curator's clock does not matter: the party that sets a limit measures it, on a clock that cannot be
    set (`hushbid.protocol.runtime.clock`), and no party compares times with another.
    """
    began = _wall_ahead()
    time.sleep(WATCHED_SECONDS)
    apart = abs(_wall_ahead() - began)
    if apart > MOST_APART_SECONDS:
        raise ConfigError(
            f"The wall clock drifted {apart:.2f} s within {WATCHED_SECONDS} s: it is being set.",
            advice="Wait until the machine's time is synchronised: its clock dates ledgers.",
        )
    own = [subject.transcript, *([subject.file.key] if subject.file.key else [])]
    ahead = max((path.stat().st_mtime - time.time() for path in own if path.exists()), default=0.0)
    if ahead > MOST_AHEAD_SECONDS:
        raise ConfigError(
            f"The clock is behind: a file of this party was written {ahead:.0f} s from now.",
            advice="Set the machine's clock: it dates ledgers.",
        )
    return "runs evenly and is not behind this party's files (that of the curator is not compared: no need)"


def _wall_ahead() -> float:
    """The wall clock minus the steady one, in seconds, by the reading least disturbed by a busy machine."""
    readings = []
    for _ in range(5):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        readings.append((after - before, wall - before))
    return min(readings)[1]
