"""The proposals of `hushbid advise`: γ, d, p, b, ε and δ of a session, each with its reason.

A session file is public, and no ε covers settings in it that were read off the validation set. So every
proposal states its source. Public rows of the same kind, where given, replace D_v in every computation, and
only D_v's size enters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field
from pydantic.dataclasses import dataclass as figures
from scipy.spatial.distance import pdist

from hushbid.advice.labels import LabelTrial, labels_of, tried
from hushbid.advice.trials import DIMENSION, MOST, Bounds, Request, Trial, Trials
from hushbid.consumer.answers import Word, said
from hushbid.consumer.party import check_disjoint
from hushbid.consumer.verdict import ALIKE, UNLIKE, Rehearsal
from hushbid.plan.rehearsal import FEWEST, rehearse
from hushbid.plan.tables import too_many_for_a_tender
from hushbid.plan.wanted import check_share, wanted_of
from hushbid.protocol import ranges
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, check_dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.intervals import stated, within
from hushbid.protocol.privacy.acquisition import herds

__all__ = ["GRID", "Advice", "Proposal", "advise", "median_gamma"]

GRID: Final = (0.1, 0.3, 1.0, 3.0)
"""Values of ε to try."""
CHOICE: Final = 10
"""Points that owners have per point bought."""
LARGEST_PURCHASE: Final = 1_000
"""The settings of measured sessions; more points cost time and weights, and do not sharpen the target."""
TENDER_DIMENSIONS: Final = (1_024, 512, 256)
"""d of a tender, whose noise does not grow with it; a larger d gains nothing reliably
(docs/experiments.md).
"""
TENDER_BYTES: Final = 2**30
"""The most memory that φ of all submissions may take at the curator, unless d is given."""
LARGEST_DELTA: Final = 1e-5
MARGIN: Final = 0.1
"""Margin of bounds on either side of public rows, as a share of their range."""
PAIRED_ROWS: Final = 1_500
"""The most rows that enter the median of distances; a larger set is sampled."""

_TELLS: Final = {
    "γ": "γ, the median squared distance of its rows to a factor of 1.4 either way",
    "ε": f"ε, which of {len(GRID)} values was enough",
}

_Rows: TypeAlias = npt.NDArray[np.float64]
Source: TypeAlias = Literal["given", "public", "seed set", "validation"]
"""The source of a value: an option, public facts, the seed set, which no ε protects, or D_v."""


@figures(frozen=True, slots=True)
class Proposal(Figures):
    """One setting as people call it (γ, d, …), its value, the reason in one sentence, and its source."""

    setting: str
    value: Any
    why: str
    source: Annotated[Source, Field(alias="from")]


@figures(frozen=True, slots=True, kw_only=True)
class Advice(Figures):
    """A proposal with its reasons.

    Attributes:
        trials: The settings that were tried; the first is the proposal.
        effect: The requested ratio; None: ε was given.
        own: The outcome with D_v itself, if public rows stood for it, or if labels take part.
        labels: The model with labels in the selection and without, if public rows decided.
        verdict: The verdict on the proposal that `preflight` and `consumer` give, or else `hushbid plan`.
        by_rule: Whether the verdict is the rule of thumb's, as nothing was rehearsed.
        public: Whether public rows stood for D_v.
    """

    TOLD: ClassVar[Mapping[str, str]] = {
        "reached": "reached",
        "called": "called",
        "disclosed": "disclosed",
        "disclosure": "disclosure",
    }

    proposals: Annotated[tuple[Proposal, ...], Field(alias="settings")]
    trials: tuple[Trial, ...]
    effect: float | None
    own: Rehearsal | None
    labels: LabelTrial | None
    verdict: Word
    reason: str
    by_rule: bool
    notes: tuple[str, ...]
    public: bool = False

    @property
    def reached(self) -> bool:
        """Whether the requested effect was reached, if there was one."""
        return self.effect is None or self.trials[0].ratio <= self.effect

    @property
    def called(self) -> str:
        """The verdict for people; if it is the rule of thumb's, in the words of `hushbid plan`."""
        return said(self.verdict, by_rule=self.by_rule)

    @property
    def disclosed(self) -> list[str]:
        """Settings that follow from the validation set: once public, they reveal something of it."""
        return [proposal.setting for proposal in self.proposals if proposal.source == "validation"]

    @property
    def disclosure(self) -> str:
        if not self.disclosed:
            return ""
        told = "; ".join(_TELLS[setting] for setting in self.disclosed)
        verb = "follows" if len(self.disclosed) == 1 else "follow"
        return (
            f"{' and '.join(self.disclosed)} {verb} from the validation set. A session file is public, and "
            f"no ε covers what it tells of the set by that: {told}. Where this matters, have public rows "
            "stand for it (--public), or give --gamma and --epsilon."
        )


