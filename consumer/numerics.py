"""The consumer's numerics: the single release of its target, and checks of delivered points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.consumer.events import (
    NOT_COMMITTED,
    WRONG_SCORE,
    AccountMade,
    CheckAward,
    CheckPurchases,
    Delivered,
    MakeAccount,
    PurchasesChecked,
    ReleaseTarget,
    SealWeight,
    StorePurchases,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.seed_distance import SeedDistance, seed_distance
from hushbid.consumer.target import KeptTarget, TargetRelease, release_target
from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import (
    BlindKeys,
    Mask,
    account_statement,
    blind_bid_statement,
    blind_digest,
    broadcast_statement,
)
from hushbid.protocol.crypto.commitment import Opening, row_leaf
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.crypto.sealing import (
    DIGEST_BYTES,
    NONCE_BYTES,
    SIGNATURE_BYTES,
    open_sealed,
    sign,
    unpack_content,
    verify_signature,
)
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError, LocalProtocolError, RemoteProtocolError
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.machine.weighing import Weigher
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.privacy.releases.prior import check_directions
from hushbid.protocol.session.account import account_content, account_numbers
from hushbid.protocol.session.points import (
    NOT_SIGNED,
    Signatures,
    hash_points,
    hash_seed_set,
    mapped,
    matching,
    what_is_outside,
)
from hushbid.protocol.session.secret_map import seal_map
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import SEED_BYTES, FeatureMap
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import scores_of
from hushbid.protocol.space.mmd import MOST_COMPARED, at_even_distances, mmd2_curve
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.wire.blind import Account, BlindPurchase
from hushbid.protocol.wire.messages import Candidate, Purchase, Roots, unfixed

__all__ = ["BlindConsumerNumerics", "ConsumerNumerics"]


class ConsumerNumerics:
    """Carries out the consumer machine's computations.

    Args:
        noise: The consumer's own source of noise, which also supplies the secret map.
        identity: Its keys; None if nothing is sealed.
        validation, seed_set: D_v and D_init.
        store: Stores the delivered points; called once.
        target: An earlier release of D_v to use instead of a new one (`hushbid.consumer.target.check_kept`).

    Raises:
        DataError: The seed set has too few points for the directions of the releases.
    """

    def __init__(
        self,
        session: Session,
        noise: NoiseSource,
        *,
        identity: Identity | None,
        validation: Dataset,
        seed_set: Dataset,
        store: Callable[[StorePurchases], None],
        target: KeptTarget | None = None,
    ) -> None:
        check_directions(len(seed_set), session.directions)
        self._session = session
        self._kept = target
        self._noise = noise
        self._identity = identity
        self._map = session.public_map
        self._validation = validation
        self._seed_set = seed_set
        self._store = store
        self._signatures = Signatures(session)
        self._points: list[npt.NDArray[Any]] = []
        """The readable points, in order."""
        self._roots: dict[str, bytes] = {}
        """What each owner committed to."""
        self._agreed: dict[bytes, bytes] = {}
        """Keys that boxes of one message have in common (`open_sealed`)."""

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is ReleaseTarget:
            return self._release(effect)
        if type(effect) is CheckPurchases:
            return self._check(effect)
        if type(effect) is StorePurchases:
            self._store(effect)
        return None

    def ahead(self) -> None:
        """Compute what the next answer needs and no message changes: a loop calls it before it waits."""

    def _release(self, effect: ReleaseTarget) -> TargetReleased:
        self._take_roots(effect.roots)
        map_seed, maps = self._draw_map()
        feature_map = self._require_map()
        seeds = hash_seed_set(feature_map, self._seed_set.features)
        seed_total = _read_only(seeds.sum(axis=0, dtype=np.int64))
        prior = Prior.of_features(seeds, self._session.directions)
        released = self._kept.release if self._kept is not None else self._draw(feature_map, prior)
        return TargetReleased(
            embedding=released.embedding,
            size=released.size,
            seed_total=seed_total,
            seed_size=len(seeds),
            map_seed=map_seed,
            maps=maps,
            noise_name=released.noise_name,
            noise=released.noise,
            basis=prior.basis,
            finer=released.finer,
        )

    def _draw(self, feature_map: FeatureMap, prior: Prior) -> TargetRelease:
        mechanism = self._session.target
        name = self._session.noise_name(mechanism)
        stream = mechanism.stream(prior=prior)
        return release_target(
            stream, feature_map, self._validation, self._noise, noise_name=name, nested=self._session.nested
        )

    def _take_roots(self, roots: Roots | None) -> None:
        """Keep what owners committed to; the machine has checked that they signed it."""
        if roots is not None:
            self._roots = {owner: each.root for owner, each in roots.of(self._session.file.owners).items()}

    def _draw_map(self) -> tuple[bytes, bytes]:
        """Draw a secret map's seed, and seal it to each owner that committed to its rows, if they have to.

        Empty if the map is public; zeros for an owner that gets none.
        """
        session = self._session
        if not session.rule.sealed:
            return b"", b""
        seed = self._noise.random_bytes(SEED_BYTES)
        feature_map = self._set_map(seed)
        identity = self._require_identity()
        boxes = dict.fromkeys(session.file.owners, bytes(limits.MAP_BOX_BYTES))
        entitled = [owner for owner in boxes if owner in self._roots or not session.commitment_depth]
        nonces = self._noise.random_bytes(NONCE_BYTES * len(entitled)) if entitled else b""
        for place, owner in enumerate(entitled):
            nonce = nonces[place * NONCE_BYTES : (place + 1) * NONCE_BYTES]
            recipient = session.public_identity(owner)
            boxes[owner] = seal_map(seed, feature_map.digest, session, recipient, identity, nonce)
        return seed, b"".join(boxes.values())

    def _set_map(self, seed: bytes) -> FeatureMap:
        self._keep_seed(seed)
        self._map = self._session.space.map(seed)
        return self._map

    def _keep_seed(self, seed: bytes) -> None:
        """Keep the secret map's seed; a rule may derive more from it."""

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        if isinstance(outcome, TargetReleased):
            if outcome.map_seed:
                self._set_map(outcome.map_seed)
            assert isinstance(effect, ReleaseTarget), "nothing else releases the target"
            self._take_roots(effect.roots)
            if not self._noise.protects:
                self._release(effect)  # brings seeded noise to its earlier position
        elif isinstance(outcome, PurchasesChecked):
            self._keep_points(outcome.delivered)
        elif type(effect) is StorePurchases:
            self._store(effect)

    def _check(self, effect: CheckPurchases) -> PurchasesChecked:
        opened = [self._open(purchase) for purchase in effect.purchases]
        held = [candidate for candidate, _ in opened if candidate is not None]
        faults = iter(self._faults(held))
        delivered = []
        for purchase, (candidate, dispute) in zip(effect.purchases, opened, strict=True):
            if candidate is not None:
                fault = next(faults)
                dispute = dispute or fault
            delivered.append(Delivered(purchase.owner, purchase.round, candidate, dispute))
        return self._checked(delivered, last=effect.last)

    def _faults(self, held: Sequence[Candidate]) -> list[str]:
        """What is wrong with each point or its features; empty where nothing is."""
        if not held:
            return []
        recomputed = self._hashed([(each.point, each.attributes) for each in held])
        right = matching(recomputed, np.stack([each.features for each in held]))
        outside = what_is_outside(self._session.space)
        return [
            "" if same else "the features are not those of the point" if inside else outside
            for same, inside in zip(right.tolist(), mapped(recomputed).tolist(), strict=True)
        ]

    def _checked(self, delivered: Sequence[Delivered], *, last: bool) -> PurchasesChecked:
        self._keep_points(delivered)
        if not last:
            return PurchasesChecked(tuple(delivered), None)
        return PurchasesChecked(tuple(delivered), self._distances(), self.seed_distance())

    def _keep_points(self, delivered: Sequence[Delivered]) -> None:
        self._points += [entry.candidate.point for entry in delivered if entry.candidate is not None]

    def seed_distance(self, *, most: int = MOST_COMPARED) -> SeedDistance:
        """Distance of the seed set from D_v, by at most `most` rows of each."""
        space = self._session.space
        validation, seed_set = (
            space.scale(at_even_distances(each.features, most)) for each in (self._validation, self._seed_set)
        )
        return seed_distance(validation, seed_set, space.gamma, most=most)

    def _distances(self) -> npt.NDArray[np.float64] | None:
        """MMD² of the first 1, 2, … delivered points against D_v."""
        if not self._points:
            return None
        space = self._session.space
        # Owners may hold the same columns in different number types.
        points = np.stack([np.asarray(point, dtype=np.float64) for point in self._points])
        try:
            with np.errstate(over="ignore"):
                wanted = space.scale(self._validation.features)
                return _read_only(mmd2_curve(space.scale(points), wanted, space.gamma))
        except DataError:
            return None  # a point lies too far out for any comparison

    def _open(self, purchase: Purchase) -> tuple[Candidate | None, str]:
        """A purchase's point, if it is readable, and what is wrong with it.

        Both depend only on what the owner handed over, not on other purchases or their order: the sensitivity
        of a private settlement requires it (`hushbid.protocol.privacy.settlement`).
        """
        candidate = purchase.candidate
        if isinstance(candidate, Candidate):
            return candidate, ""
        try:
            content = self._unsealed(candidate.box, unfixed(purchase.handle))
        except RemoteProtocolError:
            return None, "the box does not open"
        found = self._unpacked(content, purchase.owner)
        if isinstance(found, str):
            return None, found
        held = Candidate.model_construct(point=found[0], features=candidate.features, attributes=found[1])
        handle = unfixed(purchase.handle)
        if not self._signatures.hold(purchase.owner, purchase.bid_round, handle, candidate):
            return held, NOT_SIGNED
        return held, ""

    def _unsealed(self, box: bytes, handle: int) -> bytes:
        """What a box of this handle holds; raises `RemoteProtocolError` if it does not open."""
        number = handle if self._session.numbered_boxes else None
        return open_sealed(box, self._require_identity().sealing, number=number, agreed=self._agreed)

    def _unpacked(self, content: bytes, owner: str) -> tuple[npt.NDArray[Any], bytes] | str:
        """The point and the attributes that a box holds, or why it holds none that its owner can sell."""
        depth, opening = self._session.commitment_depth, None
        if depth:
            split = Opening.split(content, depth)
            if split is None:
                return NOT_COMMITTED
            opening, content = split
        try:
            point, attributes = unpack_content(content)
        except RemoteProtocolError:
            return "the box holds no point"
        if point.shape != (self._session.space.columns,):
            return "the point has other columns than the session"
        if opening is not None:
            leaf = row_leaf(opening.salt, point, attributes)
            if opening.root(leaf) != self._roots.get(owner):
                return NOT_COMMITTED
        return point, attributes

    def _hashed(self, points: Sequence[tuple[npt.NDArray[Any], bytes]]) -> Features:
        """φ of points with their attributes, as `hash_points` computes it."""
        raw, attributes = [point for point, _ in points], [packed for _, packed in points]
        return hash_points(self._require_map(), raw, attributes, schema=self._session.file.rows)

    def _require_map(self) -> FeatureMap:
        if self._map is None:
            raise LocalProtocolError("Features are to be computed before the map was drawn.")
        return self._map

    def _require_identity(self) -> Identity:
        if self._identity is None:
            raise LocalProtocolError("A box is to be opened or sealed without a key.")
        return self._identity


