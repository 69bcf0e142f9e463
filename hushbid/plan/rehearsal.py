"""A rehearsal: what a session would buy from stand-in owners that are made of the consumer's own data.

No owner's data are known before a session, and no rule of thumb holds for all of them. So the session is
played in this process, with its own machines, settings and noise level, against owners that hold either too
many rows of D_v, or few of them among unrelated points. The outcome is compared with a uniform choice of the
same points, both with matching weights. Nothing leaves the consumer, and no ε is spent: the noise is
simulated and discarded together with the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.consumer.appraisal import Judge
from hushbid.consumer.downstream import known_labels
from hushbid.consumer.party import consumer_party
from hushbid.consumer.verdict import Rehearsal, Staged
from hushbid.curator.machine import CuratorMachine
from hushbid.plan.coded_rows import coded, dataset_of, evenly_labelled, every, features_of, with_every_label
from hushbid.plan.noise import drowning_errors
from hushbid.plan.prediction import predict
from hushbid.plan.setting import setting_of
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.protocol.privacy.acquisition.ask_all import AskAll
from hushbid.protocol.privacy.releases.exact import ExactRelease
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.party import ensure_done
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.labels import Labels
from hushbid.protocol.space.mmd import at_even_distances, kernel_means
from hushbid.protocol.wire.messages import Candidate
from hushbid.simulation.simulator import Simulation

__all__ = [
    "DROWNED_OUT",
    "FEWEST",
    "MOST",
    "TOO_FEW_LABELS",
    "Points",
    "kernel_beside",
    "looked_at",
    "mean_kernel",
    "play",
    "play_with_owners",
    "rehearse",
    "why_not_rehearsed",
]

FEWEST: Final = 8
"""The least rows of D_v that can be split into the target and the owners' share of it."""
TOO_FEW_LABELS: Final = (
    f"it takes {FEWEST} rows of validation data that have a label, where the choice looks at labels"
)
DROWNED_OUT: Final = "the noise of its target exceeds whatever points can differ by"
"""Why a session was not played whose target is nothing but noise."""
MOST: Final = 50_000
"""The most points bought in a rehearsal: stand-in owners have `_TIMES` as many, all in memory."""

_TIMES: Final = 5
"""Points that stand-in owners have per point bought."""
_REPEATS: Final = 2
_KINDS: Final = 4
"""Kinds of stand-in owners (`_stand_ins`)."""
_JITTER: Final = 0.25
"""Noise on a row of the seed set that stands for an owner's, in standard deviations of its column there:
without it a seed set of five rows would be five points.
"""

_OWNERS_SEED: Final = 1000
"""Seed of the first session with the owners' own points; neither rehearsals nor people use it."""

Points: TypeAlias = npt.NDArray[Any]
"""Raw points, shape (n, columns)."""
_Rows: TypeAlias = npt.NDArray[np.float64]


def why_not_rehearsed(session: Session, rows: int, labels: Labels | None) -> str:
    """Why a session cannot be rehearsed with that many rows of D_v and these labels; empty if it can."""
    if not session.rule.exact:
        return f"the rule {session.rule.name} buys other points than are rehearsed"
    if rows < FEWEST:
        return f"it takes {FEWEST} rows of validation data"
    if session.space.labels is not None and len(known_labels(() if labels is None else labels)) < FEWEST:
        return TOO_FEW_LABELS
    if session.file.session.points > MOST:
        return f"it buys {MOST:,} points at most"
    return ""


def looked_at(session: Session, validation: _Rows, seed_set: _Rows, *, drawn: bool = False) -> Rehearsal:
    """The kernel's verdict before anything is played, for sets of any size.

    A D_v that is narrow relative to its bounds has a mean kernel value near 1, and so have all data within
    bounds that are too wide. The seed set distinguishes the two cases: the kernel tells other rows from D_v,
    or it does not.

    Args:
        validation: D_v, raw, shape (m, columns).
        seed_set: D_init, raw, shape (n, columns).
        drawn: Whether it is drawn within the bounds.
    """
    beside = kernel_beside(session, validation, seed_set)
    return Rehearsal((), mean_kernel(session, validation), beside, drawn)


