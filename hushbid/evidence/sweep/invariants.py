"""The invariants of every session, whatever its faults: each function yields violations in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import numpy as np

from hushbid.evidence.sweep.blind_invariants import (
    awards_are_the_best,
    blind_books_agree,
    boxes_are_opened_once,
    broadcasts_have_one_nonce,
    faults_follow_from_bids,
    nothing_is_in_the_clear,
    void_boxes_are_not_paid,
    weights_have_their_own_noise,
)
from hushbid.evidence.sweep.course import TOLD_BY, SessionEvidence, run_plan
from hushbid.evidence.sweep.round_invariants import (
    broadcasts_are_numbered,
    copies_are_bought_once,
    rounds_keep_the_cadence,
    rounds_need_min_owners,
    settlement_is_of_the_wins,
    winners_are_verified,
)
from hushbid.evidence.sweep.tender_invariants import (
    choice_is_herded,
    submissions_are_herded,
    submissions_are_signed,
)
from hushbid.protocol.errors import ExitCode, HushbidError, LocalProtocolError
from hushbid.protocol.machine.machine import Charge
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.accounting import cost_to_record
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.settling import HandedOver
from hushbid.protocol.transcript.record import RecordedItem
from hushbid.protocol.transcript.verify import Verification
from hushbid.protocol.wire.bids import PointBid, bids_of
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    Ask,
    Batch,
    Bid,
    Broadcast,
    Call,
    Candidate,
    Offer,
    SealedCandidate,
    SecretMap,
    Target,
    unfixed,
)
from hushbid.protocol.wire.values import pack_value
from hushbid.simulation.simulator import UNRECORDED
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.verification.account import RecordAccount, account_of
from hushbid.transcripts.verification.agreement import compare
from hushbid.transcripts.verification.equivocation import equivocations, several_heads

__all__ = ["INVARIANTS", "Invariant", "broken", "different_again", "invariants_of"]

Invariant: TypeAlias = Callable[[SessionEvidence], Iterable[str]]


def all_end(evidence: SessionEvidence) -> Iterator[str]:
    """Every process ends within the session's time limits after the last fault."""
    for party in evidence.transcripts:
        if party not in evidence.outcome.finishes:
            yield f"{party} has not ended after {evidence.outcome.seconds:.1f} simulated seconds"


def ends_are_documented(evidence: SessionEvidence) -> Iterator[str]:
    """Honest parties end with 0, 1 or 3: none of them is at fault, or finds a bug.

    An owner or the consumer fails only if the curator has given up the session.
    """
    finishes = evidence.outcome.finishes
    for party in evidence.honest:
        finish = finishes.get(party)
        if finish is None:
            continue
        allowed = {ExitCode.DONE, ExitCode.TIMEOUT} | (set() if evidence.complete else {ExitCode.FAILED})
        if finish.code not in allowed:
            yield f"{party} ended with {finish.code.value}: {finish.reason}"
    for owner in evidence.byzantine:
        if owner in finishes and finishes[owner].code is ExitCode.BUG:
            yield f"{owner} ended with {ExitCode.BUG.value}: {finishes[owner].reason}"


def transcripts_agree(evidence: SessionEvidence) -> Iterator[str]:
    """Every transcript verifies, and agrees with the others about frames, broadcasts and heads.

    The false signatures of an owner that breaks the protocol are in the curator's file as received.
    """
    files: dict[str, tuple[Verification, RecordAccount]] = {}
    with TemporaryDirectory(prefix="hushbid-") as directory:
        for party, image in evidence.transcripts.items():
            path = Path(directory, f"{party}.transcript")
            path.write_bytes(image)
            try:
                files[party] = account_of(path)
            except HushbidError as error:
                yield f"the transcript of {party} does not verify: {error.what}"
    for party in evidence.honest:
        if party in files:
            verification, account = files[party]
            for fault in (*verification.faults, *account.faults):
                if not any(fault.what.endswith(f"not that of {owner}") for owner in evidence.byzantine):
                    yield f"the transcript of {party}, record {fault.record}: {fault.what}"
    honest = {party: files[party] for party in evidence.honest if party in files}
    yield from _disagreements(honest, evidence.byzantine)


