"""What owners and the consumer have in common: hello, welcome, refusal, and a curator that is gone."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, cast

from protocol import __version__
from protocol.config.session import SessionFile
from protocol.errors import ExitCode, Offence
from protocol.link import Link
from protocol.machine import Event, Finish, Machine, Offended, Received, Transition, expand
from protocol.messages import PROTOCOL_VERSION, Close, Farewell, Hello, Refused, Welcome

__all__ = ["CURATOR", "Participant", "participant_transitions"]

CURATOR: Final = "curator"

_REFUSAL_EXIT: Final = {
    Offence.VERSION: ExitCode.CONNECTION,
    Offence.UNKNOWN_PEER: ExitCode.CONNECTION,
    Offence.CONFIGURATION: ExitCode.USAGE,
    Offence.STATE_LOST: ExitCode.USAGE,
}
"""Exit codes of refusals; all others are failures of the job."""


def participant_transitions(phases: tuple[str, ...], welcome: Transition) -> tuple[Transition, ...]:
    """The rows of `Participant`, for a role whose open phases are `phases`, the first being "greeting".

    Args:
        phases: All phases but "done".
        welcome: The row of the first welcome, in "greeting".
    """
    return (
        Transition("greeting", "started", "_on_started", ("greeting",)),
        welcome,
        *expand(phases, "connected", "_on_connected"),
        *(
            Transition(phase, "received:welcome", "_on_welcome_back", (phase, "done"))
            for phase in phases
            if phase != "greeting"
        ),
        *expand(phases, "lost", "_on_lost"),
        *expand(phases, "returned", "_on_returned"),
        *expand(phases, "received:refused", "_on_refused", "done"),
        *expand(phases, "received:close", "_on_close", "done"),
        *expand(phases, "offended", "_on_offended", "done"),
        *expand(phases, "timer:abandon", "_on_abandon", "done"),
    )


class Participant(Machine):
    """A party that speaks with the curator only.

    Args:
        session: The session file.
        name: The roster name.
        feature_map: SHA-256 of the party's own feature map, to compare with the curator's.
    """

    ROLE: ClassVar[Literal["owner", "consumer"]]

    def __init__(self, session: SessionFile, *, name: str, feature_map: bytes) -> None:
        super().__init__()
        self._session = session
        self._digest = session.digest()
        self._feature_map = feature_map
        self.name = name
        self.links[CURATOR] = Link()

    def _on_started(self, event: Event) -> None:
        self._set_timer("abandon", self._session.timeouts.enrolment)

    def _on_connected(self, event: Event) -> None:
        link = self.links[CURATOR]
        hello = Hello(
            versions=(PROTOCOL_VERSION,),
            role=self.ROLE,
            name=self.name,
            session=self._digest,
            software=__version__,
            sent=link.sent,
            received=link.received,
        )
        self._greet(CURATOR, hello)

    def _welcomed(self, event: Event) -> bool:
        """Whether the curator is of the same session; if not, this party is done."""
        welcome = cast(Welcome, cast(Received, event).message)
        link = self.links[CURATOR]
        if welcome.version != PROTOCOL_VERSION:
            what = f"The curator chose version {welcome.version} of the protocol."
            self._fail(ExitCode.CONNECTION, what, "Use the same release of hushbid on both sides.")
            return False
        if welcome.feature_map != self._feature_map:
            self._fail(
                ExitCode.USAGE,
                "The curator's feature map is not ours: the digests of W and b differ.",
                "Use the same session file, and the pinned numpy, on both sides.",
            )
            return False
        if welcome.received > link.sent or welcome.sent < link.received:
            self._fail(
                ExitCode.FAILED,
                "The curator came back without the state of this session.",
                "It was restarted. This release does not resume a session: start a new one.",
            )
            return False
        self._clear_timer("abandon")
        self._resend(CURATOR, welcome.received)
        return True

    def _on_welcome_back(self, event: Event) -> None:
        self._welcomed(event)

    def _on_lost(self, event: Event) -> None:
        self._set_timer("abandon", self._session.timeouts.abandon)

    def _on_returned(self, event: Event) -> None:
        if self.phase == "greeting":
            # It lives, but has not answered the hello: that it must, too.
            self._set_timer("abandon", self._session.timeouts.enrolment)
        else:
            self._clear_timer("abandon")

    def _on_refused(self, event: Event) -> None:
        refused = cast(Refused, cast(Received, event).message)
        code = ExitCode.FAILED
        if refused.code in set(Offence):
            code = _REFUSAL_EXIT.get(Offence(refused.code), ExitCode.FAILED)
        self._fail(code, f"The curator refused us ({refused.code}): {refused.detail}", refused.advice)

    def _on_close(self, event: Event) -> None:
        close = cast(Close, cast(Received, event).message)
        self._send(CURATOR, Farewell())
        self.phase = "done"
        if close.outcome == "complete":
            self._do(Finish(ExitCode.DONE, "The session is complete."))
        else:
            self._do(Finish(ExitCode.FAILED, "The curator abandoned the session.", "Its log says why."))

    def _on_offended(self, event: Event) -> None:
        offended = cast(Offended, event)
        self._fail(
            ExitCode.FAILED,
            f"The curator broke the protocol ({offended.offence.value}): {offended.detail}",
            offended.advice,
        )

    def _on_abandon(self, event: Event) -> None:
        never = self.phase == "greeting"
        self._fail(
            ExitCode.TIMEOUT,
            f"The curator {'never answered' if never else 'has been gone too long'}.",
            f"Check that it runs at {self._session.network.address} and can be reached from here.",
        )

    def _fail(self, code: ExitCode, reason: str, advice: str) -> None:
        self.phase = "done"
        self._do(Finish(code, reason, advice))
