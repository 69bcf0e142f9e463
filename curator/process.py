"""The curator as a process of its own."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from hushbid.curator.hub import Hub
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.curator.result import CuratorResult, Sale
from hushbid.curator.session_log import CuratorLog
from hushbid.protocol import platform
from hushbid.protocol.config.party import CuratorFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.control import Control
from hushbid.protocol.runtime.drawn_ahead import DrawnAhead, expect_noise
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.runtime.files.box_file import BoxFile, KeptBoxes
from hushbid.protocol.runtime.network.descriptors import descriptors_for_strangers
from hushbid.protocol.runtime.network.router import RouterEndpoint
from hushbid.protocol.runtime.network.transport import listen_address
from hushbid.protocol.runtime.party import (
    check_durability,
    ensure_done,
    head_signer,
    open_journal,
    own_keys,
    party_noise,
    resume,
    sealing_identity,
    transcript_path,
)
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log
from hushbid.protocol.runtime.telemetry.metrics import serving_metrics
from hushbid.protocol.runtime.telemetry.vitals import Vitals
from hushbid.protocol.session.guarantee import OWNERS_DATA
from hushbid.protocol.session.odometer import promised
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.sizes import longest_to_curator
from hushbid.protocol.transcript.journal import Journal
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import said_to

__all__ = ["run_curator"]


_STARTING: Final = (
    ("Start them, or raise timeouts", "For that raise timeouts"),
    ("Start it, see its log, or raise timeouts", "For that see its log, or raise timeouts"),
)
"""How advice begins that would start a party of a session that is over, and how it begins instead."""


def run_curator(
    session_file: SessionFile,
    file: CuratorFile,
    control: Control | None = None,
    *,
    progress: int | None = None,
) -> CuratorResult:
    """Run a session's rounds until it is over.

    Args:
        progress: A file descriptor for one JSON line per `hushbid.curator.hub.PROGRESS_SECONDS`, or None.

    Returns:
        The curator's result (docs/results.md).

    Raises:
        HushbidError: As `hushbid.protocol.errors` says.
    """
    with (
        one_blas_thread(),
        Vitals(file.state, party=CURATOR, role="curator", session=session_file, control=control) as vitals,
        serving_metrics(file.metrics, vitals),
    ):
        return _curate(session_file, file, progress, vitals)


def _curate(
    session_file: SessionFile, file: CuratorFile, progress: int | None, vitals: Vitals
) -> CuratorResult:
    platform.check_linux("The curator")
    session = open_session(session_file)
    pair = own_keys(session, file, expected=session_file.roster.curator, party=CURATOR)
    address = file.listen or listen_address(session_file.network.address)
    check_durability(session, file.durability, listen=file.listen)
    roster = _admitted(session_file, file)
    strangers = descriptors_for_strangers(len(roster))
    with ExitStack() as stack:
        noise = party_noise(session, CURATOR)
        if noise.protects and session.weigher == CURATOR:
            noise = stack.enter_context(DrawnAhead(noise))  # so that no round waits for noise
        endpoint = stack.enter_context(
            RouterEndpoint(
                address,
                pair=pair,
                roster=roster if pair is not None else {},
                longest=longest_to_curator(session),
                strangers=strangers,
            )
        )
        log(LogEvent.CURATOR_LISTENING, address=endpoint.address)
        journal = stack.enter_context(
            open_journal(session, role="curator", party=CURATOR, state=file.state, durability=file.durability)
        )
        boxes = _box_file(session, file, stack)
        machine, numerics = curator_party(session, noise=noise, destroy=boxes.destroy if boxes else None)
        driver = Driver(
            machine,
            numerics,
            journal,
            session=session.identifier,
            direction=said_to(CURATOR),
            boxes=boxes,
            sign=head_signer(session, CURATOR, sealing_identity(session, pair, CURATOR)),
        )
        _go_on(driver, journal, session, boxes)
        if isinstance(noise, DrawnAhead):
            expect_noise(noise, session, drawn=machine.selection.weighing.noise_drawn)
        if (odometer := promised(session, OWNERS_DATA)) is not None:
            vitals.spent = lambda: odometer.spent(machine.round, settled=_settled(session, machine))
        hub = Hub(session_file, machine, driver, endpoint, CuratorLog(session, machine), vitals, progress)
        stack.callback(hub.log_what_was_not_taken)
        finish = hub.run()
    ensure_done(_with_what_next(finish))
    sale = Sale.of(session_file, machine, file.price, seconds=machine.seconds)
    return CuratorResult(
        **CuratorResult.shared(sale),
        transcript=transcript_path(file.state, CURATOR),
        settlement_terms=session.settlement_terms,
        privacy=session.privacy(),
    )


def _with_what_next(finish: Finish) -> Finish:
    """An end that says, of a session that is over, how another begins.

    The machine's own words are in transcripts of any age, and replays compare them.
    """
    if finish.code is ExitCode.DONE or not finish.final:
        return finish
    advice = finish.advice
    for before, now in _STARTING:
        advice = advice.replace(before, now)
    again = "The session is over: another start changes nothing. `hushbid again SESSION` begins another."
    return replace(finish, advice=f"{again} {advice}".rstrip())


def _settled(session: Session, machine: CuratorMachine) -> bool:
    """Whether a private settlement was released."""
    return session.settlement is not None and machine.settlement() is not None


def _admitted(session_file: SessionFile, file: CuratorFile) -> dict[str, str]:
    """Parties that may connect, as public key -> name: the roster without revoked parties.

    It raises `ConfigError` if a revoked party is not an owner of the session, or the session has no keys.
    """
    roster = session_file.roster
    if unknown := sorted(set(file.revoked) - set(roster.owners)):
        raise ConfigError(
            f"The curator's file revokes {', '.join(unknown)}, and the roster has no such owner.",
            advice="Correct `revoked`: each as on the roster.",
        )
    if file.revoked and session_file.network.insecure:
        raise ConfigError(
            "The curator's file revokes owners, and without keys nobody can be kept out.",
            advice="Leave network.insecure out of the session file.",
        )
    admitted = {key: name for name, key in roster.owners.items() if name not in file.revoked}
    return {**admitted, roster.consumer: CONSUMER}


def _go_on(driver: Driver, journal: Journal, session: Session, boxes: BoxFile | None) -> None:
    """Bring the driver to the end of its transcript; every box whose digest it records must be on disk."""
    if boxes is None:
        resume(driver, journal, started(session.file), said_to(CURATOR))
        return
    kept = KeptBoxes(boxes.path, session.box_length)
    resume(driver, journal, started(session.file), said_to(CURATOR), box=kept)
    if not boxes.destroyed and driver.finished is None:
        kept.ensure_whole()
    boxes.sweep()


def _box_file(session: Session, file: CuratorFile, stack: ExitStack) -> BoxFile | None:
    if not session.rule.sealed:
        return None
    boxes = BoxFile(file.state / f"{CURATOR}.boxes", file.durability)
    stack.callback(boxes.close)
    return boxes
