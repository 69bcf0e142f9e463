"""The consumer under the rule `blind`: it computes weights, opens each round's purchases, and settles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from consumer.events import (
    Delivered,
    PurchasesChecked,
    ReleaseTarget,
    StorePurchases,
    TargetReleased,
)
from consumer.machine import ConsumerMachine, target_of
from consumer.numerics import ConsumerNumerics
from protocol.crypto.blinding import (
    BlindKeys,
    Mask,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from protocol.crypto.sealing import (
    DIGEST_BYTES,
    SEAL_BYTES,
    SIGNATURE_BYTES,
    open_sealed,
    sign,
    unpack_content,
    verify_signature,
)
from protocol.errors import BudgetExceeded, ExitCode, LocalProtocolError, Offence, RemoteProtocolError
from protocol.machine.base import Transition
from protocol.machine.machine import Computation, Event
from protocol.machine.participant import participant_transitions
from protocol.machine.weighing import NoiseDrawn, Weigher, Weighing, WeightsComputed
from protocol.names import CURATOR
from protocol.privacy.noise import NoiseSource
from protocol.session.account import account_content, told_errors
from protocol.session.points import hash_points, mapped
from protocol.session.session import Session
from protocol.session.settling import HandedOver, settle, settle_privately
from protocol.session.statement import gain_errors, shared_gains, target_noise
from protocol.space.grid import Features, Weights
from protocol.space.jitter import scores_of
from protocol.space.scoring import score_bound
from protocol.wire.blind import Account, Award, BlindPurchase, Maps, SealedBroadcast
from protocol.wire.messages import Candidate, Target, unfixed
from protocol.wire.values import Item

__all__ = [
    "AccountMade",
    "BlindConsumer",
    "BlindConsumerNumerics",
    "CheckAward",
    "MakeAccount",
    "SealWeight",
    "WeightSealed",
]

_OPEN: Final = ("greeting", "releasing", "weighing", "waiting", "checking", "accounting", "delivered")
_WRONG_SCORE: Final = "the score is not the point's"


@dataclass(frozen=True, slots=True)
class SealWeight(Computation):
    """Encrypt a round's weight for the owners, and sign it."""

    KIND: ClassVar[str] = "seal-weight"
    round: int
    weights: Weights


@dataclass(frozen=True, slots=True)
class WeightSealed(Event):
    """A round's broadcast, encrypted and signed."""

    KIND: ClassVar[str] = "weight-sealed"
    PUBLIC: ClassVar[tuple[str, ...]] = ("round",)
    round: int
    box: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class CheckAward(Computation):
    """Open the boxes of an award, compute φ of their points, and compare scores."""

    KIND: ClassVar[str] = "check-award"
    award: Award
    weights: Weights
    """The weight under which they were chosen."""
    last: bool
    """Whether this is the last round: all purchases are then compared with D_v."""


@dataclass(frozen=True, slots=True)
class MakeAccount(Computation):
    """Compute the numbers that owners are paid by, and sign them."""

    KIND: ClassVar[str] = "make-account"
    target: Target
    wins: tuple[HandedOver, ...]
    """The points that count, including wrongly scored ones if the settlement is private."""
    sold: Mapping[str, int]
    void: Mapping[str, int]
    first_weights: Weights | None
    noise: tuple[Any, ...]
    """The noise of a private settlement; empty if the settlement is exact."""


@dataclass(frozen=True, slots=True)
class AccountMade(Event):
    """The consumer's account, signed."""

    KIND: ClassVar[str] = "account-made"
    account: Account

    def item(self) -> Item:
        """The event as a transcript item."""
        return Item(self.KIND, {}, {"account": dict(self.account)})

    @classmethod
    def restored(cls, fields: Mapping[str, Any]) -> AccountMade:
        """Rebuild the event from its item's fields."""
        return cls(Account.model_construct(**fields["account"]))


