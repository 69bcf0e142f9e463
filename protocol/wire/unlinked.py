"""The messages of the rule `blind` in which the curator cannot tell which score is which box's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import FailFast, Field

from hushbid.protocol import limits
from hushbid.protocol.wire import fields
from hushbid.protocol.wire.blind import BlindCandidate, SealedBroadcast
from hushbid.protocol.wire.fields import Message, Part

__all__ = [
    "NUMBER_BYTES",
    "PLACE_BYTES",
    "Choice",
    "Chosen",
    "Picked",
    "PickedBox",
    "Picks",
    "RoundOpening",
]

PLACE_BYTES = 4
"""Bytes of a place in `RoundOpening.taken`."""
NUMBER_BYTES = 8
"""Bytes of a box's number in `Picks.numbers`."""


class RoundOpening(Message):
    """A round's weight, and which places are not to be chosen from, as their boxes were bought.

    The curator passes the weight on as a `SealedBroadcast`, and keeps the rest to itself.
    """

    kind: Literal["round-opening"] = "round-opening"
    round: fields.Round
    box: Annotated[bytes, Field(min_length=1, max_length=limits.MAX_MESSAGE_BYTES)]
    signature: fields.Signature
    taken: Annotated[bytes, Field(max_length=limits.MAX_MESSAGE_BYTES)]
    """Places of the boxes bought so far, `PLACE_BYTES` each, big-endian: owner after owner in the order of
    names, and of each owner the lowest first.
    """

    def broadcast(self) -> SealedBroadcast:
        """What is passed on to owners."""
        return SealedBroadcast.model_construct(round=self.round, box=self.box, signature=self.signature)


class Chosen(Part):
    """A place that was chosen in a round."""

    owner: fields.Name
    place: fields.FixedSize
    """Of the score among those that the owner sent, from 0."""
    score: Annotated[bytes, Field(min_length=16, max_length=16)]
    """As masked by its owner in this round."""


class Choice(Message):
    """The places that a blind curator has chosen in a round, best first."""

    kind: Literal["choice"] = "choice"
    round: fields.Round
    chosen: Annotated[tuple[Chosen, ...], Field(max_length=limits.MAX_BATCH), FailFast()]


class Picks(Message):
    """The boxes that are behind the chosen places."""

    kind: Literal["picks"] = "picks"
    round: fields.Round
    numbers: Annotated[bytes, Field(max_length=NUMBER_BYTES * limits.MAX_BATCH)]
    """The owners' numbers of them, `NUMBER_BYTES` each, big-endian: for each chosen place one, owner after
    owner in the order of names, and of each owner the lowest first. So it does not show which is which.
    """


class PickedBox(Part):
    """A box that was asked for."""

    owner: fields.Name
    bid_round: fields.Round
    """The round in which it was sent. The owner's signature covers this field and the next."""
    handle: fields.FixedSize
    """The owner's number of the box."""
    candidate: BlindCandidate
    """Zeros throughout if the owner has sent no such box."""


class Picked(Message):
    """The boxes that the consumer asked for, in the order of `Picks`."""

    kind: Literal["picked"] = "picked"
    round: fields.Round
    boxes: Annotated[tuple[PickedBox, ...], Field(max_length=limits.MAX_BATCH), FailFast()]
