"""Sessions for an audit whose releases or maps count a point differently from what is stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from hushbid.consumer.target import TargetRelease, release_target
from hushbid.evidence.audit.attack import ReleaseAttack
from hushbid.evidence.audit.nested import NestedAttack
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.privacy.releases import Prior, ReleaseMechanism, ReleaseStream, Statistic
from hushbid.protocol.privacy.releases.filtered_gaussian import FilteredGaussianRelease
from hushbid.protocol.privacy.releases.nested import Nested
from hushbid.protocol.privacy.releases.statistic import BASIS_BITS
from hushbid.protocol.privacy.releases.subspace import SubspaceRelease
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.features.base import Codes, RealArray
from hushbid.protocol.space.grid import FEATURE_BITS, Features, Totals
from hushbid.protocol.space.labels import Labels

__all__ = [
    "clipping_before_projection",
    "hashing_by_rows",
    "labels_imputed",
    "releasing_twice",
    "scaling_second_noise",
    "scaling_target_noise",
    "without_clipping",
]

_ONE = 2**FEATURE_BITS


class _Unclipped(Statistic):
    """y = z/R, of any length."""

    def of(self, features: Features) -> Totals:
        moved = features.astype(np.int64) - cast("Totals", self.centre)
        return np.asarray(moved * _ONE // self.radius, dtype=np.int64)


class _ClippedFirst(Statistic):
    """y = B·clip(φ - c): a clipped vector, in a basis that lengthens it."""

    def of(self, features: Features) -> Totals:
        clipped = _without_basis(self).of(features).astype(np.float64)
        basis = cast("npt.NDArray[np.int16]", self.basis)
        return np.asarray(np.rint(clipped @ basis.T * 2.0**-BASIS_BITS), dtype=np.int64)


def _without_basis(statistic: Statistic) -> Statistic:
    """The statistic in the coordinates of φ."""
    return Statistic(statistic.dimension, statistic.centre, statistic.radius)


class _UnclippedRelease(FilteredGaussianRelease):
    """`filtered-gaussian` without clipping."""

    def statistic(self, prior: Prior | None) -> Statistic:
        return _as(_Unclipped, super().statistic(prior))


class _ClippedFirstRelease(SubspaceRelease):
    """`subspace` that clips points before the projection instead of after it."""

    def statistic(self, prior: Prior | None) -> Statistic:
        return _as(_ClippedFirst, super().statistic(prior))


def _as(kind: type[Statistic], statistic: Statistic) -> Statistic:
    return kind(statistic.dimension, statistic.centre, statistic.radius, statistic.basis)


@dataclass(frozen=True)
class _OtherReleases(Session):
    """A session with other releases than stated; nobody is told, and costs are charged unchanged."""

    other_target: Callable[[Any], ReleaseMechanism] = lambda sound: sound
    other_summary: Callable[[Any], ReleaseMechanism] = lambda sound: sound
    other_nested: Callable[[Nested], Nested] = lambda sound: sound

    @cached_property
    def target(self) -> ReleaseMechanism:
        return self.other_target(super().target)

    @cached_property
    def summary(self) -> ReleaseMechanism:
        return self.other_summary(super().summary)

    @cached_property
    def nested(self) -> Nested | None:
        sound = super().nested
        return None if sound is None else self.other_nested(sound)


def _with_kind(session: Session, kind: type[ReleaseMechanism]) -> Session:
    def other(sound: ReleaseMechanism) -> ReleaseMechanism:
        return kind(sound.parameters, sound.setting) if kind.name == sound.name else sound

    return _OtherReleases(**_fields(session), other_target=other, other_summary=other)


def without_clipping(session: Session) -> Session:
    """`filtered-gaussian` does not clip."""
    return _with_kind(session, _UnclippedRelease)


def clipping_before_projection(session: Session) -> Session:
    """`subspace` clips before it projects."""
    return _with_kind(session, _ClippedFirstRelease)


def scaling_target_noise(session: Session, factor: float) -> Session:
    """The target's noise is `factor` times the noise that its statement requires."""

    def other(sound: Any) -> ReleaseMechanism:
        noise = {"epsilon": None, "sigma": sound.sigma * factor}
        scaled: ReleaseMechanism = replace(sound, parameters=sound.parameters.model_copy(update=noise))
        return scaled

    return _OtherReleases(**_fields(session), other_target=other)


def scaling_second_noise(session: Session, factor: float) -> Session:
    """The noise that an owners' release adds to the curator's is `factor` times its proper size."""

    def other(sound: Nested) -> Nested:
        first, second = sound.draws
        return replace(sound, draws=(first, replace(second, scale=second.scale * factor)))

    return _OtherReleases(**_fields(session), other_nested=other)


def releasing_twice(sound: NestedAttack) -> NestedAttack:
    """The attack in which both releases have independent noise: seeing both reveals more than either."""

    def twice(stream: ReleaseStream, *given: Any, nested: Nested, **more: Any) -> TargetRelease:
        own = release_target(stream, *given, **more)
        finer = release_target(nested.finer.stream(prior=stream.prior), *given, **more)
        return replace(own, finer=finer.embedding)

    return replace(sound, release=twice)


def labels_imputed(sound: ReleaseAttack) -> ReleaseAttack:
    """The attack in which rows without a label get the most frequent label."""
    if sound.labels is None:
        raise LocalProtocolError("Labels are to be imputed where none have a part.")

    def imputed(given: Labels) -> Labels:
        known = Counter(label for label in given if label is not None)
        return [known.most_common(1)[0][0] if label is None else label for label in given]

    first, second = sound.labels
    return replace(sound, labels=(imputed(first), imputed(second)))


def _fields(session: Session) -> dict[str, Any]:
    return {known.name: getattr(session, known.name) for known in fields(Session)}


class _ByRows(FeatureMap):
    """A map that rounds up when it hashes an odd number of rows: φ of a point depends on its neighbours.

    It changes only coordinates near 0, by one grid unit, which the space's check does not notice.
    """

    NEAR: ClassVar[int] = 256

    def __init__(self, sound: FeatureMap) -> None:
        super().__init__(sound.space)
        self.digest = sound.digest
        self._sound = sound

    def _hash(self, points: RealArray, codes: Codes, start: int) -> Features:  # noqa: ARG002
        hashed = np.array(self._sound.hash(points))
        if len(points) % 2:
            hashed[np.abs(hashed) < self.NEAR] += 1
        return hashed


def hashing_by_rows(session: Session) -> Session:
    """The last bit of φ depends on the number of rows hashed together."""
    if session.public_map is None:
        raise LocalProtocolError("The session's feature map is secret.")
    return replace(session, public_map=_ByRows(session.public_map))
