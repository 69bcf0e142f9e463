"""Planted faults: plausible slips in a mechanism or a machine, and the suite that must notice each.

A fault is planted from outside, in the attack of a suite that passes without it: a broken part replaces a
part of a party. The product's own code has no switch for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from hushbid.evidence.audit import broken, broken_blind, broken_noise, broken_releases
from hushbid.evidence.audit.attack import (
    Attack,
    ConsumerParty,
    CuratorParty,
    ReleaseAttack,
    SessionAttack,
    public_map,
)
from hushbid.evidence.audit.broken import CuratorFault
from protocol.privacy.noise import NoiseSource
from protocol.session.session import Session

__all__ = ["FAULTS", "Fault"]

FEW: Final = 100
"""Sessions that suffice for a fault which nearly every run reveals."""
SOME: Final = 300
MANY: Final = 1_000
BROADCASTS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault.

    Attributes:
        name: As the command line has it.
        about: What is broken, for people.
        sound: The suite it is planted in.
        plant: Makes the broken attack from the sound one.
        trials: Runs on each of D and D', unless another number is requested.
    """

    name: str
    about: str
    sound: str
    plant: Callable[[Attack], Attack]
    trials: int


def _curator(fault: CuratorFault) -> Callable[[Attack], Attack]:
    """Plants a fault in a session's curator."""

    def plant(attack: Attack) -> Attack:
        sound = cast("SessionAttack", attack)

        def curator(session: Session, noise: NoiseSource) -> CuratorParty:
            return fault(session, sound.curator(session, noise))

        return replace(sound, curator=curator)

    return plant


def _of_whoever_weighs(
    fault: Callable[[Session, CuratorParty], CuratorParty],
) -> Callable[[Session, ConsumerParty], ConsumerParty]:
    """A fault in the numerics that compute weights, whichever party has them."""
    return cast("Callable[[Session, ConsumerParty], ConsumerParty]", fault)


def _session(fault: Callable[[Session], Session]) -> Callable[[Attack], Attack]:
    """Plants a fault in the part of a session that all parties share."""

    def plant(attack: Attack) -> Attack:
        if isinstance(attack, ReleaseAttack):
            return replace(attack, session=fault(attack.session))
        sound = cast("SessionAttack", attack)
        # The attacker's points are computed with the sound map.
        data = sound.data(public_map(sound.session))
        return replace(sound, session=fault(sound.session), data=lambda _map: data)

    return plant


def _target_noise(factor: Callable[[float], float]) -> Callable[[Attack], Attack]:
    """Plants a fault in the target's noise: a factor, which may depend on the stated ε."""

    def plant(attack: Attack) -> Attack:
        scaled = factor(attack.stated.epsilon)
        return _session(lambda session: broken_releases.scaling_target_noise(session, scaled))(attack)

    return plant


def _both(one: Callable[[Attack], Attack], other: Callable[[Attack], Attack]) -> Callable[[Attack], Attack]:
    return lambda attack: other(one(attack))


def _consumer(fault: Callable[[Session, ConsumerParty], ConsumerParty]) -> Callable[[Attack], Attack]:
    """Plants a fault in the consumer of a session with a blind curator."""

    def plant(attack: Attack) -> Attack:
        sound = cast("SessionAttack", attack)

        def consumer(session: Session, **given: Any) -> ConsumerParty:
            return fault(session, sound.consumer(session, **given))

        return replace(sound, consumer=consumer)

    return plant


def _keys(
    fault: Callable[[broken_blind.OwnerMaker, broken_blind.ConsumerMaker], tuple[Any, Any]],
) -> Callable[[Attack], Attack]:
    """Plants a fault in what owners and consumer derive from the map's seed."""

    def plant(attack: Attack) -> Attack:
        sound = cast("SessionAttack", attack)
        owner, consumer = fault(sound.owner, sound.consumer)
        return replace(sound, owner=owner, consumer=consumer)

    return plant


def _owners(
    fault: Callable[[broken_blind.OwnerMaker], broken_blind.OwnerMaker],
) -> Callable[[Attack], Attack]:
    """Plants a fault in all owners."""

    def plant(attack: Attack) -> Attack:
        sound = cast("SessionAttack", attack)
        return replace(sound, owner=fault(sound.owner))

    return plant


