"""An owner, put together: its machine and its numerics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hushbid.owner.machine import OwnerMachine
from hushbid.owner.numerics import BlindOwnerNumerics, OwnerNumerics, Sealer
from hushbid.owner.unlinked import UnlinkedOwnerNumerics
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import Dataset, feature_table
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.session.boxes import boxed
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import Features

__all__ = ["owner_party"]


def owner_party(
    session: Session,
    name: str,
    dataset: Dataset,
    *,
    identity: Identity | None,
    noise: NoiseSource,
    scratch: Path | None,
    memory_limit: int,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[OwnerMachine, OwnerNumerics]:
    """An owner of a session, with its points checked, and hashed if the feature map is public.

    Args:
        identity: Its keys; None where nothing is sealed.
        noise: Its own source of noise, which also supplies the keys of boxes.
        scratch: Directory for features that take more than `memory_limit` bytes.
        progress: Called while points are hashed, with the number hashed and the total.

    Raises:
        DataError: The points violate the session's public bounds, are too long for its boxes, or have other
            labels than the session declares.
        ConfigError: The session seals points, and there is no key for it.
    """
    session.file.check_points(dataset)
    session.file.check_labels(dataset)
    sealer = _sealer(session, name, dataset, identity, noise) if session.rule.sealed else None
    dataset = boxed(session, dataset)

    def hashed(feature_map: FeatureMap) -> Features:
        return feature_table(
            dataset,
            feature_map.hash,
            session.space.dimension,
            scratch=scratch,
            memory_limit=memory_limit,
            progress=progress,
        )

    kind = OwnerNumerics
    if not session.curator_reads:
        kind = UnlinkedOwnerNumerics if session.unlinked else BlindOwnerNumerics
    return OwnerMachine(session, name=name), kind(session, dataset, hashed, sealer=sealer)


def _sealer(
    session: Session, name: str, dataset: Dataset, identity: Identity | None, noise: NoiseSource
) -> Sealer:
    if identity is None:
        raise ConfigError(
            f"With the rule {session.rule.name} every owner needs a key, and {name} has none.",
            advice="Name it in its file (`hushbid keys new` makes one), and leave network.insecure out.",
        )
    session.check_rows(len(dataset), dataset.name)
    return Sealer(name, identity, session.public_identity(CONSUMER), noise)
