"""A replay draws the points of the records, on axes that a second computation finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.decomposition import PCA

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Batch, Bid, Offer
from hushbid.replay.components import components_of
from hushbid.replay.facts import Cloud, Facts, PointPicture
from hushbid.replay.merging import facts_of
from hushbid.replay.offers import MOST_OFFERED, HandedPoints
from hushbid.replay.page import page_of
from hushbid.replay.rows import Row
from tests.support.replay_sessions import recorded_with
from tests.unit.hushbid.replay.test_replay_facts import redacted

Paths = Mapping[str, Path]
Floats = npt.NDArray[np.float64]
BRINGING = ("bid", "batch", "submission", "offer")
NOT_BLIND = sorted(rule for rule in RULES if not RULES[rule].blind)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Paths]:
    return cache(lambda rule: recorded_with(tmp_path_factory.mktemp(rule), rule, rounds=6, owners=3))


@pytest.fixture(scope="module")
def told(recorded: Callable[[str], Paths]) -> Callable[[str], Facts]:
    return cache(lambda rule: facts_of(list(recorded(rule).values())))


def drawn(facts: Facts) -> PointPicture:
    assert isinstance(facts.points_drawn, PointPicture), facts.points_drawn
    return facts.points_drawn


def places(cloud: Cloud) -> Floats:
    return np.array([cloud.x, cloud.y]).T


def handed_over(path: Path) -> list[tuple[int, Floats]]:
    """The round and φ of each point in the messages of one curator's transcript, decoded as a party does."""
    found = []
    with TranscriptReader(path) as reader:
        for item in (item for record in reader for item in record.items):
            frame: Mapping[str, Any] = item.private.get("frame", {})  # type: ignore[assignment]
            if item.kind != "received" or frame["message"] not in BRINGING:
                continue
            body = frame["body"]
            message = decode_message(Direction.OWNER_TO_CURATOR, body)
            assert isinstance(message, Bid | Batch | Offer)
            for each in (message,) if isinstance(message, Offer) else bids_of(message):
                if each.candidate is not None and not getattr(each, "exhausted", False):
                    found.append((each.round, each.candidate.features * FEATURE_UNIT))
    return found


def bought(path: Path) -> list[Floats]:
    """φ of the delivered points in a consumer's transcript."""
    found: list[Floats] = []
    with TranscriptReader(path) as reader:
        for item in (item for record in reader for item in record.items):
            if item.kind == "purchases-checked":
                entries: Sequence[Any] = item.private["delivered"]  # type: ignore[assignment]
                found += [entry["candidate"]["features"] * FEATURE_UNIT for entry in entries]
    return found


# -- every rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", NOT_BLIND)
def test_points_are_those_of_the_records_on_their_principal_components(
    rule: str, recorded: Callable[[str], Paths], told: Callable[[str], Facts]
) -> None:
    facts, offers = told(rule), handed_over(recorded(rule)[CURATOR])
    found, sold = drawn(facts), bought(recorded(rule)[CONSUMER])
    assert found.offered.of == len(found.offered.x) == len(offers) > 0
    assert found.offered.round == tuple(number for number, _ in offers)
    assert found.bought.of == len(sold) == len(facts.chosen.round if facts.chosen else ())
    points = np.array([*(features for _, features in offers), *sold])
    model = PCA(2, svd_solver="full").fit(points)
    mine = np.concatenate([places(found.offered), places(found.bought)])
    theirs = model.transform(points)
    assert np.abs(mine) == pytest.approx(np.abs(theirs), abs=1e-3), "an axis has no direction of its own"
    for axis in range(2):
        assert mine[np.abs(mine[:, axis]).argmax(), axis] > 0.0
    assert found.explained == pytest.approx(model.explained_variance_ratio_.tolist())


