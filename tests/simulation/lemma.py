"""The game behind the lemma of DESIGN §1: fixed releases, one more record, and by what S differs.

A case fixes the broadcast weights, who bids late or is gone when, and the order of bids. It is played twice
with the real curator machine: with D, and with D' = D + {x}. Then S' is S, or S with at most one point
replaced by another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.grid import Features, Weights
from hushbid.protocol.space.jitter import Jitter, Jitters, scores_of
from hushbid.protocol.space.labels import LabelCode
from hushbid.protocol.space.prices import Prices
from hushbid.protocol.space.scoring import Best, Pool
from hushbid.protocol.wire.blind import SealedBroadcast
from hushbid.protocol.wire.messages import Ask, Batch, Bid, Broadcast
from tests.simulation.harness import (
    MAP,
    MAP_SEED,
    CuratorBench,
    Player,
    corners,
    names,
    session_file,
    weights_of,
)

__all__ = [
    "LABELLED",
    "BidsItsBestAlone",
    "BringsIn",
    "Case",
    "CountsCaps",
    "EndsWithItsMoney",
    "JitterByArrival",
    "KeepsAbsentOwnersPool",
    "OneOfEachPhi",
    "PricesBySales",
    "RestsTheLabelItBought",
    "RestsWhoSold",
    "Table",
    "TiesByArrival",
    "difference",
    "make_case",
    "play",
    "with_wishes",
]

CORNERS = corners()


def _labelled() -> dict[bytes, bytes]:
    """φ of four points with each of three labels, by a map in which labels have a part → the label."""
    space = MAP.space.with_labels(LabelCode(0.2, ("a", "b", "c")))
    points = np.random.default_rng(0).uniform(size=(4, space.columns))
    found = {}
    for label in ("a", "b", "c"):
        for features in space.map(MAP_SEED).hash(points, [label] * len(points)):
            found[features.tobytes()] = label.encode()
    return found


LABEL_OF = _labelled()
"""Labelled points: φ → label."""
LABELLED = np.array([np.frombuffer(features, dtype=np.int16) for features in LABEL_OF])
"""Their φ, shape (12, 4)."""


@dataclass(frozen=True)
class Case:
    """The fixed part of a game, to which one record is added."""

    data: Mapping[str, Features]
    extra: Features
    """x, shape (4,)."""
    extra_owner: str
    weights: tuple[Weights, ...]
    order: tuple[tuple[str, ...], ...]
    """Per round, the order in which bids arrive."""
    late: frozenset[tuple[str, int]]
    """Owners whose answer to a round's broadcast comes only after the rounds of `delay`."""
    delay: int
    gone: frozenset[tuple[str, int]]
    """Owners that have no connection during a round."""
    batch: int = 1
    """Points that a round buys."""
    short: int = 0
    """How many fewer the last round buys."""
    jitter: tuple[int, ...] = ()
    """What each round's broadcast weighs jitter by; none: the session has no jitter."""
    distinct: bool = False
    """Whether a point that several owners hold is bought once."""
    prices: tuple[float, ...] = ()
    """Of owners' points, by rank; none: the session has no prices."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """Most points that are bought of an owner."""

    @property
    def wishes(self) -> dict[str, Any] | None:
        """The session file's prices and caps."""
        if not self.prices and not self.caps:
            return None
        return {"prices": dict(zip(sorted(self.data), self.prices, strict=False)), "caps": self.caps}


class KeepsAbsentOwnersPool(Pool):
    """A broken control: points of absent owners stay available."""

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        return super().first(weights, count)


class TiesByArrival(Pool):
    """A broken control: among equal scores, the point that came first wins."""

    def __init__(
        self,
        dimension: int,
        *,
        norm_bound: float,
        jitter: Jitter | None,
        copies: Copies | None,
        prices: Prices | None = None,
    ) -> None:
        super().__init__(dimension, norm_bound=norm_bound, jitter=jitter, copies=copies, prices=prices)
        self.entries: list[tuple[Features, int]] = []
        self.out: set[int] = set()

    def extend(self, features: Features, ranks: npt.NDArray[np.intp], jitters: Jitters | None = None) -> None:
        self.entries.extend(zip(features, ranks.tolist(), strict=True))
        super().extend(features, ranks, jitters)

    def withdraw(self, entry: int) -> None:
        self.out.add(entry)
        super().withdraw(entry)

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        found = []
        for entry, (features, rank) in enumerate(self.entries):
            if entry not in self.out and not (withheld is not None and withheld[rank]):
                found.append(Best(entry, int(scores_of(features[None], weights, self._jitter)[0])))
        return tuple(sorted(found, key=lambda best: (-best.score, best.entry))[:count])


