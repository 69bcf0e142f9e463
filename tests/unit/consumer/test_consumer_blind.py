"""The consumer of a blind session weighs, opens the choice in its round, and voids lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.events import (
    AccountMade,
    Delivered,
    MakeAccount,
    PurchasesChecked,
    SealWeight,
    StorePurchases,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.party import consumer_machine
from hushbid.protocol import limits
from hushbid.protocol.errors import ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Charge, Effect, Event, Finish, Received, Send, Started
from hushbid.protocol.machine.weighing import ComputeWeights, DrawNoise, NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import Account, Award, BlindCandidate, BlindPurchase, Maps, SealedBroadcast
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import (
    NUMBERED_VERSION,
    PROTOCOL_VERSION,
    Broadcast,
    Close,
    Delivery,
    Message,
    Welcome,
    fixed,
)
from tests.simulation.harness import candidate_of, corners
from tests.support.blind_parties import (
    award_of,
    blind_session,
    masked,
)
from tests.support.sealed_parties import DIMENSION, OWNERS, W

A, B = OWNERS
EPHEMERAL = bytes(range(32))


# -- the machine ---------------------------------------------------------------------------------------


class Bench:
    """A consumer's machine, with a test in place of its numerics and of the curator."""

    def __init__(self, **changes: Any) -> None:
        self.session = blind_session(**changes)
        self.machine = consumer_machine(self.session)
        self.sequence = 0
        self.effects: list[Effect] = []
        self.feed(Started())
        self.receive(Welcome(version=NUMBERED_VERSION, feature_map=None, sent=0, received=0), 0)

    @property
    def buying(self) -> BlindBuying:
        assert isinstance(self.machine.buying, BlindBuying)
        return self.machine.buying

    def feed(self, event: Event) -> tuple[Effect, ...]:
        effects = self.machine.step(event, 0.0)
        self.effects += effects
        return effects

    def receive(self, message: Message, sequence: int) -> tuple[Effect, ...]:
        acknowledged = self.machine.links[CURATOR].sent if sequence else 0
        return self.feed(Received(CURATOR, sequence, acknowledged, b"", message))

    def say(self, message: Message) -> tuple[Effect, ...]:
        effects = self.receive(message, self.sequence + 1)
        self.sequence += 1
        return effects

    def offend(self, message: Message) -> RemoteProtocolError:
        phase = self.machine.phase
        with pytest.raises(RemoteProtocolError) as caught:
            self.say(message)
        assert self.machine.phase == phase
        return caught.value

    def release(self) -> None:
        """Release the target, and draw noise if there is any."""
        zeros = np.zeros(DIMENSION)
        maps = bytes(limits.MAP_BOX_BYTES * len(OWNERS))
        self.feed(TargetReleased(zeros, 3, zeros.astype(np.int64), 2, b"", maps, "none", ()))

    def weigh(self) -> None:
        """Compute and seal the current round's weight."""
        self.feed(WeightsComputed(self.machine.round, W))
        self.feed(WeightSealed(self.machine.round, b"a box", bytes(64)))

    def waiting(self) -> Bench:
        """Go on until the first award is due."""
        self.release()
        self.weigh()
        return self

    def purchase(self, owner: str = A, handle: int = 1, score: int = 5, **changes: Any) -> BlindPurchase:
        """A box of the right shape."""
        candidate = BlindCandidate(
            box=bytes(self.session.box_length),
            digests=bytes(32 * (self.session.batch + 1)),
            signature=bytes(64),
        )
        values: dict[str, Any] = {
            "owner": owner,
            "bid_round": self.machine.round,
            "handle": fixed(handle),
            "score": masked(score),
            "candidate": candidate,
        }
        return BlindPurchase(**(values | changes))

    def award(self, *purchases: BlindPurchase, number: int | None = None) -> Award:
        return award_of(*purchases, number=self.machine.round if number is None else number)

    def bought(self, *entries: Delivered) -> tuple[Effect, ...]:
        """Check the current award, with these findings."""
        last = self.machine.round == self.session.rounds
        return self.feed(PurchasesChecked(entries, np.zeros(len(self.machine.delivered)) if last else None))

    def sent(self) -> list[str]:
        bodies = [effect.body for effect in self.effects if isinstance(effect, Send)]
        return [decode_message(Direction.CONSUMER_TO_CURATOR, body).kind for body in bodies]


def found(owner: str, number: int, dispute: str = "") -> Delivered:
    """An opened point."""
    row = np.tile(corners()[0], 2)
    return Delivered(owner, number, candidate_of(row), dispute)


def account_of(session: Session) -> Account:
    owners = len(session.file.owners)
    none = np.zeros(owners)
    return Account(
        settlement=none,
        errors=none,
        gains=none,
        gain_errors=none,
        signal=0,
        sold=none.astype(np.int64),
        void=none.astype(np.int64),
        signature=bytes(64),
    )


