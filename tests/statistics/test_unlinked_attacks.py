"""The attacks of `test_blind_attacks` on the record of a curator that cannot link.

Sessions have the rows and the weights of those of version 3. The curator has no series of a box's scores, so
each attack uses what is left: the round in which a box came, the round of its purchase and its score then,
and series guessed by ranks. A control gives the same estimates to points in another order: its findings are
chance. Seeds are fixed; nothing here fails by chance.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from hushbid.owner.party import owner_party
from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.scoring import score_bound
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.wire.blind import BlindBid
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.statistics import blind_sessions
from tests.statistics.blind_sessions import EARLY, OWNERS, Matrix, blind, received
from tests.statistics.test_blind_attacks import (
    aligned,
    distances,
    early,
    judged,
    known_points,
    listed,
    regressed,
    squares,
    whitened,
)
from tests.statistics.unlinked_sessions import DEPTH, NEVER, Unlinked, Watched, unlinked, watched
from tests.support.transcripts import fixed_salts

ABOVE_FLOORS = 2**63
"""Floors of a round lie closer together than this, and scores farther from them."""


# -- what the attacker makes of its record ----------------------------------------------------------------


def on_a_scale(values: list[int | None]) -> Matrix:
    """An owner's scores of a round as normal quantiles of their ranks, in their places."""
    known = np.array([np.nan if each is None else float(each) for each in values])
    lowest = min(each for each in values if each is not None)
    shown = np.array([each is not None and each - lowest > ABOVE_FLOORS for each in values])
    found = np.zeros(len(values))
    if shown.sum() > 2:
        found[shown] = norm.ppf(rankdata(known[shown]) / (shown.sum() + 1))
        found[~shown] = found[shown].min() - 0.3
    return found


@cache
def guessed(private: bool) -> tuple[Matrix, Matrix]:
    """Two guesses of the series of each bought box, shape (n, T); 0 where there is none.

    The first has in every round the score of the rank at which the box was bought. The second has after the
    purchase one of those in places that are not to be chosen from: the one whose rank is most like the last.
    """
    session = unlinked(private=private)
    seen, rounds, count = session.seen, len(session.weights), len(session.came) // len(OWNERS)
    scales = {key: on_a_scale(values) for key, values in seen.values.items()}
    by_rank, followed = np.zeros((2, len(session.came), rounds))
    bought: list[dict[int, float]] = [{} for _ in OWNERS]
    for number in range(1, rounds + 1):
        for rank, last in enumerate(bought):
            there = np.sort(scales[rank, number][seen.taken[rank, number]])
            for box, value in zip(sorted(last, key=lambda each: last[each]), there, strict=True):
                followed[box, number - 1] = value
                last[box] = 0.7 * last[box] + 0.3 * value
        for rank, handle in seen.picked[number]:
            scores = [scales[rank, number][place] for who, place, _ in seen.chosen[number] if who == rank]
            box, at = rank * count + handle - 1, float(np.mean(scores))
            bought[rank][box] = followed[box, number - 1] = at
            for each in range(int(session.came[box]), rounds + 1):
                by_rank[box, each - 1] = np.quantile(scales[rank, each], norm.cdf(at))
    return by_rank, followed


def estimates(private: bool, rows: Matrix) -> dict[str, Matrix]:
    """Squared distances between points as the attacker may estimate them."""
    session = unlinked(private=private)
    came, bought = session.came[rows], session.bought[rows]
    never = bought == NEVER
    came_apart = np.abs(came[:, None] - came).astype(float)
    bought_apart = np.where(never[:, None] | never, 50.0, np.abs(bought[:, None] - bought))
    made = {
        "came": came_apart,
        "came together": (came_apart > 0).astype(float),
        "bought": bought_apart,
        "bought together": (bought_apart > 0).astype(float),
        "both": came_apart / 10 + bought_apart / 50,
        "together": (came_apart > 0) + (bought_apart > 0).astype(float),
    }
    for name, series in zip(("by rank", "followed"), guessed(private), strict=True):
        values = series[rows][:, EARLY - 1 :]
        made[name] = squares(values, values)
        for kept in (5, 10):
            made[f"{name} {kept}"] = squares(whitened(values, kept), whitened(values, kept))
    ties = np.random.default_rng(0).random((len(rows), len(rows))) * 1e-6
    return {name: each + ties + ties.T for name, each in made.items()}


