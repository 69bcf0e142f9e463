"""Bytes on the wire, and raw points that the curator receives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass as figures

from hushbid.plan.setting import PlanSetting
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.crypto.commitment import ROOT_BYTES
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, SIGNATURE_BYTES
from hushbid.protocol.figures import Figures
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.sizes import sealed_weight_bytes
from hushbid.protocol.wire.blind import (
    Account,
    Award,
    BlindBid,
    BlindCandidate,
    BlindPurchase,
    Maps,
    SealedBroadcast,
)
from hushbid.protocol.wire.codec import Frame, encode_frame, encode_message
from hushbid.protocol.wire.merkle import NODE_BYTES
from hushbid.protocol.wire.messages import (
    Ask,
    Batch,
    BatchedCandidate,
    Bid,
    Broadcast,
    Call,
    Candidate,
    Candidates,
    Commitment,
    Delivery,
    Message,
    NestedTarget,
    Next,
    Offer,
    Purchase,
    Roots,
    SealedCandidate,
    SealedCandidates,
    SecretMap,
    Submission,
    SubmittedCandidate,
    SubspaceTarget,
    Target,
    fixed,
    sizes,
)
from hushbid.protocol.wire.unlinked import (
    NUMBER_BYTES,
    PLACE_BYTES,
    Choice,
    Chosen,
    Picked,
    PickedBox,
    Picks,
)

__all__ = ["Traffic", "frame_of", "points_accessed", "round_messages", "traffic"]

ATTRIBUTES = b"\x92\x03\xcd\x03\xe8"
"""A packed label and identifier of usual length."""

NAME = "owner-00001"


@figures(frozen=True, slots=True, kw_only=True)
class Traffic(Figures):
    """Bytes of a session's frames, without ZeroMQ's own, heartbeats and acknowledgements.

    Attributes:
        owner_sent, owner_received: Bytes of one owner, on average.
        curator_sent, curator_received: To and from all parties.
    """

    owner_sent: int
    owner_received: int
    curator_sent: int
    curator_received: int


def points_accessed(setting: PlanSetting) -> float | None:
    """Expected distinct raw points that the curator receives (DESIGN §3); None: the rule is refused.

    0 for sealed rules; K·p if bids carry their points; `AcquisitionRule.expected_points` for rules that ask;
    and at most the owners' points.
    """
    if setting.refusal:
        return None
    rule = setting.session().rule
    if rule.sealed:
        return 0.0
    bought = setting.rounds * setting.file.batch
    most = float(sum(min(bought, points) for points in setting.owner_points))
    return most if rule.candidate_with_bid else min(most, rule.expected_points)


def traffic(setting: PlanSetting, accessed: float | None) -> Traffic:
    """The bytes of a session, from frames in the protocol's own encoding, by `points_accessed`."""
    session, p, rounds, owners = setting.session(), setting.p, setting.rounds, len(setting.owner_points)
    if not session.curator_reads:
        return _blind_traffic(setting, session)
    bid, broadcast = (frame_of(message) for message in round_messages(setting, session))
    asked = 0.0 if session.rule.candidate_with_bid or accessed is None else accessed / owners
    ask = frame_of(Ask(round=p, handle=fixed(1)))
    candidate = _candidate(setting, session)
    offer = 0
    if isinstance(candidate, Candidate):
        offer = frame_of(Offer(round=p, handle=fixed(1), candidate=candidate))
    secret = frame_of(SecretMap(box=bytes(limits.MAP_BOX_BYTES))) if session.rule.sealed else 0
    sent = rounds * session.messages * bid + asked * offer
    received = rounds * broadcast + asked * ask + secret
    received += (session.messages - 1) * frame_of(Next(round=1))
    commitment, roots = _committing(session)
    sent += commitment
    maps = limits.MAP_BOX_BYTES * owners if session.rule.sealed else 0
    target = frame_of(_target(setting, maps))
    bought = min(p, sum(setting.owner_points))
    # One part with one point, scaled up to the whole: slightly more than the actual bytes.
    purchase = Purchase(owner=NAME, round=p, bid_round=p, handle=fixed(1), candidate=candidate)
    delivery = bought * frame_of(Delivery(part=1, parts=1, purchases=(purchase,)))
    return Traffic(
        owner_sent=round(sent),
        owner_received=round(received),
        curator_sent=round(owners * received + roots + delivery),
        curator_received=round(owners * sent + target),
    )


def _committing(session: Session) -> tuple[int, int]:
    """Bytes of an owner's commitment, and of all of them sent to the consumer; 0 without commitments."""
    if not session.commitment_depth:
        return 0, 0
    commitment = Commitment(root=bytes(ROOT_BYTES), signature=bytes(SIGNATURE_BYTES))
    return frame_of(commitment), frame_of(Roots.told([commitment] * len(session.file.owners)))


def _blind_traffic(setting: PlanSetting, session: Session) -> Traffic:
    """The same with a blind curator, through which each broadcast and each award passes."""
    rounds, owners = setting.rounds, len(setting.owner_points)
    bid, broadcast = (frame_of(message) for message in round_messages(setting, session))
    secret = frame_of(SecretMap(box=bytes(limits.MAP_BOX_BYTES)))
    commitment, roots = _committing(session)
    sent, received = rounds * bid + commitment, rounds * broadcast + secret
    candidate = BlindCandidate(
        box=bytes(session.box_length),
        digests=bytes(DIGEST_BYTES * (session.batch + 1)),
        signature=bytes(SIGNATURE_BYTES),
    )
    purchase = BlindPurchase(
        owner=NAME, bid_round=rounds, handle=fixed(1), score=bytes(MASK_BYTES), candidate=candidate
    )
    award = frame_of(Award(round=rounds, purchases=(purchase,) * session.batch))
    weight = broadcast
    if session.unlinked:
        award, weight = _unlinked_traffic(session, candidate, broadcast)
    numbers, counts = np.zeros(owners), np.zeros(owners, dtype=np.int64)
    account = Account(
        settlement=numbers,
        errors=numbers,
        gains=numbers,
        gain_errors=numbers,
        signal=0,
        sold=counts,
        void=counts,
        signature=bytes(SIGNATURE_BYTES),
    )
    maps = frame_of(Maps(maps=bytes(limits.MAP_BOX_BYTES * owners)))
    return Traffic(
        owner_sent=round(sent),
        owner_received=round(received),
        curator_sent=round(owners * received + roots + rounds * award),
        curator_received=round(owners * sent + rounds * weight + maps + frame_of(account)),
    )