def test_maps_leave_first_then_a_weight_a_round_and_at_the_end_the_account() -> None:
    bench = Bench(points=2)
    bench.release()
    assert bench.sent() == ["maps"]
    for number in (1, 2):
        bench.weigh()
        bench.say(bench.award(bench.purchase(handle=number)))
        bench.bought(found(A, number))
    assert isinstance(bench.effects[-1], MakeAccount)
    account = account_of(bench.session)
    assert [type(effect) for effect in bench.feed(AccountMade(account))] == [Send, StorePurchases]
    assert bench.sent() == [
        "maps", "sealed-broadcast", "sealed-broadcast", "account"
    ]  # fmt: skip
    assert [each.owner for each in bench.machine.delivered] == [A, A]


def test_a_release_is_charged_before_its_broadcast_leaves_and_not_twice() -> None:
    release = {"mechanism": "gaussian", "sigma": 20.0, "neighbours": "add-remove-one"}
    bench = Bench(summary=release, points=2)
    bench.release()
    assert isinstance(bench.effects[-1], DrawNoise)
    last = bench.effects[-1].last
    zeros = np.zeros(DIMENSION)
    bench.feed(NoiseDrawn(1, tuple(((zeros,), ()) for _ in range(last))))
    assert isinstance(bench.effects[-1], ComputeWeights)
    (charge, seal_it) = bench.feed(WeightsComputed(1, W))
    assert isinstance(charge, Charge)
    assert (charge.first, charge.last) == (1, 1)
    assert isinstance(seal_it, SealWeight)
    bench.feed(WeightSealed(1, b"a box", bytes(64)))
    bench.say(bench.award(bench.purchase()))
    bench.bought(found(A, 1))
    (charge, _) = bench.feed(WeightsComputed(2, W))
    assert isinstance(charge, Charge)
    assert (charge.first, charge.last) == (2, 2)


def test_weights_of_another_round_are_a_bug() -> None:
    bench = Bench()
    bench.release()
    with pytest.raises(LocalProtocolError, match="Weights of round 2 came in round 1"):
        bench.feed(WeightsComputed(2, W))


def test_what_is_void_adds_nothing_to_the_total_and_is_counted() -> None:
    bench = Bench(points=3).waiting()
    bench.say(bench.award(bench.purchase(handle=1)))
    bench.bought(found(A, 1, "the owner's signature does not hold"))
    assert not bench.buying.weighing.total.any()
    assert bench.buying.void == {A: 1}
    bench.weigh()
    bench.say(bench.award(bench.purchase(B, 2)))
    bench.bought(found(B, 2))
    assert bench.buying.weighing.total.any()
    (effect,) = [each for each in bench.effects if isinstance(each, ComputeWeights) and each.round == 3]
    assert effect.count == 2 + 2, "by rounds and not by points, so that a void box is one of S"


def test_a_point_with_a_wrong_score_counts_in_the_total_and_is_not_paid() -> None:
    """Whether it is wrong depends on the round, and so on others' data: the total must not."""
    bench = Bench(points=3).waiting()
    bench.say(bench.award(bench.purchase(handle=1)))
    bench.bought(found(A, 1, "the score is not the point's"))
    assert bench.buying.weighing.total.any()
    assert bench.buying.void == {A: 1}


def test_an_award_without_boxes_is_a_round_in_which_nobody_was_present() -> None:
    bench = Bench(points=2).waiting()
    bench.say(bench.award())
    bench.bought()
    assert (bench.machine.round, bench.machine.delivered) == (2, [])


# -- awards that are refused -----------------------------------------------------------------------------


def shaped(bench: Bench, **changes: Any) -> BlindPurchase:
    purchase = bench.purchase(handle=4, score=9)
    return purchase.model_copy(update={"candidate": purchase.candidate.model_copy(update=changes)})


