"""Planted faults: plausible slips in a mechanism or a machine, and the suite that must notice each.

A fault is planted from outside, in an attack that passes without it: the product's own code has no switch for
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from hushbid.evidence.audit import broken, broken_blind, broken_noise, broken_releases, broken_tender
from hushbid.evidence.audit.attack import Attack, ReleaseAttack, SessionAttack, public_map
from hushbid.evidence.audit.broken import CuratorFault
from hushbid.protocol.session.session import Session

__all__ = ["FAULTS", "PlantedFault"]

FEW: Final = 100
"""Sessions that suffice for a fault which nearly every run reveals."""
SOME: Final = 300
MANY: Final = 1_000
BROADCASTS: Final = 2_000

Plant: TypeAlias = Callable[[Any], Attack]
"""Makes a broken attack from a sound one of the kind that it needs."""


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A broken part that replaces a part of a party.

    Attributes:
        about: What is broken, for people.
        sound: The suite it is planted in.
        trials: Runs on each of D and D', unless another number is requested.
    """

    about: str
    sound: str
    plant: Plant
    trials: int = FEW


def _curator(fault: CuratorFault) -> Plant:
    def plant(sound: SessionAttack) -> Attack:
        return replace(
            sound, curator=lambda session, **given: fault(session, sound.curator(session, **given))
        )

    return plant


def _consumer(fault: Callable[[Session, Any], Any]) -> Plant:
    """Plants a fault of the party that computes weights: the consumer, where the curator is blind."""

    def plant(sound: SessionAttack) -> Attack:
        return replace(
            sound, consumer=lambda session, **given: fault(session, sound.consumer(session, **given))
        )

    return plant


def _owners(fault: Callable[[broken_blind.OwnerMaker], broken_blind.OwnerMaker]) -> Plant:
    return lambda sound: replace(sound, owner=fault(sound.owner))


def _keys(
    fault: Callable[[broken_blind.OwnerMaker, broken_blind.ConsumerMaker], tuple[Any, Any]],
) -> Plant:
    """Plants a fault in what owners and consumer derive from the map's seed."""

    def plant(sound: SessionAttack) -> Attack:
        owner, consumer = fault(sound.owner, sound.consumer)
        return replace(sound, owner=owner, consumer=consumer)

    return plant


def _session(fault: Callable[[Session], Session]) -> Plant:
    def plant(sound: ReleaseAttack | SessionAttack) -> Attack:
        if isinstance(sound, ReleaseAttack):
            return replace(sound, session=fault(sound.session))
        # The attacker's points are computed with the sound map.
        data = sound.data(public_map(sound.session))
        return replace(sound, session=fault(sound.session), data=lambda _map: data)

    return plant


def _target_noise(factor: Callable[[float], float]) -> Plant:
    """Plants a fault in the target's noise: a factor, which may depend on the stated ε."""

    def plant(sound: Attack) -> Attack:
        scaled = factor(sound.stated.epsilon)
        return _session(lambda session: broken_releases.scaling_target_noise(session, scaled))(sound)

    return plant


def _both(one: Plant, other: Plant) -> Plant:
    return lambda sound: other(one(sound))


