"""The consumer's state machine: it sends its target and receives the chosen points.

Where owners commit to their rows, it waits for what they committed to: the feature map is drawn after that.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.course import Course, course_of
from hushbid.consumer.disputes import SellerFaults
from hushbid.consumer.events import (
    CheckPurchases,
    Delivered,
    PurchasesChecked,
    ReleaseTarget,
    StorePurchases,
    TargetReleased,
)
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.protocol import limits
from hushbid.protocol.crypto.commitment import ROOT_BYTES, root_name
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES
from hushbid.protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Transition
from hushbid.protocol.machine.machine import Charge, Event
from hushbid.protocol.machine.participant import Participant, participant_transitions
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.points import signs_rows
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.wishes import over_budget
from hushbid.protocol.wire.messages import (
    Candidate,
    Delivery,
    NestedTarget,
    Purchase,
    Receipt,
    Roots,
    SubspaceTarget,
    Target,
    Welcome,
    unfixed,
)

__all__ = ["ConsumerMachine", "target_of"]

_OPEN: Final = ("greeting", "gathering", "releasing", "waiting", "checking", "delivered")


class ConsumerMachine(Participant):
    """The consumer of one session."""

    ROLE = "consumer"
    PHASES: ClassVar[tuple[str, ...]] = (*_OPEN, "leaving", "done")
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (TargetReleased, PurchasesChecked)
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *participant_transitions(_OPEN, ("greeting", "gathering", "releasing", "done")),
        Transition("gathering", "received:roots", "_on_roots", ("releasing", "done")),
        Transition("releasing", "target-released", "_on_released", ("waiting",)),
        Transition("waiting", "received:delivery", "_on_delivery", ("checking",)),
        Transition("checking", "purchases-checked", "_on_checked", ("waiting", "delivered")),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session, name=CONSUMER)
        self._sealed = session.rule.sealed
        self._opened = session
        self._depth = session.commitment_depth
        self.roots: dict[str, str] = {}
        """What each owner committed to that came in time, as `root_name` calls it."""
        self._turns = session.turns
        self._filter = session.target_filter()
        costs = session.charged_target.cost(0, neighbours=Neighbours.SUBSTITUTE_ONE)
        self.charge = Charge(Neighbours.SUBSTITUTE_ONE.value, 1, 1, costs)
        """The session's cost to D_v."""
        self.delivered: list[Delivered] = []
        self.mmd2: npt.NDArray[np.float64] | None = None
        """MMD² of the first 1, 2, … delivered points (`PurchasesChecked.mmd2`), after the whole delivery."""
        self.seed_distance: SeedDistance | None = None
        """The distance of D_init from D_v, after the whole delivery."""
        self._received = 0
        """Number of delivered points, including those still being checked."""
        self.faults = SellerFaults()
        """What is disputed: once for each fault, where `delivered` has it for each point."""
        self._checking: tuple[Purchase, ...] = ()
        """The part that is being checked."""
        self._numbers: set[tuple[str, int]] = set()
        """Owner and number of each delivered point."""
        self._part = 0
        self._parts = 0

    def _on_welcome(self, peer: str, welcome: Welcome) -> None:
        if not self._welcomed(welcome):
            return
        if self._depth:
            self.phase = "gathering"
        else:
            self._release(None)

    def _on_roots(self, peer: str, roots: Roots) -> None:
        owners = self._session.owners
        lengths = len(roots.roots), len(roots.signatures)
        if lengths != (ROOT_BYTES * len(owners), SIGNATURE_BYTES * len(owners)):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"There is not a root and a signature for each of {len(owners)} owners."
            )
        found = roots.of(owners)
        if not all(signs_rows(self._opened, owner, each) for owner, each in found.items()):
            raise RemoteProtocolError(Offence.MISMATCH, "A root is told of an owner that did not sign it.")
        if len(found) < self._session.session.min_owners:
            raise RemoteProtocolError(
                Offence.MALFORMED, "Fewer owners have committed to their rows than the session needs."
            )
        self.roots = {owner: root_name(each.root, self._depth) for owner, each in found.items()}
        self._release(roots)

    def _release(self, roots: Roots | None) -> None:
        """Charge D_v and release its embedding: after this the feature map exists for the owners."""
        if self._filter is not None:
            try:
                self._filter.charge(*self.charge.costs)
            except BudgetExceeded as error:
                self._fail(ExitCode.FAILED, error.what, error.advice)
                return
        self._do(self.charge)
        self.phase = "releasing"
        self._do(ReleaseTarget(roots))

    def _on_released(self, released: TargetReleased) -> None:
        self.phase = "waiting"
        self._send(CURATOR, target_of(released))

    def _on_delivery(self, peer: str, delivery: Delivery) -> None:
        if delivery.part != self._part + 1 or (self._parts and delivery.parts != self._parts):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"Part {delivery.part} of the delivery came after part {self._part}."
            )
        if delivery.part > delivery.parts:
            raise RemoteProtocolError(Offence.MALFORMED, "The delivery has more parts than it says.")
        if self._received + len(delivery.purchases) > self._session.session.points:
            raise RemoteProtocolError(
                Offence.MALFORMED, f"More than the {self._session.session.points} points are delivered."
            )
        for purchase in delivery.purchases:
            self._check_purchase(purchase)
        numbers = [(purchase.owner, unfixed(purchase.handle)) for purchase in delivery.purchases]
        if len(self._numbers.union(numbers)) < self._received + len(numbers):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A point is delivered a second time under its owner's number of it."
            )
        self._check_wishes(self._numbers.union(numbers))
        self._numbers.update(numbers)
        self._part, self._parts = delivery.part, delivery.parts
        self._received += len(delivery.purchases)
        self._checking = delivery.purchases
        self.phase = "checking"
        self._do(CheckPurchases(delivery.purchases, last=delivery.part == delivery.parts))

    def _check_purchase(self, purchase: Purchase) -> None:
        features, candidate = self._session.features, purchase.candidate
        if purchase.owner not in self._session.roster.owners:
            raise RemoteProtocolError(
                Offence.MALFORMED, "A delivered point's owner is not on the session's roster."
            )
        # The number opens its box.
        if self._opened.numbered_boxes and not 1 <= unfixed(purchase.handle) <= limits.MAX_POINTS:
            raise RemoteProtocolError(Offence.MALFORMED, "A delivered point's number is out of range.")
        if not purchase.round <= self._session.rounds:
            raise RemoteProtocolError(Offence.MALFORMED, "A delivered point's round is not the session's.")
        if not self._turns.has(purchase.owner, purchase.round):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A point was chosen in a round in which its owner has no turn."
            )
        if isinstance(candidate, Candidate) is self._sealed:
            raise RemoteProtocolError(
                Offence.MALFORMED,
                "A point is delivered open where they are sealed, or sealed where they are open.",
            )
        if candidate.features.shape != (features.dimension,) or (
            isinstance(candidate, Candidate) and candidate.point.shape != (features.columns,)
        ):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"A delivered point does not have {features.columns} columns."
            )

    def _check_wishes(self, numbers: set[tuple[str, int]]) -> None:
        """Refuse more points of an owner than its cap allows, and points that cost more than the budget."""
        wishes = self._session.wishes
        if wishes is None:
            return
        sold = Counter(owner for owner, _ in numbers)
        for owner, cap in wishes.caps.items():
            if sold[owner] > cap:
                raise RemoteProtocolError(
                    Offence.MALFORMED, f"More points of an owner are delivered than its cap of {cap}."
                )
        if over_budget(self._session, sold):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"Points are delivered for more than the budget of {wishes.budget:g}."
            )

    def _on_checked(self, checked: PurchasesChecked) -> None:
        self.mmd2 = checked.mmd2
        self.seed_distance = checked.seed_distance
        self.delivered.extend(checked.delivered)
        self.faults.note(self._checking, checked.delivered)
        self._checking = ()
        disputes = np.array([bool(entry.dispute) for entry in checked.delivered], dtype=np.bool_)
        disputed = np.packbits(disputes).tobytes()
        self._send(CURATOR, Receipt(part=self._part, disputed=disputed))
        if self._part == self._parts:
            self.phase = "delivered"
            self._do(StorePurchases(tuple(self.delivered)))
        else:
            self.phase = "waiting"

    @property
    def course(self) -> Course | None:
        """The course of the purchase; None until all is delivered, or if nothing can be compared."""
        return course_of(self._session.rounds, self.delivered, self.mmd2)

    def check(self) -> None:
        if self._received > self._session.session.points:
            raise LocalProtocolError(
                f"{self._received} points were delivered of {self._session.session.points}."
            )


def target_of(released: TargetReleased) -> Target:
    """The release as the party that computes the weights receives it."""
    fields: dict[str, Any] = {
        "embedding": released.embedding,
        "size": released.size,
        "seed_total": released.seed_total,
        "seed_size": released.seed_size,
        "maps": released.maps,
        "noise": released.noise_name,
    }
    if released.finer is not None:
        return NestedTarget(**fields, finer=released.finer)
    if released.basis is None:
        return Target(**fields)
    return SubspaceTarget(**fields, basis=released.basis.ravel())