AWARDS: dict[str, tuple[Callable[[Bench], Award], Offence, str]] = {
    "the round before": (
        lambda b: b.award(b.purchase(score=9), b.purchase(handle=2), number=1),
        Offence.OUT_OF_TURN,
        "round 1 came in round 2",
    ),
    "the next round": (
        lambda b: b.award(b.purchase(score=9), b.purchase(handle=2), number=3),
        Offence.OUT_OF_TURN,
        "round 3 came in round 2",
    ),
    "too short": (lambda b: b.award(b.purchase()), Offence.MALFORMED, "has 1 boxes; 2 were due"),
    "too long": (
        lambda b: b.award(*(b.purchase(handle=handle, score=9 - handle) for handle in (2, 3, 4))),
        Offence.MALFORMED,
        "has 3 boxes; 2 were due",
    ),
    "reordered": (
        lambda b: b.award(b.purchase(handle=3, score=5), b.purchase(B, 3, score=6)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "equal scores in another order of owners": (
        lambda b: b.award(b.purchase(B, 3), b.purchase(A, 3)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "equal scores in another order of numbers": (
        lambda b: b.award(b.purchase(handle=4), b.purchase(handle=3)),
        Offence.MALFORMED,
        "not in the order",
    ),
    "a box twice": (
        lambda b: b.award(b.purchase(handle=3), b.purchase(handle=3)),
        Offence.OUT_OF_TURN,
        "a second time",
    ),
    "a box of an earlier award": (
        lambda b: b.award(b.purchase(handle=1, score=9), b.purchase(handle=3)),
        Offence.OUT_OF_TURN,
        "a second time",
    ),
    "an owner that is not on the roster": (
        lambda b: b.award(b.purchase(score=9, handle=3), b.purchase("owner-9")),
        Offence.MALFORMED,
        "not on the session's roster",
    ),
    "a number of a bid to come": (
        lambda b: b.award(b.purchase(handle=5, score=9), b.purchase(handle=3)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "number 0": (
        lambda b: b.award(b.purchase(handle=0, score=9), b.purchase(handle=3)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "a bid of a round to come": (
        lambda b: b.award(b.purchase(handle=3, score=9, bid_round=3), b.purchase(handle=4)),
        Offence.MALFORMED,
        "that it cannot have",
    ),
    "a longer box": (
        lambda b: b.award(shaped(b, box=bytes(b.session.box_length + 1)), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
    "a shorter box": (
        lambda b: b.award(shaped(b, box=b"box"), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
    "digests of another batch": (
        lambda b: b.award(shaped(b, digests=bytes(32 * 2)), b.purchase(handle=3)),
        Offence.MALFORMED,
        "of another length",
    ),
}
"""Of round 2; in round 1 number 1 and 2 of owner-0 were bought."""


@pytest.mark.parametrize("what", AWARDS)
def test_an_award_that_no_honest_curator_makes_is_refused_and_changes_nothing(what: str) -> None:
    make, offence, text = AWARDS[what]
    bench = Bench(points=6, batch=2).waiting()
    bench.say(bench.award(bench.purchase(handle=1, score=7), bench.purchase(handle=2)))
    bench.bought(found(A, 1), found(A, 1))
    bench.weigh()
    error = bench.offend(make(bench))
    assert (error.offence, text in error.what) == (offence, True), error.what
    bench.say(bench.award(bench.purchase(handle=3, score=7), bench.purchase(B, 1)))
    assert bench.machine.phase == "checking", "an honest one is taken still"


def test_an_award_of_an_owner_without_a_turn_is_refused() -> None:
    bench = Bench(points=6, wishes={"caps": {A: 1}}).waiting()
    turns = bench.session.turns
    while turns.has(A, bench.machine.round):
        bench.say(bench.award(bench.purchase(B, bench.machine.round)))
        bench.bought(found(B, bench.machine.round))
        bench.weigh()
    error = bench.offend(bench.award(bench.purchase(A)))
    assert (error.offence, "has no turn" in error.what) == (Offence.OUT_OF_TURN, True)


def test_the_last_award_buys_what_is_left() -> None:
    bench = Bench(points=3, batch=2).waiting()
    bench.say(bench.award(bench.purchase(handle=1, score=7), bench.purchase(handle=2)))
    bench.bought(found(A, 1), found(A, 1))
    bench.weigh()
    two = bench.award(bench.purchase(handle=3, score=7), bench.purchase(handle=4))
    assert "1 were due" in bench.offend(two).what
    bench.say(bench.award(bench.purchase(handle=3)))
    assert bench.machine.phase == "checking"


def test_an_award_has_no_place_before_a_broadcast_or_while_another_is_checked() -> None:
    for bench in (Bench(), Bench().waiting()):
        if bench.machine.phase == "waiting":
            bench.say(bench.award(bench.purchase()))
        award = bench.award(bench.purchase(B, bid_round=1), number=1)
        assert bench.offend(award).offence is Offence.OUT_OF_TURN


def test_messages_of_other_rules_have_no_place() -> None:
    bench = Bench().waiting()
    for message in (
        Delivery(part=1, parts=1, purchases=()),
        Broadcast(round=1, weights=W, noise="none"),
    ):
        assert bench.offend(message).offence is Offence.OUT_OF_TURN


def test_a_session_that_is_given_up_ends_the_consumer_in_every_phase() -> None:
    for bench in (Bench(), Bench().waiting()):
        bench.say(Close(outcome="abandoned", head=bytes(32), signature=b""))
        assert bench.machine.phase == "leaving"


def test_a_curator_that_chooses_the_older_version_is_left() -> None:
    machine = consumer_machine(blind_session())
    machine.step(Started(), 0.0)
    welcome = Welcome(version=PROTOCOL_VERSION, feature_map=None, sent=0, received=0)
    (finish,) = machine.step(Received(CURATOR, 0, 0, b"", welcome), 0.0)
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.CONNECTION


def test_maps_and_broadcasts_are_messages_of_the_consumer() -> None:
    bench = Bench(points=1).waiting()
    bodies = [effect.body for effect in bench.effects if isinstance(effect, Send)]
    messages = [decode_message(Direction.CONSUMER_TO_CURATOR, body) for body in bodies]
    assert [type(message) for message in messages] == [Maps, SealedBroadcast]