@pytest.mark.parametrize("rule", NOT_BLIND)
def test_points_are_there_from_the_step_that_brought_them(rule: str, told: Callable[[str], Facts]) -> None:
    facts = told(rule)
    found, steps = drawn(facts), facts.steps
    kinds = {facts.kinds[steps.kind[at]] for at in found.offered.at}
    assert kinds <= {"bid", "submission", "offer"}
    for at, number in zip(found.offered.at, found.offered.round, strict=True):
        assert steps.round[at] == number
    assert facts.chosen is not None
    assert (found.bought.at, found.bought.round) == (facts.chosen.at, facts.chosen.round)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_released_mean_and_that_of_what_was_bought_are_where_they_belong(
    rule: str, recorded: Callable[[str], Paths], told: Callable[[str], Facts]
) -> None:
    found, sold = drawn(told(rule)), np.array(bought(recorded(rule)[CONSUMER]))
    with TranscriptReader(recorded(rule)[CONSUMER]) as reader:
        (released,) = [
            item.private["embedding"]
            for item in (item for record in reader for item in record.items)
            if item.kind == "target-released"
        ]
    assert isinstance(released, np.ndarray)
    spots = places(found.bought)
    running = np.cumsum(spots, axis=0) / np.arange(1, len(spots) + 1)[:, None]
    assert np.array(found.means) == pytest.approx(running, abs=1e-3)
    assert found.mean is not None
    # The way from the mean of what was bought to the released mean, in φ, has this part in the picture.
    offers = [] if RULES[rule].blind else [features for _, features in handed_over(recorded(rule)[CURATOR])]
    model = PCA(2, svd_solver="full").fit(np.array([*offers, *sold]))
    way = np.abs((released - sold.mean(axis=0)) @ model.components_.T)
    assert np.abs(np.array(found.mean) - found.means[-1]) == pytest.approx(way, abs=2e-3)


def test_of_a_blind_session_what_was_bought_is_shown_and_nothing_else(told: Callable[[str], Facts]) -> None:
    found = drawn(told("blind"))
    assert (len(found.wanted.x), len(found.offered.x), found.offered.of) == (0, 0, 0)
    assert len(found.bought.x) == found.bought.of == 6
    assert "under blind they stay in boxes" in found.told[1]
    assert "consumer’s transcript" in found.told[2]


# -- whose transcripts ---------------------------------------------------------------------------------------


def test_an_owner_shows_what_it_handed_over_and_does_not_know_what_was_bought(
    recorded: Callable[[str], Paths],
) -> None:
    paths = recorded("sealed")
    alone = drawn(facts_of([paths["owner-0"]]))
    two = drawn(facts_of([paths["owner-0"], paths["owner-1"]]))
    assert 0 < alone.offered.of < two.offered.of < len(handed_over(paths[CURATOR]))
    assert alone.bought.x == ()
    assert alone.mean is None
    assert alone.told == (
        "What is wanted is not in these transcripts.",
        f"Owners handed over {alone.offered.of} points, by the transcripts of owner-0.",
        "What was bought is not in these transcripts: the curator’s has it, or the consumer’s.",
    )
    assert "owner-0, owner-1" in two.told[1]


def test_a_consumer_alone_shows_what_it_bought(recorded: Callable[[str], Paths]) -> None:
    found = drawn(facts_of([recorded("sealed")[CONSUMER]]))
    assert found.offered.x == ()
    assert len(found.bought.x) == 6
    assert found.mean is not None
    assert "each owner’s its own" in found.told[1]


def test_copies_without_points_say_why(recorded: Callable[[str], Paths]) -> None:
    paths = recorded("sealed")
    copies = [redacted(paths[party]) for party in (CURATOR, CONSUMER, "owner-0")]
    facts = facts_of(copies)
    assert facts.points_drawn == "Not in these transcripts: redacted copies have no points."
    assert facts.points_drawn in page_of(facts) or "points_drawn" in json.dumps(facts.as_json())
    blind = recorded("blind")
    for party in (CURATOR, "owner-0"):
        found = facts_of([blind[party]]).points_drawn
        assert found == (
            "Not in these transcripts: under blind only the consumer’s has points, those that it bought."
        )
    beside = drawn(facts_of([copies[0], paths["owner-1"]]))
    assert "owner-1" in beside.told[1], "a redacted curator leaves it to owners"


# -- many, and none ------------------------------------------------------------------------------------------


def offered(count: int, dimension: int = 3) -> HandedPoints:
    """Points whose φ is their number."""
    row, offers = Row(1, 0.0, "bid", "owner", CURATOR), HandedPoints()
    for number in range(count):
        offers.take(row, {"candidate": {"features": np.full(dimension, number)}, "exhausted": False})
    return offers