def _disagreements(
    files: Mapping[str, tuple[Verification, RecordAccount]], byzantine: frozenset[str]
) -> Iterator[str]:
    accounts = [account for _, account in files.values()]
    for equivocation in equivocations(accounts):
        yield f"round {equivocation['round']} has several broadcasts"
    for heads in several_heads(
        (account.path, verification.signed) for verification, account in files.values()
    ):
        if heads["party"] not in byzantine:
            yield f"{heads['party']} has signed several heads, or told of several outcomes"
    if CURATOR not in files:
        return
    verification, curator = files[CURATOR]
    for party, (peers, account) in files.items():
        if party != CURATOR:
            pair = compare(curator, account, verification.signed, peers.signed)
            for found in pair["disagreements"]:
                frame = f"frame {found['sequence']} of {found['sender']}"
                yield f"curator and {party}: {frame}: {found['what']}"


def transcripts_replay(evidence: SessionEvidence) -> Iterator[str]:
    """Every transcript replays to its last byte, including that of an owner that breaks the protocol."""
    for party, image in evidence.transcripts.items():
        try:
            replayed(Path(party), image=image)
        except HushbidError as error:
            yield f"the transcript of {party} does not replay: {error.what}"


def frames_have_one_content(evidence: SessionEvidence) -> Iterator[str]:
    """No numbered frame leaves a machine with two different contents, over all its crashes."""
    for (sender, receiver, sequence), bodies in evidence.contents.items():
        if len(bodies) > 1:
            yield f"frame {sequence} of {sender} to {receiver} left with {len(bodies)} contents"


def noise_is_drawn_once(evidence: SessionEvidence) -> Iterator[str]:
    """No release is made twice; all drawn noise is recorded, or was lost with a step that was not.

    None of a lost step's frames had left, so nobody has seen what that noise was for.
    """
    made: Counter[tuple[str, str, int]] = Counter()
    for party, item in _items(evidence):
        public: Any = item.public
        private: Any = item.private
        if item.kind == "weights-computed":
            made[party, "the weight of round", public["round"]] += 1
        elif item.kind == "target-released":
            made[party, "the target", 1] += 1
        elif item.kind == "noise-drawn":
            rounds = range(public["first"], public["first"] + len(private["rounds"]))
            made.update((party, "the noise of round", number) for number in rounds)
    for (party, what, number), times in made.items():
        if times > 1:
            yield f"{party} made {what} {number} {times} times"
    losing = {crash.party for crash in evidence.crashed if crash.left == UNRECORDED}
    for party, values in evidence.drawn.items():
        lost = sum(value not in evidence.transcripts[party] for value in values if len(value) >= TOLD_BY)
        if lost and party not in losing:
            yield f"{party} drew {lost} values that are not on record"
        if len(set(values)) < len(values):
            yield f"{party} drew the same value twice"


def charges_are_as_planned(evidence: SessionEvidence) -> Iterator[str]:
    """Each release is charged once, at the session's stated cost, and nothing else is charged."""
    session = evidence.session
    costs_of = session.release_costs()
    weigher = session.weigher
    for party in evidence.honest:
        charged: set[tuple[str, int]] = set()
        for item in (item for who, item in _items(evidence) if who == party and item.kind == Charge.KIND):
            public: Any = item.public
            first, last = public["first"], public["last"]
            # The consumer of a blind session charges two kinds of releases: its own of D_v, and the owners'.
            whose = public["neighbours"]
            numbers = {(whose, number) for number in range(first, last + 1)}
            if charged & numbers:
                yield f"{party} charged release {min(charged & numbers)[1]} twice"
            charged |= numbers
            if party == CONSUMER and whose == Neighbours.SUBSTITUTE_ONE:
                planned = session.charged_target.cost(0, neighbours=Neighbours.SUBSTITUTE_ONE)
            elif party == weigher:
                planned = costs_of(first)
            else:
                planned = session.owners_costs()
            wanted: Any = [cost_to_record(cost) for cost in planned]
            if pack_value(public["costs"]) != pack_value(wanted):
                yield f"{party} charged another cost for release {first} than the session plans"
            most = 1 if party == CONSUMER and whose == Neighbours.SUBSTITUTE_ONE else session.owners_releases
            if last > most:
                yield f"{party} charged more releases than the session has"