class RestsTheLabelItBought(TiesByArrival):
    """A broken control: to balance labels, the last bought label is not bought next."""

    last: bytes = b""

    def withdraw(self, entry: int) -> None:
        super().withdraw(entry)
        self.last = LABEL_OF.get(self.entries[entry][0].tobytes(), b"")

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        found = []
        for entry, (features, rank) in enumerate(self.entries):
            rests = self.last and LABEL_OF.get(features.tobytes()) == self.last
            if entry not in self.out and not rests and not (withheld is not None and withheld[rank]):
                score = int(scores_of(features[None], weights, self._jitter)[0])
                found.append((-score, features.tobytes(), rank, entry))
        return tuple(Best(entry, -score) for score, _, _, entry in sorted(found)[:count])


class JitterByArrival(Pool):
    """A broken control: jitter depends on a point's place of arrival, not on the point."""

    def extend(self, features: Features, ranks: npt.NDArray[np.intp], jitters: Jitters | None = None) -> None:
        first = len(self)
        super().extend(features, ranks, jitters)
        if self._jitter is not None and len(ranks):
            places = np.arange(first, len(self), dtype=np.int16)[:, None]
            self._jitters[first : len(self)] = self._jitter.of(np.broadcast_to(places, features.shape))


class CountsCaps(Pool):
    """A broken control: an owner is dropped once one of its points was bought."""

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        bought = self._ranks[self._withdrawn.entries]
        return super().first(weights, count, withheld=self._with(bought, withheld))

    def _with(
        self, bought: npt.NDArray[np.intp], withheld: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.bool_]:
        """The withheld owners, by the owners of the points bought so far, in order."""
        known = np.zeros(8, dtype=np.bool_) if withheld is None else withheld
        counts = np.bincount(bought, minlength=len(known))[: len(known)]
        return known | (counts > 0)


class RestsWhoSold(CountsCaps):
    """A broken control: the last seller has no turn in the next round."""

    def _with(
        self, bought: npt.NDArray[np.intp], withheld: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.bool_]:
        known = np.zeros(8, dtype=np.bool_) if withheld is None else withheld
        return known | np.isin(np.arange(len(known)), bought[-1:])


class EndsWithItsMoney(CountsCaps):
    """A broken control: buying ends once as much was spent as a point of the dearest owner costs."""

    def _with(
        self, bought: npt.NDArray[np.intp], withheld: npt.NDArray[np.bool_] | None
    ) -> npt.NDArray[np.bool_]:
        known = np.zeros(8, dtype=np.bool_) if withheld is None else withheld
        units = (1,) * len(known) if self._prices is None else self._prices.units
        spent = sum(units[rank] for rank in bought.tolist())
        over = spent >= max(units)
        return np.ones_like(known) if over else known


class PricesBySales(Pool):
    """A broken control: an owner's points cost less the more of them were bought."""

    def first(
        self, weights: Weights, count: int, *, withheld: npt.NDArray[np.bool_] | None = None
    ) -> tuple[Best, ...]:
        stated, self._prices = self._prices, self._now()
        try:
            return super().first(weights, count, withheld=withheld)
        finally:
            self._prices = stated

    def _now(self) -> Prices | None:
        if self._prices is None:
            return None
        sold = np.bincount(self._ranks[self._withdrawn.entries], minlength=len(self._prices.units)).tolist()
        return Prices(
            tuple(max(1, units >> 2 * count) for units, count in zip(self._prices.units, sold, strict=True))
        )


class OneOfEachPhi(Copies):
    """A broken control: of each φ one point is bought, even if one owner has several."""

    def extend(self, features: Features, ranks: npt.NDArray[np.intp]) -> Sequence[int]:
        repeated: list[int] = []
        for row in range(len(ranks)):
            self._held.clear()
            repeated += super().extend(features[row : row + 1], ranks[row : row + 1])
        return repeated


class BidsItsBestAlone(Player):
    """A broken control: owners whose batches have one point, so that the pool lacks the next best ones."""

    def answer(self, broadcast: Broadcast) -> Bid | Batch:
        return self.answer_with(broadcast, 1)


