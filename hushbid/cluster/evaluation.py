"""The baselines of a run, which no party can compute: they need all parties' data at once (DESIGN §7).

Only the operator of a demonstration cluster, who holds every file, can run this. It takes no part in the
protocol and knows nothing that was released in it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic.dataclasses import dataclass as figures

from hushbid.consumer.appraisal import Judge, Judgement
from hushbid.consumer.downstream import Labels
from hushbid.consumer.learners import Training, train_here
from hushbid.consumer.model_figures import NO_MODEL, ModelFigures
from hushbid.datasets.partition import Table
from hushbid.protocol.config.party import LABEL_WEIGHT, RIDGE
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.dataset import row_chunks
from hushbid.protocol.data.feature_file import room_for_features
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import MODEL
from hushbid.protocol.session.points import hash_seed_set
from hushbid.protocol.session.session import Session
from hushbid.protocol.space import scoring
from hushbid.protocol.space.features import FeatureMap
from hushbid.protocol.space.grid import FEATURE_UNIT, Features, round_weights
from hushbid.protocol.space.labels import one_each
from hushbid.protocol.space.mapped import let_go
from hushbid.protocol.space.mmd import at_even_distances, kernel_matrix, mmd2_curve

__all__ = [
    "AT_RANDOM",
    "GREEDY",
    "Baselines",
    "NotComputed",
    "Rows",
    "Selection",
    "Told",
    "evaluate",
    "greedy",
    "too_large",
    "uniform",
    "unlike",
]

Points: TypeAlias = npt.NDArray[Any]

Rows: TypeAlias = Table | Dataset
"""Raw features, shape (n, c), and labels, shape (n,), which a `Dataset` may lack."""

Selection: TypeAlias = list[tuple[str, int]]
"""Chosen points as (owner, row), in the order of choice. Fewer than requested if the owners have fewer."""

Told: TypeAlias = Callable[[str, float | None], object]
"""Receives the current computation, in words, and its completed share, from 0 to 1; None: unknown."""

AT_RANDOM: Final = "comparing with as many at random"
GREEDY: Final = "comparing with the greedy choice"

MOST_READ: Final = 3 * 10**11
"""Most coordinates that a greedy choice reads (n·d·p) unless requested: half a minute of one core."""
MOST_HELD: Final = 2**30
"""Most bytes that it holds unless requested."""
_READ_PER_SECOND: Final = 10**10
"""Coordinates per second, on one core that does other work, too."""
_IN_MEMORY: Final = 2**29
"""Most bytes of φ that are held in memory; more go to a file."""
_PRICED_BYTES: Final = 20
"""Bytes of memory for a coordinate if points have prices: they are compared in float32, in tables that double
as they grow.
"""

UNLIKE_LEVEL: Final = 0.01
"""Largest share of pairs of sets of one distribution that `unlike` takes for unlike ones."""
_PERMUTATIONS: Final = 199


@figures(frozen=True, slots=True)
class NotComputed(Figures):
    """A figure that the operator left out.

    Attributes:
        figure: Its name in `choices`.
        why: The reason, and how to have it computed all the same; for people.
    """

    figure: str
    why: str


@dataclass(frozen=True)
class Baselines:
    """The quality of p points when nothing is private, and when nobody chooses; without the seed set.

    Attributes:
        greedy: The greedy choice among the union of all owners, by exact embeddings.
        uniform: p/K points drawn at random from each owner.
        uniform_model: The consumer's model with the points of the uniform choice in place of a purchase.
        greedy_by_round: MMD² of the first 1, 2, … points of the greedy choice against D_v.
        uniform_by_round: The same of the uniform one in a random order, in which any first points are a
            uniform choice too.
        test_unlike: Whether the test points are `unlike` D_v; None: there are none.
        not_computed: Figures that are left out; their fields above are empty.
    """

    greedy: Judgement
    uniform: Judgement
    uniform_model: ModelFigures = NO_MODEL
    greedy_by_round: tuple[float, ...] = ()
    uniform_by_round: tuple[float, ...] = ()
    test_unlike: bool | None = None
    not_computed: tuple[NotComputed, ...] = ()


def evaluate(
    owners: Mapping[str, Rows],
    validation: Rows,
    seed_set: Points,
    feature_map: FeatureMap,
    *,
    p: int,
    seed: int,
    test: Rows | None = None,
    model: str = MODEL,
    ridge: float = RIDGE,
    label_weight: float = LABEL_WEIGHT,
    session: Session | None = None,
    with_greedy: bool | None = None,
    told: Told | None = None,
    training: Training = train_here,
    models: bool = True,
) -> Baselines:
    """The baselines of a run.

    Args:
        owners: Raw features and labels of each, by name.
        validation: D_v: raw features, and labels if it has any.
        seed_set: D_init, raw, shape (n, c).
        p: Points to choose.
        seed: Seed of the uniform choice and of the model (`hushbid.consumer.learners.MODELS`).
        test: Test points for the model; None, or without labels: no accuracies.
        ridge: λ of the choices' weights, in which labels have the strength `label_weight`.
        session: The session, whose prices and turns govern the greedy choice. It may say that labels are
            amounts.
        with_greedy: Whether the greedy choice is made; None: unless it is `too_large`.
        told: Called as the work goes on.
        training: Trains the models of both choices.
        models: Whether the consumer's model is judged with the uniform choice (`Judge`).

    Returns:
        No figures, and empty curves, if the owners have no point at all.

    Raises:
        ConfigError: There is no such model.
        DataError: `feature_map` cannot take a point, or there is no room for the features of a greedy choice.
    """
    space, generator = feature_map.space, np.random.default_rng(seed)
    tell = told or (lambda _what, _share: None)
    drawn = uniform({name: len(table) for name, table in owners.items()}, p, generator)
    if not drawn:
        return Baselines(Judgement(), Judgement())
    # It is ordered by owner; to judge its first points it needs an order independent of owners.
    shuffled = [drawn[place] for place in generator.permutation(len(drawn))]
    target = space.scale(validation.features)
    judge = Judge(
        target,
        space.gamma,
        test=None if test is None else (space.scale(test.features), _known(test)),
        model=model,
        seed=seed,
        ridge=ridge,
        wanted_labels=_known(validation),
        label_weight=label_weight,
        amounts=None if session is None else session.file.labels_are_amounts,
        models=models,
    )

    if judge.wanted_labels is None and (judge.test is None or judge.test[1] is None):
        training = train_here  # nothing is trained

    def taken(selection: Selection) -> tuple[Points, list[int | float | str | None]]:
        labels = [_label(owners[name], row) for name, row in selection]
        return space.scale(_features(owners, selection)), labels

    def curve(order: Selection) -> tuple[float, ...]:
        return tuple(mmd2_curve(space.scale(_features(owners, order)), target, space.gamma).tolist())

    tell(AT_RANDOM, None)
    random, labels = taken(drawn)
    uniform_judged, uniform_model = training(partial(_judged, judge, random, labels))
    by_round = curve(shuffled)
    other = None if test is None else unlike(space.scale(test.features), target, space.gamma)

    rows = sum(len(table) for table in owners.values())
    why = _why_no_greedy(with_greedy, rows, space.dimension, p, session)
    if why:
        left_out = (NotComputed("greedy", why),)
        return Baselines(Judgement(), uniform_judged, uniform_model, (), by_round, other, left_out)
    best = _greedy_among(owners, validation, seed_set, feature_map, p, session, tell)
    greedy_judged = training(partial(judge.judge, *taken(best)))
    return Baselines(greedy_judged, uniform_judged, uniform_model, curve(best), by_round, other)


def _judged(judge: Judge, points: Points, labels: Labels) -> tuple[Judgement, ModelFigures]:
    """A choice of points, and the consumer's model with them."""
    judged, matching = judge.weighed(judge.quality(points, labels), points, labels)
    return judged, judge.model_figures(points, labels, matching)[0]


