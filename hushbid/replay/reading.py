"""One party's transcript, record by record: the rows of a replay, and what the party had after each.

The party's machine goes along where private fields are there (`hushbid.transcripts.replay`): it tells its
phase, what it chose and whom it missed. A redacted copy tells times, kinds and rounds.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.consumer.events import TargetReleased
from hushbid.consumer.machine import ConsumerMachine
from hushbid.curator.ledger import Ledger
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import (
    Charge,
    ChargedData,
    Finish,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    Send,
    Started,
    TimerFired,
)
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.record import Header, Record, RecordedItem
from hushbid.protocol.transcript.replay import filler_box
from hushbid.protocol.wire.codec import encode_message, read_message, said_to
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, with_boxes
from hushbid.protocol.wire.values import unpack_value
from hushbid.replay.offers import BRINGING, HandedPoints
from hushbid.replay.rows import Key, Row

__all__ = ["ENDING", "HIDDEN", "Reading"]

ENDING: Final = 2**31
"""Stands for the round of what comes after the last: the delivery, and the end."""
HIDDEN: Final = "not in this copy"
"""The kind of a message that was taken out."""
_ENDS: Final = frozenset({"delivery", "receipt", "account", "close", "farewell"})
_ANSWERS: Final = frozenset({"bid", "batch", "submission", "blind-bid", "offer"})
_NOTED: Final = frozenset({"refused", "delivery", "close"})
_TOLD_TIMERS: Final = frozenset({"enrolment", "round", "pause", "delivery", "closing"})


class _Finding(NamedTuple):
    """Something that a party noted about others, or itself, in a step."""

    what: str
    parties: Sequence[str]
    note: str


class Reading:
    """The rows of one transcript, taken in record by record.

    Args:
        grouped: Make one row of the messages of one kind, round and direction.
    """

    def __init__(self, header: Header, session: Session, *, grouped: bool) -> None:
        self.header, self.session, self.grouped = header, session, grouped
        self.rows: list[Row] = []
        self.tracks: dict[str, list[tuple[int, Any]]] = {}
        self.records = 0
        self.round = 0
        self.redacted = False
        self.counts = {True: 0, False: 0}
        """Messages on record, by whether the party sent them."""
        self.sizes: dict[bool, int | None] = {True: 0, False: 0}
        self.finish: tuple[int, str | None] | None = None
        self.machine: Machine | None = None
        self.chosen_at: list[int] = []
        """For each point that was chosen, or delivered, the row from which the party knew."""
        self.delivered_at: list[int] = []
        """For each point that the consumer has, the row from which the consumer, or the curator, knew."""
        self.ends: list[int] = []
        """Rows there are after each record; later ones do not move them."""
        self.offers = HandedPoints()
        self.data = b""
        """The digest of the party's data, in its first record."""
        self.embedding: npt.NDArray[np.float64] | None = None
        """The consumer's released mean embedding; None where there is none."""
        self.map_seed = b""
        """The seed of the map that it drew; empty where the map is public."""
        self._began = 0.0
        self._ending = False
        self._sent: dict[str, int] = {}
        self._box_sizes: dict[tuple[str, int], int] = {}
        self._groups: dict[Key, Row] = {}
        self._seen = (0, 0, 0)
        self._directions = said_to(header.party)

    def take(self, record: Record, machine: Machine | None) -> None:
        """Take in the next record.

        Args:
            machine: The party's, after the record; None where private fields were taken out.

        Raises:
            KeyError, TypeError, ValueError: A redacted copy has records that no party makes.
        """
        if not self.records:
            self._began = record.now
        self.records += 1
        first = len(self.rows)
        self._take_item(record.event, record.now - self._began)
        told, happened_in = len(self.rows), self._number()
        for item in record.effects:
            self._take_item(item, record.now - self._began)
        if machine is not None:
            self.machine = machine
            self._take_machine(machine, record, (first, told), happened_in)
        self.ends.append(len(self.rows))

    # -- items ---------------------------------------------------------------------------------------------

    def _take_item(self, item: RecordedItem, seconds: float) -> None:
        kind = item.kind
        self.redacted = self.redacted or bool(item.redacted)
        if type(number := item.public.get("round")) is int and not self._ending:
            self.round = max(self.round, min(number, self.session.rounds))
        if kind in (Send.KIND, Received.KIND):
            self._take_frame(kind == Send.KIND, item.private.get("frame"), seconds)
        elif kind == Charge.KIND:
            self._take_charge(item)
        elif kind in (Lost.KIND, Returned.KIND):
            self._happened(kind, str(item.private.get("peer", "")), seconds)
        elif kind == Restarted.KIND:
            self._happened(kind, self.header.party, seconds)
        elif kind == Started.KIND:
            self.data = _bytes(item.private.get("data"))
        elif kind == TargetReleased.KIND:
            embedding = item.private.get("embedding")
            self.embedding = embedding if isinstance(embedding, np.ndarray) else None
            self.map_seed = _bytes(item.private.get("map_seed"))
        elif kind == Offended.KIND:
            told = item.private
            why = f"{told['offence']!s}: {told['detail']!s}" if "detail" in told else ""
            self._happened("refused peer", str(told.get("peer", "")), seconds, note=why)
        elif kind == Finish.KIND:
            reason = str(item.private["reason"]) if "reason" in item.private else None
            self.finish = _integer(item.public["code"]), reason
            self._ending = self._ending or self.finish[0] == 0  # which a redacted copy tells by this alone
            words = "" if reason is None else f": {reason}"
            self._happened("finish", self.header.party, seconds, note=f"exit code {self.finish[0]}{words}")

    def _take_charge(self, item: RecordedItem) -> None:
        try:
            subject = ChargedData.recorded(item.public["neighbours"])
        except ValueError:  # nothing is known of such a charge
            return
        whose = "target" if subject is ChargedData.CONSUMER else "rounds"
        self.track(f"charged_{whose}", _integer(item.public["last"]), len(self.rows))

    def _happened(self, what: str, party: str, seconds: float, *, note: str = "") -> None:
        self.rows.append(Row(self._number(), seconds, what, party, "", event=True, note=note))

    def _take_frame(self, sent: bool, frame: Any, seconds: float) -> None:
        own = self.header.party
        self.counts[sent] += 1
        if frame is None:
            self.sizes[sent] = None
            peer = "" if own == CURATOR else CURATOR
            ends = (own, peer) if sent else (peer, own)
            self._add(Row(self._number(), seconds, HIDDEN, *ends, peers=[peer if own == CURATOR else own]))
            return
        peer, kind, body = str(frame["peer"]), str(frame["message"]), frame["body"]
        fields = unpack_value(body)
        assert isinstance(fields, dict)
        late = self._place(kind, fields, sent)
        size = len(body) if "digest" not in frame else self._travelled(peer, kind, body)
        total = self.sizes[sent]
        self.sizes[sent] = None if total is None else total + size
        ends = (own, peer) if sent else (peer, own)
        row = Row(
            self._number(),
            seconds,
            kind,
            *ends,
            size=size,
            note=_note(kind, fields),
            again=sent and self._was_sent(peer, frame["sequence"]),
            late=late,
            arrived=not sent,
            peers=[peer if own == CURATOR else own],
        )
        shown = self._add(row, frame["sequence"], body)
        if kind in BRINGING and not row.again:
            self.offers.take(shown, fields)

    def _add(self, row: Row, sequence: int | None = None, body: bytes = b"") -> Row:
        """Append a row, or add its message to its group's; returns the row that has it."""
        if sequence is None:
            what: tuple[Any, ...] = (row.kind, row.round)
        elif self.grouped:
            what = (row.kind, row.round, row.again, row.late)
        elif sequence == CONTROL_SEQUENCE:
            what = (sequence, row.kind, hashlib.sha256(body).digest())
        else:
            what = (sequence,)
        if not self.grouped:
            row.key = None if sequence is None else Key(row.sender, row.receiver, what)
            self.rows.append(row)
            return row
        up = row.receiver == CURATOR
        far = "" if "" in (row.sender, row.receiver) else "consumer" if CONSUMER in row.peers else "owners"
        row.key = Key(far, "", what) if up else Key("", far, what)
        group = self._groups.get(row.key)
        if group is None:
            self._groups[row.key] = row
            self.rows.append(row)
            return row
        group.count += 1
        group.size = None if group.size is None or row.size is None else group.size + row.size
        group.peers += row.peers
        return group

    def _number(self) -> int:
        return ENDING if self._ending else self.round

    def _place(self, kind: str, fields: Mapping[str, Any], sent: bool) -> bool:
        """Move on to the round that a message names; whether it answers one that is over."""
        if kind in _ENDS:
            self._ending = True
        number = fields.get("round")
        if type(number) is not int or self._ending:
            return False
        if kind in _ANSWERS and self.header.party == CURATOR and not sent:
            return number < self.round
        self.round = max(self.round, number)
        return False

    def _travelled(self, peer: str, kind: str, body: bytes) -> int:
        """Bytes of a message of which only its boxes' digests are on record: a kind has one size of each."""
        found = self._box_sizes.get((kind, len(body)))
        if found is None:
            message = read_message(self._directions(peer), body)
            length = self.session.box_length
            whole = with_boxes(message, lambda digest: filler_box(digest, length))
            found = self._box_sizes[kind, len(body)] = len(encode_message(whole))
        return found

    def _was_sent(self, peer: str, sequence: int) -> bool:
        last = self._sent.get(peer, 0)
        self._sent[peer] = max(last, sequence)
        return CONTROL_SEQUENCE < sequence <= last

    # -- the machine ---------------------------------------------------------------------------------------

    def track(self, name: str, value: Any, row: int) -> None:
        """Note a value that holds once `row` rows are played."""
        changes = self.tracks.setdefault(name, [])
        if not changes or changes[-1][1] != value:
            changes.append((row, value))

    def _take_machine(self, machine: Machine, record: Record, event: tuple[int, int], number: int) -> None:
        """Note what the party has after a record, and what it found.

        Args:
            event: The rows before the event, and with it.
            number: The event's round.
        """
        first, told = event
        found = self._findings(machine, record)
        if found:
            self._insert(found, record.now - self._began, told, number)
        # What a step decides follows from its event, with whose row it is known; a timer has none.
        at = told if told > first else min(first + 1, len(self.rows))
        self.track("phase", machine.phase, at)
        if isinstance(machine, CuratorMachine):
            _know(self.chosen_at, len(machine.ledger.wins), at)
            _know(self.delivered_at, _receipted(machine), at)
            self.track("raw", machine.ledger.points_accessed, at)
            self.track("held", machine.ledger.candidates, at)
        elif isinstance(machine, OwnerMachine):
            self.track("handed", machine.handed_over, len(self.rows))  # with what it sends, not before
        elif isinstance(machine, ConsumerMachine):
            _know(self.chosen_at, len(machine.delivered), at)
            _know(self.delivered_at, len(machine.delivered), at)
            self.track("delivered", len(machine.delivered), at)

    def _insert(self, found: Sequence[_Finding], seconds: float, at: int, number: int) -> None:
        rows = [
            Row(
                number,
                seconds,
                what,
                parties[0] if len(parties) == 1 else "",
                "",
                event=True,
                note=note,
                count=len(parties),
                peers=list(parties),
            )
            for what, parties, note in found
        ]
        self.rows[at:at] = rows
        for changes in self.tracks.values():
            for place in range(len(changes) - 1, -1, -1):
                if changes[place][0] <= at:
                    break
                changes[place] = changes[place][0] + len(rows), changes[place][1]

    def _findings(self, machine: Machine, record: Record) -> list[_Finding]:
        """What the party has found since the record before, and a time that is over."""
        found: list[_Finding] = []
        timed = record.event.kind == TimerFired.KIND and record.effects
        if timed and (name := record.event.public["name"]) in _TOLD_TIMERS:
            found.append(_Finding("time", [self.header.party], f"the {name} time is over"))
        if isinstance(machine, CuratorMachine):
            found += self._books(machine.ledger)
        elif isinstance(machine, ConsumerMachine):
            faults = list(machine.faults)
            found += [_Finding("dispute", [fault.owner], fault.text) for fault in faults[self._seen[0] :]]
            self._seen = len(faults), 0, 0
        return found

    def _books(self, ledger: Ledger) -> list[_Finding]:
        absent, faults, disputes = self._seen
        found: list[_Finding] = []
        if gone := ledger.absences[absent:]:
            found.append(_Finding("absent", [each.owner for each in gone], f"round {gone[0].round}"))
        found += [_Finding("fault", [fault.owner], fault.text) for fault in ledger.faults[faults:]]
        disputed = Counter(each.owner for each in ledger.disputes[disputes:])
        found += [_Finding("dispute", [owner], f"points: {count}") for owner, count in disputed.items()]
        self._seen = len(ledger.absences), len(ledger.faults), len(ledger.disputes)
        return found


def _know(rows: list[int], points: int, at: int) -> None:
    rows += [at] * (points - len(rows))


def _receipted(machine: CuratorMachine) -> int:
    """How many points the consumer has by its receipts; under `blind` by its account, of all at once."""
    ending = machine.ending
    if machine.phase in ("closing", "done") and ending.outcome == "complete":
        return len(machine.ledger.wins)
    return sum(len(part.purchases) for part in ending.parts[: max(0, ending.part - 1)])


def _note(kind: str, fields: Mapping[str, Any]) -> str:
    """What a few kinds say, in words; of others, where an owner has nothing left."""
    if fields.get("exhausted") is True:
        return "no point is left"
    if kind not in _NOTED:
        return ""
    if kind == "refused":
        return f"{fields.get('code')}: {fields.get('detail')}"
    if kind == "close":
        return str(fields.get("outcome"))
    purchases = fields.get("purchases") or ()
    return f"part {fields.get('part')} of {fields.get('parts')}, {len(purchases)} points"


def _bytes(value: Any) -> bytes:
    """A private field that may have been taken out."""
    return value if isinstance(value, bytes) else b""


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("a public field is not an integer")
    return value
