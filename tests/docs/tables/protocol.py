"""Tables and diagrams of docs/protocol.md, docs/wire.md and docs/transcript-format.md."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

import numpy as np
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import hushbid.consumer.blind_rounds
import hushbid.consumer.events
import hushbid.consumer.machine
import hushbid.curator.events
import hushbid.curator.machine
import hushbid.owner.events
import hushbid.owner.machine
from hushbid.protocol import limits
from hushbid.protocol.config.invitation import Invitation
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.errors import ExitCode, Offence
from hushbid.protocol.machine import base, machine, weighing
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.accounting import costs as cost_kinds
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire import blind, committed, messages, unlinked
from hushbid.protocol.wire.codec import Direction
from tests.docs.demonstrations import RULES as RECORDED
from tests.docs.demonstrations import sequence
from tests.docs.tables.diagrams import mermaid
from tests.docs.tables.markers import OWN, Made, Table, code, codes, first_cells
from tests.simulation.harness import candidate_of, names, session_file
from tests.support.message_cases import CASES

# -- messages -------------------------------------------------------------------------------------------

PARTIES: Final = {
    frozenset({Direction.OWNER_TO_CURATOR}): "owner → curator",
    frozenset({Direction.CONSUMER_TO_CURATOR}): "consumer → curator",
    frozenset({Direction.CURATOR_TO_OWNER}): "curator → owner",
    frozenset({Direction.CURATOR_TO_CONSUMER}): "curator → consumer",
    frozenset({Direction.OWNER_TO_CURATOR, Direction.CONSUMER_TO_CURATOR}): "all → curator",
    frozenset({Direction.CONSUMER_TO_CURATOR, Direction.CURATOR_TO_OWNER}): "consumer → curator → owner",
    frozenset({Direction.CURATOR_TO_OWNER, Direction.CURATOR_TO_CONSUMER}): "curator → all",
    frozenset(Direction) - {Direction.GREETING}: "all → all",
}


def _below(kind: type[messages.Message]) -> Iterator[type[messages.Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _example(kind: str) -> Any:
    return next(case.message for case in CASES.values() if case.message.kind == kind)


_LAST: Final = {committed.__name__: 1, blind.__name__: 2, unlinked.__name__: 3}
MESSAGES: Final = {
    each.model_fields["kind"].default: each
    for each in sorted(_below(messages.Message), key=lambda kind: _LAST.get(kind.__module__, 0))
}
"""All of them by kind, in their order; those of `blind` stand last."""
PARTS: Final[dict[str, BaseModel]] = {
    "candidate": _example("offer").candidate,
    "sealed candidate": CASES["bid-sealed"].message.candidate,  # type: ignore[attr-defined]
    "candidates": _example("batch").candidates,
    "submitted candidate": CASES["delivery-submitted"].message.purchases[0].candidate,  # type: ignore[attr-defined]
    "sealed candidates": CASES["batch-sealed"].message.candidates,  # type: ignore[attr-defined]
    "batched candidate": CASES["delivery-batched"].message.purchases[0].candidate,  # type: ignore[attr-defined]
    "purchase": _example("delivery").purchases[0],
    "blind candidate": _example("award").purchases[0].candidate,
    "blind purchase": _example("award").purchases[0],
    "chosen place": _example("choice").chosen[0],
    "picked box": _example("picked").boxes[0],
}
"""What stands in several messages."""
_LENGTHS: Final = {
    **{"score": "1", "handle": "1", "place": "1", "scores": "b", "handles": "b", "basis": "F·d"},
    **dict.fromkeys(("settlement", "errors", "gains", "gain_errors", "sold", "void"), "K"),
}
"""Of arrays that do not have d numbers."""
_OF_MANY: Final = (messages.Candidates, messages.SealedCandidates)
"""Parts whose arrays have as many numbers for each point of a batch."""
_PLAIN: Final = {bool: "boolean", bytes: "bytes"}


def sender_and_receiver(kind: str) -> str:
    """Who may send a message to whom."""
    allowed = next(case.allowed for case in CASES.values() if case.message.kind == kind)
    return PARTIES[allowed - {Direction.GREETING}]


def fields(example: BaseModel) -> Table:
    """The fields of a message or its part, with their types as far as these are plain."""
    model = type(example).model_fields
    kinds = {name: kind_of(name, field, getattr(example, name)) for name, field in model.items()}
    if isinstance(example, _OF_MANY):
        kinds = {name: kind and kind.replace("(d)", "(b·d)") for name, kind in kinds.items()}
    return Table([(code(name), kind) for name, kind in kinds.items()])


def kind_of(name: str, field: FieldInfo, value: Any) -> str | None:
    """The type of a field; for an array the example shows the type of its numbers."""
    some = [each for each in get_args(field.annotation) if each is not NoneType]
    if NoneType in get_args(field.annotation):
        found = kind_of(name, FieldInfo.from_annotation(some[0]), value)
        return found and f"{found} or nil"
    if isinstance(value, np.ndarray):
        return OWN if name in ("point", "points") else f"{value.dtype.name} ({_LENGTHS.get(name, 'd')})"
    bound = {
        key: getattr(part, key)
        for part in field.metadata
        for key in ("ge", "min_length", "max_length", "pattern")
        if getattr(part, key, None) is not None
    }
    if field.annotation is str or get_origin(field.annotation) is Literal:
        return "name" if bound.get("pattern") else "text"
    if field.annotation is int:
        return "count" if bound["ge"] == 0 else "integer"
    if field.annotation is bytes and "min_length" in bound and bound["min_length"] == bound["max_length"]:
        return f"{bound['min_length']} bytes"
    return _PLAIN.get(field.annotation) if isinstance(field.annotation, type) else OWN


def maxima() -> Table:
    """All limits with their values; the page chooses."""
    return Table([(code(name), str(value)) for name, value in vars(limits).items()], chosen=True)


# -- transcripts ----------------------------------------------------------------------------------------

_ZEROS, _TOTALS = np.zeros(4), np.zeros(4, dtype=np.int64)
SESSION: Final = session_file(owners=names(2), points=3)
EXAMPLES: Final[tuple[machine.Event | machine.Effect, ...]] = (
    started(SESSION),
    machine.Restarted(),
    machine.Connected(),
    machine.Lost(CURATOR),
    machine.Returned(CURATOR),
    machine.TimerFired("round", 1),
    machine.Received(CURATOR, 1, 1, b"", messages.Beat()),
    machine.Offended(CURATOR, 1, 1, Offence.MALFORMED, "what", "advice"),
    machine.Send(CURATOR, 1, 1, "beat", b""),
    machine.SetTimer("round", 1, 1.0),
    machine.Charge("add-remove-one", 1, 1, (), machine.ChargedData.OWNERS),
    machine.HeadSigned(bytes(32), b""),
    machine.Finish(ExitCode.DONE, "reason", "advice"),
    weighing.NoiseDrawn(1, ()),
    weighing.WeightsComputed(1, np.zeros(4, dtype=np.int32)),
    hushbid.curator.events.CandidatesChecked(None, ()),
    hushbid.owner.events.RowsCommitted(b"root", b"signature"),
    hushbid.owner.events.MapOpened(),
    hushbid.owner.events.MapRefused("what", "advice"),
    hushbid.owner.events.Scored(1, (0,), (0,), candidate_of(np.zeros(4, dtype=np.int16)), b""),
    hushbid.consumer.events.TargetReleased(_ZEROS, 1, _TOTALS, 1, b"", b"", "none", ()),
    hushbid.consumer.events.PurchasesChecked((), None),
    hushbid.owner.events.BlindScored(1, np.zeros(4, dtype=np.int32), (0,), b"", b"", b"", b"", b""),
    hushbid.owner.events.BroadcastRefused("what", "advice"),
    hushbid.curator.events.BidsChecked((True,)),
    hushbid.consumer.events.WeightSealed(1, b"", b""),
    hushbid.consumer.events.AccountMade(_example("account")),
    hushbid.consumer.events.RoundOpened(1, b"", b"", b""),
    hushbid.consumer.events.ChoicePlaced(1, (1,)),
)
"""One of each event and effect that can be on record."""
COSTS: Final[tuple[cost_kinds.Cost, ...]] = (
    cost_kinds.GaussianCost(noise_multiplier=1.0, count=1),
    cost_kinds.DiscreteGaussianCost(sensitivity=1.0, sigma=1.0, width=1, count=1),
    cost_kinds.LaplaceCost(epsilon=1.0, count=1),
    cost_kinds.BoundedRangeCost(eta=1.0, count=1),
    cost_kinds.ZcdpCost(rho_each=1.0, count=1),
    cost_kinds.ApproximateCost(epsilon=1.0, delta=0.1, count=1),
)
"""One of each kind."""


def on_record() -> Table:
    """Kinds of events and effects with their public and private fields."""
    items = [example.item() for example in EXAMPLES]
    return Table([(code(item.kind), codes(item.public), codes(item.private)) for item in items])


def costs() -> Table:
    """Kinds of costs with their numbers."""
    found = [cost_kinds.cost_to_record(example) for example in COSTS]
    own = ("kind", "count")
    return Table([(code(cost["kind"]), codes(name for name in cost if name not in own)) for cost in found])


# -- the pages ------------------------------------------------------------------------------------------


def diagram(table: base.TransitionTable[Any]) -> str:
    """A machine's phases."""
    return f"```mermaid\n{mermaid(table)}\n```\n"


