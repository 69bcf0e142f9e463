"""The best of many points under a weight: exactly, and in one total order (DESIGN §1, "Exact scores").

The order is: higher score first (wᵀφ, plus jitter if the session has it), then smaller bytes of φ, then
smaller rank (the owner's position among the sorted names), then the older entry. If a point of several owners
counts once (`hushbid.protocol.space.copies`), its place among equal points replaces the last two. If points
have prices (`hushbid.protocol.space.prices`), the score for the price replaces the score; among the points of
one owner, which have one price, that is the same order. The order depends only on the points themselves, as
the lemma behind the sensitivity of 2 needs.

A screen (`hushbid.protocol.space.shortlist`) finds the few points that can be the best; these are compared
exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hushbid.protocol import limits
from hushbid.protocol.errors import LocalProtocolError
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.grid import FEATURE_BITS, Features, Scores, Totals, Weights, exact_scores
from hushbid.protocol.space.herding import Valued, herd, shortlisted, whole_numbers
from hushbid.protocol.space.jitter import LARGEST_JITTER, Jitter, Jitters
from hushbid.protocol.space.prices import Prices
from hushbid.protocol.space.shortlist import FixedScreen, GrowingScreen, Screened
from hushbid.protocol.space.terms import NO_TERMS, Purse, Terms

_T = TypeVar("_T", bound=np.generic)

__all__ = ["NO_SCORE", "Best", "Points", "Pool", "score_bound"]

NO_SCORE: Final = -(2**63)
"""Below every score, for a missing point."""

_SMALLEST: Final = 256
_ROUNDING: Final = 2.0**-50
"""Relative rounding error of a few float64 operations is less than this."""
_EXACT_ROWS: Final = 4096
"""Rows compared exactly at a time."""


class Best(NamedTuple):
    """The first entry in the total order."""

    entry: int
    """Its number, counted from 0 in order of arrival."""
    score: int
    """In units of 2^-37."""


class _Withdrawals:
    """The entries that are out for good."""

    def __init__(self) -> None:
        self._entries = np.zeros(_SMALLEST, dtype=np.intp)
        self._known: set[int] = set()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, entry: int) -> bool:
        return entry in self._known

    def add(self, entry: int) -> None:
        if entry in self._known:
            raise LocalProtocolError(f"Entry {entry} was withdrawn before.")
        if len(self._known) == len(self._entries):
            self._entries = np.concatenate([self._entries, np.zeros_like(self._entries)])
        self._entries[len(self._known)] = entry
        self._known.add(entry)

    @property
    def entries(self) -> npt.NDArray[np.intp]:
        return self._entries[: len(self._known)]


class Points:
    """An owner's points, which are withdrawn as they are handed over.

    Args:
        features: int16 of shape (n, d), in units of 2^-15; may be memory-mapped.
        norm_bound: At least the largest ‖φ‖ (`FeatureMap.norm_bound`).
    """

    def __init__(self, features: Features, *, norm_bound: float, jitter: Jitter | None = None) -> None:
        self._features = features
        self._norm_bound = norm_bound
        self._jitters = None if jitter is None else jitter.of(features)
        self._withdrawn = _Withdrawals()

    def __len__(self) -> int:
        return len(self._features)

    @cached_property
    def _screen(self) -> FixedScreen:
        return FixedScreen(self._features, norm_bound=self._norm_bound)

    def prepare(self) -> None:
        """Make now what `first` needs, a byte a coordinate; otherwise its first call makes it."""
        _ = self._screen

    def features(self, entry: int) -> Features:
        """φ of an entry, int16 of shape (d,), read-only."""
        return _read_only(self._features[entry])

    def rows(self, entries: npt.NDArray[np.intp]) -> Features:
        """φ of entries, withdrawn or not: int16 of shape (n, d)."""
        rows: Features = self._features[entries]
        return rows

    def scores(self, entries: npt.NDArray[np.intp], weights: Weights) -> Scores:
        """Exact scores of entries, withdrawn or not, with their jitter: int64 of shape (n,)."""
        if self._jitters is None:
            return exact_scores(self._features[entries], weights)
        scores: Scores = exact_scores(self._features[entries], weights[:-1])
        if weights[-1]:
            scores += int(weights[-1]) * self._jitters[entries]
        return scores

    def withdraw(self, entry: int) -> None:
        """Take an entry out for good; raises `LocalProtocolError` if it was out already."""
        self._withdrawn.add(entry)

    def herd(self, values: Valued, mean: Totals, count: int) -> tuple[int, ...]:
        """Entries that are not withdrawn, chosen by running sums (`hushbid.protocol.space.herding`).

        Those that are withdrawn were chosen before them, for the same mean. Of more than `MOST_WEIGHED`, a
        part is compared (`shortlisted`).

        Args:
            mean: a, shape (width,).
            count: The most to choose.
        """
        left = np.ones(len(self._features), dtype=np.bool_)
        left[self._withdrawn.entries] = False
        found = shortlisted(values, mean, self._features, np.flatnonzero(left))
        features: Features = np.asarray(self._features[found])
        before = whole_numbers(values, np.asarray(self._features[self._withdrawn.entries]))
        count = min(count, limits.MAX_HERDED - len(before))
        chosen = herd(values, mean, count, features=features, before=before)
        return tuple(found[list(chosen)].tolist())

    def first(
        self, weights: Weights, count: int, *, tie: Callable[[Features], Any] | None = None
    ) -> tuple[Best, ...]:
        """The first entries in the total order that are not withdrawn, in order.

        Args:
            weights: As broadcast, in units of 2^-22: shape (d,), or (d + 1,) with jitter.
            count: The most to return.
            tie: Orders points of equal score in place of the bytes of φ: a function of φ, int16 of shape
                (d,).
        """
        available = len(self._features) - len(self._withdrawn)
        if available == 0:
            return ()
        weights, added = _parted(weights, self._jitters)
        screened = _jittered(self._screen.screen(weights), added)
        whole = screened.scores.dtype == np.int32
        screened.scores[self._withdrawn.entries] = np.iinfo(np.int32).min if whole else -np.inf
        near = _near_the_top(screened, min(count, available))
        return _first(near, count, self._features, weights, added, lambda entry: (entry,), tie=tie)


class Pool:
    """Points of several owners that arrive one by one; an owner's points can be withheld for a time.

    Args:
        norm_bound: At least the largest ‖φ‖ (`FeatureMap.norm_bound`).
        copies: If a point of several owners counts once; None: it counts for each of them.
        prices: Prices of owners' points; None: only scores decide.
    """

    def __init__(
        self,
        dimension: int,
        *,
        norm_bound: float,
        jitter: Jitter | None = None,
        copies: Copies | None = None,
        prices: Prices | None = None,
    ) -> None:
        self._features: Features = np.zeros((_SMALLEST, dimension), dtype=np.int16)
        self._ranks = np.zeros(_SMALLEST, dtype=np.intp)
        self._jitter = jitter
        self._copies = copies
        self._prices = prices
        self._jitters: Jitters = np.zeros(_SMALLEST, dtype=np.int64)
        self._count = 0
        self._screen = GrowingScreen(dimension, norm_bound=norm_bound)
        self._withdrawn = _Withdrawals()

    def __len__(self) -> int:
        return self._count

    def features(self, entry: int) -> Features:
        """φ of an entry, int16 of shape (d,), read-only."""
        return _read_only(self._features[entry])

    def rows(self, entries: Sequence[int]) -> Features:
        """φ of entries, withdrawn or not: int16 of shape (n, d)."""
        rows: Features = self._features[np.array(entries, dtype=np.intp)]
        return rows

    def extend(self, features: Features, ranks: npt.NDArray[np.intp], jitters: Jitters | None = None) -> None:
        """Add points, numbered on from the existing ones. A copy of a withdrawn point is withdrawn.

        Args:
            features: φ, int16 of shape (n, d).
            ranks: Ranks of their owners, shape (n,).
            jitters: Their jitter where it is known, shape (n,); None: it is computed.
        """
        if not len(ranks):
            return
        first, self._count = self._count, self._count + len(ranks)
        if self._count > len(self._ranks):
            room = max(self._count, 2 * len(self._ranks))
            self._features = _grown(self._features, first, room)
            self._ranks = _grown(self._ranks, first, room)
            self._jitters = _grown(self._jitters, first, room)
        if self._jitter is not None:
            self._jitters[first : self._count] = self._jitter.of(features) if jitters is None else jitters
        self._features[first : self._count] = features
        self._ranks[first : self._count] = ranks
        if self._copies is None:
            return
        for entry in self._copies.extend(features, ranks):
            if self._copies.same_as(entry)[0] in self._withdrawn:
                self._withdrawn.add(entry)

    def _screened(self, weights: Weights) -> Screened:
        """Approximate scores of all entries. Points that are herded are never screened, nor kept for it."""
        self._screen.extend(self._features[len(self._screen) : self._count])
        return self._screen.screen(weights)

    def withdraw(self, entry: int) -> None:
        """Take an entry and its copies out for good; raises `LocalProtocolError` if it was out already."""
        for each in (entry,) if self._copies is None else self._copies.same_as(entry):
            self._withdrawn.add(each)

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        """The first available entries in the total order, in order.

        Args:
            weights: As broadcast, in units of 2^-22: shape (d,), or (d + 1,) with jitter.
            count: The most to return.
            withheld: Per rank, whether its entries are unavailable this time; None: all are available.
        """
        if len(self._withdrawn) == self._count:
            return ()
        jitters = None if self._jitter is None else self._jitters[: self._count]
        weights, added = _parted(weights, jitters)
        screened = _jittered(self._screened(weights), added)
        screened.scores[self._withdrawn.entries] = -np.inf
        if withheld is not None:
            screened.scores[withheld[self._ranks[: self._count]]] = -np.inf
        available = np.isfinite(screened.scores)
        if self._copies is not None:
            screened.scores[self._copies.repeated(available)] = -np.inf
        left = int(np.isfinite(screened.scores).sum())
        if left == 0:
            return ()
        prices, worth, most = self._prices, None, min(count, left)
        if prices is None:
            near = _near_the_top(screened, most)
        else:
            ranks = self._ranks[: self._count]
            near = _near_by_price(screened, most, prices, ranks)
            worth = lambda entry, score: prices.per_price(score, int(ranks[entry]))  # noqa: E731
        found = _first(near, count, self._features, weights, added, self._last_resort, worth)
        if self._copies is None:
            return found
        copies = self._copies
        return tuple(
            Best(copies.seller(best.entry, self._features[best.entry], available), best.score)
            for best in found
        )

    def herd(
        self,
        values: Valued,
        mean: Totals,
        count: int,
        *,
        withheld: npt.NDArray[np.bool_] | None = None,
        terms: Terms = NO_TERMS,
    ) -> tuple[int, ...]:
        """Available entries, chosen by running sums (`Points.herd`); a point of several owners counts once.

        Equal points come in the order of their owners, and not of their arrival.

        Args:
            withheld: As `first` takes it.
            terms: Prices, a budget and caps that the choice keeps; those of the pool are not used.
        """
        ranks, copies = self._ranks[: self._count], self._copies
        available = np.ones(self._count, dtype=np.bool_)
        available[self._withdrawn.entries] = False
        if withheld is not None:
            available &= ~withheld[ranks]
        entries = np.flatnonzero(available)
        if not len(entries):
            return ()
        entries = entries[np.argsort(ranks[entries], kind="stable")]
        entries = shortlisted(values, mean, self._features, entries)
        features = self._features[entries]
        row_of = {entry: row for row, entry in enumerate(entries.tolist())}

        def seller(row: int, offered: npt.NDArray[np.bool_]) -> int:
            assert copies is not None
            whole = np.zeros(self._count, dtype=np.bool_)
            whole[entries[offered]] = True
            return row_of[copies.seller(int(entries[row]), features[row], whole)]

        purse = Purse(
            terms, ranks[entries], copies=None if copies is None else copies.points(entries), seller=seller
        )
        chosen = herd(values, mean, count, features=features, purse=purse)
        return tuple(entries[list(chosen)].tolist())

    def _last_resort(self, entry: int) -> tuple[int, ...]:
        """The order of entries of equal φ."""
        if self._copies is not None:
            return (self._copies.place(entry),)
        return int(self._ranks[entry]), entry

    def best_scores(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> Scores:
        """The highest exact score of each rank's available entries, in a session without jitter.

        Args:
            weights: Shape (d,), in units of 2^-22.

        Returns:
            int64 of shape (count,), in units of 2^-37; `NO_SCORE` if nothing is available.
        """
        found = np.full(count, NO_SCORE, dtype=np.int64)
        screened = self._screened(weights)
        ranks = self._ranks[: self._count]
        available = np.ones(self._count, dtype=np.bool_)
        available[self._withdrawn.entries] = False
        if withheld is not None:
            available &= ~withheld[ranks]
        tops = np.full(count, -np.inf)
        np.maximum.at(tops, ranks[available], screened.scores[available] * screened.scale)
        available &= screened.scores * screened.scale >= (tops - 2.0 * screened.error)[ranks]
        near = np.flatnonzero(available)
        for start in range(0, len(near), _EXACT_ROWS):
            entries = near[start : start + _EXACT_ROWS]
            np.maximum.at(found, ranks[entries], exact_scores(self._features[entries], weights))
        return found


def score_bound(weights: Weights, coordinate_bound: float, jitter: Jitter | None) -> int:
    """Upper bound on the magnitude of scores under a weight, in units of 2^-37; at least 1.

    It follows from public numbers and the weight by integer arithmetic, so it is the same for everybody.

    Args:
        weights: As broadcast, in units of 2^-22: shape (d,), or (d + 1,) with jitter.
        coordinate_bound: At least the largest |φ_i| (`FeatureSpace.coordinate_bound`).
    """
    magnitudes = np.abs(weights.astype(np.int64))
    added = 0 if jitter is None else int(magnitudes[-1]) * LARGEST_JITTER
    length = int((magnitudes if jitter is None else magnitudes[:-1]).sum())
    return length * math.ceil(coordinate_bound * 2**FEATURE_BITS) + added + 1


def _parted(weights: Weights, jitters: Jitters | None) -> tuple[Weights, Scores | None]:
    """The weight of φ, and what jitter adds to each entry's score, if anything."""
    if jitters is None:
        return weights, None
    return weights[:-1], int(weights[-1]) * jitters if weights[-1] else None


