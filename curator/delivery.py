"""Splitting the chosen points into parts that fit a frame."""

from __future__ import annotations

from collections.abc import Sequence

from hushbid.protocol import limits
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.wire.messages import (
    BatchedCandidate,
    Candidate,
    Delivery,
    Purchase,
    SealedCandidate,
    SubmittedCandidate,
    fixed,
)

__all__ = ["parts_of"]

OVERHEAD_BYTES = 256
"""Most bytes that a point's field names, owner's name and array heads take on the wire."""


def parts_of(wins: Sequence[HandedOver]) -> tuple[Delivery, ...]:
    """The delivery of `wins`, in order; one empty part if there is nothing to deliver."""
    groups: list[list[Purchase]] = [[]]
    size = 0
    for win in wins:
        candidate = win.candidate
        points = candidate.features.nbytes + _content_bytes(candidate)
        if groups[-1] and size + points + OVERHEAD_BYTES > limits.DELIVERY_CHUNK_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(
            Purchase.model_construct(
                owner=win.owner,
                round=win.chosen_round,
                bid_round=win.bid_round,
                handle=fixed(win.handle),
                candidate=candidate,
            )
        )
        size += points + OVERHEAD_BYTES
    return tuple(
        Delivery.model_construct(part=number, parts=len(groups), purchases=tuple(group))
        for number, group in enumerate(groups, start=1)
    )


def _content_bytes(candidate: Candidate | SealedCandidate) -> int:
    if isinstance(candidate, SealedCandidate):
        signed = len(candidate.signature)
        if isinstance(candidate, BatchedCandidate):
            signed += len(candidate.digests)
        elif isinstance(candidate, SubmittedCandidate):
            signed += len(candidate.path)
        return len(candidate.box) + signed
    return candidate.point.nbytes + len(candidate.attributes)