def _why_no_greedy(wanted: bool | None, rows: int, dimension: int, p: int, session: Session | None) -> str:
    if wanted is not None:
        return "" if wanted else "`run.greedy` is false"
    large = too_large(rows, dimension, p, session)
    return f"{large}; `run.greedy = true` has it computed all the same" if large else ""


def too_large(rows: int, dimension: int, p: int, session: Session | None = None) -> str:
    """Why a greedy choice of p among so many rows is too costly to be made unasked; empty: it is not."""
    coordinates = rows * dimension
    if session is None or session.file.wishes is None:
        held = coordinates + min(2 * coordinates, _IN_MEMORY)
    else:
        held = _PRICED_BYTES * coordinates
    if coordinates * p <= MOST_READ and held <= MOST_HELD:
        return ""
    minutes = max(1, round(coordinates * p / _READ_PER_SECOND / 60))
    long = "a minute" if minutes == 1 else f"{minutes:,} minutes"
    return f"among {rows:,} rows it takes about {long} of a core and {held / 1e9:.1f} GB"


def _greedy_among(
    owners: Mapping[str, Rows],
    validation: Rows,
    seed_set: Points,
    feature_map: FeatureMap,
    p: int,
    session: Session | None,
    tell: Told,
) -> Selection:
    """The greedy choice of raw points; a large table of φ goes to a file."""
    names = sorted(owners)
    sizes = np.array([len(owners[name]) for name in names])
    shape = int(sizes.sum()), feature_map.space.dimension
    large = math.prod(shape) * np.dtype(np.int16).itemsize > _IN_MEMORY
    features = room_for_features(
        "the greedy choice",
        shape,
        scratch=Path(tempfile.gettempdir()) if large else None,  # looking for that place writes a file
        memory_limit=_IN_MEMORY,
    )
    done = 0
    for name in names:
        raw, labels = owners[name].features, _known(owners[name])
        for start, stop in row_chunks(raw):
            part = one_each(None if labels is None else labels[start:stop], stop - start)
            features[done : done + stop - start] = feature_map.hash(raw[start:stop], part)
            done += stop - start
            let_go(raw)
            let_go(features)
    table = _table(features, sizes, feature_map.space.norm_bound, session)
    wanted = feature_map.hash(validation.features, _labels(validation))
    return _greedily(table, names, sizes, wanted, hash_seed_set(feature_map, seed_set), p, session, tell)


