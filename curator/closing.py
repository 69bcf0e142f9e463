"""Delivery, settlement and closing of a session: everything after its last round, or instead of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from hushbid.curator.delivery import parts_of
from hushbid.curator.events import CandidatesChecked, DestroyBoxes
from hushbid.curator.ledger import Dispute
from hushbid.curator.state import CuratorState
from hushbid.protocol.errors import BudgetExceeded, ExitCode, Offence, RemoteProtocolError
from hushbid.protocol.machine.machine import Finish, HeadSigned, SignHead
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.payment import Errors, PaidStatement, Price
from hushbid.protocol.session.points import signs_head
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import settle, settle_privately
from hushbid.protocol.session.statement import GAINED, gain_errors, shared_gains, target_noise
from hushbid.protocol.wire.messages import Close, Delivery, Farewell, Receipt, Target, unfixed

__all__ = ["Closing"]


class Closing(CuratorState):
    """The end of a session; its arguments are those of `CuratorState`."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._parts: tuple[Delivery, ...] = ()
        self._part = 0
        self._private_settlement: Mapping[str, float] | None = None
        """The numbers that owners may be told, once released."""
        self._closed: set[str] = set()
        self._farewells: set[str] = set()
        self._outcome: Literal["complete", "abandoned"] = "complete"
        self._ending = Finish(ExitCode.DONE, "")
        self._signed: HeadSigned | None = None

    # -- delivery -----------------------------------------------------------------------------------

    def _deliver(self) -> None:
        self.phase = "delivering"
        self._parts = parts_of(self.ledger.wins)
        self._part = 0
        self._next_part()

    def _next_part(self) -> None:
        self._part += 1
        self._send(CONSUMER, self._parts[self._part - 1])
        self._set_timer("delivery", self._session.timeouts.delivery)

    def _on_receipt(self, peer: str, receipt: Receipt) -> None:
        if receipt.part != self._part:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"A receipt of part {receipt.part}; due was one of part {self._part}."
            )
        self._note_disputes(receipt)
        if self._part < len(self._parts):
            self._next_part()
            return
        self._clear_timer("delivery")
        self._destroy_boxes()
        if self._opened.settlement is not None:
            try:
                self._settle_privately()
            except BudgetExceeded as error:
                self._give_up(ExitCode.FAILED, error.what, error.advice)
                return
        self._begin_closing("complete", Finish(ExitCode.DONE, "The session is complete."))

    def _settle_privately(self) -> None:
        """Charge the private settlement and release it, in one step; its noise came with the last round's."""
        for charge in self.weighing.charge(self._opened.owners_releases):
            self._do(charge)
        (noise,) = self.weighing.end_round()
        self._private_settlement = settle_privately(
            self.ledger.wins, self._disputed(), self.owners, self.weighing.first_weights, noise
        )

    def _note_disputes(self, receipt: Receipt) -> None:
        """Record the consumer's disputes; owners are not told (DESIGN §3, "No feedback")."""
        purchases = self._parts[self._part - 1].purchases
        bits = np.unpackbits(np.frombuffer(receipt.disputed, dtype=np.uint8))
        if len(receipt.disputed) != (len(purchases) + 7) // 8 or bits[len(purchases) :].any():
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A receipt's disputes are not of the {len(purchases)} points of its part."
            )
        self.ledger.disputes.extend(
            Dispute(purchase.round, purchase.owner, unfixed(purchase.handle))
            for purchase, disputed in zip(purchases, bits.tolist(), strict=False)
            if disputed
        )

    def _destroy_boxes(self) -> None:
        """Destroy boxes that the consumer did not buy, or has received (DESIGN §3, "`sealed`, further")."""
        if self._rule.sealed:
            self._boxes_destroyed = True
            self._pooled = [None] * len(self._pooled)
            for seat in self.seats.values():
                seat.bid = None
            self._unverified, self._verifying = [], ()
            self._do(DestroyBoxes())

    def _on_delivery_over(self) -> None:
        """End the process and keep the delivery: after a restart, the curator waits for the receipt again."""
        ending = Finish(
            ExitCode.TIMEOUT,
            f"The consumer sent no receipt of part {self._part} of the delivery in time.",
            "The chosen points are kept: have the consumer started, and start the curator again with the "
            "same state directory.",
            final=False,
        )
        self._do(ending)

    # -- closing ------------------------------------------------------------------------------------

    def _give_up(self, code: ExitCode, reason: str, advice: str = "") -> None:
        if self.phase != "closing":
            if self.phase != "delivering":
                self._destroy_boxes()
            self._begin_closing("abandoned", Finish(code, reason, advice))

    def _begin_closing(self, outcome: Literal["complete", "abandoned"], ending: Finish) -> None:
        """Tell every reachable party that the session is over, and wait until they have read it.

        Closing a connection too soon would lose what its peer has not read. An absent party may come back.
        """
        self.phase = "closing"
        self._outcome, self._ending = outcome, ending
        for timer in ("enrolment", "round", "pause", "cadence", "delivery"):
            self._clear_timer(timer)
        self._do(SignHead())

    def _on_head_signed(self, signed: HeadSigned) -> None:
        self._signed = signed
        for peer in self._reachable():
            self._close(peer)
        if self.links:
            self._set_timer("closing", self._session.timeouts.closing)
        else:
            self._finish()

    def _close(self, peer: str) -> None:
        if self._signed is not None and peer not in self._closed:
            self._closed.add(peer)
            close = Close(outcome=self._outcome, head=self._signed.head, signature=self._signed.signature)
            self._send(peer, close)

    def _on_farewell(self, peer: str, farewell: Farewell) -> None:
        if peer not in self._closed:
            raise RemoteProtocolError(Offence.OUT_OF_TURN, "A farewell came before the close.")
        if not signs_head(self._opened, peer, farewell.head, farewell.signature):
            # A refused message is not recorded: a false statement appears in its sender's transcript only.
            raise RemoteProtocolError(
                Offence.MISMATCH,
                "The signature in a farewell is not its sender's over the head in it.",
                advice="The peer should check its key, and how it signs its transcript's head.",
            )
        self._farewells.add(peer)
        self._finish_if_all_left()

    def _finish_if_all_left(self) -> None:
        """End once every party that was told has left; one lost a short while ago may return to be told."""
        # Only who was told says farewell, so that as many as were told are all of them.
        if len(self._farewells) == len(self._closed) and self._farewells >= self._expected_back.keys():
            self._finish()

    def _on_closing_over(self) -> None:
        self._finish()

    def _on_moot(self, event: NoiseDrawn | WeightsComputed | CandidatesChecked) -> None:
        """Ignore results of work that was in progress when the session ended."""

    def _on_moot_message(self, peer: str, message: Target | Receipt) -> None:
        """Ignore messages that arrived meanwhile."""

    def _finish(self) -> None:
        self.phase = "done"
        self._do(self._ending)

    # -- settlement ---------------------------------------------------------------------------------

    def settlement(self) -> Mapping[str, float] | None:
        """The number that each owner is paid by; None before the release of a private settlement.

        Otherwise it is each owner's exact share so far (`hushbid.protocol.session.settling.settle`).
        """
        if self._opened.settlement is not None:
            return self._private_settlement
        target = self.target
        if target is None:
            return dict.fromkeys(self.owners, 0.0)
        return settle(
            self.ledger.wins,
            self._disputed(),
            self.owners,
            target.embedding,
            target.seed_total,
            target.seed_size,
            self.seed_weight,
        )

    def statement(self, price: Price) -> tuple[Errors, PaidStatement] | None:
        """The standard errors of `settlement`, and the numbers to pay owners by; None before the release."""
        target, settlement = self.target, self.settlement()
        if target is None or settlement is None:
            return None
        opened, wins, disputed = self._opened, self.ledger.wins, self._disputed()
        noise = target_noise(opened, target)
        if opened.settlement is not None:
            errors: Errors = dict.fromkeys(self.owners, opened.settlement.standard_error)
            unit = "points by worth"
            return errors, PaidStatement.of(unit, settlement, errors, signal=noise.signal, price=price)
        values, theirs = shared_gains(wins, disputed, self.owners, opened, target, noise)
        errors = gain_errors(wins, disputed, self.owners, target, noise, self.seed_weight)
        return errors, PaidStatement.of(GAINED, values, theirs, signal=noise.signal, price=price)

    def _disputed(self) -> set[tuple[int, str, int]]:
        return {(dispute.chosen_round, dispute.owner, dispute.handle) for dispute in self.ledger.disputes}
