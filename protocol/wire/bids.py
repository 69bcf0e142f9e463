"""The points of an owner's answer: in arrays, as they came, or one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from hushbid.protocol.wire.fields import Array, unfixed
from hushbid.protocol.wire.merkle import Tree
from hushbid.protocol.wire.messages import (
    Batch,
    BatchedCandidate,
    Bid,
    Candidate,
    Candidates,
    SealedCandidate,
    SealedCandidates,
    Submission,
    SubmittedCandidate,
    equal_parts,
)

__all__ = ["BroughtPoints", "PointBid", "bids_of", "points_of"]


class PointBid(NamedTuple):
    """The bid for one point."""

    round: int
    exhausted: bool
    """It is padding, without a point."""
    score: int
    """In units of 2^-37."""
    handle: int
    """The owner's number of the point; 0 for padding."""
    candidate: Candidate | SealedCandidate | None


class BroughtPoints:
    """The points that one message brought. None is an object of its own until it is asked for.

    Args:
        held: One point, or those of a batch.
        places: Their number, padding included; the parts of a batch are a whole multiple of it.
        submitted: Whether the batch is a submission's, whose digests are the leaves of a tree.
    """

    def __init__(
        self,
        held: Candidate | SealedCandidate | Candidates | SealedCandidates,
        places: int = 1,
        *,
        submitted: bool = False,
    ) -> None:
        self.held = held
        self._places = places
        self._submitted = submitted

    def __len__(self) -> int:
        return self._places

    @property
    def sealed(self) -> bool:
        """Whether only the consumer may see them."""
        return isinstance(self.held, SealedCandidate | SealedCandidates)

    @cached_property
    def features(self) -> Array:
        """φ as it is claimed, int16 of shape (n, d), read-only."""
        return self.held.features.reshape(self._places, -1)

    @property
    def points(self) -> Array:
        """The raw columns of points in the open, shape (n, columns)."""
        assert isinstance(self.held, Candidate | Candidates), "sealed points are not to be seen"
        columns = self.held.point if isinstance(self.held, Candidate) else self.held.points
        return columns.reshape(self._places, -1)

    @property
    def attributes(self) -> list[bytes]:
        """The packed labels and identifiers of points in the open."""
        assert isinstance(self.held, Candidate | Candidates), "sealed points are not to be seen"
        return equal_parts(self.held.attributes, self._places)

    @property
    def boxes(self) -> Sequence[memoryview]:
        """The boxes of sealed points."""
        length, whole = len(self._boxes) // self._places, memoryview(self._boxes)
        return [whole[place * length : (place + 1) * length] for place in range(self._places)]

    def box(self, place: int) -> memoryview:
        """The box of a sealed point, by its place from 0."""
        return self._part(self._boxes, place)

    @property
    def _boxes(self) -> bytes:
        assert isinstance(self.held, SealedCandidate | SealedCandidates), "points in the open have no box"
        return self.held.box if isinstance(self.held, SealedCandidate) else self.held.boxes

    @property
    def digests(self) -> list[bytes]:
        """The digests of a batch of sealed points that their owner signed."""
        assert isinstance(self.held, SealedCandidates), "only these have digests"
        return equal_parts(self.held.digests, self._places)

    @cached_property
    def tree(self) -> Tree | None:
        """The tree over the digests of a submission; None for other points."""
        return Tree(self.digests) if self._submitted and self.sealed else None

    def at(self, place: int) -> Candidate | SealedCandidate:
        """A point by its place, from 0, as a delivery brings it; a copy, which keeps no other alive."""
        held = self.held
        if isinstance(held, Candidate | SealedCandidate):
            return held
        features = _copied(self.features[place])
        if isinstance(held, Candidates):
            return Candidate.model_construct(
                point=_copied(self.points[place]),
                features=features,
                attributes=bytes(self._part(held.attributes, place)),
            )
        own: dict[str, Any] = {
            "features": features,
            "box": bytes(self.box(place)),
            "signature": held.signature,
        }
        if self.tree is None:
            return BatchedCandidate.model_construct(**own, digests=held.digests)
        return SubmittedCandidate.model_construct(**own, place=place, path=self.tree.path(place))

    def _part(self, whole: bytes, place: int) -> memoryview:
        length = len(whole) // self._places
        return memoryview(whole)[place * length : (place + 1) * length]


def points_of(message: Bid | Batch) -> BroughtPoints | None:
    """The points of a message; None for a bid without.

    Args:
        message: The lengths of a batch's arrays must match its handles.
    """
    if isinstance(message, Bid):
        return None if message.candidate is None else BroughtPoints(message.candidate)
    submitted = isinstance(message, Submission)
    return BroughtPoints(message.candidates, len(message.handles), submitted=submitted)


def bids_of(message: Bid | Batch) -> tuple[PointBid, ...]:
    """The bids of a message: a batch's one by one, padding as exhausted bids.

    Args:
        message: As `points_of` takes it.
    """
    return tuple(_bids_of(message))


def _bids_of(message: Bid | Batch) -> Iterator[PointBid]:
    if isinstance(message, Bid):
        score, handle = unfixed(message.score), unfixed(message.handle)
        yield PointBid(message.round, message.exhausted, score, handle, message.candidate)
        return
    points = points_of(message)
    assert points is not None, "a batch has points"
    scores, handles = message.scores.tolist(), message.handles.tolist()
    for place, (score, handle) in enumerate(zip(scores, handles, strict=True)):
        yield PointBid(message.round, handle == 0, score, handle, points.at(place))


def _copied(row: Array) -> Array:
    copy = row.copy()
    copy.flags.writeable = False
    return copy
