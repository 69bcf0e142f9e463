"""The invariants of rounds, recomputed from the curator's transcript, in the form of `INVARIANTS`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np

from hushbid.evidence.sweep.course import SessionEvidence
from hushbid.evidence.sweep.rounds_on_record import PointOnRecord, Rounds, mismatch
from hushbid.evidence.sweep.shares import ROUNDING, BoughtPoint, gained, worth
from hushbid.protocol import limits
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import ExactRelease
from hushbid.protocol.session.points import Signatures
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.space.grid import FEATURE_UNIT, WEIGHT_UNIT
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import SealedCandidate, Target

__all__ = [
    "broadcasts_are_numbered",
    "copies_are_bought_once",
    "rounds_keep_the_cadence",
    "rounds_need_min_owners",
    "settlement_is_of_the_wins",
    "winners_are_verified",
]

HALF: Final = 0.5 + 1e-6
"""Largest error of rounding to whole numbers; a tie may fall either way."""


def rounds_need_min_owners(evidence: SessionEvidence) -> Iterator[str]:
    """When bidding ends, at least `min_owners` have bid without a point known not to match."""
    needed = evidence.session.file.session.min_owners
    for each in evidence.rounds.rounds:
        if each.closed is not None and len(each.present) < needed:
            yield f"bidding of round {each.number} ended with {len(each.present)} owners of {needed}"


def winners_are_verified(evidence: SessionEvidence) -> Iterator[str]:
    """A chosen point came from its owner, equals its bid, and its owner has no point that did not match.

    For a sealed point the curator sees features, bid and signature. Only the consumer sees whether features
    and point belong together, and may dispute it.
    """
    rounds, signatures = evidence.rounds, Signatures(evidence.session)
    for win in evidence.outcome.curator.ledger.wins:
        chosen = f"the point of {win.owner} that was chosen in round {win.chosen_round}"
        point = rounds.points.get((win.owner, win.handle))
        if point is None or not point.is_of(win.candidate) or point.bid.round != win.bid_round:
            yield f"{chosen} never came as such"
            continue
        wrong = _wrong_with(evidence, win, point)
        if not wrong and isinstance(win.candidate, SealedCandidate):
            held = signatures.hold(win.owner, win.bid_round, win.handle, win.candidate)
            wrong = "" if held else "its owner did not sign it"
        if wrong:
            yield f"{chosen}: {wrong}"


def _wrong_with(evidence: SessionEvidence, win: HandedOver, point: PointOnRecord) -> str:
    rounds = evidence.rounds.rounds
    if not win.bid_round <= win.chosen_round <= len(rounds):
        return "there was no such round"
    current = rounds[win.chosen_round - 1]
    if win.owner in current.unmatched:
        return "a point of its owner was known not to match"
    (scored,) = scores_of(win.candidate.features[None], current.weights, evidence.session.jitter)
    if int(scored) != win.score:
        return "it was chosen with another score than it has"
    return mismatch(evidence.session, point, rounds[win.bid_round - 1].weights)


def copies_are_bought_once(evidence: SessionEvidence) -> Iterator[str]:
    """Where a point is bought once, a φ is bought at most as often as one owner has handed it over.

    Nobody sells in a round after missing an earlier one.
    """
    if not evidence.session.file.distinct:
        return
    handed: Counter[tuple[str, bytes]] = Counter()
    for (owner, _), point in evidence.rounds.points.items():
        handed[owner, point.candidate.features.tobytes()] += 1
    most: dict[bytes, int] = {}
    for (_, phi), count in handed.items():
        most[phi] = max(count, most.get(phi, 0))
    wins = evidence.outcome.curator.ledger.wins
    for phi, count in Counter(win.candidate.features.tobytes() for win in wins).items():
        if count > most.get(phi, 0):
            yield f"a point was bought {count} times, and no owner has it more than {most.get(phi, 0)} times"
    for win in wins:
        if any(win.owner not in each.present for each in evidence.rounds.rounds[: win.chosen_round]):
            yield f"a point of {win.owner} was chosen in round {win.chosen_round}, and it missed a round"


def settlement_is_of_the_wins(evidence: SessionEvidence) -> Iterator[str]:
    """An owner's share is what its undisputed points added to J(S) = 2·g̃ᵀμ_S - ‖μ_S‖², each in turn.

    In a private settlement it is their worth under the first broadcast, plus the recorded noise.
    """
    curator = evidence.outcome.curator
    if evidence.session.settlement is not None:
        yield from _other_private_settlement(evidence)
        return
    shares = gained(_bought(evidence), evidence.plan.owners, _target(evidence), evidence.session)
    told = curator.settlement()
    if told is None or told.keys() != shares.keys():
        yield "the settlement is of other owners than the session has"
        return
    for owner, share in shares.items():
        if not abs(told[owner] - share) <= ROUNDING:
            yield f"{owner} has a share of {told[owner]:.6g}, and its points are worth {share:.6g}"


def _bought(evidence: SessionEvidence) -> list[BoughtPoint]:
    """The points that the curator chose; disputed ones are not paid."""
    ledger = evidence.outcome.curator.ledger
    disputed = {(dispute.owner, dispute.handle) for dispute in ledger.disputes}
    return [
        BoughtPoint(win.owner, win.candidate.features, (win.owner, win.handle) not in disputed)
        for win in ledger.wins
    ]


def _other_private_settlement(evidence: SessionEvidence) -> Iterator[str]:
    """Check a private settlement against the recorded noise and first weight; it is released at the end."""
    curator, session = evidence.outcome.curator, evidence.session
    told = curator.settlement()
    if told is None:
        return
    drawn: list[Any] = [
        each
        for record in evidence.records[CURATOR]
        for item in record.items
        if item.kind == "noise-drawn"
        for each in cast("Any", item.private["rounds"])
    ]
    if len(drawn) != session.owners_releases:
        yield f"{len(drawn)} releases have noise, and the session has {session.owners_releases} of them"
        return
    ((noise,), _) = drawn[-1]
    rounds = evidence.rounds.rounds
    weights = rounds[0].weights[: session.space.dimension].tolist() if rounds else []
    wanted = worth(_bought(evidence), dict(zip(session.file.owners, map(int, noise), strict=True)), weights)
    if told != wanted:
        yield f"the settlement is {dict(told)}, and the points and noise on record come to {wanted}"


def broadcasts_are_numbered(evidence: SessionEvidence) -> Iterator[str]:
    """The r-th weight is broadcast in round r, once to each owner; without noise, it equals g̃ - Σφ/(q+b).

    Jitter then has no weight. q is the weighted size of the seed set plus b for every earlier round, however
    many points those chose.
    """
    rounds = evidence.rounds
    for each in rounds.rounds:
        if each.stated != each.number:
            yield f"the weight of round {each.number} is recorded as that of round {each.stated}"
    for sent in rounds.broadcasts:
        if sent.message.round != sent.under:
            yield f"{sent.owner} was sent a broadcast of round {sent.message.round} in round {sent.under}"
        elif not np.array_equal(sent.message.weights, rounds.rounds[sent.under - 1].weights):
            yield f"{sent.owner} was sent another weight in round {sent.under} than was computed"
    for owner in evidence.plan.owners:
        told = [sent.message.round for sent in rounds.broadcasts if sent.owner == owner]
        if any(later <= earlier for earlier, later in pairwise(told)):
            yield f"{owner} was sent broadcasts of rounds {told}"
    if evidence.plan.release == ExactRelease.name:
        yield from _other_weights(evidence, rounds)


def _other_weights(evidence: SessionEvidence, rounds: Rounds) -> Iterator[str]:
    target = _target(evidence)
    if target is None:
        return
    wins = evidence.outcome.curator.ledger.wins
    for each in rounds.rounds:
        chosen = [win.candidate.features.astype(np.int64) for win in wins if win.chosen_round < each.number]
        weight, batch = evidence.session.file.seed_weight, evidence.session.batch
        total = sum(chosen, start=weight * target.seed_total)
        wanted = target.embedding - total * FEATURE_UNIT / (weight * target.seed_size + batch * each.number)
        if evidence.session.jitter is not None:
            wanted = np.append(wanted, 0.0)  # There is no noise to recompute it from.
        wanted = np.clip(wanted, -limits.MAX_WEIGHT, limits.MAX_WEIGHT)
        if np.abs(wanted / WEIGHT_UNIT - each.weights).max() > HALF:
            yield f"the weight of round {each.number} is not that of the points that were chosen before"


def rounds_keep_the_cadence(evidence: SessionEvidence) -> Iterator[str]:
    """By the clock a round lasts exactly its time, or longer after a pause or restart; bids have half."""
    cadence = evidence.session.file.session.fixed_cadence
    if cadence is None:
        return
    for each in evidence.rounds.rounds:
        if each.closed is not None and each.closed - each.began < cadence / 2 - ROUNDING:
            yield f"bidding of round {each.number} ended after {each.closed - each.began:.6f} s"
        if each.over is not None:
            lasted = each.over - each.began
            if lasted < cadence - ROUNDING or (lasted > cadence + ROUNDING and not each.delayed):
                yield f"round {each.number} lasted {lasted:.6f} s, and not {cadence:.6f} s"


def _target(evidence: SessionEvidence) -> Target | None:
    if evidence.outcome.curator.target is None:
        return None
    for frame in evidence.said(CONSUMER, "target", "subspace-target", "nested-target"):
        message = decode_message(Direction.CONSUMER_TO_CURATOR, frame.body)
        assert isinstance(message, Target), "the frame says so"
        return message
    return None
