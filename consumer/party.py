"""The consumer, put together: its machine and its numerics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from consumer.events import StorePurchases
from consumer.machine import ConsumerMachine
from consumer.numerics import ConsumerNumerics
from consumer.target import KeptTarget
from protocol.data import Dataset, check_dataset
from protocol.errors import ConfigError, DataError
from protocol.identity import Identity
from protocol.noise import NoiseSource
from protocol.session import Session

__all__ = ["check_disjoint", "consumer_party"]

MOST_SHARED: Final = 0.1
"""Share of D_v's rows that may also be rows of the seed set, where columns have few values."""


def consumer_party(
    session: Session,
    *,
    identity: Identity | None,
    noise: NoiseSource,
    validation: Dataset,
    seed_set: Dataset,
    store: Callable[[StorePurchases], None],
    target: KeptTarget | None = None,
) -> tuple[ConsumerMachine, ConsumerNumerics]:
    """The consumer of a session, with its data checked.

    Args:
        session: The session.
        identity: Its keys; None where nothing is sealed.
        noise: Its own source of noise, from which a secret map comes too.
        validation: D_v.
        seed_set: D_init.
        store: Keeps the delivered points.
        target: A release of D_v that was made before, in place of a new one; checked by who read it
            (`consumer.target.check_kept`).

    Raises:
        DataError: The points are not what the session's public bounds allow, or the seed set is of D_v's.
        ConfigError: Points are sealed in the session, and there is no key to open them with; or the noise
            that the target needs is none that the source has.
    """
    features = session.file.features
    for dataset in (validation, seed_set):
        check_dataset(dataset, columns=features.columns, lower=features.lower, upper=features.upper)
    check_disjoint(validation, seed_set)
    if session.rule.sealed and identity is None:
        raise ConfigError(
            f"With the rule {session.rule.name} the consumer needs a key, and has none.",
            advice="Name it in its file (`hushbid keys new` makes one), and leave network.insecure out.",
        )
    for draw in session.target().draws(0):
        noise.check(draw)
    machine = ConsumerMachine(session)
    numerics = ConsumerNumerics(
        session,
        noise,
        identity=identity,
        validation=validation,
        seed_set=seed_set,
        store=store,
        target=target,
    )
    return machine, numerics


def check_disjoint(validation: Dataset, seed_set: Dataset) -> None:
    """Refuse a seed set of D_v's own points: it enters every broadcast without noise (DESIGN §2).

    Raises:
        DataError: More than `MOST_SHARED` of D_v's different rows are in it.
    """
    public = {row.tobytes() for row in np.asarray(seed_set.features, dtype=np.float64)}
    private = {row.tobytes() for row in np.asarray(validation.features, dtype=np.float64)}
    shared = len(public & private)
    if shared > MOST_SHARED * len(private):
        raise DataError(
            f"{shared} of the {len(private)} different rows of {validation.name} are in {seed_set.name} too, "
            "which is public: whatever is in it is not protected.",
            advice="Take a seed set of other data, or points drawn at random within the bounds.",
        )