class BringsIn(Player):
    """An attacker that has half of its points from the third round on, copies of others' among them."""

    def __init__(self, bench: CuratorBench, name: str, features: Features) -> None:
        super().__init__(bench, name, features)
        self.left, self.to_come = self.left[::2], self.left[1::2]

    def answer(self, broadcast: Broadcast) -> Bid | Batch:
        if broadcast.round >= 3:
            self.left, self.to_come = self.left + self.to_come, []
        return super().answer(broadcast)


def make_case(
    rng: np.random.Generator, *, batches: bool = False, distinct: bool = False, of: Features = CORNERS
) -> Case:
    """A small case, full of ties, absences, returns, exhausted owners, and often with fewer points than p.

    Args:
        batches: Whether a round buys several points: two to four.
        distinct: Whether a point that several owners hold is bought once: half of the rounds then buy several
            points, and fewer owners are away, as they do not come back.
        of: φ of the points that owners may have, shape (n, 4).
    """
    owners = names(int(rng.integers(2 if distinct else 1, 5)))
    batch = int(rng.integers(2, 5)) if batches or (distinct and rng.random() < 0.5) else 1
    rounds = int(rng.integers(3, 11)) if batch == 1 else int(rng.integers(2, 6))
    palette = of[rng.choice(len(of), size=int(rng.integers(2, len(of) + 1)), replace=False)]
    fewest, most = (0, 4) if rng.random() < 0.3 else (3, 9 if batch == 1 else 15)
    data = {
        owner: palette[rng.integers(0, len(palette), size=int(rng.integers(fewest, most)))]
        for owner in owners
    }
    # Weights of few values: points of different φ tie, and the best of one round is the worst of another.
    weights = tuple(weights_of(*(1000 * rng.choice([-1, 0, 0, 1], size=4))) for _ in range(rounds))
    late, gone = set(), set()
    for number in range(1, rounds + 1):
        for owner in owners:
            fate = rng.random() / (0.25 if distinct else 1.0)
            if fate < 0.15:
                late.add((owner, number))
            elif fate < 0.4:
                gone.add((owner, number))
    return Case(
        data=data,
        extra=of[int(rng.integers(len(of)))],
        extra_owner=owners[int(rng.integers(len(owners)))],
        weights=weights,
        order=tuple(tuple(str(name) for name in rng.permutation(owners)) for _ in range(rounds)),
        late=frozenset(late),
        delay=int(rng.integers(1, 3)),
        gone=frozenset(gone),
        batch=batch,
        short=int(rng.integers(batch)),
        # As much as scores, next to nothing, or nothing. Half of the cases have none in any round.
        jitter=tuple(rng.choice([0, 1, 3000, 10_000], size=rounds).tolist())
        if batches and rng.random() < 0.5
        else (),
        distinct=distinct,
    )


def with_wishes(case: Case, rng: np.random.Generator) -> Case:
    """The case with prices, with caps, or with both, of which the session takes all.

    Args:
        case: A case in which points are bought as often as they are held.
        rng: What they are drawn from.
    """
    owners, rounds = sorted(case.data), len(case.weights)
    priced = rng.random() < 0.7
    # Few prices, so that gains per price tie too.
    prices = tuple(rng.choice([0.5, 1.0, 1.0, 2.0, 3.0], size=len(owners)).tolist()) if priced else ()
    caps: dict[str, int] = {}
    if len(owners) > 1 and (rng.random() < 0.6 or not priced):
        # One owner without a cap is enough for every round to have one.
        free = owners[int(rng.integers(len(owners)))]
        caps = {owner: int(rng.integers(1, rounds + 1)) * case.batch for owner in owners if owner != free}
    return replace(case, prices=prices, caps=caps)


