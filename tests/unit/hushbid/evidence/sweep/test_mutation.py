"""A misbehaving owner's changes to its own frames."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.evidence.sweep.mutation import MUTATIONS, Mutator
from hushbid.protocol import limits
from hushbid.protocol.errors import HushbidError
from hushbid.protocol.wire.codec import (
    Direction,
    Frame,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
)
from hushbid.protocol.wire.messages import Batch, Bid, Candidates, Hello, Message, Ready, unfixed
from tests.simulation.harness import CuratorBench, corners, names, session_file, weights_of

WEIGHTS = weights_of(1, 2, 3, 4)


def messages() -> list[Message]:
    """A bid, batches of open and of sealed points, and a greeting."""
    points = [(row, number) for number, row in enumerate(corners()[:2], start=1)]
    one, many, sealed = (
        CuratorBench(session_file(owners=names(1), points=4, rule=rule, batch=batch))
        for rule, batch in (("ask-all", 1), ("ask-all", 2), ("sealed", 2))
    )
    return [
        one.bid(1, *points[0], WEIGHTS),
        many.batch(1, points, WEIGHTS),
        sealed.batch(1, points, WEIGHTS),
        one.hello(names(1)[0]),
    ]


def oversized(message: Message) -> list[list[bytes] | None]:
    data = encode_frame(Frame(bytes(16), 1, 0, encode_message(message)))
    return [MUTATIONS["oversized"](Mutator(np.random.default_rng(seed), 1.0), data) for seed in range(30)]


def taken(data: bytes) -> Message | None:
    """The curator's reading of a frame; None: it refuses it."""
    try:
        return decode_message(Direction.OWNER_TO_CURATOR, decode_frame(data).body)
    except HushbidError:
        return None


@pytest.mark.parametrize("message", messages(), ids=["bid", "batch", "sealed-batch", "hello"])
def test_an_oversized_frame_has_an_endless_body_or_a_number_beyond_the_limit(message: Message) -> None:
    found = [taken(data) for made in oversized(message) for data in made or ()]
    assert len(found) == 30
    assert None in found, "a body without an end, or a field over its limit"
    beyond = [other for other in found if other is not None]
    for other in beyond:
        if isinstance(other, Bid):
            assert unfixed(other.handle) > limits.MAX_POINTS
        elif isinstance(other, Batch):
            attributes = other.candidates.attributes if isinstance(other.candidates, Candidates) else b""
            most = limits.MAX_ATTRIBUTES * len(other.handles)
            assert other.handles.min() > limits.MAX_POINTS or len(attributes) > most
        else:
            assert isinstance(other, Hello)
            assert other.sent == other.received == 2**53


def test_what_has_no_number_is_made_endless_or_left() -> None:
    found = oversized(Ready())
    assert None in found
    assert all(taken(data) is None for made in found for data in made or ())