class BlindConsumerNumerics(ConsumerNumerics):
    """Carries out the blind consumer's computations; `weighing` draws the noise that protects owners."""

    def __init__(self, *given: Any, weighing: NoiseSource, **more: Any) -> None:
        super().__init__(*given, **more)
        self._weigher = Weigher(self._session, weighing)
        self._keys: BlindKeys | None = None
        self._bids: dict[tuple[str, int, bytes, bytes], bool] = {}
        """For every bid of a bought box, whether its owner signed it."""

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is SealWeight:
            return self._sealed(effect)
        if type(effect) is CheckAward:
            return self._check_award(effect)
        if type(effect) is MakeAccount:
            return AccountMade(self._account(effect))
        return super().perform(effect) or self._weigher.perform(effect)

    def restore(self, effect: Computation, outcome: Event | None) -> None:
        super().restore(effect, outcome)
        self._weigher.restore(effect)

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
        points = [found for found in opened if isinstance(found, tuple)]
        checked = iter(self._scored(points, weights))
        delivered = []
        for purchase, found in zip(award.purchases, opened, strict=True):
            if found is None:
                continue  # an empty box, as expected
            entry = Delivered(purchase.owner, award.round, None, "")
            if isinstance(found, str):
                delivered.append(replace(entry, dispute=found))
                continue
            features, score = next(checked)
            wrong = self._wrong(score, purchase, features, mask)
            candidate = Candidate.model_construct(point=found[0], features=features, attributes=found[1])
            delivered.append(replace(entry, candidate=candidate, dispute=wrong))
        return self._checked(delivered, last=effect.last)

    def _opened(self, purchase: BlindPurchase, mask: Mask) -> tuple[npt.NDArray[Any], bytes] | str | None:
        """A box's point and attributes; its fault if it is void; None if it is empty, as expected."""
        content, box = b"", purchase.candidate.box
        if any(box):
            try:
                content = self._unsealed(box, unfixed(purchase.handle))
            except RemoteProtocolError:
                return "the box does not open"
        if not self._signed(purchase):
            return NOT_SIGNED
        if self._holds_nothing(content):
            as_it_should = self._scored_as_nothing(purchase, mask)
            return None if as_it_should else "the box holds nothing, and was scored as a point"
        return self._unpacked(content, purchase.owner)

    def _holds_nothing(self, content: bytes) -> bool:
        """Whether this is what is in an empty box."""
        return not content

    def _scored_as_nothing(self, purchase: BlindPurchase, mask: Mask) -> bool:
        """Whether the score of a purchase is that of an empty box."""
        return mask.of_nothing == purchase.score

    def _signed(self, purchase: BlindPurchase) -> bool:
        """Whether the owner signed the box under this number."""
        candidate, handle = purchase.candidate, unfixed(purchase.handle)
        bid = purchase.owner, purchase.bid_round, candidate.digests, candidate.signature
        held = self._bids.get(bid)
        if held is None:
            owner, number = purchase.owner, purchase.bid_round
            statement = blind_bid_statement(self._session.identifier, owner, number, [candidate.digests])
            key = self._session.public_identity(owner).verify
            held = self._bids[bid] = verify_signature(statement, candidate.signature, key)
        at = DIGEST_BYTES * ((handle - 1) % self._session.batch)
        own = candidate.digests[at : at + DIGEST_BYTES]
        return held and own == blind_digest(handle, candidate.box)

    def _scored(
        self, points: Sequence[tuple[npt.NDArray[Any], bytes]], weights: Weights
    ) -> list[tuple[Features, int | None]]:
        """φ of each point, and its score; None for a point out of bounds."""
        if not points:
            return []
        features = self._hashed(points)
        within = mapped(features)
        scores = iter(scores_of(features[within], weights, self._session.jitter).tolist())
        return [
            (row, next(scores) if inside else None)
            for row, inside in zip(features, within.tolist(), strict=True)
        ]

    def _wrong(self, score: int | None, purchase: BlindPurchase, features: Features, mask: Mask) -> str:
        """The fault of a point with this score and φ; empty if it has none."""
        if score is None:
            return what_is_outside(self._session.space)
        return "" if self._fits(score, purchase, features, mask) else WRONG_SCORE

    def _fits(self, score: int, purchase: BlindPurchase, features: Features, mask: Mask) -> bool:
        """Whether the owner sent the score that its point has."""
        return mask.of([score], features[None]) == [purchase.score]

    # -- the account --------------------------------------------------------------------------------------

    def _account(self, effect: MakeAccount) -> Account:
        session, owners = self._session, self._session.file.owners
        fields = account_numbers(session, effect.target, effect.wins, effect.first_weights, effect.noise)
        for name, counts in (("sold", effect.sold), ("void", effect.void)):
            fields[name] = np.array([counts.get(owner, 0) for owner in owners], dtype=np.int64)
        for part in fields.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        unsigned = Account.model_construct(**fields, signature=bytes(SIGNATURE_BYTES))
        statement = account_statement(session.identifier, account_content(unsigned))
        return unsigned.model_copy(update={"signature": sign(statement, self._require_identity().signing)})


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