class BlindConsumer(ConsumerMachine):
    """The consumer of one session; its arguments are those of `ConsumerMachine`."""

    PHASES: ClassVar[tuple[str, ...]] = (*_OPEN, "leaving", "done")
    OUTCOMES: ClassVar[tuple[type[Event], ...]] = (
        TargetReleased,
        NoiseDrawn,
        WeightsComputed,
        WeightSealed,
        PurchasesChecked,
        AccountMade,
    )
    TRANSITIONS: ClassVar[tuple[Transition, ...]] = (
        *participant_transitions(
            _OPEN,
            Transition("greeting", "received:welcome", "_on_welcome", ("greeting", "releasing", "done")),
        ),
        Transition("releasing", "target-released", "_on_target_released", ("weighing",)),
        Transition("weighing", "noise-drawn", "_on_noise", ("weighing",)),
        Transition("weighing", "weights-computed", "_on_weights", ("weighing", "done")),
        Transition("weighing", "weight-sealed", "_on_weight_sealed", ("waiting",)),
        Transition("waiting", "received:award", "_on_award", ("checking",)),
        Transition("checking", "purchases-checked", "_on_award_checked", ("weighing", "accounting", "done")),
        Transition("accounting", "account-made", "_on_account_made", ("delivered",)),
    )

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._opened = session
        self._ranks = {owner: rank for rank, owner in enumerate(session.file.owners)}
        self.weighing = Weighing(session)
        self.target: Target | None = None
        """The target against which it weighs, once it is released."""
        self._weights: Weights | None = None
        self._first_weights: Weights | None = None
        self._award: Award | None = None
        self._wins: list[HandedOver] = []
        self._sold: Counter[str] = Counter()
        self.void: Counter[str] = Counter()
        """Chosen boxes of each owner that do not hold what the owner said."""
        self.settled = False
        """Whether a private settlement was charged."""

    # -- the weight -----------------------------------------------------------------------------------

    def _on_target_released(self, released: TargetReleased) -> None:
        self.target = target_of(released)
        self.weighing.begin(self.target)
        self._send(CURATOR, Maps(maps=released.maps))
        self._start_round()

    def _start_round(self) -> None:
        self.round += 1
        self.phase = "weighing"
        self._do(self.weighing.start(self.round))

    def _on_noise(self, drawn: NoiseDrawn) -> None:
        self._do(self.weighing.drawn(drawn, self.round))

    def _on_weights(self, computed: WeightsComputed) -> None:
        if computed.round != self.round:
            raise LocalProtocolError(f"Weights of round {computed.round} came in round {self.round}.")
        try:
            charges = self.weighing.charge(self.round)
        except BudgetExceeded as error:
            self._fail(ExitCode.FAILED, error.what, error.advice)
            return
        for charge in charges:
            self._do(charge)
        self._weights = computed.weights
        if self.round == 1:
            self._first_weights = computed.weights[: self._opened.space.dimension]
        self._do(SealWeight(self.round, computed.weights))

    def _on_weight_sealed(self, sealed: WeightSealed) -> None:
        self.phase = "waiting"
        self._send(CURATOR, SealedBroadcast(round=sealed.round, box=sealed.box, signature=sealed.signature))

    # -- purchases ----------------------------------------------------------------------------------------

    def _on_award(self, peer: str, award: Award) -> None:
        self._check_award(award)
        self._numbers.update(_numbers_of(award))
        self._received += len(award.purchases)
        self.phase = "checking"
        self._award = award
        if self._weights is None:
            raise LocalProtocolError("An award came before any weight.")
        self._do(CheckAward(award, self._weights, last=self.round == self._opened.rounds))

    def _check_award(self, award: Award) -> None:
        """Refuse an award that no correct curator makes; bids are not known here."""
        if award.round != self.round:
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, f"An award of round {award.round} came in round {self.round}."
            )
        due = self._opened.bought_in(self.round)
        # The award is empty if nobody was present, which includes owners with forged bids only.
        if len(award.purchases) not in (0, due):
            raise RemoteProtocolError(
                Offence.MALFORMED, f"An award has {len(award.purchases)} boxes; {due} were due."
            )
        numbers = _numbers_of(award)
        if len(self._numbers.union(numbers)) < len(self._numbers) + len(numbers):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box is awarded a second time under its owner's number of it."
            )
        for purchase in award.purchases:
            self._check_box(purchase)
        order = [
            (_reversed(purchase.score), self._ranks[purchase.owner], unfixed(purchase.handle))
            for purchase in award.purchases
        ]
        if order != sorted(order):
            raise RemoteProtocolError(
                Offence.MALFORMED, "The boxes of an award are not in the order of their scores."
            )
        self._check_caps(self._numbers.union(numbers))

    def _check_box(self, purchase: BlindPurchase) -> None:
        if purchase.owner not in self._ranks:
            raise RemoteProtocolError(
                Offence.MALFORMED, "The owner of an awarded box is not on the session's roster."
            )
        if not self._turns.has(purchase.owner, self.round):
            raise RemoteProtocolError(
                Offence.OUT_OF_TURN, "A box was chosen in a round in which its owner has no turn."
            )
        batch, handle, candidate = self._opened.batch, unfixed(purchase.handle), purchase.candidate
        if not (1 <= handle <= batch * self.round and purchase.bid_round <= self.round):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box has a number, or a round, that it cannot have."
            )
        lengths = (len(candidate.box), len(candidate.digests))
        if lengths != (self._opened.box_bytes + SEAL_BYTES, DIGEST_BYTES * (batch + 1)):
            raise RemoteProtocolError(
                Offence.MALFORMED, "An awarded box, or its bid's digests, are of another length."
            )

    def _on_award_checked(self, checked: PurchasesChecked) -> None:
        award = self._award
        if award is None:
            raise LocalProtocolError("An award was checked that did not come.")
        self._award = None
        self.mmd2, self.seed_distance = checked.mmd2, checked.seed_distance
        self.delivered.extend(checked.delivered)
        good = []
        for entry in checked.delivered:
            (self.void if entry.dispute else self._sold)[entry.owner] += 1
            if entry.candidate is None or entry.dispute not in ("", _WRONG_SCORE):
                continue
            # Whether a score is wrong depends on the round in which its point was chosen, and one record of
            # another owner changes that round for many points. The counts of a release or a private
            # settlement must not depend on it.
            good.append(entry.candidate.features)
            if not entry.dispute or self._opened.settlement is not None:
                self._wins.append(HandedOver(entry.owner, 0, 0, 0, entry.candidate, entry.chosen_round))
        if good:
            self.weighing.add(np.stack(good))
        self.weighing.end_round()
        if self.round < self._opened.rounds:
            self._start_round()
            return
        try:
            noise = self._settlement_noise()
        except BudgetExceeded as error:
            self._fail(ExitCode.FAILED, error.what, error.advice)
            return
        self.phase = "accounting"
        if self.target is None:
            raise LocalProtocolError("There is no target to settle by.")
        counts = dict(self._sold), dict(self.void)
        self._do(MakeAccount(self.target, tuple(self._wins), *counts, self._first_weights, noise))

    def _settlement_noise(self) -> tuple[Any, ...]:
        """Charge a private settlement, if the session has one, and take its noise."""
        if self._opened.settlement is None:
            return ()
        for charge in self.weighing.charge(self._opened.owners_releases):
            self._do(charge)
        self.settled = True
        return self.weighing.end_round()

    def _on_account_made(self, made: AccountMade) -> None:
        self.phase = "delivered"
        self._send(CURATOR, made.account)
        self._do(StorePurchases(tuple(self.delivered)))


