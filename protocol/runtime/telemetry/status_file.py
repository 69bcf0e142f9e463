"""The status file of a party: the last state of its main loop, for health checks and for people.

A party writes it (`hushbid.protocol.runtime.telemetry.vitals`), `hushbid status` reads it. It has nothing
private: no data, bids or scores, nor who was asked or won. This module imports little, because each health
check starts a process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Self, get_args, get_origin, get_type_hints

from hushbid.protocol import platform
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.machine.progress import Progress
from hushbid.protocol.plain_files import read_plain

__all__ = ["SUFFIX", "Status", "find_statuses", "process_start", "status_files", "status_path"]

SUFFIX: Final = ".status"
_LARGEST: Final = 2**53
"""Above every number of a status."""
_LONGEST: Final = 2**20
"""Bytes, far above any status."""


@dataclass(frozen=True, slots=True)
class Status:
    """One party's status; times are in seconds since 1970, by its machine's clock."""

    party: str
    role: Literal["curator", "owner", "consumer"]
    session: str
    phase: str
    """`loading` until the loop runs, then the machine's; a curator's phases of a round are all `rounds`."""
    busy: str | None
    """A long computation, during which the loop stands still; None: the loop turns."""
    round: int
    """The last known round; 0: none yet."""
    rounds: int
    """p, the session's number of rounds."""
    connected: bool | None
    """Whether the connection to the curator stands, for an owner and the consumer; else None."""
    owners_connected: int | None
    """Number of connected owners, for a curator; else None."""
    owners: int | None
    """K, for a curator; else None."""
    paused: bool
    """Whether the rounds wait for owners, or for a consumer that weighs."""
    beat: float
    """When the loop last turned, or a long computation began."""
    pid: int
    process_start: int | None
    """`process_start` of the process, as a later one may have its number. None: this system does not say."""
    started: float
    ready: bool
    """Whether the loop runs: a curator listens, an owner or the consumer has its data loaded."""
    finished: bool
    exit_code: int | None
    """The process's exit code, once it has finished."""
    counters: Mapping[str, int | Mapping[str, int]]
    """Counts since the process began; by reason, where there are reasons."""
    points: int | None = None
    """Bought points, for a curator whose rule does not ask owners for points; else None."""
    points_planned: int | None = None
    """p, the number of points to buy; None in files of a former version."""
    points_per_second: float | None = None
    """Recent speed; None if unknown, or if `points` is."""
    seconds_left: float | None = None
    """Time until the rounds are over, at the recent pace; None: unknown, or nothing is left."""
    missing: list[str] = field(default_factory=list)
    """Parties without a connection to the curator, at most `hushbid.protocol.machine.progress.MOST_NAMED`,
    while it enrols or its rounds run: first a consumer for which the rounds wait, then owners. Where a rule
    asks, owners are named before the first round only.
    """
    spent: Mapping[str, str | float] | None = None
    """ε of all releases so far: `epsilon` at `delta`, of whose records (`protects`), between which
    `neighbours`. A curator has that of the owners' records, the consumer its own; None: no guarantee, or an
    owner.
    """
    spent_of_owners: Mapping[str, str | float] | None = None
    """The same of the owners' records, for a consumer that weighs; else None."""
    busy_share: float | None = None
    """Completed share of a long computation, from 0 to 1; None: none, or unknown."""

    @property
    def progress(self) -> Progress:
        values = {each.name: getattr(self, each.name) for each in fields(Progress)}
        return Progress(**values | {"missing": tuple(self.missing)})

    @property
    def is_running(self) -> bool:
        """Whether its process exists; to be asked in the party's own machine and container."""
        if self.process_start is not None:  # else another process that has its number counts as it
            return process_start(self.pid) == self.process_start
        return platform.is_running(self.pid)

    def write(self, path: Path) -> None:
        """Replace the file at once, so that readers see all of it. It need not survive a power cut.

        Raises:
            OSError: It cannot be written; the former file is unchanged.
        """
        scratch = path.with_name(f".{path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | platform.NO_LINK
        try:
            with os.fdopen(platform.open_file(scratch, flags), "wb") as file:
                file.write(
                    json.dumps({each.name: getattr(self, each.name) for each in fields(self)}).encode()
                )
            scratch.replace(path)
        except OSError:
            scratch.unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a status file. Fields that a former version lacks are unknown.

        Raises:
            HushbidError: There is no status, or this version has not written it.
        """
        try:
            content, _ = read_plain(path, _LONGEST)
            values: dict[str, Any] = json.loads(content)
            hints = get_type_hints(cls)
            known = {
                each.name: values[each.name] for each in fields(cls) if each.name in values or _required(each)
            }
            if not all(_fits(value, hints[name]) for name, value in known.items()) or known["pid"] <= 0:
                raise ValueError("a field is not of its type")
            told = (known.get("spent"), known.get("spent_of_owners"))
            for spent in told:
                if spent is not None and not all(
                    _fits(spent.get(name), float) for name in ("epsilon", "delta")
                ):
                    raise ValueError("what was spent is no number")
            return cls(**known)
        except OSError as error:
            raise HushbidError(
                f"{path}: cannot be read: {error.strerror}.", advice="Ask as the user that the party runs as."
            ) from None
        except (ValueError, TypeError, LookupError, RecursionError):
            raise HushbidError(
                f"{path}: not a status file of this version.",
                advice="Use the version of hushbid that the party runs.",
            ) from None


def _required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _fits(value: object, hint: Any) -> bool:
    """Whether a JSON value has a field's type."""
    kind = get_origin(hint)
    if kind is UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if kind is Literal:
        return value in get_args(hint)
    if kind is list:
        return isinstance(value, list) and all(_fits(each, get_args(hint)[0]) for each in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(_fits(each, get_args(hint)[1]) for each in value.values())
    if hint is NoneType:
        return value is None
    if hint in (int, float):  # a bool is neither, and no number compares with NaN
        return type(value) in (int, hint) and -_LARGEST < value < _LARGEST  # type: ignore[operator]
    return type(value) is hint


def process_start(pid: int) -> int | None:
    """Start time of a process, in the kernel's ticks since its own start; None: there is no such process.

    It is None for every process without a ``/proc`` like Linux's (proc(5): ``starttime``).
    """
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
        return int(after_name.split()[19])
    except (OSError, ValueError, IndexError):
        return None


def status_path(state: Path, party: str) -> Path:
    """Where a party's status lies in its state directory."""
    return state / f"{party}{SUFFIX}"


def find_statuses(place: Path) -> list[Status]:
    """The statuses in a directory: usually one in a state directory, one for each party in a run's.

    Args:
        place: A state directory, a party's directory with its `state`, or the directory of a run.

    Raises:
        HushbidError: There is no status, or it cannot be read.
    """
    if found := status_files(place):
        return [Status.read(path) for path in found]
    raise HushbidError(
        f"{place}: no party has started with this state directory, and it is no directory of a run.",
        advice="Name the directory that `state` in the party's file says, or that `hushbid run` has made; of "
        "an owner without a file it is OWNER-SESSION beside its invitation, unless --state says otherwise.",
    )


def status_files(place: Path) -> list[Path]:
    """The status files of a directory, searched as in `find_statuses`; often none yet."""
    for states in ("", "state/", "parties/*/state/"):
        if found := sorted(place.glob(f"{states}[!.]*{SUFFIX}")):
            return found
    return []