def _jittered(screened: Screened, added: Scores | None) -> Screened:
    """The scores plus jitter, as float64."""
    if added is None:
        return screened
    scores = screened.scores.astype(np.float64)
    scores *= screened.scale
    scores += added
    # Below 2^53, where these two operations are off by half a unit each at most.
    return Screened(scores, 1.0, screened.error + 1.0)


def _near_the_top(screened: Screened, count: int) -> npt.NDArray[np.intp]:
    """The entries whose exact score may be among the `count` highest; that many are available."""
    scores = screened.scores
    lowest = scores.max() if count == 1 else np.partition(scores, len(scores) - count)[len(scores) - count]
    threshold = float(lowest) - 2.0 * screened.error / screened.scale
    if scores.dtype == np.int32:
        threshold = max(math.floor(threshold), np.iinfo(np.int32).min)
    near: npt.NDArray[np.intp] = np.flatnonzero(scores >= threshold)
    return near


def _near_by_price(
    screened: Screened, count: int, prices: Prices, ranks: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """The entries whose score for the price may be among the `count` highest; that many are available."""
    scores = screened.scores.astype(np.float64) * screened.scale
    slack = screened.error + _ROUNDING * float(np.abs(scores[np.isfinite(scores)]).max())
    lowest = prices.about(scores - slack, ranks)
    threshold = float(np.partition(lowest, len(lowest) - count)[len(lowest) - count])
    near: npt.NDArray[np.intp] = np.flatnonzero(
        prices.about(scores + slack, ranks) >= threshold - _ROUNDING * abs(threshold)
    )
    return near


def _first(
    near: npt.NDArray[np.intp],
    count: int,
    features: Features,
    weights: Weights,
    added: Scores | None,
    last_resort: Any,
    worth: Callable[[int, int], int] | None = None,
    tie: Callable[[Features], Any] | None = None,
) -> tuple[Best, ...]:
    """The first `count` entries `near` the top: `worth` of entry and score, then `tie` of φ or its bytes."""
    exact = np.concatenate(
        [
            exact_scores(features[near[start : start + _EXACT_ROWS]], weights)
            for start in range(0, len(near), _EXACT_ROWS)
        ]
    )
    if added is not None:
        exact += added[near]
    if worth is None and len(near) > count:
        lowest = np.partition(exact, len(exact) - count)[len(exact) - count]
        near, exact = near[exact >= lowest], exact[exact >= lowest]
    scores = dict(zip(near.tolist(), exact.tolist(), strict=True))
    if len(scores) == 1:
        return tuple(map(Best._make, scores.items()))
    firsts = scores if worth is None else {entry: worth(entry, score) for entry, score in scores.items()}
    tie = tie or np.ndarray.tobytes
    if len(set(firsts.values())) == len(firsts):
        entries = sorted(firsts, key=firsts.__getitem__, reverse=True)  # as a rule there is no tie
    else:
        entries = sorted(
            scores, key=lambda entry: (-firsts[entry], tie(features[entry]), *last_resort(entry))
        )
    return tuple([Best(entry, scores[entry]) for entry in entries[:count]])


def _grown(table: npt.NDArray[_T], used: int, room: int) -> npt.NDArray[_T]:
    """A table with room for so many rows, of which the first are those in use."""
    grown = np.zeros((room, *table.shape[1:]), dtype=table.dtype)
    grown[:used] = table[:used]
    return grown


def _read_only(row: Features) -> Features:
    view: Features = row.view(np.ndarray)
    view.flags.writeable = False
    return view