def _numbers_of(award: Award) -> list[tuple[str, int]]:
    return [(purchase.owner, unfixed(purchase.handle)) for purchase in award.purchases]


def _reversed(score: bytes) -> bytes:
    """Bytes whose order is reversed."""
    return bytes(255 - byte for byte in score)


class BlindConsumerNumerics(ConsumerNumerics):
    """Carries out the blind consumer's computations; its arguments are those of `ConsumerNumerics`.

    Args:
        weighing: The source of the noise that protects owners from each other.
        more: The arguments of `ConsumerNumerics`.
    """

    def __init__(self, *given: Any, weighing: NoiseSource, **more: Any) -> None:
        super().__init__(*given, **more)
        self._weigher = Weigher(self._session, weighing)
        self._keys: BlindKeys | None = None
        self._bids: dict[tuple[str, int, bytes, bytes], bool] = {}
        """For every bid of a bought box, whether its owner signed it. At most one bid for each point.
        """

    def perform(self, effect: Computation) -> Event | None:
        """Return the effect's outcome as an event; None if it has none, or for an effect of another kind."""
        if type(effect) is ReleaseTarget:
            released = self._release()
            self._keep_seed(released.map_seed)
            return released
        if type(effect) is SealWeight:
            return self._sealed(effect)
        if type(effect) is CheckAward:
            return self._check_award(effect)
        if type(effect) is MakeAccount:
            return AccountMade(self._account(effect))
        return super().perform(effect) or self._weigher.perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        """Restore the state computed before a restart."""
        super().restore(effect, outcome)
        self._weigher.restore(effect)
        if isinstance(outcome, TargetReleased):
            self._keep_seed(outcome.map_seed)
        elif isinstance(outcome, PurchasesChecked):
            self._keep_points(outcome.delivered)

    def _keep_seed(self, seed: bytes) -> None:
        self._keys = BlindKeys(seed, self._session.identifier)

    def _require_keys(self) -> BlindKeys:
        if self._keys is None:
            raise LocalProtocolError("A broadcast is to be made before the map was drawn.")
        return self._keys

    def _sealed(self, effect: SealWeight) -> WeightSealed:
        box = self._require_keys().encrypt(effect.weights, effect.round)
        statement = broadcast_statement(self._session.identifier, effect.round, box)
        return WeightSealed(effect.round, box, sign(statement, self._require_identity().signing))

    # -- purchases ----------------------------------------------------------------------------------------

    def _check_award(self, effect: CheckAward) -> PurchasesChecked:
        award, weights = effect.award, effect.weights
        bound = score_bound(weights, self._session.space.coordinate_bound, self._session.jitter)
        mask = self._require_keys().mask(award.round, bound)
        opened = [self._opened(purchase, mask) for purchase in award.purchases]
        points = [found.point for found in opened if isinstance(found, Candidate)]
        checked = iter(self._scored(points, weights, mask))
        delivered = []
        for purchase, found in zip(award.purchases, opened, strict=True):
            if found is None:
                continue  # an empty box, as expected
            entry = Delivered(purchase.owner, award.round, None, "")
            if isinstance(found, str):
                delivered.append(replace(entry, dispute=found))
                continue
            features, score = next(checked)
            wrong = self._wrong(score, purchase)
            candidate = Candidate.model_construct(
                point=found.point, features=features, attributes=found.attributes
            )
            delivered.append(replace(entry, candidate=candidate, dispute=wrong))
        self._keep_points(delivered)
        if not effect.last:
            return PurchasesChecked(tuple(delivered), None)
        return PurchasesChecked(tuple(delivered), self._distances(), self.seed_distance())

    def _keep_points(self, delivered: Sequence[Delivered]) -> None:
        self._points += [entry.candidate.point for entry in delivered if entry.candidate is not None]

    def _opened(self, purchase: BlindPurchase, mask: Mask) -> Candidate | str | None:
        """A box's candidate without features; its fault if it is void; None if it is empty, as expected."""
        content, box = b"", purchase.candidate.box
        if any(box):
            try:
                content = open_sealed(box, self._require_identity().sealing)
            except RemoteProtocolError:
                return "the box does not open"
        if not self._signed(purchase):
            return "the owner's signature does not hold"
        if not content:
            as_it_should = mask.of_nothing == purchase.score
            return None if as_it_should else "the box holds nothing, and was scored as a point"
        try:
            point, attributes = unpack_content(content)
        except RemoteProtocolError:
            return "the box holds no point"
        if point.shape != (self._session.space.columns,):
            return "the point has other columns than the session"
        return Candidate.model_construct(point=point, features=_NO_FEATURES, attributes=attributes)

    def _signed(self, purchase: BlindPurchase) -> bool:
        """Whether the owner signed the box under this number."""
        candidate, handle = purchase.candidate, unfixed(purchase.handle)
        bid = purchase.owner, purchase.bid_round, candidate.digests, candidate.signature
        held = self._bids.get(bid)
        if held is None:
            session = self._session
            statement = blind_bid_statement(
                session.identifier, purchase.owner, purchase.bid_round, [candidate.digests]
            )
            key = session.public_identity(purchase.owner).verify
            held = self._bids[bid] = verify_signature(statement, candidate.signature, key)
        at = DIGEST_BYTES * ((handle - 1) % self._session.batch)
        own = candidate.digests[at : at + DIGEST_BYTES]
        return held and own == blind_digest(handle, candidate.box)

    def _scored(
        self, points: Sequence[npt.NDArray[Any]], weights: Weights, mask: Mask
    ) -> list[tuple[Features, bytes]]:
        """φ of each point, and the score that its owner should have sent; empty for a point out of bounds."""
        if not points:
            return []
        features = hash_points(self._require_map(), points, schema=self._session.file.rows)
        within = mapped(features)
        scores = scores_of(features[within], weights, self._session.jitter)
        masked = iter(mask.of(scores.tolist(), features[within]))
        return [
            (row, next(masked) if inside else b"")
            for row, inside in zip(features, within.tolist(), strict=True)
        ]

    def _wrong(self, score: bytes, purchase: BlindPurchase) -> str:
        """The fault of a point with this expected score; empty if it has none."""
        if not score:
            return "the point is outside the public bounds"
        return "" if score == purchase.score else _WRONG_SCORE

    # -- the account --------------------------------------------------------------------------------------

    def _account(self, effect: MakeAccount) -> Account:
        session, owners, target = self._session, self._session.file.owners, effect.target
        wins = list(effect.wins)
        none = np.zeros(len(owners))
        fields: dict[str, Any] = {
            name: np.array([counts.get(owner, 0) for owner in owners], dtype=np.int64)
            for name, counts in (("sold", effect.sold), ("void", effect.void))
        }
        if session.settlement is not None:
            (noise,) = effect.noise
            settlement = settle_privately(wins, (), owners, effect.first_weights, noise)
            errors = told_errors(owners, dict.fromkeys(owners, session.settlement.standard_error))
            fields |= {"errors": errors, "gains": none, "gain_errors": none, "signal": -1}
        else:
            weight = session.file.seed_weight
            settlement = settle(
                wins, (), owners, target.embedding, target.seed_total, target.seed_size, weight
            )
            told = target_noise(session, target)
            gains, theirs = shared_gains(wins, (), owners, session, target, told)
            fields |= {
                "errors": told_errors(owners, gain_errors(wins, (), owners, target, told, weight)),
                "gains": np.array([gains[owner] for owner in owners]),
                "gain_errors": told_errors(owners, theirs),
                "signal": -1 if told.signal is None else int(told.signal),
            }
        fields["settlement"] = np.array([settlement[owner] for owner in owners])
        for part in fields.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        unsigned = Account.model_construct(**fields, signature=bytes(SIGNATURE_BYTES))
        statement = account_statement(session.identifier, account_content(unsigned))
        return unsigned.model_copy(update={"signature": sign(statement, self._require_identity().signing)})


_NO_FEATURES: Final = np.zeros(0, dtype=np.int16)