def points_were_bid(evidence: SessionEvidence) -> Iterator[str]:
    """Chosen points of an honest owner were bid by it; delivered points are rows of its data, each once."""
    outcome = evidence.outcome
    said = _said_of_points(evidence)
    wins = outcome.curator.ledger.wins
    for point, times in Counter((win.owner, win.handle) for win in wins).items():
        if times > 1:
            yield f"the point {point[1]} of {point[0]} was chosen {times} times"
    for win in wins:
        if win.owner in evidence.honest_owners and not _was_said(win, said.get((win.owner, win.handle))):
            chosen = f"what was chosen in round {win.chosen_round}"
            yield f"{win.owner} did not bid in round {win.bid_round} {chosen}"
    yield from evidence.delivered_that_was_not_owned()


def books_agree(evidence: SessionEvidence) -> Iterator[str]:
    """A complete session has all its rounds, and the consumer has what the curator says it bought."""
    outcome = evidence.outcome
    curator, consumer = outcome.curator, outcome.consumer
    if not evidence.complete:
        return
    yield from evidence.missing_rounds()
    ledger = curator.ledger
    chosen = [(win.owner, win.chosen_round) for win in ledger.wins]
    if [(entry.owner, entry.chosen_round) for entry in consumer.delivered] != chosen:
        yield "the consumer has other points than the curator says were chosen"
    stored = outcome.delivered
    if stored is None or [(entry.owner, entry.chosen_round) for entry in stored.delivered] != chosen:
        yield "the consumer has stored other points than the curator says were chosen"
    disputed = [(entry.chosen_round, entry.owner) for entry in consumer.delivered if entry.dispute]
    if [(dispute.chosen_round, dispute.owner) for dispute in ledger.disputes] != disputed:
        yield "curator and consumer have other disputes"
    unpaid = {(dispute.owner, dispute.handle) for dispute in ledger.disputes}
    paid = {win.owner for win in ledger.wins if (win.owner, win.handle) not in unpaid}
    settlement = curator.settlement()
    if settlement is None:
        yield "the session is complete without a settlement"
    elif evidence.session.settlement is None:  # In a private settlement all numbers are noisy.
        for owner, share in settlement.items():
            if not np.isfinite(share) or (share and owner not in paid):
                yield f"{owner} is paid for points that were not bought of it"


def honest_are_not_blamed(evidence: SessionEvidence) -> Iterator[str]:
    """No party that follows the protocol is refused, is faulty, or has a disputed point."""
    ledger = evidence.outcome.curator.ledger
    for what, parties in (
        ("was refused", [refusal.peer for refusal in ledger.refusals]),
        ("stands in the books with a fault", [fault.owner for fault in ledger.faults]),
        ("has a disputed point", [dispute.owner for dispute in ledger.disputes]),
    ):
        for party in dict.fromkeys(parties):
            if party not in evidence.byzantine:
                yield f"{party} {what}"
    for frame in evidence.said(CURATOR, "refused"):
        if frame.receiver not in evidence.byzantine:
            yield f"{frame.receiver} was told that it is refused"


def absent_are_not_chosen(evidence: SessionEvidence) -> Iterator[str]:
    """No point of an owner is chosen in a round from which it was absent."""
    ledger = evidence.outcome.curator.ledger
    absent = {(absence.round, absence.owner) for absence in ledger.absences}
    for win in ledger.wins:
        if (win.chosen_round, win.owner) in absent:
            yield f"a point of {win.owner} was chosen in round {win.chosen_round}, from which it was absent"
    if len(absent) < len(ledger.absences):
        yield "somebody was absent twice from one round"


