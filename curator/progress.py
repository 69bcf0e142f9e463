"""The curator's progress in its session, as far as its operator may know it."""

from __future__ import annotations

from typing import Final

from hushbid.curator.machine import CuratorMachine
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.machine.progress import MOST_NAMED, Pace, Progress
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import asks

__all__ = ["ProgressFollower", "decided_rounds", "stage_of"]

_STAGES: Final = frozenset({"enrolling", "delivering", "closing", "done"})
_DECIDED: Final = frozenset({"pacing", "delivering"})
"""Phases in which the current round is already decided."""


def stage_of(phase: str) -> str:
    """The curator's phase; all phases of a round count as one, since they change too fast to follow."""
    return phase if phase in _STAGES else "rounds"


def decided_rounds(machine: CuratorMachine) -> int:
    """The last round that is decided."""
    return machine.round if machine.phase in _DECIDED else max(0, machine.round - 1)


class ProgressFollower:
    """Follows a session from round to round."""

    def __init__(self, session: SessionFile, machine: CuratorMachine) -> None:
        self._session = session
        self._machine = machine
        self._pace = Pace()

    def note(self, now: float) -> None:
        """Note the session's state; called at every turn of a loop, or after every round."""
        machine = self._machine
        if machine.round and stage_of(machine.phase) == "rounds":
            self._pace.note(now, decided_rounds(machine), machine.ledger.chosen)

    def progress(self) -> Progress:
        """The session's progress, for the curator's operator.

        A status file omits the points where a rule asks owners (`hushbid.protocol.runtime.telemetry.vitals`).
        """
        machine, rounds = self._machine, self._session.rounds
        return Progress(
            party=CURATOR,
            phase=stage_of(machine.phase),
            round=machine.round,
            rounds=rounds,
            points=machine.ledger.chosen,
            points_planned=self._session.session.points,
            points_per_second=self._pace.points_per_second,
            seconds_left=self._pace.seconds_left(rounds) if stage_of(machine.phase) == "rounds" else None,
            paused=machine.paused,
            owners_connected=sum(seat.connected for seat in machine.seats.values()),
            owners=len(machine.owners),
            missing=self._missing(),
        )

    def _missing(self) -> tuple[str, ...]:
        """The parties that the curator waits for, if owners may be named beside a round.

        Where a rule asks owners, a round waits for a lost owner that was asked and not for one that was not.
        A name beside a round would reveal who was asked, so owners are named only before the first round.
        """
        machine = self._machine
        asked = machine.round > 0 and asks(self._session.acquisition.rule)
        if asked or stage_of(machine.phase) not in ("enrolling", "rounds"):
            return ()
        missing = [CONSUMER] if machine.awaits_consumer else []
        missing += machine.away
        return tuple(missing[:MOST_NAMED])