def advise(request: Request, *, say: Callable[[str], object]) -> tuple[Advice, SessionFile]:
    """Propose a session's settings; `say` receives a line before each rehearsal.

    Returns:
        The advice, and the resulting session, with owners but without keys.

    Raises:
        ConfigError: Nothing determines p or the bounds, or an option is out of its range.
        DataError: No session is possible with the data: one row, equal rows, or values outside the bounds.
        HushbidError: The session that was made cannot be played.
    """
    _check(request)
    bounds = _checked_bounds(request)
    points = _points(request)
    delta = _delta(request)
    searched = request.dimension or DIMENSION
    dimension = _dimension(request, points.value)
    width = _width(request, bounds)
    trials = Trials(request, bounds, points.value, delta.value, say)
    epsilon = _chosen_epsilon(request, trials, width.value, searched)
    proposed = trials.of(width.value, dimension.value, epsilon)
    others = _alternatives(trials, proposed, searched)
    session = trials.session(proposed.gamma, proposed.dimension, proposed.epsilon)
    by_labels, label_trial = _labels(request, trials, session.file, say)
    file = trials.session(proposed.gamma, proposed.dimension, proposed.epsilon).file
    notes = _notes(request, trials, proposed)
    own = _own_view(request, trials, proposed, say)
    verdict, reason, by_rule = trials.verdict(proposed, own)
    batch_why = f"The default: {file.rounds} rounds; fewer cost quality, and more cost time."
    submits = []
    if file.herds:
        why = "The default, p: what is wanted may lie with one owner, and the curator chooses p of all."
        submits = [Proposal("submission", file.submission, why, "public")]
        batch_why = "The default: what a message of a submission has room for."
    advice = Advice(
        proposals=(
            _bounds_proposal(request, bounds),
            _with_kernel(width, proposed),
            _with_chance(dimension, trials),
            points,
            Proposal("b", file.batch, batch_why, "public"),
            *submits,
            _epsilon_proposal(request, trials, proposed),
            delta,
            _seed_proposal(request),
            *([] if by_labels is None else [by_labels]),
        ),
        trials=(proposed, *others),
        effect=None if request.epsilon is not None else trials.effect,
        own=own,
        labels=label_trial,
        verdict=verdict,
        reason=reason,
        by_rule=by_rule,
        notes=tuple(notes),
        public=request.public is not None,
    )
    return advice, file


# -- the source of each setting ---------------------------------------------------------------------------


def _check(request: Request) -> None:
    if len(request.validation) < 2:
        raise DataError(
            f"{request.validation.name} holds fewer than two rows, too few to resemble.",
            advice=f"Take {FEWEST} rows or more; hundreds are usual.",
        )
    values = request.column_values
    if values is not None and not within(ranges.ColumnValues, values):
        least, most = stated(ranges.ColumnValues).whole
        raise ConfigError(f"--column-values is {values}.", advice=f"Give {least} to {most}.")
    for name, kind, value in (
        ("--gamma", ranges.Gamma, request.gamma),
        ("--epsilon", ranges.Epsilon, request.epsilon),
        ("--effect", ranges.Positive, request.effect),
    ):
        if value is not None and not within(kind, value):
            raise ConfigError(f"{name} is {value:g}.", advice="Give a positive number, or leave it out.")
    if request.epsilon is not None and request.effect is not None:
        raise ConfigError(
            "--epsilon fixes the noise, and --effect asks for the largest acceptable noise.",
            advice="Give one of them.",
        )


