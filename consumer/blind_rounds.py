"""Rounds of a consumer under the rule `blind`: it computes weights, opens what it bought, and settles.

Where the curator cannot link (version 4), it sends places, and the consumer asks for the boxes behind them
(`hushbid.consumer.buying.unlinked`). It then has an award as under version 3.
"""

from __future__ import annotations

from typing import Final

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.buying.unlinked import UnlinkedBuying
from hushbid.consumer.events import (
    AccountMade,
    ChoicePlaced,
    PlaceChoice,
    PurchasesChecked,
    RoundOpened,
    StorePurchases,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.machine import ConsumerMachine, target_of
from hushbid.protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError
from hushbid.protocol.machine.base import TransitionTable, happened, received
from hushbid.protocol.machine.participant import participant_rows
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CURATOR
from hushbid.protocol.wire.blind import Award, Maps, SealedBroadcast
from hushbid.protocol.wire.messages import Roots
from hushbid.protocol.wire.unlinked import Choice, Picked, Picks, RoundOpening

__all__ = ["BLIND", "UNLINKED"]


def _blind(consumer: ConsumerMachine) -> BlindBuying:
    if not isinstance(consumer.buying, BlindBuying):
        raise LocalProtocolError("This consumer computes no weights.")
    return consumer.buying


def _unlinked(consumer: ConsumerMachine) -> UnlinkedBuying:
    if not isinstance(consumer.buying, UnlinkedBuying):
        raise LocalProtocolError("This consumer is sent awards, not places.")
    return consumer.buying


# -- the weight -----------------------------------------------------------------------------------------


def _on_released(consumer: ConsumerMachine, released: TargetReleased) -> None:
    _blind(consumer).begin(target_of(released))
    consumer.send(CURATOR, Maps(maps=released.maps))
    _start_round(consumer)


def _start_round(consumer: ConsumerMachine) -> None:
    consumer.round += 1
    consumer.phase = "weighing"
    consumer.do(_blind(consumer).weighing.start(consumer.round))


def _on_noise(consumer: ConsumerMachine, drawn: NoiseDrawn) -> None:
    consumer.do(_blind(consumer).weighing.drawn(drawn, consumer.round))


def _on_weights(consumer: ConsumerMachine, computed: WeightsComputed) -> None:
    buying = _blind(consumer)
    try:
        charges = buying.weighed(computed, consumer.round)
    except BudgetExceeded as error:
        consumer.fail(ExitCode.FAILED, error.what, error.advice)
        return
    for charge in charges:
        consumer.do(charge)
    consumer.do(buying.seal(consumer.round, computed.weights))


def _on_sealed(consumer: ConsumerMachine, sealed: WeightSealed) -> None:
    consumer.phase = "waiting"
    message = SealedBroadcast(round=sealed.round, box=sealed.box, signature=sealed.signature)
    consumer.send(CURATOR, message)


def _on_opened(consumer: ConsumerMachine, opened: RoundOpened) -> None:
    consumer.phase = "waiting"
    _unlinked(consumer).opened(opened)
    message = RoundOpening(round=opened.round, box=opened.box, signature=opened.signature, taken=opened.taken)
    consumer.send(CURATOR, message)


# -- purchases ------------------------------------------------------------------------------------------


def _on_choice(consumer: ConsumerMachine, peer: str, choice: Choice) -> None:
    _unlinked(consumer).take_choice(choice, consumer.round)
    consumer.phase = "placing"
    consumer.do(PlaceChoice(choice))


def _on_placed(consumer: ConsumerMachine, placed: ChoicePlaced) -> None:
    numbers = _unlinked(consumer).placed(placed.handles)
    consumer.phase = "fetching"
    consumer.send(CURATOR, Picks(round=placed.round, numbers=numbers))


def _on_picked(consumer: ConsumerMachine, peer: str, picked: Picked) -> None:
    buying = _unlinked(consumer)
    _on_award(consumer, peer, buying.award_of(picked, consumer.round))
    buying.bought(picked)


def _on_award(consumer: ConsumerMachine, peer: str, award: Award) -> None:
    check = _blind(consumer).take_award(award, consumer.round)
    consumer.phase = "checking"
    consumer.do(check)


def _on_award_checked(consumer: ConsumerMachine, checked: PurchasesChecked) -> None:
    buying = _blind(consumer)
    award = buying.checked(checked)
    consumer.take_checked(checked, award.purchases)
    if consumer.round < buying.rounds:
        _start_round(consumer)
        return
    try:
        charges = buying.charge_settlement()
    except BudgetExceeded as error:
        consumer.fail(ExitCode.FAILED, error.what, error.advice)
        return
    for charge in charges:
        consumer.do(charge)
    consumer.phase = "accounting"
    consumer.do(buying.account())


def _on_account_made(consumer: ConsumerMachine, made: AccountMade) -> None:
    consumer.phase = "delivered"
    consumer.send(CURATOR, made.account)
    consumer.do(StorePurchases(tuple(consumer.delivered)))


# -- the tables -----------------------------------------------------------------------------------------

_BLIND: Final = (
    "greeting",
    "gathering",
    "releasing",
    "weighing",
    "waiting",
    "checking",
    "accounting",
    "delivered",
)
_UNLINKED: Final = (*_BLIND, "placing", "fetching")

BLIND: Final[TransitionTable[ConsumerMachine]] = TransitionTable(
    phases=(*_BLIND, "leaving", "done"),
    outcomes=(TargetReleased, NoiseDrawn, WeightsComputed, WeightSealed, PurchasesChecked, AccountMade),
    rows=(
        *participant_rows(_BLIND, ConsumerMachine.on_welcome, "greeting", "gathering", "releasing", "done"),
        *received("gathering", Roots, ConsumerMachine.on_roots, "releasing", "done"),
        *happened("releasing", TargetReleased, _on_released, "weighing"),
        *happened("weighing", NoiseDrawn, _on_noise),
        *happened("weighing", WeightsComputed, _on_weights, "weighing", "done"),
        *happened("weighing", WeightSealed, _on_sealed, "waiting"),
        *received("waiting", Award, _on_award, "checking"),
        *happened("checking", PurchasesChecked, _on_award_checked, "weighing", "accounting", "done"),
        *happened("accounting", AccountMade, _on_account_made, "delivered"),
    ),
)
"""The table of a consumer that computes the weights."""

UNLINKED: Final[TransitionTable[ConsumerMachine]] = TransitionTable(
    phases=(*_UNLINKED, "leaving", "done"),
    outcomes=(
        TargetReleased,
        NoiseDrawn,
        WeightsComputed,
        RoundOpened,
        ChoicePlaced,
        PurchasesChecked,
        AccountMade,
    ),
    rows=(
        *participant_rows(
            _UNLINKED, ConsumerMachine.on_welcome, "greeting", "gathering", "releasing", "done"
        ),
        *received("gathering", Roots, ConsumerMachine.on_roots, "releasing", "done"),
        *happened("releasing", TargetReleased, _on_released, "weighing"),
        *happened("weighing", NoiseDrawn, _on_noise),
        *happened("weighing", WeightsComputed, _on_weights, "weighing", "done"),
        *happened("weighing", RoundOpened, _on_opened, "waiting"),
        *received("waiting", Choice, _on_choice, "placing"),
        *happened("placing", ChoicePlaced, _on_placed, "fetching"),
        *received("fetching", Picked, _on_picked, "checking"),
        *happened("checking", PurchasesChecked, _on_award_checked, "weighing", "accounting", "done"),
        *happened("accounting", AccountMade, _on_account_made, "delivered"),
    ),
)
"""The table of a consumer whose curator cannot link (version 4)."""
