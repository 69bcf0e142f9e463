"""The machine interface: the events that enter a role's machine, and the effects that leave it.

Time, noise, floating-point results and the network enter a machine only as events, so the same events always
give the same effects. `hushbid.protocol.machine.base` has the machine itself.
"""

from __future__ import annotations

import hashlib
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, Self

from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence
from hushbid.protocol.privacy.accounting import Cost, cost_to_record
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import (
    Batch,
    Message,
    NestedTarget,
    Submission,
    SubspaceTarget,
    without_box,
)
from hushbid.protocol.wire.values import Item, Value

__all__ = [
    "Charge",
    "ChargedData",
    "Computation",
    "Connected",
    "Effect",
    "Event",
    "Finish",
    "HeadSigned",
    "Lost",
    "Offended",
    "Received",
    "Restarted",
    "Returned",
    "Send",
    "SetTimer",
    "SignHead",
    "Started",
    "TimerFired",
]


class _Recorded(ABC):
    """What a transcript records. Subclasses are frozen dataclasses with the same fields as their item."""

    KIND: ClassVar[str]
    PUBLIC: ClassVar[tuple[str, ...]] = ()
    """The fields that are public in the item; all others are private."""
    __match_args__: ClassVar[tuple[str, ...]] = ()  # a dataclass has its fields' names in it

    def item(self) -> Item:
        fields = {name: getattr(self, name) for name in self.__match_args__}
        public = {name: fields.pop(name) for name in self.PUBLIC}
        return Item(self.KIND, public, fields)


class Event(_Recorded):
    """Something that happened."""

    @property
    def trigger(self) -> str:
        """Its name in a transition table."""
        return self.KIND

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        """Rebuild the event from its item's fields, public and private."""
        return cls(**fields)


class Effect(_Recorded):
    """Something to do."""


class Computation(Effect):
    """Something to compute within the party; the transcript records only its outcome, an event."""

    HAS_OUTCOME: ClassVar[bool] = True
    """Whether it results in an event; otherwise it only changes the party's stored state, and may be
    repeated.
    """
    LONG: ClassVar[bool] = False
    """Whether it may take longer than a health check waits for a party's loop."""

    def item(self) -> Item:
        raise LocalProtocolError(f"A {self.KIND} is not recorded; its outcome is.")


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The process is up. The event contains the session, so that a transcript is self-contained.

    `hushbid.protocol.transcript.session_file.started` makes one from a session file.
    """

    KIND: ClassVar[str] = "started"
    PUBLIC: ClassVar[tuple[str, ...]] = ("configuration",)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """The session file without its seeds."""
    seeds: Mapping[str, Any] = field(default_factory=dict)
    data: bytes = b""
    """Digest of the party's data (`hushbid.protocol.data.dataset_digest`); empty if it has none."""


@dataclass(frozen=True, slots=True)
class Restarted(Event):
    """The process ended and is up again: the machine is as in its transcript, apart from connections."""

    KIND: ClassVar[str] = "restarted"


@dataclass(frozen=True, slots=True)
class Connected(Event):
    """A connection to the curator is established (owners and consumer)."""

    KIND: ClassVar[str] = "connected"


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A peer was silent for longer than the session's limit, or its connection ended."""

    KIND: ClassVar[str] = "lost"
    peer: str


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """A lost peer shows signs of life again on its old connection."""

    KIND: ClassVar[str] = "returned"
    peer: str


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    """A timer has run out. `attempt` distinguishes it from an earlier one of the same name."""

    KIND: ClassVar[str] = "timer"
    PUBLIC: ClassVar[tuple[str, ...]] = ("name", "attempt")
    name: str
    attempt: int

    @property
    def trigger(self) -> str:
        return f"timer:{self.name}"


# No state tells a target in a subspace from a target, or a batch from a bid.
_TRIGGERS: Final[Mapping[type[Message], str]] = {
    SubspaceTarget: "target",
    NestedTarget: "target",
    Batch: "bid",
    Submission: "bid",
}