def _checked_bounds(request: Request) -> Bounds:
    bounds, columns = request.bounds, request.validation.features.shape[1]
    if bounds is None and request.public is None:
        raise ConfigError(
            "The bounds of the columns are missing. They are public, so they are not read off the "
            "validation set.",
            advice="Give --lower and --upper, by the meaning of the columns; or public rows with --public.",
        )
    chosen = _bounds_of(request.public) if bounds is None and request.public is not None else bounds
    assert chosen is not None, "one of them is there"
    _check_bounds(chosen, columns)
    for dataset in (request.validation, request.public, request.seed_set):
        if dataset is None:
            continue
        try:
            schema = None if dataset is request.seed_set else request.schema
            check_dataset(dataset, columns=columns, lower=chosen.lower, upper=chosen.upper, schema=schema)
        except DataError as error:
            if bounds is not None:
                raise
            raise DataError(
                error.what,
                advice="The bounds are those of the public rows: give wider ones, --lower and --upper.",
            ) from None
    if request.seed_set is not None:
        check_disjoint(request.validation, request.seed_set, column_values=request.column_values)
    return chosen


def _check_bounds(bounds: Bounds, columns: int) -> None:
    for name, ends in (("--lower", bounds.lower), ("--upper", bounds.upper)):
        if isinstance(ends, list) and len(ends) != columns:
            raise ConfigError(
                f"{name} has {len(ends)} values for {columns} feature columns.",
                advice="Give one for all, or one for each, in the order of the columns.",
            )
    if not np.all(np.asarray(bounds.upper) > np.asarray(bounds.lower)):
        raise ConfigError("An upper bound is not above its lower bound.", advice="Correct the bounds.")


def _bounds_of(public: Dataset) -> Bounds:
    """Bounds of public rows: a tenth of their range beyond them, rounded outwards.

    Other rows of the kind may lie beyond the public ones; bounds that are slightly too wide cost nothing.
    """
    if not len(public):
        raise DataError(f"{public.name} holds no rows.", advice="Give public rows, or --lower and --upper.")
    low, high = (
        np.asarray(each, dtype=np.float64) for each in (public.features.min(0), public.features.max(0))
    )
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise DataError(
            f"{public.name}: a value is missing or infinite.", advice="Correct it, or remove the row."
        )
    if (single := np.flatnonzero(low == high)).size:
        raise DataError(
            f"{public.name}: feature column {single[0]} (counted from 0) has one value, which "
            "gives no bounds.",
            advice="Give --lower and --upper, from what the columns mean.",
        )
    ends = [_outwards(float(first), float(last)) for first, last in zip(low, high, strict=True)]
    lower, upper = ([end[side] for end in ends] for side in (0, 1))
    return Bounds(_one_if_equal(lower), _one_if_equal(upper))


def _outwards(low: float, high: float) -> tuple[float, float]:
    beyond = MARGIN * (high - low)
    low, high = low - beyond, high + beyond
    digits = math.floor(math.log10(high - low)) - 1
    step = 10.0**digits
    return round(math.floor(low / step) * step, -digits), round(math.ceil(high / step) * step, -digits)


def _one_if_equal(values: list[float]) -> float | list[float]:
    return values[0] if len(set(values)) == 1 else values


def _bounds_proposal(request: Request, bounds: Bounds) -> Proposal:
    value = {"lower": bounds.lower, "upper": bounds.upper}
    if request.bounds is not None:
        whose = "As given" if request.schema is None else "Those of the columns"
        return Proposal("bounds", value, f"{whose}: owners' values outside of them are refused.", "given")
    why = "Those of the public rows and a tenth more: owners' values outside of them are refused."
    return Proposal("bounds", value, why, "public")


