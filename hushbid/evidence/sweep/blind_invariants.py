"""The invariants of sessions with a blind curator, as in `invariants`, checked with the session's keys."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import nacl.bindings
import nacl.exceptions
import numpy as np

from hushbid.evidence.sweep.blind_choice import ChosenBox, ReferenceGreedy
from hushbid.evidence.sweep.course import SessionEvidence
from hushbid.evidence.sweep.shares import ROUNDING, BoughtPoint, gained, worth
from hushbid.protocol.machine.weighing import ComputeWeights, Weigher
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.points import labels_of
from hushbid.protocol.session.prior import prior_of
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.wire.arrays import pack_array
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import boxes_of, unfixed
from hushbid.protocol.wire.unlinked import RoundOpening

__all__ = [
    "awards_are_the_best",
    "blind_books_agree",
    "boxes_are_opened_once",
    "broadcasts_have_one_nonce",
    "faults_follow_from_bids",
    "nothing_is_in_the_clear",
    "void_boxes_are_not_paid",
    "weights_have_their_own_noise",
]

MOST_SOUGHT: Final = 40
"""Points per owner to search for in the curator's data."""


def awards_are_the_best(evidence: SessionEvidence) -> Iterator[str]:
    """An award is the greedy selection under the round's weight, among all points of present owners.

    Points of honest owners are scored again in the clear, from their data. For owners that lie, their
    statements about their boxes count.
    """
    rounds, weighed = evidence.blind_rounds, evidence.weighed
    numbers = [award.round for award in rounds.awards]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"there were awards of rounds {numbers}"
        return
    if not weighed.seed:
        return
    reference = ReferenceGreedy(evidence.session, weighed, evidence.data, evidence.honest_owners)
    for award in rounds.awards:
        present = rounds.chosen_from.get(award.round, frozenset())
        bids = {
            owner: [each for each in rounds.bids[owner] if each.bid.round <= award.round]
            for owner in sorted(present)
        }
        wanted = reference.choose(award.round, bids)
        chosen = [(purchase.owner, purchase.score) for purchase in award.purchases]
        if len(chosen) != len(wanted) or not all(map(_is_chosen, wanted, chosen)):
            yield (
                f"round {award.round} took boxes of {[owner for owner, _ in chosen]}, and the best are of "
                f"{[each.owner for each in wanted]}, or have other scores"
            )
            return
        # Nobody knows the contents of an award that the consumer did not accept.
        for found, best in zip(evidence.opened.get(award.round, ()), wanted, strict=False):
            if best.features and found.features.tobytes() != best.features:
                yield f"round {award.round} took another point of {best.owner} than is its best"


def boxes_are_opened_once(evidence: SessionEvidence) -> Iterator[str]:
    """The consumer opens a box once, by its number, and only boxes that their owner bid under that number.

    Its points of an honest owner are rows, each no more often than the owner has it.
    """
    bids = evidence.blind_rounds.bids
    seen: set[tuple[str, int]] = set()
    for award in evidence.weighed.awards:
        for purchase in award.purchases:
            owner, handle = purchase.owner, unfixed(purchase.handle)
            box = f"the box {handle} of {owner} that was awarded in round {award.round}"
            if evidence.session.unlinked and not any(purchase.candidate.box):
                continue  # It never came, and uses up no number.
            if (owner, handle) in seen:
                yield f"{box} was opened before"
            seen.add((owner, handle))
            if evidence.session.unlinked and not any(purchase.candidate.box):
                continue  # It was asked for by its place, but never sent.
            sent = [
                digest
                for bid in bids[owner]
                if bid.bid.round == purchase.bid_round
                for number, digest in enumerate(boxes_of(bid.bid), start=bid.first)
                if number == handle
            ]
            if sent != [hashlib.sha256(purchase.candidate.box).digest()]:
                yield f"{box} is none that its owner sent under this number"
    if len(evidence.weighed.delivered) != len(evidence.weighed.awards):
        yield f"{len(evidence.weighed.awards)} awards were checked {len(evidence.weighed.delivered)} times"
    yield from evidence.delivered_that_was_not_owned()


