"""`hushbid consumer`: the consumer's process, with a rehearsal before it connects to anybody."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from consumer.cli import (
    ConfigOption,
    ConsumerOptions,
    InvitationOption,
    LedgerOption,
    SeedSetOption,
    SessionOption,
    TargetFileOption,
    ValidationOption,
    show,
)
from protocol.runtime.command import KeyOption, LogFormatOption, MetricsOption, StateOption, run_verb
from protocol.runtime.logs import LogFormat, logs_json, set_up_logging

if TYPE_CHECKING:
    from hushbid.verdict import Rehearsing, Sets
    from protocol.config.party import ConsumerFile
    from protocol.config.session import SessionFile

__all__ = ["AnywayOption", "RehearsalOption", "consumer_command"]

RehearsalOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--rehearsal/--no-rehearsal",
        help="Play the session first, with owners made of the validation set; a hopeless one is refused.",
        envvar="HUSHBID_REHEARSAL",
    ),
]
AnywayOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anyway", help="Go on with a hopeless session. It stays on record.", envvar="HUSHBID_ANYWAY"
    ),
]


def consumer_command(
    config: ConfigOption,
    session: SessionOption = None,
    invitation: InvitationOption = None,
    validation: ValidationOption = None,
    seed_set: SeedSetOption = None,
    key: KeyOption = None,
    state: StateOption = None,
    ledger: LedgerOption = None,
    target_file: TargetFileOption = None,
    metrics: MetricsOption = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    rehearsal: RehearsalOption = True,
    anyway: AnywayOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Take part in a session as its consumer, on this machine."""
    options = ConsumerOptions(
        config=config,
        session=session,
        invitation=invitation,
        validation=validation,
        seed_set=seed_set,
        key=key,
        state=state,
        ledger=ledger,
        target_file=target_file,
        metrics=metrics,
    )

    def body() -> dict[str, Any]:
        from consumer.process import run_consumer
        from hushbid.verdict import Rehearsing

        set_up_logging("consumer", log_format)
        session_file, file = options.files()
        _rehearse(session_file, file, Rehearsing(wanted=rehearsal, anyway=anyway, say=_say))
        return run_consumer(session_file, file)

    run_verb(body, as_json=as_json, show=show)


def _rehearse(session_file: SessionFile, file: ConsumerFile, rehearsing: Rehearsing) -> None:
    """Keep the verdict of a session that has not begun. What its consumer would refuse is refused first."""
    from consumer.store import keep_verdict
    from hushbid.preflight.data import budget, data
    from hushbid.preflight.subject import Subject
    from protocol.names import CONSUMER
    from protocol.runtime.party import check_durability, has_begun, transcript_path
    from protocol.session import open_session

    if has_begun(transcript_path(file.state, CONSUMER)):
        return
    session = open_session(session_file)

    def sets() -> Sets:
        subject = Subject("consumer", CONSUMER, session, file, offline=True)
        check_durability(session, file.durability)
        _ = subject.pair
        data(subject)
        budget(subject, warn=False)
        return subject.sets

    keep_verdict(file.state, session, rehearsing.verdict(session, sets))


def _say(line: str) -> None:
    if not logs_json():  # whose stderr is the log's alone, and has the verdict's word
        sys.stderr.write(f"{line}\n")
