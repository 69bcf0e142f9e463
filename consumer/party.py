"""The consumer, put together: its machine and its numerics."""

from __future__ import annotations

from collections.abc import Callable

from consumer.events import StorePurchases
from consumer.machine import ConsumerMachine
from consumer.numerics import ConsumerNumerics
from protocol.data import Dataset, check_dataset
from protocol.session import Session

__all__ = ["NAME", "consumer_party"]

NAME = "consumer"


def consumer_party(
    session: Session,
    *,
    validation: Dataset,
    seed_set: Dataset,
    store: Callable[[StorePurchases], None],
) -> tuple[ConsumerMachine, ConsumerNumerics]:
    """The consumer of a session, with its data checked.

    Raises:
        DataError: The points are not what the session's public bounds allow.
    """
    features = session.file.features
    for dataset in (validation, seed_set):
        check_dataset(dataset, columns=features.columns, lower=features.lower, upper=features.upper)
    machine = ConsumerMachine(session.file, name=NAME, feature_map=session.feature_map.digest)
    numerics = ConsumerNumerics(
        session, session.noise(NAME), validation=validation, seed_set=seed_set, store=store
    )
    return machine, numerics
