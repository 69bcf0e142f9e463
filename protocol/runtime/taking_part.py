"""How an owner or the consumer takes part in a session: connection, transcript, driver, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from hushbid.protocol.config.party import ConsumerFile, OwnerFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode, HushbidError, Stopped
from hushbid.protocol.machine.machine import Charge, Finish
from hushbid.protocol.machine.participant import ABANDONED, Participant
from hushbid.protocol.runtime.driver import Driver, Numerics
from hushbid.protocol.runtime.keys import KeyPair
from hushbid.protocol.runtime.ledger.dataset_budget import DatasetBudget
from hushbid.protocol.runtime.network.connection import Connection
from hushbid.protocol.runtime.party import (
    beginning,
    ensure_done,
    head_signer,
    open_journal,
    resume,
    sealing_identity,
    transcript_path,
)
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.runtime.telemetry.vitals import AnnouncedNumerics, Vitals
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import said_to

__all__ = ["log_reading", "take_part"]

_ANOTHER: Final = "begins another with `hushbid again`, and sends another invitation."
_MAY_BE_OVER: Final = (
    f"The session may be over by now, and no curator there any more: ask whoever runs it, who {_ANOTHER}"
)
_GIVEN_UP: Final = f"If it was given up before, no curator comes back: whoever runs it {_ANOTHER}"
_ABANDONED: Final = f"The session is over: whoever runs it {_ANOTHER}"


def take_part(
    session: Session,
    file: OwnerFile | ConsumerFile,
    machine: Participant,
    numerics: Numerics,
    *,
    pair: KeyPair | None,
    budget: DatasetBudget,
    data: bytes,
    vitals: Vitals,
    ahead: Callable[[], None],
    resumed: Callable[[], None] | None = None,
) -> float:
    """Run a machine against the curator until it is done.

    Args:
        pair: The party's keys; None in insecure sessions.
        data: Digest of the party's data.
        ahead: Called while the party waits for the curator, to compute what its next answer needs.
        resumed: Called when the machine is where its transcript ends, before it connects.

    Returns:
        Duration of the session for the party in seconds, including the time that it was down.

    Raises:
        HushbidError: It did not end well, as `hushbid.protocol.errors` says.
    """
    transcript = transcript_path(file.state, machine.name)
    budget.check(transcript=beginning(transcript))
    begins = started(session.file, data)

    def charge(made: Charge) -> None:
        # Where the consumer weighs, it charges the owners' releases too: those are not of its own data.
        if made.subject is budget.subject:
            budget.charge(beginning(transcript))

    with (
        Connection(session.file, pair) as connection,
        open_journal(
            session, role=machine.ROLE, party=machine.name, state=file.state, durability=file.durability
        ) as journal,
    ):
        driver = Driver(
            machine,
            AnnouncedNumerics(numerics, vitals),
            journal,
            session=session.identifier,
            direction=said_to(machine.name),
            charge=charge,
            sign=head_signer(session, machine.name, sealing_identity(session, pair, machine.name)),
        )
        resume(driver, journal, begins, said_to(machine.name))
        if resumed is not None:
            resumed()
        try:
            finish = connection.run(driver, machine, begins, vitals, ahead=ahead)
        except Stopped as stopped:
            raise Stopped(stopped.what, advice=f"{stopped.advice} {_charged(budget)}".strip()) from None
    ensure_done(_with_the_end(finish, machine.phase, forgotten=machine.curator_forgot))
    return driver.seconds


def _with_the_end(finish: Finish, phase: str, *, forgotten: bool) -> Finish:
    """An end that says, of a curator that was there and is gone, that the session may be over.

    One that has lost the session's state may have it again in a moment, as when its volume was not mounted:
    that is worth another start. Neither is part of the machine's own end, which transcripts of any age have
    and replays compare.
    """
    if forgotten:
        return replace(finish, code=ExitCode.CONNECTION)
    if finish.code is ExitCode.TIMEOUT:
        more = _GIVEN_UP if phase == "greeting" else _MAY_BE_OVER
    elif finish.code is ExitCode.FAILED and finish.reason == ABANDONED:
        more = _ABANDONED
    else:
        return finish
    return replace(finish, advice=f"{finish.advice} {more}")


def _charged(budget: DatasetBudget) -> str:
    """The state of the ledger, for a process told to stop; empty if it cannot be read."""
    try:
        return budget.charged_line()
    except HushbidError:
        return ""


def log_reading(dataset: Dataset, path: Path) -> None:
    """Log how a party's own data were read, where that is not as they stand there."""
    for said in dataset.notes:
        log(LogEvent.DATA_DIALECT, said=said)
    if dataset.changed.outside:  # filled gaps are as the session has it
        log(LogEvent.DATA_CHANGED, path=str(path))