def unlike(first: Points, second: Points, gamma: float) -> bool:
    """Whether two sets differ in distribution, by a permutation test of their MMD² (Gretton et al. 2012).

    Among sets of one distribution, a share of at most `UNLIKE_LEVEL` is called unlike: the MMD² must exceed
    nearly all of those of `_PERMUTATIONS` random splits of both, drawn with a fixed seed. If a set is large,
    a thousand of its rows are compared (`at_even_distances`).

    Args:
        first: Scaled, shape (n, columns), at least one row.
        second: Scaled, shape (m, columns), at least one row.
        gamma: γ.
    """
    first, second = at_even_distances(first), at_even_distances(second)
    kernel = kernel_matrix(np.concatenate([first, second]), gamma)
    signs = np.repeat([1.0 / len(first), -1.0 / len(second)], [len(first), len(second)])
    generator = np.random.default_rng(0)
    parted = np.stack([signs, *(generator.permutation(signs) for _ in range(_PERMUTATIONS))], axis=1)
    found = np.einsum("ip,ip->p", parted, kernel @ parted)
    as_large = int((found[1:] >= found[0] - 1e-12).sum())  # sums in another order differ by rounding
    return (1 + as_large) / (1 + _PERMUTATIONS) <= UNLIKE_LEVEL


def _features(owners: Mapping[str, Rows], selection: Selection) -> Points:
    return np.stack([owners[name].features[row] for name, row in selection])


def _label(rows: Rows, row: int) -> int | float | str | None:
    if rows.labels is None or (
        isinstance(rows, Dataset) and rows.labelled is not None and not rows.labelled[row]
    ):
        return None
    label: int | float | str = rows.labels[row].item()
    return label


def _labels(rows: Rows) -> Labels:
    """Labels as a feature map takes them."""
    return one_each(_known(rows), len(rows))