def early_ones(session: Unlinked) -> Matrix:
    """As `early`."""
    return early(session)  # type: ignore[arg-type]  # it reads the fields that both have


def best_of(found: dict[str, Matrix], features: Matrix) -> tuple[float, float]:
    """The best correlation with true distances, and the best recall of nearest neighbours."""
    each = [judged(estimate, features) for estimate in found.values()]
    return max(one for one, _ in each), max(other for _, other in each)


def by_chance(found: dict[str, Matrix], features: Matrix) -> tuple[float, float]:
    """The same for points in another order, which 19 of 20 orders do not exceed."""
    rng = np.random.default_rng(1)
    orders = [best_of(found, features[rng.permutation(len(features))]) for _ in range(20)]
    one, other = np.quantile(np.array(orders), 0.95, axis=0).tolist()
    return one, other


def picked_out(private: bool, known: int) -> float:
    """The best rate with a list of 40, from several things that the curator knows of a box."""
    session = unlinked(private=private)
    rows = early_ones(session)
    bought = np.minimum(session.bought[rows], len(session.weights) + 1)
    came = np.eye(len(session.weights) + 2)[session.came[rows]]
    sold = np.eye(len(session.weights) + 2)[bought]
    by_rank, followed = (series[rows] for series in guessed(private))
    told = [
        came,
        sold,
        np.hstack([came, sold]),
        by_rank,
        followed,
        np.hstack([came, sold, by_rank, followed]),
    ]
    return max(listed(each, session.rows[rows], known=known, trials=100) for each in told)


# -- with an owner that colludes --------------------------------------------------------------------------


