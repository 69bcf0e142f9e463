"""The consumer, put together: its machine and its numerics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushbid.consumer.blind_rounds import BLIND, UNLINKED
from hushbid.consumer.buying.blind import BlindBuying
from hushbid.consumer.buying.open import OpenBuying
from hushbid.consumer.buying.unlinked import UnlinkedBuying
from hushbid.consumer.drawn_seed_set import DRAWN
from hushbid.consumer.events import StorePurchases
from hushbid.consumer.machine import OPEN, ConsumerMachine
from hushbid.consumer.numerics import BlindConsumerNumerics, ConsumerNumerics
from hushbid.consumer.target import KeptTarget
from hushbid.consumer.unlinked_numerics import UnlinkedConsumerNumerics
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import Dataset, shared_rows
from hushbid.protocol.data.names import feature_column
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.machine.weighing import check_noise
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import NoiseSource, SimulatedNoise
from hushbid.protocol.session.session import MOST_SHARED, Session

__all__ = ["check_disjoint", "consumer_machine", "consumer_party"]


def consumer_party(
    session: Session,
    *,
    identity: Identity | None,
    noise: NoiseSource,
    validation: Dataset,
    seed_set: Dataset,
    store: Callable[[StorePurchases], None],
    target: KeptTarget | None = None,
    apart: bool = True,
    weighing: NoiseSource | None = None,
) -> tuple[ConsumerMachine, ConsumerNumerics]:
    """The consumer of a session, with its data checked.

    Args:
        identity: Its keys; None if nothing is sealed.
        noise: Its own source of noise, which also supplies a secret map.
        validation: D_v.
        seed_set: D_init.
        target: An earlier release of D_v to use instead of a new one; its reader has checked it
            (`hushbid.consumer.target.check_kept`).
        weighing: The source of the summary's noise if the consumer computes the weights (`blind`); None: its
            own. Simulated noise is the curator's stream under other rules, so that a session buys the same
            points under all rules.
        apart: Whether the seed set must share no row with D_v. In a rehearsal nothing leaves the consumer.

    Raises:
        DataError: The points violate the session's public bounds; the seed set shares rows with D_v; or D_v
            has no labels, or other ones than the session, where labels have a part in the choice.
        ConfigError: The session seals points and there is no key to open them; or the source lacks the noise
            that the target needs.
    """
    session.file.check_points(validation)
    session.file.check_wanted_labels(validation)
    session.file.check_points(seed_set, sold=False)
    if apart:
        check_disjoint(validation, seed_set, column_values=session.file.session.column_values)
    if session.rule.sealed and identity is None:
        raise ConfigError(
            f"With the rule {session.rule.name} the consumer needs a key, and has none.",
            advice="Name it in its file (`hushbid keys new` makes one), and leave network.insecure out.",
        )
    for draw in session.target_draws:
        noise.check(draw)
    given: dict[str, Any] = {
        "identity": identity,
        "validation": validation,
        "seed_set": seed_set,
        "store": store,
        "target": target,
    }
    machine = consumer_machine(session)
    if session.weigher == CURATOR:
        return machine, ConsumerNumerics(session, noise, **given)
    if weighing is None:
        weighing = noise if noise.protects else SimulatedNoise(session.file.noise.seed or 0, CURATOR)
    check_noise(session, weighing)
    numerics = UnlinkedConsumerNumerics if session.unlinked else BlindConsumerNumerics
    return machine, numerics(session, noise, weighing=weighing, **given)


def consumer_machine(session: Session) -> ConsumerMachine:
    """The machine of a session's consumer, with the table that the session has."""
    if session.unlinked:
        return ConsumerMachine(session, UNLINKED, UnlinkedBuying)
    if session.weigher == CONSUMER:
        return ConsumerMachine(session, BLIND, BlindBuying)
    return ConsumerMachine(session, OPEN, OpenBuying)


def check_disjoint(validation: Dataset, seed_set: Dataset, *, column_values: int | None) -> int:
    """Refuse a seed set with rows of D_v, because it enters every broadcast without noise (DESIGN §2).

    `shared_rows` compares rows, so a row saved in another format counts as the same.

    Args:
        column_values: The session's limit on the number of different values in a column, under which rows may
            be the same by chance; None: no limit is declared, and no row may be shared.

    Returns:
        Number of D_v's distinct rows that are also in the seed set.

    Raises:
        DataError: A row is shared though the session declares no limit, more than `MOST_SHARED` of D_v's rows
            are shared, or a column has more values than declared.
    """
    if column_values is not None:
        for dataset in (validation, seed_set):
            _check_few_values(dataset, column_values)
    shared, different = shared_rows(validation.features, seed_set.features)
    if shared > (0.0 if column_values is None else MOST_SHARED * different):
        # The message gives no number: no release covers it.
        some = "Rows" if column_values is None else f"More than {MOST_SHARED:.0%} of the different rows"
        raise DataError(
            f"{some} of {validation.name} are in {seed_set.name} too, which is public: whatever is in it is "
            "not protected.",
            advice=_how_to_keep_apart(drawn=seed_set.name == DRAWN, declared=column_values is not None),
        )
    return shared


def _how_to_keep_apart(*, drawn: bool, declared: bool) -> str:
    """Advice against shared rows: use a file instead of drawn points, or drawn points instead of a file."""
    other = (
        "Name a file of related data (`seed_set`), whose rows are not in the validation set, or draw fewer "
        "points (`seed_points`; where some are kept already, in another state directory)."
        if drawn
        else "Take a seed set of other data, or points drawn at random within the bounds (`seed_points`)."
    )
    if declared:
        return f"{other} Columns that take more values, or one column more, make equal rows rarer."
    return (
        f"{other} Where columns take few values, so that rows are the same by chance, have the session say "
        f"so (session.column_values): {MOST_SHARED:.0%} may then be."
    )


def _check_few_values(dataset: Dataset, most: int) -> None:
    features = dataset.features
    for column in range(features.shape[1]):
        if len(np.unique(features[:, column])) > most:
            where = feature_column(column, dataset.feature_names)
            raise DataError(
                f"{dataset.name}: {where} (counted from 0) takes more than the {most} different values that "
                "the session declares.",
                advice="Correct session.column_values, for all parties; or leave it out: no row of the "
                "validation set may then be in the seed set.",
            )
