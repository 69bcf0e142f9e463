"""Steps of a curator that asks only the winners, as a transcript records them."""

from __future__ import annotations

import numpy as np

from hushbid.protocol.wire.codec import encode_message
from hushbid.protocol.wire.messages import Ask, Bid, Broadcast, Message, fixed
from hushbid.protocol.wire.values import Item, Value
from tests.support.transcripts import Step


def frame(kind: str, peer: str, message: Message, *, sequence: int = 1, acknowledged: int = 0) -> Item:
    """A frame that was `received` from a peer, or one to `send` to it."""
    fields: dict[str, Value] = {
        "peer": peer,
        "sequence": sequence,
        "acknowledged": acknowledged,
        "message": message.kind,
        "body": encode_message(message),
    }
    return Item(kind, {}, {"frame": fields})


def bid(peer: str, number: int, score: int = 7) -> Item:
    """A received bid."""
    message = Bid(round=number, exhausted=False, score=fixed(score), handle=fixed(number), candidate=None)
    return frame("received", peer, message)


def broadcast(peer: str, number: int, weight: int = 5) -> Item:
    """A broadcast to send."""
    message = Broadcast(round=number, weights=np.array([weight, -1], np.int32), noise="simulated")
    return frame("send", peer, message)


def ask(peer: str, number: int) -> Item:
    """A question for the point behind a bid."""
    return frame("send", peer, Ask(round=number, handle=fixed(number)))


def weights(number: int, weight: int = 5) -> Item:
    """The outcome that a round's broadcasts are made of."""
    return Item("weights-computed", {"round": number}, {"weights": np.array([weight, -1], np.int32)})


def timer(name: str, attempt: int, due: float) -> Item:
    """A timer that was set."""
    return Item("set-timer", {"name": name, "attempt": attempt, "due": due}, {})


TICK = Item("tick", {}, {})
STEPS: list[Step] = [
    (0.0, Item("started", {"configuration": {"p": 2}}, {"seeds": {"noise": 5}}), ()),
    (1.0, TICK, (weights(1), broadcast("heron", 1), broadcast("wren", 1), timer("round", 1, 9.0))),
    (2.0, bid("heron", 1), ()),
    (3.0, bid("wren", 1), (ask("wren", 1),)),
    (4.0, TICK, (weights(2), broadcast("heron", 2), broadcast("wren", 2), timer("round", 2, 12.0))),
    (5.0, bid("wren", 2), ()),
    (6.0, bid("heron", 1), ()),
    (7.0, Item("lost", {}, {"peer": "heron"}), ()),
    (8.0, Item("timer", {"name": "round", "attempt": 2}, {}), (ask("wren", 2),)),
]
"""Two rounds of two owners; a bid of round 1 comes late, and its owner is lost."""