def unmasked(session: Unlinked) -> dict[tuple[int, int], list[float | None]]:
    """With weights and keys: the exact scores in their places, which stay secret; None for floors."""
    found: dict[tuple[int, int], list[float | None]] = {}
    for (rank, number), values in session.seen.values.items():
        weights = session.weights[number - 1]
        bound = score_bound(weights, session.session.space.coordinate_bound, session.session.jitter)
        mask = session.keys.mask(number, bound)
        least = mask.offset
        units = [0 if value is None else (value - least) // mask.scale for value in values]
        found[rank, number] = [(each - bound - 1) * 2.0**-37 if each else None for each in units]
    return found


def solved(session: Unlinked, *, turns: int = 4) -> tuple[float, float, float]:
    """Median relative errors of φ of the bought points of other owners.

    By prior knowledge of φ; with the score at which each was bought; and also with series, which give every
    round's scores to boxes in the order of the scores that the last estimate predicts.
    """
    count = len(session.came) // len(OWNERS)
    features, weights = session.features * 2.0**-15, session.weights * 2.0**-22
    prior = features[session.owner == 0]
    mean, spread = prior.mean(axis=0), np.cov(prior.T) + 1e-9 * np.eye(features.shape[1])
    scores = unmasked(session)
    told: dict[int, dict[int, tuple[float, float]]] = {
        int(box): {} for box in np.flatnonzero(session.owner > 0)
    }
    for number, boxes in session.seen.picked.items():
        for rank, handle in boxes:
            if rank:
                own = [place for who, place, _ in session.seen.chosen[number] if who == rank]
                values = [scores[rank, number][place] or 0.0 for place in own]
                told[rank * count + handle - 1][number] = float(np.mean(values)), float(np.var(values)) + 1e-6

    def estimated(known: dict[int, tuple[float, float]]) -> Matrix:
        if not known:
            return np.asarray(mean)
        numbers = sorted(known)
        rows = weights[[number - 1 for number in numbers]]
        values, noise = np.array([known[number] for number in numbers]).T
        through = rows @ spread
        return np.asarray(
            mean + through.T @ np.linalg.solve(through @ rows.T + np.diag(noise), values - rows @ mean)
        )

    def error(of: dict[int, Matrix]) -> float:
        sold = [box for box in of if session.bought[box] != NEVER]
        return float(
            np.median(
                [np.linalg.norm(of[box] - features[box]) / np.linalg.norm(features[box]) for box in sold]
            )
        )

    found = {box: estimated(known) for box, known in told.items()}
    first = error(dict.fromkeys(told, mean)), error(found)
    for turn in range(turns):
        more = {box: dict(known) for box, known in told.items()}
        for (rank, number), places in scores.items():
            there = np.sort([value for value in places if value is not None])[::-1]
            held = np.flatnonzero((session.owner == rank) & (session.came <= number))
            if rank and len(there) > 1:
                ahead = np.argsort([-float(found[int(box)] @ weights[number - 1]) for box in held])
                doubt = float(np.var(there)) * (0.5 if turn < turns // 2 else 0.1)
                for box, value in zip(held[ahead].tolist(), there.tolist(), strict=False):
                    more[box].setdefault(number, (value, doubt))
        found = {box: estimated(known) for box, known in more.items()}
    return *first, error(found)


# -- sessions with copies, and with owners that run out ---------------------------------------------------


@cache
def small(
    depth: int | None, sizes: tuple[int, ...], shared: int, batch: int = 2, *, drawn: bool = True
) -> tuple[Session, bytes]:
    """A session of few rows, some of them shared by owners, and the curator's transcript.

    Rows are drawn at random, or are those of `blind_sessions.source`.
    """
    rng = np.random.default_rng(4)
    columns = 4 if drawn else blind_sessions.source.rows.shape[1]

    def more_rows(count: int) -> Matrix:
        if drawn:
            return rng.random((count, columns))
        return blind_sessions.source.rows[rng.integers(0, len(blind_sessions.source.rows), count)]

    common = more_rows(shared)
    owners = names(len(sizes))
    more = {} if depth is None else {"commitment_depth": depth}
    file = session_file(
        owners=owners,
        points=40,
        batch=batch,
        rule="blind",
        dimension=16,
        columns=columns,
        **more,  # type: ignore[arg-type]
    )
    session, kept = open_session(file), []

    def journal(role: str, party: str) -> MemoryJournal:
        header = Header(role, party, session.identifier.hex(), file.digest(), "test", {}, "simulated")
        found = MemoryJournal(header, salts=fixed_salts(party.encode()))
        kept.extend([found] if party == CURATOR else [])
        return found

    Simulation(
        session,
        owners={
            name: Dataset.from_arrays(name, np.concatenate([common, more_rows(size - shared)]))
            for name, size in zip(owners, sizes, strict=True)
        },
        validation=Dataset.from_arrays("validation", more_rows(20)),
        seed_set=Dataset.from_arrays("seed-set", more_rows(20)),
        journal=journal,
        owner=owner_party,
    ).run()
    kept[0].close()
    return session, kept[0].image


def repeated(values: dict[tuple[int, int], list[int]]) -> int:
    """How many scores of a round another box of the same round has too."""
    found = 0
    for number in {number for _, number in values}:
        of_round = [each for (_, here), row in values.items() if here == number for each in row if each]
        found += len(of_round) - len(set(of_round))
    return found


def linked_values(session: Session, image: bytes) -> dict[tuple[int, int], list[int]]:
    """For a session of version 3: owner and round → masked scores, 0 where none was sent."""
    return {
        (session.file.owners.index(name), bid.round): [
            int.from_bytes(bid.scores[at : at + 16], "big") for at in range(0, len(bid.scores), 16)
        ]
        for name, bid in received(image, BlindBid)
    }


def seen_in(
    depth: int, sizes: tuple[int, ...], shared: int, batch: int = 2, *, drawn: bool = True
) -> Watched:
    session, image = small(depth, sizes, shared, batch, drawn=drawn)
    return watched(image, tuple(session.file.owners), session.batch)


def shown(seen: Watched, rank: int) -> list[int]:
    """How many scores of an owner are no floors, round after round."""
    found = []
    for number in range(1, len(seen.chosen) + 1):
        values = [each for each in seen.values[rank, number] if each is not None]
        found.append(sum(each - min(values) > ABOVE_FLOORS for each in values))
    return found


# -- what they come to ------------------------------------------------------------------------------------


def test_copies_have_equal_scores_in_version_3_and_none_in_version_4() -> None:
    sizes = (60, 60, 60)
    assert repeated(linked_values(*small(None, sizes, 30))) > 50
    values = seen_in(DEPTH, sizes, 30).values
    assert repeated({key: [each or 0 for each in row] for key, row in values.items()}) == 0


def test_boxes_of_nothing_are_seen_in_version_3_and_look_like_any_other_in_version_4() -> None:
    sizes = (60, 9, 60)
    for depth, zeros in ((None, True), (DEPTH, False)):
        session, image = small(depth, sizes, 0)
        bids = [bid for name, bid in received(image, BlindBid) if name == session.file.owners[1]]
        assert len(bids) == 20
        boxes = [bid.boxes for bid in bids[5:]]  # in the transcript, their digests
        assert all(any(box) for box in boxes)
        empty = hashlib.sha256(bytes(session.box_length)).digest()
        assert any(empty in box for box in boxes) is zeros
        assert len(set(boxes)) == (1 if zeros else len(boxes))
    values = linked_values(*small(None, sizes, 0))
    offset = {min(each for each in values[1, number] if each) for number in range(8, 21)}
    assert all(
        values[1, number].count(min(each for each in values[1, number] if each)) > 1
        for number in range(8, 21)
    )
    assert len(offset) == 13, "of each round the offset of its mask, exactly"
    seen = seen_in(DEPTH, sizes, 0)
    assert all(len(set(row)) == len(row) for row in seen.values.values())


def test_how_many_scores_are_shown_does_not_stop_growing_for_those_alone_who_run_out() -> None:
    """An owner that runs out shows as many ever after; so do others, for long."""
    seen = seen_in(DEPTH, (80, 13, 80), 0)
    assert shown(seen, 1)[-10:] == [13] * 10
    for rank in (0, 2):
        course = shown(seen, rank)
        steps = np.flatnonzero(np.diff(course))
        assert (np.diff(course) >= 0).all()
        assert max(np.diff([0, *steps, len(course)])) >= 5, "it stands still for a quarter of the session"
        assert len(steps) >= 3


def test_what_is_left_of_distances_is_little_more_than_chance() -> None:
    session = unlinked()
    rows = early_ones(session)
    found = estimates(True, rows)
    correlation, recall = best_of(found, session.features[rows])
    chance, chance_of_recall = by_chance(found, session.features[rows])
    assert correlation < 0.12
    assert recall < 0.06
    assert (chance, chance_of_recall) < (0.1, 0.04)
    linked = distances("as built")
    assert linked[0] > 0.4
    assert linked[1] > 0.3
    scores = {name: each for name, each in found.items() if name.split()[0] in ("by", "followed")}
    correlation, recall = best_of(scores, session.features[rows])
    assert correlation < chance, "of scores nothing is left"
    assert recall <= 0.04


@pytest.mark.slow
def test_exact_releases_still_tell_what_came_and_was_bought_together() -> None:
    """The page says so: without noise, the boxes of a round lie in one direction."""
    session = unlinked(private=False)
    rows = early_ones(session)
    correlation, recall = best_of(estimates(False, rows), session.features[rows])
    assert 0.4 < correlation < 0.6
    assert recall < 0.1


def test_of_a_list_hardly_more_rows_are_picked_out_than_by_chance() -> None:
    assert picked_out(True, 10) < 0.06, "chance is 1 of 40, and the best of six counts"
    assert picked_out(True, 100) < 0.12
    assert known_points(blind(), 100) > 0.3


@pytest.mark.slow
def test_clouds_are_not_aligned() -> None:
    session = unlinked()
    rows = early_ones(session)
    found = [aligned(-each, session.rows[rows]) for each in estimates(True, rows).values()]
    assert max(found) < 0.06, "chance is 1 of 160, and the best of twelve tries counts"


def test_a_colluding_owner_has_the_score_of_a_purchase_and_gains_nothing_by_guessing_series() -> None:
    before, bought, guessed_too = solved(unlinked(dimension=20, rounds=50))
    assert before > bought > 0.6
    assert guessed_too > 0.6
    assert regressed(blind(dimension=20, rounds=50)) < 0.45
