"""A simulated session of `blind` in version 4, with its curator's record."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, BlindKeys
from hushbid.protocol.machine.machine import Received, Send
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import Features
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import unfixed
from hushbid.protocol.wire.unlinked import NUMBER_BYTES, PLACE_BYTES, Choice, Picks, RoundOpening
from tests.statistics import blind_sessions
from tests.statistics.blind_sessions import BATCH, OWNERS, Matrix

__all__ = ["DEPTH", "Unlinked", "unlinked", "watched"]

DEPTH = 20
"""Of the trees that owners commit to their rows by."""
NEVER = 10**6
"""In the place of the round of a purchase that was none."""


class Watched(NamedTuple):
    """What a curator saw.

    Attributes:
        values: Owner and round → the masked scores in their places; None: one of no box.
        taken: Owner and round → places that it was told not to choose from.
        chosen: Round → owner, place and masked score of its choices, in order.
        picked: Round → owner and number of the boxes that it then handed over.
    """

    values: dict[tuple[int, int], list[int | None]]
    taken: dict[tuple[int, int], list[int]]
    chosen: dict[int, list[tuple[int, int, int]]]
    picked: dict[int, list[tuple[int, int]]]


class Unlinked(NamedTuple):
    """A session; arrays have an entry for each box, owner after owner, in the order of numbers.

    Attributes:
        seen: What the curator saw.
        owner: The owner of each box, shape (n,).
        came: The round in which each came, shape (n,).
        bought: The round in which each was bought, or `NEVER`, shape (n,).
        rows: The content of each, shape (n, columns).
        features: φ of these, int16 of shape (n, d).
        weights, keys: As a colluding owner has them; weights as broadcast, int32 of shape (T, d).
    """

    seen: Watched
    owner: Matrix
    came: Matrix
    bought: Matrix
    rows: Matrix
    features: Features
    weights: Matrix
    keys: BlindKeys
    session: Session


def watched(image: bytes, owners: tuple[str, ...], batch: int) -> Watched:
    """Read a curator's transcript."""
    seen = Watched({}, {}, {}, {})
    sold: list[int] = [0] * len(owners)
    for item in blind_sessions.items_in(image):
        frame: Any = item.private.get("frame", {})
        if item.kind not in (Received.KIND, Send.KIND):
            continue
        peer, kind = frame["peer"], frame["message"]
        if item.kind == Received.KIND and kind == "blind-bid":
            bid = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
            assert isinstance(bid, BlindBid)
            scores = [bid.scores[at : at + MASK_BYTES] for at in range(0, len(bid.scores), MASK_BYTES)]
            seen.values[owners.index(peer), bid.round] = [
                None if score == NOT_SENT else int.from_bytes(score, "big") for score in scores
            ]
        elif item.kind == Received.KIND and kind == "round-opening":
            opening = decode_message(Direction.CONSUMER_TO_CURATOR, frame["body"])
            assert isinstance(opening, RoundOpening)
            places = np.frombuffer(opening.taken, dtype=f">u{PLACE_BYTES}").tolist()
            for rank in range(len(owners)):
                seen.taken[rank, opening.round], places = places[: sold[rank]], places[sold[rank] :]
        elif item.kind == Send.KIND and kind == "choice":
            choice = decode_message(Direction.CURATOR_TO_CONSUMER, frame["body"])
            assert isinstance(choice, Choice)
            seen.chosen[choice.round] = [
                (owners.index(each.owner), unfixed(each.place), int.from_bytes(each.score, "big"))
                for each in choice.chosen
            ]
        elif item.kind == Received.KIND and kind == "picks":
            picks = decode_message(Direction.CONSUMER_TO_CURATOR, frame["body"])
            assert isinstance(picks, Picks)
            numbers = np.frombuffer(picks.numbers, dtype=f">u{NUMBER_BYTES}").tolist()
            ranks = sorted(rank for rank, _, _ in seen.chosen[picks.round])
            seen.picked[picks.round] = list(zip(ranks, numbers, strict=True))
            for rank in ranks:
                sold[rank] += 1
    return seen


@cache
def unlinked(*, rounds: int = 50, dimension: int = 400, private: bool = True) -> Unlinked:
    """A session of the rows that `blind_sessions.blind` has, with the same weights."""
    file = blind_sessions.file_of("blind", rounds, dimension, private=private, commitment_depth=DEPTH)
    session, images, held = blind_sessions.played(file, owner_party)
    seen = watched(images[CURATOR], OWNERS, BATCH)
    count = BATCH * rounds
    rows, weights = [], {}
    for place, name in enumerate(OWNERS):
        for item in blind_sessions.items_in(images[name]):
            if item.kind == "blind-scored":
                rows += [held[place][row] for row in item.private["rows"]]
                weights[item.public["round"]] = item.private["weights"]
    seed = blind_sessions.seed_in(images[CONSUMER])
    points = np.stack(rows)
    bought = np.full(len(OWNERS) * count, NEVER)
    for number, boxes in seen.picked.items():
        for rank, handle in boxes:
            bought[rank * count + handle - 1] = number
    return Unlinked(
        seen,
        np.repeat(np.arange(len(OWNERS)), count),
        np.tile(np.repeat(np.arange(1, rounds + 1), BATCH), len(OWNERS)),
        bought,
        points,
        session.space.map(seed).hash(points),
        np.array([weights[number] for number in sorted(weights)]),
        BlindKeys(seed, session.identifier),
        session,
    )
