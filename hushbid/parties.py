"""The parties of a session, for Python: `Owner`, `Curator`, and the `Consumer` with its rehearsal.

The packages of the parties know no rehearsal, which takes the operator's tools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from hushbid.consumer.role import ConsumerRole
from hushbid.curator.role import Curator
from hushbid.owner.role import Owner
from hushbid.protocol.runtime.command import by_option

if TYPE_CHECKING:
    from hushbid.plan.verdict import Rehearsing, Sets
    from hushbid.protocol.config.party import ConsumerFile
    from hushbid.protocol.config.session import SessionFile

__all__ = [
    "AnywayOption",
    "Consumer",
    "Curator",
    "Owner",
    "RehearsalOption",
]

RehearsalOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--rehearsal/--no-rehearsal",
        help="Play the session first, with owners made from the validation set; a hopeless one is refused.",
        envvar="HUSHBID_REHEARSAL",
    ),
]
AnywayOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--anyway", help="Go on with a hopeless session. It stays on record.", envvar="HUSHBID_ANYWAY"
    ),
]


@dataclass(frozen=True, eq=False)
class Consumer(ConsumerRole):
    """A session's consumer, which rehearses it first: ``Consumer(config, invitation=…).run()``.

    It is run, stopped and watched as an `Owner` is, and takes tables as one does.

    Attributes:
        rehearsal: Whether the session is played first, with owners made from the validation set.
        anyway: Whether a hopeless session goes on, which stays on record.
        say: Gets the rehearsal's verdict in lines for people; None: nobody does.
    """

    rehearsal: bool = field(default=True, kw_only=True, metadata=by_option(RehearsalOption))
    anyway: bool = field(default=False, kw_only=True, metadata=by_option(AnywayOption))
    say: Callable[[str], object] | None = field(default=None, kw_only=True)

    def _before(self, session: SessionFile, file: ConsumerFile) -> None:
        from hushbid.plan.verdict import Rehearsing

        told = self.say or (lambda _line: None)
        _rehearse(session, file, Rehearsing(wanted=self.rehearsal, anyway=self.anyway, say=told))


def _rehearse(session_file: SessionFile, file: ConsumerFile, rehearsing: Rehearsing) -> None:
    """Keep the verdict of a session that has not begun. What its consumer would refuse is refused first."""
    from hushbid.consumer.store import keep_verdict
    from hushbid.preflight.data import budget, data
    from hushbid.preflight.subject import Subject
    from hushbid.protocol.names import CONSUMER
    from hushbid.protocol.runtime.party import beginning, check_durability, transcript_path
    from hushbid.protocol.runtime.telemetry.metrics import parse_metrics_address
    from hushbid.protocol.session.guarantee import weak_lines
    from hushbid.protocol.session.session import open_session

    if beginning(transcript_path(file.state, CONSUMER)):
        return
    if file.metrics is not None:
        parse_metrics_address(file.metrics)  # what cannot be is refused before the rehearsal
    session = open_session(session_file)
    for line in weak_lines(session.privacy()):
        rehearsing.say(line)

    def sets() -> Sets:
        subject = Subject("consumer", CONSUMER, session, file, offline=True)
        check_durability(session, file.durability)
        _ = subject.pair
        data(subject)
        budget(subject, warn=False)
        return subject.sets

    keep_verdict(file.state, session, rehearsing.verdict(session, sets))