def test_of_many_points_an_even_sample_is_kept_and_the_same_each_time() -> None:
    few, many = offered(MOST_OFFERED), offered(20_000)
    assert [offer.number for offer in few.kept()] == list(range(MOST_OFFERED))
    kept = [offer.number for offer in many.kept()]
    assert (many.count, len(kept)) == (20_000, MOST_OFFERED)
    assert kept == sorted(set(kept)) == [offer.number for offer in offered(20_000).kept()]
    assert all(offer.features[0] == offer.number for offer in many.kept())
    # Of the uniform distribution, the largest distance is above 0.08 once in 1,000 samples (fixed seed).
    steps = np.abs(np.array(kept) / 20_000 - np.arange(1, MOST_OFFERED + 1) / MOST_OFFERED).max()
    assert steps < 0.08
    first = np.abs(np.arange(MOST_OFFERED) / 20_000 - np.arange(1, MOST_OFFERED + 1) / MOST_OFFERED).max()
    assert first > 0.08, "the control: the first ones alone"


def test_a_batch_s_padding_is_no_point() -> None:
    offers = HandedPoints()
    fields: dict[str, Any] = {
        "handles": np.array([4, 0, 5]),
        "candidates": {"features": np.arange(6, dtype=np.int16)},
    }
    offers.take(Row(1, 0.0, "batch", "owner", CURATOR), fields)
    assert [offer.features.tolist() for offer in offers.kept()] == [[0, 1], [4, 5]]
    offers.take(Row(1, 0.0, "bid", "owner", CURATOR), {"candidate": None, "exhausted": False})
    padding: dict[str, Any] = {"candidate": {"features": np.zeros(2)}, "exhausted": True}
    offers.take(Row(1, 0.0, "bid", "owner", CURATOR), padding)
    assert offers.count == 2


@pytest.mark.parametrize("shape", [(5, 40), (40, 5), (2, 3), (3, 1)])
def test_components_are_those_of_a_second_computation(shape: tuple[int, int]) -> None:
    points = np.random.default_rng(0).normal(size=shape)
    found = components_of(points)
    assert found is not None
    both = min(2, *shape)
    model = PCA(both, svd_solver="full").fit(points)
    spots = found.places(points)
    assert np.abs(spots[:, :both]) == pytest.approx(np.abs(model.transform(points)), abs=1e-3)
    assert not spots[:, both:].any()
    assert found.explained[:both] == pytest.approx(model.explained_variance_ratio_.tolist())


def test_points_that_are_all_one_have_no_components() -> None:
    assert components_of(np.full((7, 3), 0.3)) is None
    assert components_of(np.zeros((1, 3))) is None
    assert components_of(np.array([[0.0, 1.0], [0.0, 1.0 + 1e-3]])) is not None, "the control"


def test_a_large_session_is_thinned_and_says_so(
    recorded: Callable[[str], Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = drawn(facts_of(list(recorded("sealed").values())))
    monkeypatch.setattr("hushbid.replay.offers.MOST_OFFERED", 9)
    monkeypatch.setattr("hushbid.replay.points.MOST_BOUGHT", 3)
    found = drawn(facts_of(list(recorded("sealed").values())))
    assert (found.offered.of, len(found.offered.x)) == (whole.offered.of, 9)
    assert (found.bought.of, len(found.bought.x), len(found.means)) == (6, 3, 3)
    assert found.bought.round == (1, 3, 6)
    assert found.told[1].endswith("; 9 of them are drawn.")
    assert found.told[2].endswith("; 3 of them are drawn.")
    assert list(found.offered.at) == sorted(found.offered.at)


def test_the_mean_of_what_was_bought_is_of_all_of_it_and_not_of_what_is_drawn(
    recorded: Callable[[str], Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = recorded("sealed")
    monkeypatch.setattr("hushbid.replay.points.MOST_BOUGHT", 3)
    found, sold = drawn(facts_of(list(paths.values()))), np.array(bought(paths[CONSUMER]))
    shown = [number - 1 for number in found.bought.round]
    points = np.array([*(features for _, features in handed_over(paths[CURATOR])), *sold[shown]])
    model = PCA(2, svd_solver="full").fit(points)
    means = np.array([sold[: place + 1].mean(axis=0) for place in shown])
    assert np.abs(np.array(found.means)) == pytest.approx(np.abs(model.transform(means)), abs=1e-3)