PROTOCOL: Final[dict[str, Made]] = {
    "rules": partial(first_cells, RULES, ordered=False),
    "messages": lambda: Table([(code(kind), sender_and_receiver(kind)) for kind in MESSAGES]),
    "offences": partial(first_cells, Offence),
    "timeouts": lambda: Table(
        [(code(name), f"{field.default:g}") for name, field in TimeoutSection.model_fields.items()]
    ),
    "curator's phases": partial(diagram, hushbid.curator.machine.OPEN),
    "owner's phases": partial(diagram, hushbid.owner.machine.OPEN),
    "consumer's phases": partial(diagram, hushbid.consumer.machine.OPEN),
    "blind curator's phases": partial(diagram, hushbid.curator.machine.BLIND),
    "blind owner's phases": partial(diagram, hushbid.owner.machine.BLIND),
    "blind consumer's phases": partial(diagram, hushbid.consumer.blind_rounds.BLIND),
    "unlinked curator's phases": partial(diagram, hushbid.curator.machine.UNLINKED),
    "unlinked consumer's phases": partial(diagram, hushbid.consumer.blind_rounds.UNLINKED),
    **{f"demonstration of {rule}": partial(sequence, rule) for rule in RECORDED},
}
WIRE: Final[dict[str, Made]] = {
    "limits": maxima,
    "limits of the socket": maxima,
    "offences": partial(first_cells, Offence),
    **{f"fields of {kind}": partial(fields, _example(kind)) for kind in MESSAGES},
    **{f"fields of {name}": partial(fields, example) for name, example in PARTS.items()},
    "invitation": partial(first_cells, Invitation.model_fields, ordered=False),
}
TRANSCRIPT: Final[dict[str, Made]] = {"events and effects": on_record, "costs": costs}