def _unlinked_traffic(session: Session, candidate: BlindCandidate, broadcast: int) -> tuple[int, int]:
    """Bytes of a round to the consumer and from it, when the curator asks which boxes it chose.

    A round is opened with the places of the points bought so far, half of them in the middle round.
    """
    rounds, batch = session.rounds, session.batch
    chosen = Chosen(owner=NAME, place=fixed(1), score=bytes(MASK_BYTES))
    box = PickedBox(owner=NAME, bid_round=rounds, handle=fixed(1), candidate=candidate)
    to_consumer = frame_of(Choice(round=rounds, chosen=(chosen,) * batch))
    to_consumer += frame_of(Picked(round=rounds, boxes=(box,) * batch))
    picks = frame_of(Picks(round=rounds, numbers=bytes(NUMBER_BYTES * batch)))
    taken = len("taken") + 4 + PLACE_BYTES * batch * (rounds - 1) // 2
    return to_consumer, broadcast + taken + picks


def round_messages(
    setting: PlanSetting, session: Session
) -> tuple[Bid | Batch | BlindBid, Broadcast | SealedBroadcast]:
    """The bid of each owner and the broadcast of a round; a blind bid has its length in the middle round."""
    if not session.curator_reads:
        batch = session.batch
        bid_now = BlindBid(
            round=setting.rounds,
            boxes=bytes(batch * (session.box_length)),
            scores=bytes(MASK_BYTES * batch * (setting.rounds + 1) // 2),
            digests=bytes(DIGEST_BYTES * (batch + 1)),
            signature=bytes(SIGNATURE_BYTES),
        )
        box = bytes(sealed_weight_bytes(session))
        return bid_now, SealedBroadcast(round=setting.rounds, box=box, signature=bytes(SIGNATURE_BYTES))
    with_point = session.rule.candidate_with_bid
    bid: Bid | Batch
    if session.batch > 1 or session.rule.herds:
        numbers = sizes(range(1, session.batch + 1))
        kind = Submission if session.rule.herds else Batch
        bid = kind(round=setting.p, scores=numbers, handles=numbers, candidates=_candidates(setting, session))
    else:
        bid = Bid(
            round=setting.p,
            exhausted=False,
            score=fixed(0),
            handle=fixed(1),
            candidate=_candidate(setting, session) if with_point else None,
        )
    weights = np.zeros(session.weight_coordinates, dtype=np.int32)
    if session.rule.herds:
        dimension = session.space.dimension
        zeros, total = np.zeros(dimension), np.zeros(dimension, dtype=np.int64)
        return bid, Call(
            round=1, weights=weights, noise="secure", embedding=zeros, seed_total=total, seed_size=1
        )
    return bid, Broadcast(round=setting.p, weights=weights, noise="secure")


def frame_of(message: Message) -> int:
    """Bytes of a message's frame."""
    return len(encode_frame(Frame(bytes(16), 1, 1, encode_message(message))))


def _candidate(setting: PlanSetting, session: Session) -> Candidate | SealedCandidate:
    features = np.zeros(session.space.dimension, dtype=np.int16)
    if session.rule.sealed:
        box = bytes(session.box_length)
        if session.rule.herds:
            depth = math.ceil(math.log2(session.batch))
            return SubmittedCandidate(
                features=features, box=box, signature=bytes(64), place=0, path=bytes(NODE_BYTES * depth)
            )
        if session.batch > 1:
            digests = bytes(DIGEST_BYTES * session.batch)
            return BatchedCandidate(features=features, box=box, signature=bytes(64), digests=digests)
        return SealedCandidate(features=features, box=box, signature=bytes(64))
    point = np.zeros(session.space.columns, dtype=setting.point_type)
    return Candidate(point=point, features=features, attributes=ATTRIBUTES)


def _candidates(setting: PlanSetting, session: Session) -> Candidates | SealedCandidates:
    one, batch = _candidate(setting, session), session.batch
    features = np.tile(one.features, batch)
    if isinstance(one, SealedCandidate):
        return SealedCandidates(
            features=features,
            boxes=one.box * batch,
            digests=bytes(DIGEST_BYTES * batch),
            signature=one.signature,
        )
    return Candidates(points=np.tile(one.point, batch), features=features, attributes=one.attributes * batch)


def _target(setting: PlanSetting, maps: int) -> Target:
    dimension = setting.file.features.dimension
    fields: dict[str, Any] = {
        "embedding": np.zeros(dimension),
        "size": setting.m,
        "seed_total": np.zeros(dimension, dtype=np.int64),
        "seed_size": max(1, setting.seed_points),
        "maps": bytes(maps),
        "noise": "secure",
    }
    if directions := setting.session().directions:
        return SubspaceTarget(**fields, basis=np.zeros(directions * dimension, dtype=np.int16))
    if setting.session().nested is not None:
        return NestedTarget(**fields, finer=np.zeros(dimension))
    return Target(**fields)