@dataclass(frozen=True, slots=True)
class Received(Event):
    """A frame of a peer was received and decoded."""

    KIND: ClassVar[str] = "received"
    peer: str
    sequence: int
    acknowledged: int
    body: bytes
    message: Message

    @property
    def trigger(self) -> str:
        kind = _TRIGGERS.get(type(self.message), self.message.kind)
        return f"received:{kind}"

    def item(self) -> Item:
        kept = without_box(self.message)
        if kept is None:
            return _frame_item(self, self.message.kind, self.body)
        # An unsold box is destroyed at the end (DESIGN §3), so a transcript contains only its digest.
        digest = hashlib.sha256(self.body).digest()
        return _frame_item(self, self.message.kind, encode_message(kept), digest=digest)


@dataclass(frozen=True, slots=True)
class Offended(Event):
    """A peer broke the protocol: the decoder or a step refused one of its frames."""

    KIND: ClassVar[str] = "offended"
    peer: str
    sequence: int
    acknowledged: int
    offence: Offence
    detail: str
    advice: str

    def item(self) -> Item:
        item = Event.item(self)
        return item._replace(private={**item.private, "offence": self.offence.value})

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "offence": Offence(fields["offence"])})


@dataclass(frozen=True, slots=True)
class Send(Effect):
    """Send a frame. Sequence 0 makes the link; the link holds any other frame until it is acknowledged."""

    KIND: ClassVar[str] = "send"
    peer: str
    sequence: int
    acknowledged: int
    kind: str
    body: bytes

    def item(self) -> Item:
        return _frame_item(self, self.kind, self.body)


@dataclass(frozen=True, slots=True)
class SetTimer(Effect):
    """Fire `TimerFired(name, attempt)` at `due`, replacing an earlier timer of that name."""

    KIND: ClassVar[str] = "set-timer"
    PUBLIC: ClassVar[tuple[str, ...]] = ("name", "attempt", "due")
    name: str
    attempt: int
    due: float


@dataclass(frozen=True, slots=True)
class SignHead(Computation):
    """Sign the transcript up to this step, so that it cannot be rewritten later."""

    KIND: ClassVar[str] = "sign-head"


@dataclass(frozen=True, slots=True)
class HeadSigned(Event):
    """The head of the transcript before this record, signed by the party."""

    KIND: ClassVar[str] = "head-signed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("head", "signature")
    head: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Finish(Effect):
    """The party is done; its process ends with `code` once its frames have left."""

    KIND: ClassVar[str] = "finish"
    code: ExitCode
    reason: str
    advice: str = ""
    final: bool = True
    """Whether the session is over for the party. If not, its process ends and its machine stays in its phase;
    a restarted process resumes from there, when the obstacle may be gone. The frame that led to it is not
    recorded: it may be from a curator other than the session's.
    """

    def item(self) -> Item:
        return Item(self.KIND, {"code": int(self.code)}, {"reason": self.reason, "advice": self.advice})


class ChargedData(StrEnum):
    """Whose data a charge is about."""

    CONSUMER = "consumer"
    OWNERS = "owners"

    @classmethod
    def recorded(cls, neighbours: object) -> ChargedData:
        """Of a recorded charge, which does not say it: only the costs of D_v compare by substitution.

        Raises:
            ValueError: There is no such neighbour relation.
        """
        return cls.CONSUMER if Neighbours(str(neighbours)) is Neighbours.SUBSTITUTE_ONE else cls.OWNERS


@dataclass(frozen=True, slots=True)
class Charge(Effect):
    """Charge releases to a budget. The charge is recorded durably before any of them leaves."""

    KIND: ClassVar[str] = "charge"
    PUBLIC: ClassVar[tuple[str, ...]] = ("neighbours", "first", "last", "costs")
    neighbours: str
    """The datasets that the costs compare."""
    first: int
    """Number of the first release, from 1."""
    last: int
    costs: tuple[Cost, ...]
    """The cost of all these releases together."""
    subject: ChargedData

    def item(self) -> Item:
        item, costs = Effect.item(self), [cost_to_record(cost) for cost in self.costs]
        return item._replace(public={**item.public, "costs": costs}, private={})  # without the subject


def _frame_item(frame: Received | Send, message: str, body: bytes, **more: bytes) -> Item:
    """A frame as a transcript item.

    Only its number is public: who was asked, who was present and who won depend on data.
    """
    fields: dict[str, Value] = {
        "peer": frame.peer,
        "sequence": frame.sequence,
        "acknowledged": frame.acknowledged,
        "message": message,
        "body": body,
        **more,
    }
    return Item(frame.KIND, {}, {"frame": fields})
