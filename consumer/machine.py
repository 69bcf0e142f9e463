"""The consumer's state machine: it sends its target and receives the chosen points.

If owners commit to their rows, the feature map is drawn only after the consumer knows their commitments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from hushbid.consumer.buying.base import Buying
from hushbid.consumer.buying.open import OpenBuying
from hushbid.consumer.course import ClosenessCourse, course_of
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
from hushbid.protocol.crypto.commitment import ROOT_BYTES, root_name
from hushbid.protocol.crypto.sealing import SIGNATURE_BYTES
from hushbid.protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import TransitionTable, happened, received
from hushbid.protocol.machine.machine import Charge, ChargedData
from hushbid.protocol.machine.participant import Participant, participant_rows
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.points import signs_rows
from hushbid.protocol.session.session import Session
from hushbid.protocol.wire.blind import BlindPurchase
from hushbid.protocol.wire.messages import (
    Delivery,
    NestedTarget,
    Purchase,
    Receipt,
    Roots,
    SubspaceTarget,
    Target,
    Welcome,
)

__all__ = ["OPEN", "ConsumerMachine", "target_of"]

_OPEN: Final = ("greeting", "gathering", "releasing", "waiting", "checking", "delivered")


class ConsumerMachine(Participant):
    """The consumer of one session; `hushbid.consumer.party.consumer_machine` makes one.

    Args:
        table: `OPEN`, or one of a session whose curator is blind.
        buying: Keeps what was bought, as the table needs it.

    Attributes:
        roots: What each owner committed to in time, as `root_name` calls it.
        charge: The session's cost to D_v.
        delivered: The points that came and were checked.
        mmd2: MMD² of the first 1, 2, … delivered points (`PurchasesChecked.mmd2`), after the whole delivery.
        seed_distance: The distance of D_init from D_v, after the whole delivery.
        faults: What is disputed: once for each fault, where `delivered` has it for each point.
    """

    ROLE = "consumer"

    def __init__(self, session: Session, table: TransitionTable[Self], buying: type[Buying]) -> None:
        super().__init__(session, table, name=CONSUMER)
        self._opened = session
        self._depth = session.commitment_depth
        self.roots: dict[str, str] = {}
        self._filter = session.target_filter()
        costs = session.charged_target.cost(0, neighbours=Neighbours.SUBSTITUTE_ONE)
        self.charge = Charge(Neighbours.SUBSTITUTE_ONE.value, 1, 1, costs, ChargedData.CONSUMER)
        self.delivered: list[Delivered] = []
        self.mmd2: npt.NDArray[np.float64] | None = None
        self.seed_distance: SeedDistance | None = None
        self.faults = SellerFaults()
        self.buying = buying(session)

    # -- every consumer ---------------------------------------------------------------------------------

    def on_welcome(self, peer: str, welcome: Welcome) -> None:
        if not self._welcomed(welcome):
            return
        if self._depth:
            self.phase = "gathering"
        else:
            self._release(None)

    def on_roots(self, peer: str, roots: Roots) -> None:
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
                self.fail(ExitCode.FAILED, error.what, error.advice)
                return
        self.do(self.charge)
        self.phase = "releasing"
        self.do(ReleaseTarget(roots))

    def take_checked(self, checked: PurchasesChecked, purchases: Sequence[Purchase | BlindPurchase]) -> None:
        """Note what was found of purchases that were checked."""
        self.mmd2, self.seed_distance = checked.mmd2, checked.seed_distance
        self.delivered.extend(checked.delivered)
        self.faults.note(purchases, checked.delivered)

    @property
    def course(self) -> ClosenessCourse | None:
        """The course of the purchase; None until all is delivered, or if nothing can be compared."""
        return course_of(self._session.rounds, self.delivered, self.mmd2)

    def check(self) -> None:
        self.buying.ensure()

    # -- a consumer that is sent all after the last round -----------------------------------------------

    def _on_released(self, released: TargetReleased) -> None:
        self.phase = "waiting"
        self.send(CURATOR, target_of(released))

    def _on_delivery(self, peer: str, delivery: Delivery) -> None:
        self._open.take_delivery(delivery)
        self.phase = "checking"
        self.do(CheckPurchases(delivery.purchases, last=delivery.part == delivery.parts))

    def _on_checked(self, checked: PurchasesChecked) -> None:
        buying = self._open
        purchases, buying.checking = buying.checking, ()
        self.take_checked(checked, purchases)
        disputes = np.array([bool(entry.dispute) for entry in checked.delivered], dtype=np.bool_)
        disputed = np.packbits(disputes).tobytes()
        self.send(CURATOR, Receipt(part=buying.part, disputed=disputed))
        if buying.complete:
            self.phase = "delivered"
            self.do(StorePurchases(tuple(self.delivered)))
        else:
            self.phase = "waiting"

    @property
    def _open(self) -> OpenBuying:
        if not isinstance(self.buying, OpenBuying):
            raise LocalProtocolError("This consumer is sent boxes in every round.")
        return self.buying


OPEN: Final[TransitionTable[ConsumerMachine]] = TransitionTable(
    phases=(*_OPEN, "leaving", "done"),
    outcomes=(TargetReleased, PurchasesChecked),
    rows=(
        *participant_rows(_OPEN, ConsumerMachine.on_welcome, "greeting", "gathering", "releasing", "done"),
        *received("gathering", Roots, ConsumerMachine.on_roots, "releasing", "done"),
        *happened("releasing", TargetReleased, ConsumerMachine._on_released, "waiting"),
        *received("waiting", Delivery, ConsumerMachine._on_delivery, "checking"),
        *happened("checking", PurchasesChecked, ConsumerMachine._on_checked, "waiting", "delivered"),
    ),
)
"""The table of a consumer that is sent all after the last round."""


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