def others_see_releases_only(evidence: SessionEvidence) -> Iterator[str]:
    """An honest owner receives its map, one broadcast per round, the same as others, and asks for its bids.

    The broadcasts depend on the chosen points, and on nothing else that an owner has said. A call contains
    what the consumer released for owners, unchanged.
    """
    outcome = evidence.outcome
    try:
        outcome.curator.selection.check_total()
    except LocalProtocolError as error:
        yield error.what
    targets = evidence.said(CONSUMER, "target", "subspace-target", "nested-target")
    target = next((_read(frame.body, CONSUMER) for frame in targets), None)
    said = _said_of_points(evidence)
    broadcasts: dict[int, bytes] = {}
    for frame in evidence.sent:
        owner = frame.receiver
        if frame.sender != CURATOR or owner not in evidence.honest_owners or frame.sequence == 0:
            continue
        message = decode_message(Direction.CURATOR_TO_OWNER, frame.body)
        if isinstance(message, Broadcast):
            if broadcasts.setdefault(message.round, frame.body) != frame.body:
                yield f"{owner} was sent another broadcast of round {message.round} than others"
            if isinstance(message, Call) and not (target and _is_of(message, target)):
                yield f"{owner} was sent a call that is not of the consumer's release"
        elif isinstance(message, Ask):
            if message.round not in said.get((owner, unfixed(message.handle)), (set(), None))[0]:
                yield f"{owner} was asked for what it did not bid in round {message.round}"
        elif isinstance(message, SecretMap) and not (
            isinstance(target, Target) and message.box in target.maps
        ):
            yield f"{owner} was sent a map that is not the consumer's"


def _is_of(call: Call, target: Target) -> bool:
    return (
        np.array_equal(call.embedding, target.embedding)
        and np.array_equal(call.seed_total, target.seed_total)
        and call.seed_size == target.seed_size
    )


def mild_faults_change_nothing(evidence: SessionEvidence) -> Iterator[str]:
    """If everything comes back in time and all follow the protocol, the result is as without faults."""
    if not evidence.plan.mild:
        return
    base = run_plan(evidence.plan, faults=False)
    for name, value in base.result.items():
        if evidence.result[name] != value:
            yield f"other {name} than without faults"
    # A signed head depends on times, and a party that dies at that point sends no farewell.
    bodies, wanted = (_unsigned(each) for each in (evidence, base))
    for sender, receiver, sequence in sorted(bodies.keys() | wanted.keys()):
        if bodies.get((sender, receiver, sequence)) != wanted.get((sender, receiver, sequence)):
            yield f"other content of frame {sequence} of {sender} to {receiver} than without faults"


EVERYWHERE: Final = (
    all_end,
    ends_are_documented,
    transcripts_agree,
    transcripts_replay,
    frames_have_one_content,
    noise_is_drawn_once,
    charges_are_as_planned,
    honest_are_not_blamed,
    absent_are_not_chosen,
    rounds_need_min_owners,
    rounds_keep_the_cadence,
    mild_faults_change_nothing,
)
"""Invariants that hold whichever party computes the weights."""
CURATOR_WEIGHS: Final = (
    points_were_bid,
    books_agree,
    others_see_releases_only,
    winners_are_verified,
    copies_are_bought_once,
    settlement_is_of_the_wins,
    broadcasts_are_numbered,
)
"""Invariants where the curator has features and weights."""
CURATOR_IS_BLIND: Final = (
    awards_are_the_best,
    boxes_are_opened_once,
    weights_have_their_own_noise,
    broadcasts_have_one_nonce,
    void_boxes_are_not_paid,
    faults_follow_from_bids,
    nothing_is_in_the_clear,
    blind_books_agree,
)
"""Invariants where the curator has neither, and the consumer computes the weights."""
OWNERS_HERD: Final = (submissions_are_herded, submissions_are_signed, choice_is_herded)
"""Additional invariants of a tender, besides those where the curator has features and weights."""