def weights_have_their_own_noise(evidence: SessionEvidence) -> Iterator[str]:
    """The r-th weight belongs to round r, and follows from the noise of its release and the bought points.

    It is recomputed from the recorded noise and from φ of the boxes, including wrongly scored points.
    """
    session, weighed = evidence.session, evidence.weighed
    numbers = [number for number, _ in weighed.weights]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"weights were made of rounds {numbers}"
        return
    target = weighed.target
    if target is None:
        return
    statistic = session.summary.statistic(prior_of(target))
    total = np.zeros(statistic.width, dtype=np.int64)
    weigher = Weigher(session, SimulatedNoise(0, CONSUMER))
    for number, weights in weighed.weights:
        count = session.file.seed_weight * target.seed_size + session.batch * (number - 1)
        made = weigher.perform(
            ComputeWeights(number, target, total.copy(), count, weighed.noise.get(number, ()))
        )
        if made is None or not np.array_equal(getattr(made, "weights", ()), weights):
            yield f"the weight of round {number} is not that of its own noise and of what was bought before"
            return
        for each in evidence.opened.get(number, ()):
            if each.counts:
                total += statistic.of(each.features[None])[0]


def broadcasts_have_one_nonce(evidence: SessionEvidence) -> Iterator[str]:
    """Each round's nonce encrypts one broadcast, which contains the round's weight."""
    weighed = evidence.weighed
    made = dict(weighed.weights)
    boxes: dict[int, set[bytes]] = {}
    for frame in evidence.sent:
        if frame.kind not in ("sealed-broadcast", "round-opening"):
            continue
        way = Direction.CONSUMER_TO_CURATOR if frame.sender == CONSUMER else Direction.CURATOR_TO_OWNER
        message = decode_message(way, frame.body)
        assert isinstance(message, SealedBroadcast | RoundOpening), "the frame says so"
        boxes.setdefault(message.round, set()).add(message.box)
    for number, found in sorted(boxes.items()):
        if len(found) > 1:
            yield f"{len(found)} broadcasts left under the nonce of round {number}"
        for box in found:
            weights = _decrypted(evidence, box, number)
            if weights is None:
                yield f"the broadcast of round {number} is not encrypted under its nonce"
            elif number not in made or weights != pack_array(made[number]):
                yield f"the broadcast of round {number} has another weight than was made for it"


def _decrypted(evidence: SessionEvidence, box: bytes, number: int) -> bytes | None:
    """A weight by docs/wire.md: the nonce is the round, in 24 bytes; session and round are bound."""
    session = evidence.session.identifier
    key = hashlib.blake2b(
        b"hushbid blind broadcast 1\0" + session, key=evidence.weighed.seed, digest_size=32
    ).digest()
    bound, nonce = session + number.to_bytes(8, "big"), number.to_bytes(24, "big")
    try:
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(box, bound, nonce, key)
    except nacl.exceptions.CryptoError:
        return None


def void_boxes_are_not_paid(evidence: SessionEvidence) -> Iterator[str]:
    """The consumer's account matches the boxes: exactly the void ones are disputed and unpaid.

    With an exact settlement a wrongly scored point is not paid either; in a private one it counts
    (docs/privacy.md, "Void boxes").
    """
    session, account = evidence.session, evidence.weighed.account
    if account is None:
        return
    owners = session.file.owners
    private = session.settlement is not None
    found = [each for contents in evidence.opened.values() for each in contents]
    bought = [
        BoughtPoint(each.owner, each.features, private or not each.wrong) for each in found if each.counts
    ]
    if not private:
        bought = [each for each in bought if each.paid]
    for what, told, wanted in (
        ("sold", account.sold, Counter(each.owner for each in found if each.counts and not each.wrong)),
        ("void", account.void, Counter(each.owner for each in found if each.wrong)),
    ):
        for owner, count in zip(owners, told.tolist(), strict=True):
            if count != wanted[owner]:
                yield f"{owner} has {count} boxes that count as {what}, and {wanted[owner]} are"
    shares = _shares(evidence, bought)
    for owner, told in zip(owners, account.settlement.tolist(), strict=True):
        if not abs(told - shares[owner]) <= ROUNDING:
            yield f"{owner} has a share of {told:.6g}, and its points are worth {shares[owner]:.6g}"


def _shares(evidence: SessionEvidence, bought: list[BoughtPoint]) -> Mapping[str, float]:
    session, weighed = evidence.session, evidence.weighed
    if session.settlement is None:
        return gained(bought, session.file.owners, weighed.target, session)
    (drawn,) = weighed.noise[session.owners_releases]
    weights: list[Any] = weighed.weights[0][1][: session.space.dimension].tolist()
    return worth(bought, dict(zip(session.file.owners, map(int, drawn), strict=True)), weights)


def faults_follow_from_bids(evidence: SessionEvidence) -> Iterator[str]:
    """An owner is faulty if and only if it sent a bid without its own signature, whatever its boxes hold."""
    faults = {(fault.owner, fault.bid_round) for fault in evidence.outcome.curator.ledger.faults}
    rounds = evidence.blind_rounds
    unsigned = {
        (owner, bid.bid.round)
        for owner, bids in rounds.bids.items()
        for bid in bids[: rounds.checked.get(owner, 0)]  # Later bids enter no round.
        if not bid.signed
    }
    for owner, number in sorted(faults - unsigned):
        yield f"{owner} is faulty for its bid of round {number}, which it signed"
    for owner, number in sorted(unsigned - faults):
        yield f"{owner} did not sign its bid of round {number}, and is not faulty"


