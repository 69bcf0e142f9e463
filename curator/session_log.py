"""The curator's log of a session: lines derived from ledger and seats after each step.

Under a rule that asks owners for points, the asked owners and the winners are private. The log may name an
owner for the state of its connection, or for a missing bid, which every owner owes. It never names an owner
for a point that it was asked for, whether the point is missing or wrong. No line says in which round it was
written. Neither the presence nor the absence of a line may reveal who was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.progress import decided_rounds, stage_of
from hushbid.curator.seat import Seat
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import SessionLog, ending_event
from hushbid.protocol.session.session import Session

__all__ = ["CuratorLog"]


class CuratorLog:
    """Logs what changed in a session; the machine is at the end of its transcript at first."""

    def __init__(self, session: Session, machine: CuratorMachine) -> None:
        self.say = SessionLog(self._where)
        self.absences = 0
        """Number of absences of owners from a round for a reason that may be logged."""
        self._session = session.file
        self._machine = machine
        self._asks = not session.rule.candidate_with_bid
        self._herds = session.rule.herds
        self._entered = ("rounds", "delivering") if self._herds else ("enrolling", "rounds")
        """The stages between which owners can no longer come: to a tender they may as long as it is open."""
        self._stage = stage_of(machine.phase)
        self._decided = decided_rounds(machine)
        self._paused = self._for_consumer = False
        self._faults, self._disputes = len(machine.ledger.faults), len(machine.ledger.disputes)
        self._absent: dict[str, tuple[str, int]] = {}
        """Absent owners: the reason, and the number of rounds so far."""
        self._submitted = {owner for owner in machine.owners if machine.submitted(owner)}
        self._unnamed = 0
        """Most owners that were asked and did not answer in one round."""

    def follow(self) -> None:
        """Log the changes of the last step."""
        machine = self._machine
        if len(machine.ledger.faults) > self._faults:
            self._note_faults()
        if self._herds:
            self._note_submissions()
        decided = decided_rounds(machine)
        if decided > self._decided:
            self._decided = decided
            self._note_absences(decided)
        if machine.paused != self._paused:
            self._note_pause()
        if len(machine.ledger.disputes) > self._disputes:
            count = len(machine.ledger.disputes) - self._disputes
            self._disputes += count
            self.say(LogEvent.DELIVERY_DISPUTED, count=count)
        if stage_of(machine.phase) != self._stage:
            self._note_stage()

    @property
    def decided(self) -> int:
        return self._decided

    def over(self, finish: Finish) -> None:
        """Log how the session ended."""
        self.say(ending_event(finish), reason=finish.reason)

    @contextmanager
    def noting_late_bid(self, peer: str) -> Iterator[None]:
        """Log a bid that a peer delivers within this block, if it comes late."""
        seat = self._machine.seats.get(peer)
        before, due = (seat.bid if seat is not None else None), self._machine.round
        yield
        bid = seat.bid if seat is not None else None
        if seat is not None and bid is not None and bid is not before and (seat.late or bid.round < due):
            self.say(LogEvent.BID_LATE, peer=peer)

    def _where(self) -> Mapping[str, Any]:
        stage, round_number = stage_of(self._machine.phase), self._machine.round
        # A round waits for a lost owner only if it was asked. The round in which its connection ended, or in
        # which rounds paused for it, would reveal that it was asked.
        return (
            {"phase": stage, "round": round_number} if round_number and not self._asks else {"phase": stage}
        )

    def _enrolled(self, owner: str) -> bool:
        return self._machine.seats[owner].enrolled

    def _note_submissions(self) -> None:
        for owner in self._machine.owners:
            if owner not in self._submitted and self._machine.submitted(owner):
                self._submitted.add(owner)
                owners = len(self._machine.owners)
                self.say(LogEvent.OWNER_SUBMITTED, peer=owner, submitted=len(self._submitted), owners=owners)

    def _note_absences(self, decided: int) -> None:
        """Log owners that are absent from the decided round and were present in the one before."""
        machine = self._machine
        why = {}
        unnamed = 0
        for absence in reversed(machine.ledger.absences):
            if absence.round != decided:
                break
            seat = machine.seats[absence.owner]
            if seat.out and not seat.faulty and absence.owner in self._absent:
                why[absence.owner] = "out of the session"
            elif (reason := self._reason(seat, decided)) is not None:
                why[absence.owner] = reason
            elif seat.asked and seat.connected:
                unnamed += 1
        self.absences += len(why)
        for owner, (reason, rounds) in list(self._absent.items()):
            if why.get(owner) != reason:
                del self._absent[owner]
                if owner not in why:
                    self.say(LogEvent.OWNER_TAKES_PART, peer=owner, reason=reason, rounds=rounds)
        for owner, reason in sorted(why.items()):
            if owner not in self._absent:
                self.say(LogEvent.OWNER_ABSENT, peer=owner, round=decided, reason=reason)
            self._absent[owner] = reason, self._absent.get(owner, ("", 0))[1] + 1
        if unnamed > self._unnamed:
            self._unnamed = unnamed
            self.say(LogEvent.OWNERS_SILENT_WHEN_ASKED, count=unnamed, round=decided)

    def _reason(self, seat: Seat, decided: int) -> str | None:
        """Why an owner is absent from the last decided round; None if that must not be logged."""
        if seat.faulty:
            return None if self._asks else "misbehaving"
        if not seat.enrolled:
            return "not enrolled"
        if seat.asked and seat.bid is not None and (seat.connected or seat.bid.round == decided):
            # If it had not been asked in this round, it would be present, connected or not.
            return None
        if seat.late or 0 < seat.broadcast <= decided:
            return "late" if seat.connected else "unreachable"
        return "unreachable"

    def _note_faults(self) -> None:
        faults = self._machine.ledger.faults[self._faults :]
        self._faults += len(faults)
        for fault in faults:
            if self._asks:
                self.say(LogEvent.POINT_REFUSED, what=fault.text)
            else:
                self.say(LogEvent.OWNER_MISBEHAVED, peer=fault.owner, what=fault.text)

    def _note_pause(self) -> None:
        self._paused = self._machine.paused
        if self._paused and self._machine.awaits_consumer:
            self._for_consumer = True
            self.say(LogEvent.CONSUMER_AWAITED, seconds=self._session.timeouts.pause)
        elif self._paused:
            least, seconds = self._session.session.min_owners, self._session.timeouts.pause
            missing, owners = self._machine.away, len(self._machine.owners)
            self.say(
                LogEvent.ROUNDS_PAUSED,
                least=least,
                seconds=seconds,
                connected=owners - len(missing),
                owners=owners,
                missing=missing,
            )
        else:
            self.say(LogEvent.CONSUMER_BACK if self._for_consumer else LogEvent.ROUNDS_GO_ON)
            self._for_consumer = False

    def _note_stage(self) -> None:
        before, self._stage = self._stage, stage_of(self._machine.phase)
        if (before, self._stage) == self._entered:
            takes_part = self._machine.submitted if self._herds else self._enrolled
            missing = [owner for owner in self._machine.owners if not takes_part(owner)]
            owners = len(self._machine.owners)
            self.say(
                LogEvent.ENROLMENT_OVER,
                enrolled=owners - len(missing),
                owners=owners,
                missing=missing,
            )
        if self._stage != "done":
            self.say(LogEvent.PHASE_BEGUN, phase=self._stage)
