"""The common part of owners and the consumer: hello, welcome, refusal, and the loss of the curator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Literal, Self, TypeVar

from hushbid.protocol import __version__
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.machine.base import (
    Machine,
    Transition,
    TransitionTable,
    fired,
    happened,
    received,
)
from hushbid.protocol.machine.machine import (
    Connected,
    Finish,
    HeadSigned,
    Lost,
    Offended,
    Restarted,
    Returned,
    SignHead,
    Started,
)
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import Close, Farewell, Hello, Refused, Welcome

__all__ = ["ABANDONED", "CURATOR_LACKS", "Participant", "participant_rows"]

ABANDONED: Final = "The curator abandoned the session."
"""The reason of an end that the curator has told."""

CURATOR_LACKS: Final = "The peer has received"
"""How a refusal as `state-lost` begins where the curator's record is the shorter one. Where it is our own,
another start helps nobody.
"""

_REFUSAL_EXIT: Final[Mapping[str, ExitCode]] = {
    Offence.VERSION: ExitCode.CONNECTION,
    Offence.UNKNOWN_PEER: ExitCode.CONNECTION,
    Offence.CONFIGURATION: ExitCode.USAGE,
    Offence.STATE_LOST: ExitCode.USAGE,
    Offence.DUPLICATE: ExitCode.USAGE,
}
"""Exit codes of refusals of a hello that another attempt may fix; all others are failures of the job."""

P = TypeVar("P", bound="Participant")


class Participant(Machine):
    """A party that talks only to the curator, by its roster name."""

    ROLE: ClassVar[Literal["owner", "consumer"]]

    def __init__(self, session: Session, table: TransitionTable[Self], *, name: str) -> None:
        super().__init__(table)
        self._session = session.file
        self._digest = session.digest
        self._version = session.protocol_version
        public_map = session.public_map
        self._feature_map = None if public_map is None else public_map.digest
        self.name = name
        self.round = 0
        """The round of the last broadcast; the consumer receives none."""
        self.links[CURATOR] = Link()
        self._ending = Finish(ExitCode.DONE, "")
        self.curator_forgot = False
        """Whether the curator, with which frames were exchanged, has lost the session's state."""

    def lacks(self, peer: str, sequence: int) -> bool:
        """As `Machine.lacks`; a welcome comes before all frames that have a number."""
        return super().lacks(peer, sequence) or (self.phase == "greeting" and sequence > 0)

    @property
    def submitted(self) -> bool:
        """Whether all that it submits in a tender was sent; a consumer submits nothing."""
        return False

    def _on_started(self, event: Started) -> None:
        self.set_timer("abandon", self._session.timeouts.enrolment)

    def _on_connected(self, event: Connected) -> None:
        link = self.links[CURATOR]
        hello = Hello(
            versions=(self._version,),
            role=self.ROLE,
            name=self.name,
            session=self._digest,
            software=__version__,
            sent=link.sent,
            received=link.received,
        )
        self.greet(CURATOR, hello)

    def _welcomed(self, welcome: Welcome) -> bool:
        """Check that the curator has the same session; if not, this party's process ends."""
        link = self.links[CURATOR]
        if welcome.version != self._version:
            what = f"The curator chose version {welcome.version} of the protocol."
            self._stop(ExitCode.CONNECTION, what, "Use the same release of hushbid on both sides.")
            return False
        if welcome.feature_map != self._feature_map:
            self._stop(
                ExitCode.USAGE,
                "The curator's feature map is not ours: the digests of W and b differ.",
                "Use the same session file, and the same version of hushbid, on both sides.",
            )
            return False
        if welcome.received > link.sent or welcome.sent < link.received:
            self.curator_forgot = True
            self._stop(
                ExitCode.FAILED,
                "The curator came back without the state of this session.",
                "It was started again without its transcript: have it started with the one that is there.",
            )
            return False
        self.clear_timer("abandon")
        self.resend(CURATOR, welcome.received)
        return True

    def _on_welcome_back(self, peer: str, welcome: Welcome) -> None:
        self._welcomed(welcome)

    def _on_lost(self, event: Lost) -> None:
        self.set_timer("abandon", self._session.timeouts.abandon)

    def _on_restarted(self, event: Restarted) -> None:
        timeouts = self._session.timeouts
        self.set_timer("abandon", timeouts.enrolment if self.phase == "greeting" else timeouts.abandon)

    def _on_returned(self, event: Returned) -> None:
        if self.phase == "greeting":
            # It is alive but has not answered the hello, which it must do as well.
            self.set_timer("abandon", self._session.timeouts.enrolment)
        else:
            self.clear_timer("abandon")

    def _on_refused(self, peer: str, refused: Refused) -> None:
        what = f"The curator refused us ({refused.code}): {refused.detail}"
        code = _REFUSAL_EXIT.get(refused.code)
        lacks = refused.detail.startswith(CURATOR_LACKS)
        self.curator_forgot = refused.code == Offence.STATE_LOST and lacks
        if code is not None:
            self._stop(code, what, refused.advice)
        else:
            self.fail(ExitCode.FAILED, what, refused.advice)

    def _on_close(self, peer: str, close: Close) -> None:
        if close.outcome == "complete":
            self._ending = Finish(ExitCode.DONE, "The session is complete.")
        else:
            self._ending = Finish(ExitCode.FAILED, ABANDONED, "Its log says why.")
        self.phase = "leaving"
        self.do(SignHead())

    def _on_head_signed(self, signed: HeadSigned) -> None:
        self.send(CURATOR, Farewell(head=signed.head, signature=signed.signature))
        self.phase = "done"
        self.do(self._ending)

    def _on_offended(self, offended: Offended) -> None:
        self.fail(
            ExitCode.FAILED,
            f"The curator broke the protocol ({offended.offence.value}): {offended.detail}",
            offended.advice,
        )

    def _on_abandon(self) -> None:
        what = "never answered" if self.phase == "greeting" else "has been gone too long"
        address = self._session.network.address
        advice = f"Check that it runs at {address} and can be reached from here, and start again."
        if self.submitted:
            what += "; all of the submission was sent"
        self._stop(ExitCode.TIMEOUT, f"The curator {what}.", advice)

    def fail(self, code: ExitCode, reason: str, advice: str) -> None:
        self.phase = "done"
        self.do(Finish(code, reason, advice))

    def _stop(self, code: ExitCode, reason: str, advice: str) -> None:
        """End the process for a reason that may be gone after a restart, which resumes from here."""
        self.do(Finish(code, reason, advice, final=False))


def participant_rows(
    phases: tuple[str, ...], on_welcome: Callable[[P, str, Welcome], None], *welcomed: str
) -> tuple[Transition[P], ...]:
    """The rows that every participant has.

    Args:
        phases: All phases but "leaving" and "done"; the first is "greeting".
        on_welcome: Handles the first welcome, which can end in the phases `welcomed`.
    """
    return (
        *happened("greeting", Started, Participant._on_started),
        *received("greeting", Welcome, on_welcome, *welcomed),
        *happened(phases, Connected, Participant._on_connected),
        *received(phases[1:], Welcome, Participant._on_welcome_back),
        *happened(phases, Lost, Participant._on_lost),
        *happened(phases, Returned, Participant._on_returned),
        *happened(phases, Restarted, Participant._on_restarted),
        *(
            row
            for phase in phases
            for row in received(phase, Refused, Participant._on_refused, phase, "done")
        ),
        *received(phases, Close, Participant._on_close, "leaving"),
        *happened("leaving", HeadSigned, Participant._on_head_signed, "done"),
        *happened(phases, Offended, Participant._on_offended, "done"),
        *fired(phases, "abandon", Participant._on_abandon),
    )
