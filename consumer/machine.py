"""The consumer's state machine: its target out, the chosen points in."""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np

from consumer.events import CheckPurchases, PurchasesHashed, ReleaseTarget, StorePurchases, TargetReleased
from protocol.config.session import SessionFile
from protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine import Event, Received, Transition
from protocol.messages import Delivery, Purchase, Receipt, Target
from protocol.participant import CURATOR, Participant, participant_transitions
from protocol.verification import matching

__all__ = ["ConsumerMachine"]

_OPEN: Final = ("greeting", "releasing", "waiting", "checking", "delivered")


class ConsumerMachine(Participant):
    """The consumer of one session.

    Args:
        session: The session file.
        name: Its roster name, "consumer".
        feature_map: SHA-256 of its own feature map.
    """

    ROLE = "consumer"
    PHASES: ClassVar[tuple[str, ...]] = (*_OPEN, "done")
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *participant_transitions(
            _OPEN, Transition("greeting", "received:welcome", "_on_welcome", ("releasing", "done"))
        ),
        Transition("releasing", "target-released", "_on_released", ("waiting",)),
        Transition("waiting", "received:delivery", "_on_delivery", ("checking",)),
        Transition("checking", "purchases-hashed", "_on_hashed", ("waiting", "delivered")),
    )

    def __init__(self, session: SessionFile, *, name: str, feature_map: bytes) -> None:
        super().__init__(session, name=name, feature_map=feature_map)
        self.purchases: list[Purchase] = []
        self.disputed: list[int] = []
        self._part = 0
        self._parts = 0

    def _on_welcome(self, event: Event) -> None:
        if self._welcomed(event):
            self.phase = "releasing"
            self._do(ReleaseTarget())

    def _on_released(self, event: Event) -> None:
        released = cast(TargetReleased, event)
        self.phase = "waiting"
        self._send(
            CURATOR,
            Target(
                embedding=released.embedding,
                size=released.size,
                seed_total=released.seed_total,
                seed_size=released.seed_size,
                noise=released.noise_name,
            ),
        )

    def _on_delivery(self, event: Event) -> None:
        delivery = cast(Delivery, cast(Received, event).message)
        if delivery.part != self._part + 1 or (self._parts and delivery.parts != self._parts):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"Part {delivery.part} of the delivery came after part {self._part}."
            )
        if delivery.part > delivery.parts:
            raise RemoteProtocolError(Offence.MALFORMED, "The delivery has more parts than it says.")
        if len(self.purchases) + len(delivery.purchases) > self._session.session.points:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"More than the {self._session.session.points} points are delivered."
            )
        features = self._session.features
        for purchase in delivery.purchases:
            if purchase.owner not in self._session.roster.owners:
                raise RemoteProtocolError(
                    Offence.MALFORMED, "A delivered point's owner is not on the session's roster."
                )
            candidate = purchase.candidate
            if candidate.point.shape != (features.columns,) or candidate.features.shape != (
                features.dimension,
            ):
                raise RemoteProtocolError(
                    Offence.MALFORMED, f"A delivered point does not have {features.columns} columns."
                )
        self._part, self._parts = delivery.part, delivery.parts
        self.purchases.extend(delivery.purchases)
        self.phase = "checking"
        self._do(CheckPurchases(delivery.purchases))

    def _on_hashed(self, event: Event) -> None:
        recomputed = cast(PurchasesHashed, event).features
        first = len(self.purchases) - len(recomputed)
        if len(recomputed):
            claimed = np.stack([purchase.candidate.features for purchase in self.purchases[first:]])
            mismatches = np.flatnonzero(~matching(recomputed, claimed))
            self.disputed.extend(first + int(row) for row in mismatches)
        self._send(CURATOR, Receipt(part=self._part))
        if self._part == self._parts:
            self.phase = "delivered"
            self._do(StorePurchases(tuple(self.purchases), tuple(self.disputed)))
        else:
            self.phase = "waiting"

    def check(self) -> None:
        """No more points are delivered than were to be acquired."""
        if len(self.purchases) > self._session.session.points:
            raise LocalProtocolError(
                f"{len(self.purchases)} points were delivered of {self._session.session.points}."
            )
