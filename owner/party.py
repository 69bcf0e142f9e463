"""An owner, put together: its machine and its numerics."""

from __future__ import annotations

from pathlib import Path

from owner.machine import OwnerMachine
from owner.numerics import OwnerNumerics
from protocol.data import Dataset, check_dataset, feature_table
from protocol.session import Session

__all__ = ["owner_party"]


def owner_party(
    session: Session, name: str, dataset: Dataset, *, scratch: Path | None, memory_limit: int
) -> tuple[OwnerMachine, OwnerNumerics]:
    """An owner of a session, with its points checked and hashed.

    Args:
        session: The session.
        name: The owner's roster name.
        dataset: Its points.
        scratch: Where features that do not fit in memory go.
        memory_limit: Bytes of features above which they do not fit.

    Raises:
        DataError: The points are not what the session's public bounds allow.
    """
    features = session.file.features
    check_dataset(dataset, columns=features.columns, lower=features.lower, upper=features.upper)
    feature_map = session.feature_map
    table = feature_table(
        dataset, feature_map.hash, feature_map.dimension, scratch=scratch, memory_limit=memory_limit
    )
    machine = OwnerMachine(session.file, name=name, feature_map=feature_map.digest, rule=session.rule)
    return machine, OwnerNumerics(dataset, table, norm_bound=feature_map.norm_bound)
