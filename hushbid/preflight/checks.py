"""The checks and their order. All of them are made, whatever the outcome of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pydantic.dataclasses import dataclass as figures

from hushbid.preflight.data import boxes, budget, data
from hushbid.preflight.keys import fingerprints, key, roster
from hushbid.preflight.network import address, connection, handshake, listen
from hushbid.preflight.rows import rows
from hushbid.preflight.software import clock, versions
from hushbid.preflight.state import disk, state
from hushbid.preflight.subject import NotChecked, Subject, Warned
from hushbid.preflight.validation import bounds, kernel, rehearsal, seed_set
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.errors import ExitCode, HushbidError
from hushbid.protocol.figures import Figures
from hushbid.protocol.runtime.blas_threads import one_blas_thread

__all__ = ["CHECKS", "Check", "Finding", "exit_code", "preflight"]

_ALL: Final[tuple[Role, ...]] = ("curator", "owner", "consumer")
_WITH_DATA: Final[tuple[Role, ...]] = ("owner", "consumer")


@dataclass(frozen=True)
class Check:
    """A check, and the roles that it is for.

    Attributes:
        run: Makes the check: returns what is well, a warning, or why it was not made; raises a problem.
        needs: Checks that must succeed first; without them it says nothing.
        asks_network: Whether ``--offline`` leaves it out.
    """

    name: str
    roles: tuple[Role, ...]
    run: Callable[[Subject], str | NotChecked | Warned]
    needs: tuple[str, ...] = ()
    asks_network: bool = False


@figures(frozen=True, slots=True)
class Finding(Figures):
    """The outcome of a check.

    Attributes:
        said: What is well, a warning, or why the check was not made; empty for a problem.
        fix: The remedy for a problem or a warning.
        exit_code: The exit code with which the problem would end the party.
    """

    check: str
    status: Literal["ok", "warning", "problem", "not checked"]
    said: str
    fix: str = ""
    problem: str = ""
    exit_code: ExitCode = ExitCode.DONE


CHECKS: Final = (
    Check("versions", _ALL, versions),
    Check("clock", _ALL, clock),
    Check("roster", _ALL, roster),
    Check("key", _ALL, key),
    Check("fingerprints", _ALL, fingerprints),
    Check("listen", ("curator",), listen, needs=("key",), asks_network=True),
    Check("address", _WITH_DATA, address, asks_network=True),
    Check("connection", _WITH_DATA, connection, needs=("address",), asks_network=True),
    Check("handshake", _WITH_DATA, handshake, needs=("connection", "key"), asks_network=True),
    Check("data", _WITH_DATA, data),
    Check("rows", _WITH_DATA, rows, needs=("data",)),
    Check("bounds", ("consumer",), bounds, needs=("data",)),
    Check("kernel", ("consumer",), kernel, needs=("data",)),
    Check("seed set", ("consumer",), seed_set, needs=("data",)),
    Check("rehearsal", ("consumer",), rehearsal, needs=("data",)),
    Check("boxes", ("owner",), boxes, needs=("data",)),
    Check("budget", _WITH_DATA, budget),
    Check("state", _ALL, state),
    Check("disk", _ALL, disk, needs=("state",)),
)
"""All checks, in order."""


def preflight(open_subject: Callable[[], Subject]) -> Iterator[Finding]:
    """Make every check of the party's role; the first is that `open_subject` can read the files."""
    try:
        subject = open_subject()
    except HushbidError as error:
        yield _problem("session", error)
        return
    file = subject.session.file
    yield Finding("session", "ok", f"{file.session.name}, digest {file.digest().hex()}")
    well = set()
    for check in CHECKS:
        if subject.role not in check.roles:
            continue
        finding = _made(check, subject, missing=[name for name in check.needs if name not in well])
        if finding.status in ("ok", "warning"):
            well.add(check.name)
        yield finding


def exit_code(findings: list[Finding]) -> ExitCode:
    """The exit code: problems that only a person can solve come before those that may pass."""
    codes = {finding.exit_code for finding in findings}
    order = (ExitCode.USAGE, ExitCode.FAILED, ExitCode.CONNECTION, ExitCode.TIMEOUT)
    return next((code for code in order if code in codes), ExitCode.DONE)


def _made(check: Check, subject: Subject, missing: list[str]) -> Finding:
    if check.asks_network and subject.offline:
        return Finding(check.name, "not checked", "left out by --offline")
    if missing:
        return Finding(check.name, "not checked", f"only once the check of {missing[0]} succeeds")
    try:
        with one_blas_thread():  # as the party's process does
            said = check.run(subject)
    except HushbidError as error:
        return _problem(check.name, error)
    if isinstance(said, NotChecked):
        return Finding(check.name, "not checked", said.why)
    if isinstance(said, Warned):
        return Finding(check.name, "warning", said.said, said.fix)
    return Finding(check.name, "ok", said)


def _problem(name: str, error: HushbidError) -> Finding:
    return Finding(name, "problem", "", error.advice, error.what, error.exit_code)
