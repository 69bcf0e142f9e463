"""The consumer's single release of D_v: how it is made, stored and reused.

`hushbid screen` makes the release to rank owners by, before there is a session. A session may then broadcast
the same release, so that one privacy cost serves twice. The release is bound to everything it depends on: a
session accepts only a release that it could have made itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, Self

import msgpack
import numpy as np
import numpy.typing as npt

from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import ReleaseStream
from hushbid.protocol.privacy.releases.nested import Nested
from hushbid.protocol.session.points import hash_dataset, hash_seed_set
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Totals
from hushbid.protocol.wire.arrays import ARRAY_EXT, pack_array, unpack_extension

__all__ = ["KeptTarget", "TargetRelease", "check_kept", "map_identity", "release_target"]

TAG: Final = b"hushbid target release 1\n"
"""First bytes of a release file; the SHA-256 of the rest follows, then the rest."""
_ADVICE: Final = (
    "Leave the release out, and the session makes one of its own, which is charged; or screen again for "
    "this session."
)


@dataclass(frozen=True, eq=False)
class TargetRelease:
    """A release of D_v.

    Attributes:
        embedding: g̃, float64 of shape (d,), in units of φ.
        noise: The noise drawn for it, by the source named `noise_name`.
        size: m, the number of points in D_v.
        finer: The curator's release, if it has one of its own.
    """

    embedding: npt.NDArray[np.float64]
    noise: tuple[npt.NDArray[Any], ...]
    size: int
    noise_name: str
    finer: npt.NDArray[np.float64] | None = None


def release_target(
    stream: ReleaseStream,
    feature_map: FeatureMap,
    validation: Dataset,
    noise: NoiseSource,
    *,
    noise_name: str,
    nested: Nested | None = None,
) -> TargetRelease:
    """Release the mean embedding of D_v with newly drawn noise.

    Args:
        stream: A stream for a single release that was not made yet.
        nested: A finer release that goes to the curator, from which this one follows; None: there is none.
    """
    points = hash_dataset(feature_map, validation)
    draws = stream.mechanism.draws(0) if nested is None else nested.draws
    drawn = tuple(noise.draw(draw) for draw in draws)
    for values in drawn:
        values.flags.writeable = False
    total, size = stream.statistic.of(points).sum(axis=0), len(points)
    if nested is None:
        return TargetRelease(stream.release(0, total, size, drawn), drawn, size, noise_name)
    finer = nested.finer.stream(prior=stream.prior).release(0, total, size, drawn[:1])
    together = drawn[0] + drawn[1]
    together.flags.writeable = False
    return TargetRelease(stream.release(0, total, size, (together,)), drawn, size, noise_name, finer)


def map_identity(feature_map: FeatureMap) -> bytes:
    """SHA-256 of all that the features of a raw point depend on: map, kernel and public bounds; 32 bytes."""
    space = feature_map.space
    state = hashlib.sha256(b"hushbid feature map and bounds 1\0" + feature_map.digest)
    for array in (np.array([space.gamma]), space.lower, space.range):
        state.update(np.ascontiguousarray(array, dtype="<f8").data)
    return state.digest()


@dataclass(frozen=True, eq=False)
class KeptTarget:
    """A release of D_v that was made and charged outside a session, and everything it is bound to.

    It contains the noise, so its file is as private as D_v.

    Attributes:
        charged_as: Its entry in the lifetime ledger of D_v; empty if it was not charged.
        map_identity: Identity of the feature map (`map_identity`).
        mechanism: Name of the release mechanism, with its `parameters` and the `delta` of its calibration.
        seed_total: Σφ of the public seed set that the mechanism used, shape (d,); empty if it used none.
        seed_size: Number of points in that seed set.
        data: Digest of D_v (`hushbid.protocol.data.dataset_digest`).
        deviation: Standard deviation of the noise on each coordinate of `release.embedding`.
    """

    release: TargetRelease
    charged_as: str
    map_identity: bytes
    mechanism: str
    parameters: dict[str, Any]
    delta: float
    seed_total: Totals
    seed_size: int
    data: bytes
    deviation: float

    def to_bytes(self) -> bytes:
        release = self.release
        values = {
            **{name: getattr(self, name) for name in _FIELDS},
            "embedding": release.embedding,
            "noise": list(release.noise),
            "size": release.size,
            "noise_name": release.noise_name,
        }
        content = bytes(msgpack.packb(values, default=_packed))
        return TAG + hashlib.sha256(content).digest() + content

    @classmethod
    def from_bytes(cls, content: bytes, *, where: str) -> Self:
        """Decode the result of `to_bytes`.

        Raises:
            DataError: The content is something else; names `where`.
        """
        if not content.startswith(TAG):
            raise DataError(
                f"{where}: `hushbid screen` has not kept this release, or it is of another version.",
                advice="Check which file was named.",
            )
        start = len(TAG) + hashlib.sha256().digest_size
        digest, content = content[len(TAG) : start], content[start:]
        try:
            if hashlib.sha256(content).digest() != digest:
                raise ValueError("its digest is another")
            values = msgpack.unpackb(content, ext_hook=unpack_extension)
            release = TargetRelease(
                embedding=_array(values.pop("embedding"), np.float64),
                noise=tuple(_array(drawn, None) for drawn in values.pop("noise")),
                size=int(values.pop("size")),
                noise_name=str(values.pop("noise_name")),
            )
            return cls(release, **{name: values.pop(name) for name in _FIELDS}, **values)
        except (ValueError, TypeError, KeyError, AttributeError, msgpack.UnpackException):
            raise DataError(
                f"{where}: the release in it is damaged.", advice="Restore the file, or screen again."
            ) from None


_FIELDS: Final = (
    "charged_as", "map_identity", "mechanism", "parameters", "delta",
    "seed_total", "seed_size", "data", "deviation",
)  # fmt: skip


def check_kept(
    kept: KeptTarget, session: Session, validation: Dataset, seed_set: Dataset, *, where: str
) -> None:
    """Refuse a release, from the file `where`, that the session could not have made.

    Raises:
        ConfigError: Its map, mechanism, seed set, source of noise or D_v differs; it was never charged; or
            the session draws a secret map.
    """
    if session.public_map is None:
        raise ConfigError(
            f"{where}: with the rule {session.rule.name} the consumer draws a fresh secret feature map, and "
            "this release is of a public one.",
            advice="Leave the release out: the session makes one of its own, which is charged too.",
        )
    mechanism = session.target
    section = session.file.target
    same = {
        "feature map or bounds": kept.map_identity == map_identity(session.public_map),
        "release mechanism": (kept.mechanism, kept.parameters) == (section.mechanism, section.parameters),
        "δ": kept.delta == session.file.session.delta,
        "source of noise": kept.release.noise_name == session.noise_name(mechanism),
        "validation set": kept.data == dataset_digest(validation) and kept.release.size == len(validation),
        "seed set": kept.seed_size == 0 or _is_seed_set(kept, session.public_map, seed_set),
    }
    if others := [what for what, holds in same.items() if not holds]:
        raise ConfigError(
            f"{where}: the release is of another {', and another '.join(others)}.", advice=_ADVICE
        )
    if not kept.charged_as:
        raise ConfigError(f"{where}: the release was never charged.", advice=_ADVICE)


def _is_seed_set(kept: KeptTarget, feature_map: FeatureMap, seed_set: Dataset) -> bool:
    if kept.seed_size != len(seed_set):
        return False
    total = hash_seed_set(feature_map, seed_set.features).sum(axis=0, dtype=np.int64)
    return bool(np.array_equal(kept.seed_total, total))


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    raise TypeError(f"{type(value).__name__} has no place in a release")


def _array(value: Any, dtype: type[np.generic] | None) -> npt.NDArray[Any]:
    if not isinstance(value, np.ndarray) or value.ndim != 1 or (dtype and value.dtype != dtype):
        raise ValueError("an array of another kind was expected")
    own = value.copy()  # aligned, and independent of the file's bytes
    own.flags.writeable = False
    return own