FAULTS: Final[dict[str, PlantedFault]] = {
    "gaussian-halved": PlantedFault(
        "one broadcast of the consumer's with half the noise that its statement needs",
        "gaussian",
        _target_noise(lambda _epsilon: 0.5),
        20_000,
    ),
    "gaussian-delta-ignored": PlantedFault(
        "one broadcast of the consumer's with noise of σ = Δ/ε, whatever δ is",
        "gaussian",
        _target_noise(lambda epsilon: 1.0 / epsilon),
        BROADCASTS,
    ),
    "filtered-gaussian-unclipped": PlantedFault(
        "one broadcast of the consumer's, of points that are not clipped",
        "filtered-gaussian-concentrated",
        _session(broken_releases.without_clipping),
        BROADCASTS,
    ),
    "labels-imputed": PlantedFault(
        "one broadcast of the consumer's, where rows without a label get the one that most rows have",
        "labels",
        broken_releases.labels_imputed,
        BROADCASTS,
    ),
    "subspace-clipped-first": PlantedFault(
        "one broadcast of the consumer's, of points that are clipped before they are projected",
        "subspace-one-direction",
        _session(broken_releases.clipping_before_projection),
        BROADCASTS,
    ),
    "session-same-noise": PlantedFault(
        "a session with the same noise in every round",
        "session-switching",
        _curator(broken_noise.same_in_every_round),
    ),
    "session-noise-reused": PlantedFault(
        "a session whose curator was started again, and begins again with its first noise",
        "session-restarted",
        _curator(broken_noise.reused_after_restart),
    ),
    "session-bare-coordinate": PlantedFault(
        "a session without noise in the last coordinate",
        "gaussian-session",
        _curator(broken_noise.missing_from_last_coordinate),
    ),
    "session-bare-release": PlantedFault(
        "a session without noise in its last release",
        "filtered-gaussian-session",
        _curator(broken_noise.missing_from_last_release),
    ),
    "session-one-draw": PlantedFault(
        "a session whose coordinates all have the same noise",
        "gaussian-session",
        _curator(broken_noise.one_draw_for_all_coordinates),
    ),
    "session-cut-noise": PlantedFault(
        "a session with noise that is cut off at one standard deviation",
        "gaussian-session",
        _curator(broken_noise.cut_off),
    ),
    "session-weak-noise": PlantedFault(
        "a session with 0.7 times the noise that its statement needs",
        "gaussian-session",
        _curator(broken_noise.scaled(0.7)),
        MANY,
    ),
    "session-halved": PlantedFault(
        "a session with noise for a sensitivity of 1, where it is 2",
        "filtered-gaussian-session",
        _curator(broken_noise.scaled(0.5)),
        SOME,
    ),
    "session-unclipped": PlantedFault(
        "a session with a release of points that are not clipped",
        "session-concentrated",
        _session(broken_releases.without_clipping),
        2 * FEW,
    ),
    "session-unchecked": PlantedFault(
        "a session with a curator that takes φ for what its owner claims",
        "session-forged",
        _curator(broken.checking_no_features),
        SOME,
    ),
    "session-map-by-rows": PlantedFault(
        "a session with a map whose last bit follows how many rows are hashed, and which nobody recomputes",
        "session-near-ties",
        _both(_session(broken_releases.hashing_by_rows), _curator(broken.believing_features)),
        SOME,
    ),
    "session-actual-count": PlantedFault(
        "a session with a curator that divides by the actual number of points",
        "session-exhausted",
        _curator(broken.counting_actual_points),
    ),
    "session-stops-early": PlantedFault(
        "a session that ends when its owners have no more points",
        "session-exhausted",
        _curator(broken.stopping_early),
    ),
    "session-batch-of-one-owner": PlantedFault(
        "a session with a curator that fills a batch with points of the owner that has the best one",
        "session-batches",
        _curator(broken.filling_batches_from_one_owner),
    ),
    "session-batch-noise": PlantedFault(
        "a session of three points a round, with noise as if one record were a third of its batch",
        "session-batches",
        _curator(broken_noise.scaled(1.0 / 3.0)),
        SOME,
    ),
    "session-keeps-absent-pool": PlantedFault(
        "a session with a curator for which an absent owner's points can still win",
        "ask-all",
        _curator(broken.keeping_absent_pools),
        SOME,
    ),
    "session-single-release": PlantedFault(
        "a session with noise for one release, and not for all of them together",
        "sealed",
        _curator(broken_noise.scaled_for_one_release),
    ),
    "blind-single-release": PlantedFault(
        "a session with a consumer whose noise is for one release, and not for all of them together",
        "blind",
        _consumer(broken_noise.scaled_for_one_release),
    ),
    "blind-noise-reused": PlantedFault(
        "a session whose consumer was started again, and begins again with its first noise",
        "blind-restarted",
        _consumer(broken_noise.reused_after_restart),
    ),
    "blind-void-excludes": PlantedFault(
        "a session that leaves an owner out for a void box, which others' data have it find or not",
        "blind-void",
        _curator(broken_blind.excluding_for_void_boxes),
    ),
    "blind-mask-off": PlantedFault(
        "what a blind curator is sent, with scores that are not masked",
        "blind-curator",
        _keys(broken_blind.masks_off),
    ),
    "blind-nonce-reused": PlantedFault(
        "what a blind curator is sent, with one nonce for all broadcasts",
        "blind-curator",
        _keys(broken_blind.one_nonce),
    ),
    "blind-unpadded": PlantedFault(
        "sizes of a blind session whose owners score their points alone",
        "blind-sizes",
        _both(_owners(broken_blind.without_padding), _curator(broken_blind.taking_shorter_bids)),
    ),
    "nested-second-halved": PlantedFault(
        "what owners see of two nested releases, where the second noise is half of what it is to be",
        "nested",
        _session(lambda session: broken_releases.scaling_second_noise(session, 0.5)),
        20_000,
    ),
    "nested-second-missing": PlantedFault(
        "what owners see of two nested releases, where there is next to no second noise",
        "nested",
        _session(lambda session: broken_releases.scaling_second_noise(session, 0.01)),
        BROADCASTS,
    ),
    "nested-own-noises": PlantedFault(
        "what the curator sees of two releases, each of which has noise of its own",
        "nested-curator",
        broken_releases.releasing_twice,
        BROADCASTS,
    ),
    "tender-call-by-pool": PlantedFault(
        "a tender whose calls count what was submitted before them",
        "tender",
        _curator(broken_tender.calling_by_the_pool),
    ),
    "tender-acknowledged": PlantedFault(
        "a tender whose curator calls again whom it has bought from",
        "tender",
        _curator(broken_tender.acknowledging),
    ),
    "tender-called-again": PlantedFault(
        "a tender whose curator calls all owners again if too few points were submitted",
        "tender-exhausted",
        _curator(broken_tender.calling_again),
    ),
    "tender-next-by-pool": PlantedFault(
        "a tender whose curator asks for the next message only if too few points were submitted so far",
        "tender-exhausted",
        _curator(broken_tender.asking_for_enough),
    ),
    "tender-close-tells": PlantedFault(
        "a tender whose close says whether as many points as wanted were bought",
        "tender-exhausted",
        _curator(broken_tender.closing_by_the_purchase),
    ),
    "tender-finer-called": PlantedFault(
        "a tender whose curator calls owners with its own, finer release",
        "tender-finer-release",
        _curator(broken_tender.calling_with_the_finer_release),
        2 * FEW,
    ),
}
"""Every planted fault, by name."""