def nothing_is_in_the_clear(evidence: SessionEvidence) -> Iterator[str]:
    """The curator's transcript and frames contain no point, φ, weight, score, target, Σφ(D_init) or seed."""
    weighed, session = evidence.weighed, evidence.session
    if weighed.target is None:
        return
    feature_map = weighed.map(session)
    sought: dict[bytes, str] = {
        weighed.seed: "the map's seed",
        weighed.target.embedding.tobytes(): "g̃",
        weighed.target.seed_total.tobytes(): "Σφ(D_init)",
    }
    sought |= {weights.tobytes(): f"the weight of round {number}" for number, weights in weighed.weights}
    for owner, data in evidence.data.items():
        features = feature_map.hash(data.features[:MOST_SOUGHT], labels_of(data)[:MOST_SOUGHT])
        sought |= {row.tobytes(): f"a point of {owner}" for row in data.features[:MOST_SOUGHT]}
        sought |= {row.tobytes(): f"φ of a point of {owner}" for row in features}
    sought |= _scores(evidence)
    frames = b"\n".join(frame.body for frame in evidence.sent if CURATOR in (frame.sender, frame.receiver))
    for place, image in (("transcript", evidence.transcripts[CURATOR]), ("frames", frames)):
        for what in sorted({named for value, named in sought.items() if value in image}):
            yield f"the curator's {place} hold {what}"


def _is_chosen(wanted: ChosenBox, chosen: tuple[str, bytes]) -> bool:
    """Whether selection chooses this box, by owner and masked score."""
    owner, score = chosen
    below = int.from_bytes(wanted.score, "big") - int.from_bytes(score, "big")
    return owner == wanted.owner and 0 <= below <= wanted.spread


def _scores(evidence: SessionEvidence) -> dict[bytes, str]:
    """Byte patterns of unmasked scores of honest owners, in two of the rounds."""
    weighed, session = evidence.weighed, evidence.session
    sought = {}
    for number, weights in weighed.weights[:2]:
        bound = score_bound(weights, session.space.coordinate_bound, session.jitter)
        for owner in evidence.honest_owners:
            data = evidence.data[owner]
            few = labels_of(data)[:MOST_SOUGHT]
            features = weighed.map(session).hash(data.features[:MOST_SOUGHT], few)
            for score in scores_of(features, weights, session.jitter):
                told = f"a score of {owner} in round {number}"
                sought[int(score + bound + 1).to_bytes(16, "big")] = told
                sought[int(score).to_bytes(16, "big", signed=True)] = told
                sought[int(score).to_bytes(8, "big", signed=True)] = told
    return sought


def blind_books_agree(evidence: SessionEvidence) -> Iterator[str]:
    """A complete session has all rounds; curator and consumer agree on boxes, disputes and delivery."""
    outcome = evidence.outcome
    curator, consumer = outcome.curator, outcome.consumer
    if not evidence.complete:
        return
    yield from evidence.missing_rounds()
    wins = [(win.chosen_round, win.owner, win.handle) for win in curator.ledger.wins]
    awarded = [
        (award.round, purchase.owner, unfixed(purchase.handle))
        for award in evidence.weighed.awards
        for purchase in award.purchases
    ]
    if evidence.session.unlinked:  # The curator forwards boxes by owner and number.
        awarded.sort()
        wins.sort()
    if wins != awarded:
        yield "the consumer was awarded other boxes than the curator says"
    held = Counter(entry.owner for entry in consumer.delivered)
    empty = curator.ledger.empty
    for owner, count in Counter(win.owner for win in curator.ledger.wins).items():
        if held[owner] + empty[owner] != count:
            yield f"of {count} boxes of {owner}, {held[owner]} are delivered and {empty[owner]} hold nothing"
    stored = outcome.delivered
    if stored is None or list(stored.delivered) != list(consumer.delivered):
        yield "the consumer has stored other points than were delivered"
    void = Counter(entry.owner for entry in consumer.delivered if entry.dispute)
    if Counter(dispute.owner for dispute in curator.ledger.disputes) != void:
        yield "curator and consumer have other disputes"
    settlement = curator.settlement()
    if settlement is None or evidence.weighed.account is None:
        yield "the session is complete without a settlement"
    elif list(settlement.values()) != evidence.weighed.account.settlement.tolist():
        yield "the curator has another settlement than the consumer's account"