def _known(rows: Rows) -> Labels | None:
    """Labels, None where a row has none."""
    return rows.known if isinstance(rows, Dataset) else rows.labels


def greedy(
    owners: Mapping[str, Features],
    validation: Features,
    seed_set: Features,
    p: int,
    norm_bound: float,
    session: Session | None = None,
) -> Selection:
    """The non-private greedy choice of Kim et al. (2016) (DPDS §4, baseline a), among the union of owners.

    Each round adds the candidate of the largest g̃ᵀφ(x) - q/(q+1)·gᵀφ(x), where g̃ and g are the exact mean
    embeddings of D_v and of the q points so far, seed set included (DESIGN §1, first row of the table).
    Weights are rounded to the grid and ties broken as the protocol does, so this is what a session with the
    `exact` release and a rule that always gets the best point selects.

    Args:
        owners: φ of each owner's rows, by name.
        validation: φ of D_v, at least one row.
        seed_set: φ of D_init; may be empty.
        p: Points to choose.
        norm_bound: At least the largest ‖φ‖.
        session: If it has wishes: gain per price decides then, and owners take turns.
    """
    names = sorted(owners)  # the order by which the protocol breaks ties between owners
    sizes = np.array([len(owners[name]) for name in names])
    table = _table(np.concatenate([owners[name] for name in names]), sizes, norm_bound, session)
    return _greedily(table, names, sizes, validation, seed_set, p, session, lambda _what, _share: None)


def _greedily(
    table: scoring.Points | scoring.Pool,
    names: Sequence[str],
    sizes: npt.NDArray[np.intp],
    validation: Features,
    seed_set: Features,
    p: int,
    session: Session | None,
    tell: Told,
) -> Selection:
    """The greedy choice of a table with the owners' points one owner after another."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # In the order of operations of the `exact` release, so that the weights agree to the last bit.
    target = validation.sum(axis=0, dtype=np.int64) * (FEATURE_UNIT / len(validation))
    total = seed_set.sum(axis=0, dtype=np.int64)
    selection: Selection = []
    for number in range(p):
        tell(GREEDY, number / p)
        q = len(seed_set) + number
        embedding = total * (FEATURE_UNIT / max(q, 1))  # zero without any point
        weights = round_weights(target - q / (q + 1) * embedding)
        if session is None or isinstance(table, scoring.Points):
            found = table.first(weights, 1)
        else:
            turn = number // session.batch + 1
            withheld = np.array([not session.turns.has(name, turn) for name in names])
            found = table.first(weights, 1, withheld=withheld)
        if not found:
            continue
        (best,) = found
        table.withdraw(best.entry)
        total += table.features(best.entry)
        owner = int(np.searchsorted(starts, best.entry, side="right")) - 1
        selection.append((names[owner], best.entry - int(starts[owner])))
    return selection


def _table(
    features: Features, sizes: npt.NDArray[np.intp], norm_bound: float, session: Session | None
) -> scoring.Points | scoring.Pool:
    if session is None or session.file.wishes is None:
        return scoring.Points(features, norm_bound=norm_bound)
    pool = scoring.Pool(features.shape[1], norm_bound=norm_bound, prices=session.prices)
    pool.extend(features, np.repeat(np.arange(len(sizes)), sizes))
    return pool


def uniform(sizes: Mapping[str, int], p: int, generator: np.random.Generator) -> Selection:
    """p/K rows of each owner at random, without replacement (DPDS §4, baseline c).

    The remainder of p/K, and points that an owner lacks, fall to the owners that have rows left, one each at
    a time, in the order of their names.
    """
    names = sorted(sizes)
    shares = dict.fromkeys(names, 0)
    missing = min(p, sum(sizes.values()))
    while missing:
        able = [name for name in names if shares[name] < sizes[name]]
        for name in able[:missing]:
            more = min(max(1, missing // len(able)), sizes[name] - shares[name])
            shares[name] += more
        missing = min(p, sum(sizes.values())) - sum(shares.values())
    return [
        (name, int(row))
        for name in names
        for row in generator.choice(sizes[name], size=shares[name], replace=False)
    ]
