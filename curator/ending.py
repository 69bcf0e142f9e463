"""Delivery and closing of a session: everything after its last round, or instead of it."""

from __future__ import annotations

from typing import Literal

from hushbid.curator.events import DestroyBoxes
from hushbid.curator.selection.blind import BlindSelection
from hushbid.curator.selection.open import OpenSelection
from hushbid.curator.state import AnyCurator, CuratorState
from hushbid.protocol.errors import BudgetExceeded, ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Finish, HeadSigned, SignHead
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.points import signs_head
from hushbid.protocol.wire.blind import Account
from hushbid.protocol.wire.messages import Close, Farewell, Receipt

__all__ = [
    "close",
    "deliver",
    "finish_if_all_left",
    "give_up",
    "on_account",
    "on_account_over",
    "on_closing_over",
    "on_delivery_over",
    "on_early_account",
    "on_farewell",
    "on_head_signed",
    "on_receipt",
]

# -- delivery -------------------------------------------------------------------------------------------


def deliver(curator: AnyCurator) -> None:
    """Send the consumer the chosen points, or wait for its account if it has them."""
    curator.phase = "delivering"
    curator.ending.parts = curator.selection.delivery()
    if curator.ending.parts:
        _send_next_part(curator)
    elif curator.selection.settlement() is not None:
        _complete(curator)  # the account was faster than the clock
    else:
        curator.set_timer("delivery", curator.file.timeouts.delivery)


def _send_next_part(curator: AnyCurator) -> None:
    ending = curator.ending
    ending.part += 1
    curator.send(CONSUMER, ending.parts[ending.part - 1])
    curator.set_timer("delivery", curator.file.timeouts.delivery)


def on_receipt(curator: CuratorState[OpenSelection], peer: str, receipt: Receipt) -> None:
    """Record the consumer's disputes, and send the next part."""
    ending = curator.ending
    if receipt.part != ending.part:
        raise RemoteProtocolError(
            Offence.OUT_OF_TURN, f"A receipt of part {receipt.part}; due was one of part {ending.part}."
        )
    curator.selection.note_disputes(ending.parts[ending.part - 1].purchases, receipt)
    if ending.part < len(ending.parts):
        _send_next_part(curator)
    else:
        _complete(curator)


def on_early_account(curator: CuratorState[BlindSelection], peer: str, account: Account) -> None:
    """Take in an account that is faster than the clock, which has yet to end the last round."""
    curator.selection.take_account(account, due=curator.rounds_over)


def on_account(curator: CuratorState[BlindSelection], peer: str, account: Account) -> None:
    """Complete the session with the consumer's account."""
    curator.selection.take_account(account, due=curator.rounds_over)
    _complete(curator)


def _complete(curator: AnyCurator) -> None:
    """End a session whose points are at the consumer."""
    curator.clear_timer("delivery")
    _destroy_boxes(curator)
    try:
        charges = curator.selection.settle()
    except BudgetExceeded as error:
        give_up(curator, ExitCode.FAILED, error.what, error.advice)
        return
    for charge in charges:
        curator.do(charge)  # in the step that releases the settlement
    _begin_closing(curator, "complete", Finish(ExitCode.DONE, "The session is complete."))


def _destroy_boxes(curator: AnyCurator) -> None:
    """Destroy boxes that the consumer did not buy, or has received (DESIGN §3, "`sealed`, further")."""
    if curator.rule.sealed:
        curator.selection.destroy()
        for seat in curator.seats.values():
            seat.bid = None
        curator.do(DestroyBoxes())


def on_delivery_over(curator: CuratorState[OpenSelection]) -> None:
    """End the process and keep the delivery: after a restart, the curator waits for the receipt again."""
    ending = Finish(
        ExitCode.TIMEOUT,
        f"The consumer sent no receipt of part {curator.ending.part} of the delivery in time.",
        "The chosen points are kept: have the consumer started, and start the curator again with the "
        "same state directory.",
        final=False,
    )
    curator.do(ending)


def on_account_over(curator: CuratorState[BlindSelection]) -> None:
    """End the process: after a restart, the curator waits for the account again."""
    ending = Finish(
        ExitCode.TIMEOUT,
        "The consumer sent no account of the session in time.",
        "It has what it bought: have the consumer started, and start the curator again with the same "
        "state directory.",
        final=False,
    )
    curator.do(ending)


# -- closing --------------------------------------------------------------------------------------------


def give_up(curator: AnyCurator, code: ExitCode, reason: str, advice: str = "") -> None:
    """End the session before its end, unless it is ending."""
    if curator.phase != "closing":
        if curator.phase != "delivering":
            _destroy_boxes(curator)
        _begin_closing(curator, "abandoned", Finish(code, reason, advice))


def _begin_closing(curator: AnyCurator, outcome: Literal["complete", "abandoned"], finish: Finish) -> None:
    """Tell every reachable party that the session is over, and wait until they have read it.

    Closing a connection too soon would lose what its peer has not read. An absent party may come back.
    """
    curator.phase = "closing"
    curator.ending.outcome, curator.ending.finish = outcome, finish
    for timer in ("enrolment", "round", "pause", "cadence", "delivery"):
        curator.clear_timer(timer)
    curator.do(SignHead())


def on_head_signed(curator: AnyCurator, signed: HeadSigned) -> None:
    """Tell every reachable party that the session is over."""
    curator.ending.signed = signed
    for peer in curator.reachable():
        close(curator, peer)
    if curator.links:
        curator.set_timer("closing", curator.file.timeouts.closing)
    else:
        _finish(curator)


def close(curator: AnyCurator, peer: str) -> None:
    """Tell a peer that the session is over, if it is and the peer was not told."""
    ending = curator.ending
    if ending.signed is not None and peer not in ending.closed:
        ending.closed.add(peer)
        message = Close(outcome=ending.outcome, head=ending.signed.head, signature=ending.signed.signature)
        curator.send(peer, message)


def on_farewell(curator: AnyCurator, peer: str, farewell: Farewell) -> None:
    """Note that a party has read the close."""
    if peer not in curator.ending.closed:
        raise RemoteProtocolError(Offence.OUT_OF_TURN, "A farewell came before the close.")
    if not signs_head(curator.session, peer, farewell.head, farewell.signature):
        # A refused message is not recorded: a false statement appears in its sender's transcript only.
        raise RemoteProtocolError(
            Offence.MISMATCH,
            "The signature in a farewell is not its sender's over the head in it.",
            advice="The peer should check its key, and how it signs its transcript's head.",
        )
    curator.ending.farewells.add(peer)
    finish_if_all_left(curator)


def finish_if_all_left(curator: AnyCurator) -> None:
    """End once every party that was told has left; one lost a short while ago may return to be told."""
    # Only who was told says farewell, so that as many as were told are all of them.
    ending = curator.ending
    if len(ending.farewells) == len(ending.closed) and ending.farewells >= curator.expected_back.keys():
        _finish(curator)


def on_closing_over(curator: AnyCurator) -> None:
    """End without the farewells that are missing."""
    _finish(curator)


def _finish(curator: AnyCurator) -> None:
    curator.phase = "done"
    curator.do(curator.ending.finish)