def _named(invariants: Iterable[Invariant]) -> dict[str, Invariant]:
    return {invariant.__name__.replace("_", "-"): invariant for invariant in invariants}


INVARIANTS: Final[Mapping[str, Invariant]] = _named(
    (*EVERYWHERE, *CURATOR_WEIGHS, *CURATOR_IS_BLIND, *OWNERS_HERD)
)
"""All invariants, by name."""


def invariants_of(*, blind: bool, herds: bool) -> Mapping[str, Invariant]:
    """The invariants of a session, by name.

    Args:
        blind, herds: As its rule (`AcquisitionRule`).
    """
    weighing = CURATOR_IS_BLIND if blind else CURATOR_WEIGHS
    return _named((*EVERYWHERE, *weighing, *(OWNERS_HERD if herds else ())))


def broken(evidence: SessionEvidence) -> dict[str, list[str]]:
    """The violated invariants by name, each violation in words."""
    rule = evidence.session.rule
    held_to = invariants_of(blind=rule.blind, herds=rule.herds)
    found = {name: list(invariant(evidence)) for name, invariant in held_to.items()}
    return {name: wrong for name, wrong in found.items() if wrong}


def different_again(evidence: SessionEvidence) -> list[str]:
    """Parties whose transcript differs when the plan is run again."""
    again = run_plan(evidence.plan)
    return [party for party, image in evidence.transcripts.items() if again.transcripts[party] != image]


def _items(evidence: SessionEvidence) -> Iterator[tuple[str, RecordedItem]]:
    for party, records in evidence.records.items():
        for record in records:
            for item in record.items:
                yield party, item


_Said: TypeAlias = tuple[set[int], Candidate | SealedCandidate | None]
"""The rounds in which a point was bid, and the point handed over."""


def _said_of_points(evidence: SessionEvidence) -> dict[tuple[str, int], _Said]:
    """Bids and offers of each owner's machine, by owner and its number for the point."""
    found: dict[tuple[str, int], _Said] = {}
    for frame in evidence.sent:
        if frame.kind not in ("bid", "batch", "submission", "offer"):
            continue
        message = _read(frame.body, frame.sender)
        assert isinstance(message, Bid | Batch | Offer), "the frame says so"
        for said in (message,) if isinstance(message, Offer) else bids_of(message):
            handle = said.handle if isinstance(said, PointBid) else unfixed(said.handle)
            number = frame.sender, handle
            rounds, candidate = found.get(number, (set(), None))
            found[number] = rounds | {said.round}, said.candidate or candidate
    return found


def _was_said(win: HandedOver, said: _Said | None) -> bool:
    """Whether a chosen point equals its owner's bid, including the point itself."""
    rounds, candidate = said if said is not None else (set(), None)
    if candidate is None or win.bid_round not in rounds:
        return False
    if not np.array_equal(candidate.features, win.candidate.features):
        return False
    if isinstance(candidate, SealedCandidate):
        return isinstance(win.candidate, SealedCandidate) and candidate.box == win.candidate.box
    return not isinstance(win.candidate, SealedCandidate) and bool(
        np.array_equal(candidate.point, win.candidate.point)
    )


def _read(body: bytes, sender: str) -> Any:
    way = Direction.CONSUMER_TO_CURATOR if sender == CONSUMER else Direction.OWNER_TO_CURATOR
    return decode_message(way, body)


def _unsigned(evidence: SessionEvidence) -> dict[tuple[str, str, int], frozenset[bytes]]:
    """`SessionEvidence.contents` without the frames that contain a signed head."""
    signed = {
        (frame.sender, frame.receiver, frame.sequence)
        for frame in evidence.sent
        if frame.kind in ("close", "farewell")
    }
    return {frame: bodies for frame, bodies in evidence.contents.items() if frame not in signed}