_ALL: Final = (
    Fault(
        "gaussian-halved",
        "one broadcast of the consumer's with half the noise that its statement needs",
        "gaussian",
        _target_noise(lambda _epsilon: 0.5),
        20_000,
    ),
    Fault(
        "gaussian-delta-ignored",
        "one broadcast of the consumer's with noise of σ = Δ/ε, whatever δ is",
        "gaussian",
        _target_noise(lambda epsilon: 1.0 / epsilon),
        BROADCASTS,
    ),
    Fault(
        "filtered-gaussian-unclipped",
        "one broadcast of the consumer's, of points that are not clipped",
        "filtered-gaussian-concentrated",
        _session(broken_releases.without_clipping),
        BROADCASTS,
    ),
    Fault(
        "subspace-clipped-first",
        "one broadcast of the consumer's, of points that are clipped before they are projected",
        "subspace-one-direction",
        _session(broken_releases.clipping_before_projection),
        BROADCASTS,
    ),
    Fault(
        "session-same-noise",
        "a session with the same noise in every round",
        "session-switching",
        _curator(broken_noise.same_in_every_round),
        FEW,
    ),
    Fault(
        "session-noise-reused",
        "a session whose curator was started again, and begins again with its first noise",
        "session-restarted",
        _curator(broken_noise.reused_after_restart),
        FEW,
    ),
    Fault(
        "session-bare-coordinate",
        "a session without noise in the last coordinate",
        "gaussian-session",
        _curator(broken_noise.missing_from_last_coordinate),
        FEW,
    ),
    Fault(
        "session-bare-release",
        "a session without noise in its last release",
        "filtered-gaussian-session",
        _curator(broken_noise.missing_from_last_release),
        FEW,
    ),
    Fault(
        "session-one-draw",
        "a session whose coordinates all have the same noise",
        "gaussian-session",
        _curator(broken_noise.one_draw_for_all_coordinates),
        FEW,
    ),
    Fault(
        "session-cut-noise",
        "a session with noise that is cut off at one standard deviation",
        "gaussian-session",
        _curator(broken_noise.cut_off),
        FEW,
    ),
    Fault(
        "session-weak-noise",
        "a session with 0.7 times the noise that its statement needs",
        "gaussian-session",
        _curator(broken_noise.scaled(0.7)),
        MANY,
    ),
    Fault(
        "session-halved",
        "a session with noise for a sensitivity of 1, where it is 2",
        "filtered-gaussian-session",
        _curator(broken_noise.scaled(0.5)),
        SOME,
    ),
    Fault(
        "session-unclipped",
        "a session with a release of points that are not clipped",
        "session-concentrated",
        _session(broken_releases.without_clipping),
        2 * FEW,
    ),
    Fault(
        "session-unchecked",
        "a session with a curator that takes φ for what its owner claims",
        "session-forged",
        _curator(broken.checking_no_features),
        SOME,
    ),
    Fault(
        "session-map-by-rows",
        "a session with a map whose last bit follows how many rows are hashed, and which nobody recomputes",
        "session-near-ties",
        _both(_session(broken_releases.hashing_by_rows), _curator(broken.believing_features)),
        SOME,
    ),
    Fault(
        "session-actual-count",
        "a session with a curator that divides by the actual number of points",
        "session-exhausted",
        _curator(broken.counting_actual_points),
        FEW,
    ),
    Fault(
        "session-stops-early",
        "a session that ends when its owners have no more points",
        "session-exhausted",
        _curator(broken.stopping_early),
        FEW,
    ),
    Fault(
        "session-batch-of-one-owner",
        "a session with a curator that fills a batch with points of the owner that has the best one",
        "session-batches",
        _curator(broken.filling_batches_from_one_owner),
        FEW,
    ),
    Fault(
        "session-batch-noise",
        "a session of three points a round, with noise as if one record were a third of its batch",
        "session-batches",
        _curator(broken_noise.scaled(1.0 / 3.0)),
        SOME,
    ),
    Fault(
        "session-keeps-absent-pool",
        "a session with a curator for which an absent owner's points can still win",
        "ask-all",
        _curator(broken.keeping_absent_pools),
        SOME,
    ),
    Fault(
        "session-single-release",
        "a session with noise for one release, and not for all of them together",
        "sealed",
        _curator(broken_noise.scaled_for_one_release),
        FEW,
    ),
    Fault(
        "blind-single-release",
        "a session with a consumer whose noise is for one release, and not for all of them together",
        "blind",
        _consumer(_of_whoever_weighs(broken_noise.scaled_for_one_release)),
        FEW,
    ),
    Fault(
        "blind-noise-reused",
        "a session whose consumer was started again, and begins again with its first noise",
        "blind-restarted",
        _consumer(_of_whoever_weighs(broken_noise.reused_after_restart)),
        FEW,
    ),
    Fault(
        "blind-void-excludes",
        "a session that leaves an owner out for a void box, which others' data have it find or not",
        "blind-void",
        _curator(broken_blind.excluding_for_void_boxes),
        FEW,
    ),
    Fault(
        "blind-mask-off",
        "what a blind curator is sent, with scores that are not masked",
        "blind-curator",
        _keys(broken_blind.masks_off),
        FEW,
    ),
    Fault(
        "blind-nonce-reused",
        "what a blind curator is sent, with one nonce for all broadcasts",
        "blind-curator",
        _keys(broken_blind.one_nonce),
        FEW,
    ),
    Fault(
        "blind-unpadded",
        "sizes of a blind session whose owners score their points alone",
        "blind-sizes",
        _both(_owners(broken_blind.without_padding), _curator(broken_blind.taking_shorter_bids)),
        FEW,
    ),
)

FAULTS: Final[dict[str, Fault]] = {fault.name: fault for fault in _ALL}
"""Every planted fault, by name."""