def play(
    case: Case,
    rule: str,
    *,
    with_extra: bool,
    pool: type[Pool] = Pool,
    honest: type[Player] = Player,
    attacker: type[Player] = Player,
    alter: Callable[[CuratorBench], None] = lambda bench: None,
) -> tuple[Counter[bytes], CuratorBench]:
    """Play a case.

    Args:
        case: The fixed part.
        rule: The acquisition rule's name.
        with_extra: Whether x is there.
        pool: The curator's pool.
        honest: The type of x's owner.
        attacker: The type of all other owners. A refused one does not come back.
        alter: Changes the curator before it starts.

    Returns:
        How often each φ was chosen, and the curator.
    """
    points = len(case.weights) * case.batch - case.short
    session = session_file(
        owners=tuple(case.data),
        points=points,
        rule=rule,
        batch=case.batch,
        jitter=float(len(case.jitter)),
        distinct=case.distinct,
        wishes=case.wishes,
    )
    bench = CuratorBench(session)
    if pool is not Pool:
        bench.machine.selection.pool = pool(
            MAP.space.dimension,
            norm_bound=MAP.space.norm_bound,
            jitter=bench.opened.jitter,
            copies=bench.opened.copies(),
            prices=bench.opened.prices,
        )
    players = {}
    for owner, features in case.data.items():
        if with_extra and owner == case.extra_owner:
            features = np.concatenate([features, case.extra[None]])
        kind = honest if owner == case.extra_owner else attacker
        players[owner] = kind(bench, owner, features)
    alter(bench)
    bench.enrol()
    table_of = Table(bench, players, case)
    for number in range(1, len(case.weights) + 1):
        table_of.play_round(number)
    assert bench.machine.phase == "delivering"
    bench.machine.selection.check_total()
    return Counter(bench.chosen), bench


class Table:
    """Who answers when."""

    def __init__(self, bench: CuratorBench, players: Mapping[str, Any], case: Case) -> None:
        self.bench = bench
        self.players = players
        self.case = case
        self.unanswered: dict[str, tuple[Any, int]] = {}
        """Broadcasts that were not answered yet, and the round in which they will be."""
        self.connected = dict.fromkeys(players, True)
        self.refused: set[str] = set()

    def play_round(self, number: int) -> None:
        case, bench = self.case, self.bench
        for owner in self.players:
            if owner in self.refused:
                continue
            gone = (owner, number) in case.gone
            if gone and self.connected[owner]:
                bench.lost(owner)
            elif not gone and not self.connected[owner]:
                bench.returned(owner)
            self.connected[owner] = not gone
        bench.broadcast(weights_of(*case.weights[number - 1].tolist(), *case.jitter[number - 1 : number]))
        for owner in case.order[number - 1]:
            self._bid(owner, number)
        if bench.machine.phase == "bidding":
            bench.fire("round")
        if bench.machine.phase == "bidding":
            # Nobody is present, whatever the data: a pause, which ends when they come back.
            self._come_back(case.order[number - 1], number)
        bench.verify_all()
        while bench.machine.phase == "asking":
            for owner in case.order[number - 1]:
                ask = bench.last(owner)
                if bench.machine.seats[owner].asked and isinstance(ask, Ask):
                    bench.say(owner, self.players[owner].offer(ask))
            bench.verify_all()

    def _come_back(self, owners: tuple[str, ...], number: int) -> None:
        for owner in owners:
            if self.bench.machine.phase == "bidding" and owner not in self.refused:
                if not self.connected[owner]:
                    self.connected[owner] = True
                    self.bench.returned(owner)
                self._bid(owner, number)
                while self.bench.machine.phase == "bidding" and owner in self.unanswered:
                    # An older broadcast's answer, and then this one's.
                    self.unanswered[owner] = (self.unanswered[owner][0], number)
                    self._bid(owner, number)

    def _bid(self, owner: str, number: int) -> None:
        if not self.connected[owner]:
            return
        if owner not in self.unanswered and not self._take_broadcast(owner, number):
            return
        broadcast, due = self.unanswered[owner]
        if due > number:
            return
        del self.unanswered[owner]
        bid = self.players[owner].answer(broadcast)
        try:
            self.bench.say(owner, bid)
        except RemoteProtocolError:
            assert self.bench.offend(owner, bid).offence is Offence.OUT_OF_TURN
            self.refused.add(owner)
            self.connected[owner] = False
            return
        if broadcast.round < number and self._take_broadcast(owner, number):
            # It resumes with the current broadcast; the answer may be late again.
            self._bid(owner, number)

    def _take_broadcast(self, owner: str, number: int) -> bool:
        broadcast = self.bench.last(owner)
        if self.bench.machine.phase != "bidding" or not self.bench.machine.seats[owner].broadcast:
            return False
        assert isinstance(broadcast, Broadcast | SealedBroadcast)
        late = (owner, number) in self.case.late
        self.unanswered[owner] = (broadcast, number + self.case.delay if late else number)
        return True


def difference(first: Counter[bytes], second: Counter[bytes]) -> int:
    """How many points must be replaced, or added, to turn one into the other."""
    return max(sum((first - second).values()), sum((second - first).values()))
