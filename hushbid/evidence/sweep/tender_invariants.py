"""The invariants of a tender, in the form of `INVARIANTS`: what owners submit and sign, and the choice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from hushbid.evidence.sweep.course import SessionEvidence
from hushbid.evidence.sweep.tender_choice import Entry, TenderMarket, herded
from hushbid.protocol.crypto.sealing import batched_digest, submission_statement, verify_signature
from hushbid.protocol.session.points import hash_dataset
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.space.grid import Features
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    NestedTarget,
    SealedCandidates,
    Submission,
    SubmittedCandidate,
)

__all__ = ["choice_is_herded", "submissions_are_herded", "submissions_are_signed"]

_NODE: Final = b"hushbid node 1\0"
_DIGEST: Final = 32


def submissions_are_herded(evidence: SessionEvidence) -> Iterator[str]:
    """An honest owner submits those of its rows that running sums choose, with scores and padding."""
    session, target = evidence.session, evidence.weighed.target
    if target is None or not evidence.rounds.rounds:
        return
    feature_map, weights = evidence.weighed.map(session), evidence.rounds.rounds[0].weights
    aim = session.target.aim(target.embedding, prior_of(target))
    places = session.batch * session.messages
    for owner, messages in _submissions(evidence).items():
        if len(messages) > session.messages:
            yield f"{owner} submitted {len(messages)} messages, and {session.messages} are due"
        features = hash_dataset(feature_map, evidence.data[owner])
        chosen = features[herded(features, aim, places)]
        scores = scores_of(chosen, weights, None).tolist()
        wanted = [
            (number, score, phi.tobytes())
            for number, (score, phi) in enumerate(zip(scores, chosen, strict=True), start=1)
        ]
        wanted += [(0, 0, bytes(2 * session.space.dimension))] * (places - len(wanted))
        found = [
            (bid.handle, bid.score, bid.candidate.features.tobytes())
            for message in messages
            for bid in bids_of(message)
            if bid.candidate is not None
        ]
        if found != wanted[: len(found)]:
            yield f"{owner} submitted other points than running sums choose of its rows, or in another order"


def submissions_are_signed(evidence: SessionEvidence) -> Iterator[str]:
    """Each point that an honest owner submits, and each one bought, leads to a root that its owner signed.

    A point's leaf is made of its box, its features and its number.
    """
    session = evidence.session
    of_owner: dict[str, set[bytes]] = {owner: set() for owner in evidence.honest_owners}
    for owner, messages in _submissions(evidence).items():
        for number, message in enumerate(messages, start=1):
            leaves = [
                batched_digest(bid.handle, bid.candidate.box, bid.candidate.features)
                for bid in bids_of(message)
                if isinstance(bid.candidate, SubmittedCandidate)
            ]
            assert isinstance(message.candidates, SealedCandidates), "a submission is sealed"
            root, depth = _root(leaves)
            statement = submission_statement(session.identifier, owner, message.round, depth, root)
            key = session.public_identity(owner).verify
            if message.candidates.digests != b"".join(leaves):
                yield f"message {number} of {owner} has other digests than its points"
            if not verify_signature(statement, message.candidates.signature, key):
                yield f"the signature of message {number} of {owner} is not of its points"
            of_owner[owner].add(root)
    for win in evidence.outcome.curator.ledger.wins:
        candidate = win.candidate
        chosen = f"the point {win.handle} of {win.owner}"
        if not isinstance(candidate, SubmittedCandidate):
            yield f"{chosen} was bought without its way to a root"
            continue
        root = _climbed(
            batched_digest(win.handle, candidate.box, candidate.features), candidate.place, candidate.path
        )
        depth = len(candidate.path) // _DIGEST
        statement = submission_statement(session.identifier, win.owner, win.bid_round, depth, root)
        if not verify_signature(statement, candidate.signature, session.public_identity(win.owner).verify):
            yield f"{chosen} was bought, and leads to no root that its owner signed"
        elif root not in of_owner.get(win.owner, {root}):
            yield f"{chosen} leads to a root of nothing that its owner submitted"


def choice_is_herded(evidence: SessionEvidence) -> Iterator[str]:
    """The points bought are those that running sums choose from all submissions, within the wishes.

    They aim at the finer release where the curator has one.
    """
    session, target, rounds = evidence.session, evidence.weighed.target, evidence.rounds
    if target is None or not rounds.rounds or rounds.rounds[0].over is None:
        return
    current = rounds.rounds[0]
    taking_part = current.present - current.unmatched
    entries = [
        Entry(owner, handle, point.candidate.features)
        for (owner, handle), point in rounds.points.items()
        if owner in taking_part
    ]
    market = TenderMarket(session, entries)
    wanted = target.finer if isinstance(target, NestedTarget) else target.embedding
    aim = session.target.aim(wanted, prior_of(target))
    features = _stacked([entry.features for entry in market.entries], session.space.dimension)
    chosen = market.choose(features, aim, session.file.session.points)
    bought = [(win.owner, win.handle) for win in evidence.outcome.curator.ledger.wins]
    if bought != [(entry.owner, entry.handle) for entry in chosen]:
        yield f"{len(bought)} points were bought, and not the {len(chosen)} that running sums choose"


def _submissions(evidence: SessionEvidence) -> Mapping[str, Sequence[Submission]]:
    """Each honest owner's submission, message by message; resent messages count once."""
    found: dict[str, dict[int, Submission]] = {owner: {} for owner in evidence.honest_owners}
    for frame in evidence.sent:
        if frame.kind == "submission" and frame.sender in found:
            message = decode_message(Direction.OWNER_TO_CURATOR, frame.body)
            assert isinstance(message, Submission), "the frame says so"
            found[frame.sender][frame.sequence] = message
    return {owner: [messages[at] for at in sorted(messages)] for owner, messages in found.items()}


def _stacked(features: Sequence[Features], dimension: int) -> Features:
    return np.array(features, dtype=np.int16).reshape(len(features), dimension)


def _root(leaves: Sequence[bytes]) -> tuple[bytes, int]:
    """The root of a tree over these digests, and the number of levels below it."""
    level, depth = list(leaves), 0
    while len(level) > 1:
        level += [bytes(_DIGEST)] * (len(level) % 2)
        level = [
            hashlib.sha256(_NODE + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=True)
        ]
        depth += 1
    return level[0], depth


def _climbed(leaf: bytes, place: int, path: bytes) -> bytes:
    """The root to which a path leads."""
    node = leaf
    for at in range(0, len(path), _DIGEST):
        beside = path[at : at + _DIGEST]
        node = hashlib.sha256(_NODE + (beside + node if place % 2 else node + beside)).digest()
        place //= 2
    return node