def _points(request: Request) -> Proposal:
    available = sum(request.owners.values())
    if request.wanted is not None:
        check_share(request.wanted)
    if request.points is not None:
        if not within(ranges.Points, request.points):
            raise ConfigError(
                f"--points is {request.points}.", advice=f"Give 1 to {stated(ranges.Points).le:,}."
            )
        if available and request.points >= available:
            raise ConfigError(
                f"--points is {request.points:,}, and the owners have {available:,} points in all: all "
                "of them would be bought, and none chosen.",
                advice=f"Buy a tenth of them, {max(1, available // CHOICE):,}, or fewer.",
            )
        return Proposal("p", request.points, "As given.", "given")
    if not request.owners:
        raise ConfigError(
            "The number of points to buy is missing.",
            advice="Give the owners' sizes, as in --owners 5000,3000,800, or --points.",
        )
    if available < CHOICE:
        raise ConfigError(
            f"The owners have {available} points in all, which leaves nothing to choose.",
            advice="Find more owners, or ask them for their sizes again.",
        )
    points = min(available // CHOICE, LARGEST_PURCHASE)
    share = available if request.wanted is None else max(1, int(request.wanted * available))
    why = f"A tenth of the owners' {available:,} points, which leaves enough to choose from."
    if share < points:
        points, why = share, "All wanted points that the owners have: any more would be unwanted ones."
    elif points == LARGEST_PURCHASE:
        why = "The most that sessions were measured with; the owners have enough to choose from."
    return Proposal("p", points, why, "public")


def _delta(request: Request) -> Proposal:
    most = max(len(request.validation), *request.owners.values(), 1)
    delta = min(LARGEST_DELTA, float(f"1e-{math.ceil(math.log10(10 * most))}"))
    why = f"A tenth of 1/{most:,} or less: at δ ≥ 1/n one record in n may be shown in full."
    return Proposal("δ", delta, why, "public")


def _dimension(request: Request, points: int) -> Proposal:
    if request.dimension is not None:
        return Proposal("d", request.dimension, "As given.", "given")
    if herds(request.rule(points)):
        each = 2 * len(request.names) * points
        fitting = [d for d in TENDER_DIMENSIONS if d * each <= TENDER_BYTES]
        if fitting:
            why = (
                f"Up to {TENDER_DIMENSIONS[0]:,}, as long as the features of all that is submitted keep "
                f"within {TENDER_BYTES / 1e9:.1f} GB at the curator: {DIMENSION} comes less close."
            )
            return Proposal("d", fitting[0], why, "public")
    why = "The default: half of it does worse where little is wanted, and no better elsewhere for certain."
    return Proposal("d", DIMENSION, why, "public")


def _width(request: Request, bounds: Bounds) -> Proposal:
    """γ by the median rule, to a power of two: the median pair of rows is then one width apart."""
    if request.gamma is not None:
        return Proposal("γ", request.gamma, "As given", "given")
    rows = request.validation
    source: Source = "validation"
    if request.public is not None:
        rows, source = request.public, "public"
    elif request.seed_set is not None:
        rows, source = request.seed_set, "seed set"
    median, same = _median_distance(rows, bounds)
    gamma = _power_of_two(median)
    pairs = f"{source} rows" + (" of one label" if same else "")
    return Proposal("γ", gamma, f"By the median rule for pairs of {pairs}, to a power of two", source)


def median_gamma(dataset: Dataset, lower: Sequence[float], upper: Sequence[float]) -> float:
    """γ for rows within these bounds, by the median rule as in proposals.

    Raises:
        DataError: All rows are equal.
    """
    return _power_of_two(_median_distance(dataset, Bounds(list(lower), list(upper)))[0])


def _power_of_two(median: float) -> float:
    return float(2.0 ** -round(math.log2(2.0 * median)))


def _median_distance(dataset: Dataset, bounds: Bounds) -> tuple[float, bool]:
    """Median squared distance of two different rows on scaled columns, and whether both have one label.

    Pairs of one label are used where there are at least as many as rows: such pairs should count as alike.
    """
    generator, count = np.random.default_rng(0), len(dataset)
    chosen = generator.permutation(count)[:PAIRED_ROWS]
    rows = _scaled(dataset.features[np.sort(chosen)], bounds)
    distances = pdist(rows, "sqeuclidean")
    same = False
    if dataset.labels is not None and dataset.labelled is None:
        _, labels = np.unique(dataset.labels[np.sort(chosen)], return_inverse=True)
        alike = pdist(labels[:, None], "chebyshev") == 0
        if same := bool((alike & (distances > 0.0)).sum() >= len(rows)):
            distances = distances[alike]
    apart = distances[distances > 0.0]
    if not apart.size:
        raise DataError(
            f"All rows of {dataset.name} are equal, so that no width tells them apart.",
            advice="Take rows that differ, or give --gamma.",
        )
    return float(np.median(apart)), same


def _scaled(rows: npt.NDArray[Any], bounds: Bounds) -> _Rows:
    low, high = (np.asarray(each, dtype=np.float64) for each in (bounds.lower, bounds.upper))
    return np.asarray((rows - low) / (high - low), dtype=np.float64)


def _with_kernel(width: Proposal, proposed: Trial) -> Proposal:
    told = f"{width.why}; two rows have a kernel value of {proposed.kernel:.2g} on average."
    return replace(width, why=told)


def _with_chance(dimension: Proposal, trials: Trials) -> Proposal:
    """The reason for a tender's d, with a word on trials beside it, any of which may show another order."""
    if dimension.source == "given" or dimension.value == DIMENSION or not trials.rehearses:
        return dimension
    told = f"{dimension.why[:-1]} on average, whatever a single trial shows by chance."
    return replace(dimension, why=told)


def _seed_proposal(request: Request) -> Proposal:
    if request.seed_set is not None:
        return Proposal(
            "seed set", request.seed_set.name, "As given; the curator must not guess it.", "given"
        )
    why = "Drawn within the bounds (`seed_points`): a file of related rows of your own does better."
    return Proposal("seed set", request.seed_points, why, "public")


# -- outcomes of the settings -----------------------------------------------------------------------------


def _chosen_epsilon(request: Request, trials: Trials, gamma: float, dimension: int) -> float:
    """The smallest ε of `GRID` that reaches the effect, by bisection; if none does, the best one tried."""
    if request.epsilon is not None:
        return request.epsilon
    low, high = 0, len(GRID)
    while low < high:
        middle = (low + high) // 2
        if trials.of(gamma, dimension, GRID[middle]).ratio <= trials.effect:
            high = middle
        else:
            low = middle + 1
    if low < len(GRID):
        return GRID[low]
    return min(trials.found, key=lambda trial: trial.ratio).epsilon


def _alternatives(trials: Trials, proposed: Trial, searched: int) -> list[Trial]:
    """The other ε that were tried, double and half the width, and another d.

    They are played with the d of the search, as a tender's d takes several times as long.
    """
    gamma, epsilon = proposed.gamma, proposed.epsilon
    other = searched
    if searched == proposed.dimension:
        other = 2 * searched if searched < DIMENSION else searched // 2
    for width in (gamma / 4.0, 4.0 * gamma):
        trials.of(width, searched, epsilon)
    trials.of(gamma, other - other % 2, epsilon)
    return [each for each in trials.found if each is not proposed]


def _epsilon_proposal(request: Request, trials: Trials, proposed: Trial) -> Proposal:
    came = f"the rule of thumb has {proposed.ratio:.2g} of a random choice's MMD²"
    if trials.rehearses:
        came = (
            f"a rehearsal came to {proposed.ratio:.2f} of a random choice's MMD² in the worse of two cases "
            "(1/10 and 1/50 are wanted)"
        )
    source: Source = "public" if request.public is not None or not trials.rehearses else "validation"
    if request.epsilon is not None:
        return Proposal("ε", proposed.epsilon, f"As given: {came}.", "given")
    if proposed.ratio <= trials.effect:
        tried = ", ".join(f"{value:g}" for value in GRID)
        why = f"The smallest of {tried} that suffices: {came}, and {trials.effect:g} was wanted."
    else:
        why = f"The best, but not enough: {came}, and {trials.effect:g} was wanted; 3 is the largest tried."
    return Proposal("ε", proposed.epsilon, why, source)


def _own_view(
    request: Request, trials: Trials, proposed: Trial, say: Callable[[str], object]
) -> Rehearsal | None:
    """The outcome of the proposal with D_v itself; no proposed value depends on it."""
    if (request.public is None and trials.labels is None) or not trials.rehearses:
        return None
    say("Rehearsing the proposal with the validation set itself.")
    rows = request.validation.features[:MOST].astype(np.float64)
    session = trials.session(proposed.gamma, proposed.dimension, proposed.epsilon)
    labels = None if request.validation.known is None else request.validation.known[:MOST]
    return rehearse(session, rows, trials.seeds, labels=labels, looked=trials.looked_at(session, rows))


def _labels(
    request: Request, trials: Trials, file: SessionFile, say: Callable[[str], object]
) -> tuple[Proposal | None, LabelTrial | None]:
    """Whether labels take part in the selection; `trials.labels` then states it. None: D_v has no labels.

    The proposal follows from public rows or from the options, and never from D_v's labels.
    """
    public = request.public
    section = request.labels or (None if public is None else labels_of(public))
    if request.choice == "features":
        return Proposal("labels", "no part", "As given: points are chosen by their features.", "given"), None
    if request.validation.known is None:
        if request.choice == "labels":
            raise DataError(
                f"{request.validation.name} has no labels, so points cannot be chosen by them.",
                advice="Name their column (--label), or choose by features.",
            )
        return None, None
    if request.choice == "labels":
        if section is None:
            raise ConfigError(
                "The set of labels is missing. It is public, so it is not read off the validation set.",
                advice="Give --classes or --amounts, or --public rows that have labels.",
            )
        section.check_wanted(request.validation)
        trials.labels = section
        why = "As given: all parties then know that the validation set has labels and the choice uses them."
        return Proposal("labels", "a part", why, "given"), None
    if section is None or public is None or public.known is None:
        why = "The default. Public rows with labels (--public, --label) would say whether they should."
        return Proposal("labels", "no part", why, "public"), None
    found = "nothing was to be rehearsed"
    if trials.rehearses:
        tried_out = tried(file, section, public, len(request.validation), say)
        if isinstance(tried_out, LabelTrial):
            part = "a part" if tried_out.pays else "no part"
            if tried_out.pays:
                section.check_wanted(request.validation)
                trials.labels = section
            return Proposal("labels", part, tried_out.sentence(), "public"), tried_out
        found = tried_out
    why = f"The default: no rehearsal on public rows was possible, as {found}."
    return Proposal("labels", "no part", why, "public"), None


def _called(places: npt.NDArray[np.intp], schema: Schema | None) -> str:
    """The first five of these feature columns: by the names of a table's columns, or by their places."""
    called, counted = [str(place) for place in places], ", counted from 0"
    if schema is not None:
        names = [column.name for column in schema.columns for _ in range(column.width)]
        called, counted = [*dict.fromkeys(repr(names[place]) for place in places)], ""
    return ", ".join(called[:5]) + (", …" if len(called) > 5 else "") + counted


def _notes(request: Request, trials: Trials, proposed: Trial) -> list[str]:
    notes, features = [], request.validation.features
    single = np.flatnonzero(features.min(axis=0) == features.max(axis=0))
    if single.size:
        verb = "has" if single.size == 1 else "have"
        notes.append(
            f"{single.size} of {features.shape[1]} feature columns {verb} one value in the validation set "
            f"({_called(single, request.schema)}): they tell no rows apart."
        )
    if not UNLIKE <= proposed.kernel <= ALIKE:
        notes.append(
            f"The mean kernel value of two rows is {proposed.kernel:.2g}, at which MMD² says little: take "
            "bounds about as wide as the data, or another γ."
        )
    if not trials.rehearses:
        why = "it was to be left out"
        if request.rehearse:
            why = f"it is for {FEWEST} to {MOST:,} rows, and up to {MOST:,} points"
        notes.append(f"Nothing was rehearsed: {why}. `hushbid plan` says what its rule of thumb assumes.")
    elif len(request.validation) > MOST:
        notes.append(f"The rehearsal took {MOST:,} rows, so the noise looks larger than it will be.")
    if not request.in_rounds and (told := too_many_for_a_tender(trials.points)):
        notes.append(told)
    if request.wanted is not None:
        drowned = proposed.rehearsal is not None and proposed.rehearsal.word == "hopeless"
        available = sum(request.owners.values()) or trials.points
        said = wanted_of(request.wanted, points=trials.points, available=available, drowned=drowned)
        notes.append(said.says)
    return notes