@one_blas_thread()  # as in a session: the same sums in the same order
def rehearse(
    session: Session,
    validation: _Rows,
    seed_set: _Rows,
    *,
    labels: Labels | None = None,
    schema: Schema | None = None,
    looked: Rehearsal | None = None,
    progress: Callable[[float], object] | None = None,
) -> Rehearsal:
    """Rehearse a session. The rule is `ask-all`, which buys the points that `sealed` buys, from one owner.

    Half of D_v is the target, each row twice, so that the target has its real number of rows and its real
    noise. The other half is what owners have of it. If the kernel can tell nothing, or noise exceeds whatever
    points can differ by (`drowning_errors`), nothing is played.

    Args:
        validation, seed_set: As `looked_at`.
        labels: D_v's, None where a row has none. If labels take part in the selection, owners' rows have
            those of D_v, and other rows any label.
        schema: The rows' columns, if the session's do not state them.
        looked: The result of `looked_at` for the same, if known already.
        progress: Called after each round with the share of all rounds that have been played, in (0, 1].

    Raises:
        DataError: It cannot be rehearsed (`why_not_rehearsed`).
        HushbidError: The session cannot be played.
    """
    points, m = session.file.session.points, len(validation)
    if why := why_not_rehearsed(session, m, labels):
        raise DataError(f"The session cannot be rehearsed: {why}.", advice="Leave the rehearsal out.")
    looked = looked_at(session, validation, seed_set) if looked is None else looked
    if looked.blind:
        return looked
    setting = setting_of(session.file, validation=m, seed_points=len(seed_set))
    if (errors := drowning_errors(setting)) is not None:
        return replace(looked, expected=predict(setting, *errors).drowned)

    def played_so_far(kind: int, share: float) -> None:
        if progress is not None:
            progress((kind + share) / (_REPEATS * _KINDS))

    coded_rows = coded(session, validation, labels)
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for repeat in range(_REPEATS):
        generator = np.random.default_rng(repeat)
        order = evenly_labelled(session, coded_rows, generator.permutation(m))
        wanted, theirs = coded_rows[order[: m // 2]], coded_rows[order[m // 2 :]]
        target = np.concatenate([wanted, wanted, theirs[: m % 2]])
        theirs = with_every_label(session, theirs, generator)
        kinds = _stand_ins(session, schema, theirs, seed_set, _TIMES * points, generator)
        for kind, (owners, rows) in enumerate(kinds, repeat * _KINDS):
            played = _played(session.file, rows, target, seed_set, repeat, partial(played_so_far, kind))
            drawn = rows[generator.choice(len(rows), size=len(played), replace=False)]
            uniform, aim = features_of(session, drawn), features_of(session, target)
            found.setdefault(owners, []).append(_compared(session, played, uniform, aim))
    staged = (Staged(owners, *map(fmean, zip(*each, strict=True))) for owners, each in found.items())
    return replace(looked, staged=tuple(staged))


@one_blas_thread()
def play_with_owners(
    session: Session,
    validation: Dataset,
    seed_set: Points,
    owners: Sequence[Dataset],
    uniform: Sequence[Points],
    *,
    progress: Callable[[float], object],
) -> tuple[Staged, Staged]:
    """The session with the owners' own points, which only the operator of a demonstration has.

    Noise and map differ between the plays, and from those of any session that is run.

    Args:
        validation: D_v.
        seed_set: D_init, raw, shape (n, columns).
        owners: All the owners' points; of more than a rehearsal's (`MOST`), only that many are used.
        uniform: Uniform choices of them, of p points each. There is a play for each.
        progress: Called after each round with the share of all rounds that have been played, in (0, 1].

    Returns:
        The average outcome; and that of one more play, whose releases have no noise.

    Raises:
        HushbidError: The session cannot be played.
    """
    plays, wanted = len(uniform), coded(session, validation.features, validation.known)
    points = np.concatenate([coded(session, each.features, each.known) for each in owners])
    if len(points) > _TIMES * MOST:
        points = points[np.random.default_rng(0).choice(len(points), size=_TIMES * MOST, replace=False)]

    def played(number: int, *, exact: bool = False) -> Points:
        def so_far(share: float) -> None:
            progress((number + share) / (plays + 1))

        seed = _OWNERS_SEED + number
        return _played(session.file, points, wanted, seed_set, seed, so_far, exact=exact)

    aim = validation.features
    found = [_compared(session, played(number), each, aim) for number, each in enumerate(uniform)]
    noisy = Staged("the owners' own points", *map(fmean, zip(*found, strict=True)))
    bought, _, plain, _ = _compared(session, played(plays, exact=True), uniform[0], aim)
    return noisy, replace(noisy, owners=f"{noisy.owners}, without noise", bought=bought, bought_plain=plain)


def kernel_beside(session: Session, rows: _Rows, others: _Rows) -> float:
    """Mean kernel value of a raw row of each set, by at most `MOST_COMPARED` rows of each."""
    scaled, beside = (session.space.scale(at_even_distances(each)) for each in (rows, others))
    return float(kernel_means(scaled, beside, session.space.gamma).mean())


def mean_kernel(session: Session, rows: _Rows) -> float:
    """Mean kernel value of two different raw rows: 1 if all look alike to the session, 0 if none do.

    At most `MOST_COMPARED` rows are compared; for a single row it is 1.
    """
    scaled = session.space.scale(at_even_distances(rows))
    if (n := len(scaled)) == 1:
        return 1.0
    of_all = float(kernel_means(scaled, scaled, session.space.gamma).mean())
    return max(0.0, (of_all * n - 1.0) / (n - 1))  # negative values are rounding errors


def _stand_ins(
    session: Session,
    schema: Schema | None,
    wanted: _Rows,
    seed_set: _Rows,
    count: int,
    generator: np.random.Generator,
) -> Iterator[tuple[str, _Rows]]:
    """Kinds of owners, and `count` coded points of each; they repeat their rows of D_v.

    The last kind can only speak against ``hopeless``: a seed set far from D_v is easily told from it,
    whatever the noise, and if owners' other points are like that, a choice by noisy totals is a good one.
    """
    bounds, columns, schema = session.file.features, session.space.columns, session.file.rows or schema
    code = session.space.labels
    lower, upper = (np.broadcast_to(np.asarray(bound), columns) for bound in (bounds.lower, bounds.upper))
    widths = [1] * columns if schema is None else [column.width for column in schema.columns]
    parts_of_a_row = np.split(np.arange(wanted.shape[1]), np.cumsum(widths)[: None if code else -1])

    def drawn(rows: _Rows, size: int) -> _Rows:
        return rows[generator.integers(len(rows), size=size)]

    def with_any_label(rows: _Rows) -> _Rows:
        return rows if code is None else np.column_stack([rows, code.any_codes(len(rows), generator)])

    def none_of_it(size: int) -> _Rows:
        # Half have D_v's own values without the dependence between columns, and half could be anything.
        mixed = [generator.choice(wanted[:, part], size=size // 2) for part in parts_of_a_row]
        if schema is None:
            anything = generator.uniform(lower, upper, size=(size - size // 2, columns))
        else:
            anything = schema.drawn(size - size // 2, generator)
        return np.concatenate([np.concatenate(mixed, axis=1), with_any_label(anything)])

    features = wanted[:, :columns]
    direction = generator.standard_normal(columns) / (features.std(axis=0) + 1e-9 * (upper - lower))
    along = features @ direction
    common, rest = wanted[along <= np.median(along)], wanted[along > np.median(along)]
    most = count * 9 // 10
    parts = [drawn(common, most), drawn(rest if len(rest) else common, count - most)]
    yield "all that is wanted, nine tenths of one half", np.concatenate(parts)
    for share, words in ((10, "a tenth"), (50, "a fiftieth")):
        few = max(1, count // share)
        parts = [drawn(wanted, few), none_of_it(count - few)]
        yield f"{words} of it among other points", np.concatenate(parts)
    few = max(1, count // 10)
    others = drawn(seed_set, count - few)
    if schema is None:  # otherwise rows are those of the schema
        spread = _JITTER * seed_set.std(axis=0)
        others = np.clip(others + generator.standard_normal(others.shape) * spread, lower, upper)
    yield (
        "a tenth of it among points like the seed set",
        np.concatenate([drawn(wanted, few), with_any_label(others)]),
    )


def _played(
    file: SessionFile,
    rows: Points,
    target: Points,
    seed_set: Points,
    seed: int,
    progress: Callable[[float], object],
    *,
    exact: bool = False,
) -> Points:
    """A session's purchase from coded rows; `progress` receives the share of its rounds that have begun."""
    session = open_session(_of_one_owner(file, seed, exact=exact))
    owner, wanted = (dataset_of(session, *each) for each in (("stand-ins", rows), ("wanted", target)))
    return np.stack([each.point for each in _bought(session, owner, wanted, seed_set, progress)])


def play(file: SessionFile, owner: Dataset, wanted: Dataset, seed_set: Points, seed: int) -> list[Candidate]:
    """A session's purchase from one owner, with a map and noise of this seed; `wanted` replaces D_v.

    Raises:
        HushbidError: It cannot be played.
    """
    session = open_session(_of_one_owner(file, seed, exact=False))
    return _bought(session, owner, wanted, seed_set, lambda _share: None)


def _bought(
    played: Session,
    owner: Dataset,
    wanted: Dataset,
    seed_set: Points,
    progress: Callable[[float], object],
) -> list[Candidate]:
    sellers = played.file.owners
    simulation = Simulation(
        played,
        owners={name: every(owner, len(sellers), place) for place, name in enumerate(sellers)},
        validation=wanted,
        seed_set=Dataset.from_arrays("seed-set", seed_set),
        # Half of D_v may exceed the limit on rows shared with the seed set where columns take few values.
        consumer=partial(consumer_party, apart=False),
    )

    def began(curator: CuratorMachine) -> None:
        progress(curator.round / played.rounds)

    outcome = simulation.run(began)
    for finish in outcome.finishes.values():
        ensure_done(finish)
    delivered = outcome.delivered.delivered if outcome.delivered is not None else ()
    return [entry.candidate for entry in delivered if entry.candidate is not None]


def _of_one_owner(file: SessionFile, seed: int, *, exact: bool) -> SessionFile:
    """The session with an invented owner, map and noise; `exact`: without noise.

    Under `tender` p points may exceed one message: there are then as many owners as needed.
    """
    values = file.in_force()
    values["session"] |= {
        "batch": 1,
        "name": "rehearsal",
        "nonce": str(seed),
        "min_owners": 1,
        "allow_nonprivate": True,
        "distinct": False,
    }
    for key in ("fixed_cadence", "column_values", "labels", "numbered"):
        values["session"].pop(key, None)
    if file.herds:  # sealed as it is: the consumer draws the map from the seeded noise
        values["acquisition"] = {"rule": file.acquisition.rule}
    else:
        values["features"] |= {"seed": seed}
        values["acquisition"] = {"rule": AskAll.name}
    values["noise"] = {"source": "simulated", "seed": seed}
    values["network"] = {"address": "tcp://127.0.0.1:*", "insecure": True}
    values["roster"] = {"owners": {"stand-ins": ""}}
    for table in ("settlement", "wishes"):
        values.pop(table, None)
    if exact:
        values |= {name: {"mechanism": ExactRelease.name} for name in ("target", "summary")}
    made = SessionFile.model_validate(values, strict=False)
    # Its points can be larger than the session's, so that fewer fit into a message.
    batch = min(file.batch, made.most_in_a_bid)
    session, roster = made.session.model_copy(update={"batch": batch}), made.roster
    if file.herds:
        sellers = {f"stand-ins-{number}": "" for number in range(-(-session.points // batch))}
        roster = roster.model_copy(update={"owners": sellers})
    return made.model_copy(update={"session": session, "roster": roster})


def _compared(
    session: Session, bought: Points, uniform: Points, target: Points
) -> tuple[float, float, float, float]:
    """MMD² with weights, of the purchase and of a uniform choice; and the same without weights.

    At most `MOST_COMPARED` rows are compared: weights take memory in the square of them.
    """
    space = session.space
    judge = Judge(space.scale(at_even_distances(target)), space.gamma)
    scaled = [space.scale(at_even_distances(each)) for each in (bought, uniform)]
    figures = [judge.judge(each, [None] * len(each)) for each in scaled]
    weighted = [each.best.mmd2 for each in figures]
    both = [value for value in (*weighted, *(each.plain.mmd2 for each in figures)) if value is not None]
    first, second, third, fourth = both  # points within the bounds lie at finite distances
    return first, second, third, fourth
