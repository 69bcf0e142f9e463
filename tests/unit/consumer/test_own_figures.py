"""The consumer's own figures: exact parts of owners, baselines without a purchase, label shares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from hushbid.consumer import own_figures as module
from hushbid.consumer.appraisal import Evaluation, Judgement, Quality, Weighted, appraise
from hushbid.consumer.downstream import wilson_interval
from hushbid.consumer.events import Delivered
from hushbid.consumer.matching import match
from hushbid.consumer.own_figures import ClassShares, OwnFigures, Unbought, own_figures
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.mmd import mmd2
from hushbid.protocol.wire.messages import Candidate
from tests.support.session_files import load

SESSION = open_session(load({"features.dimension": 64}))
GAMMA = SESSION.space.gamma
GENERATOR = np.random.default_rng(4)


def points(centre: float, count: int) -> Any:
    return np.clip(GENERATOR.normal(centre, 0.08, size=(count, 3)), 0, 1)


WANTED = Dataset("validation", points(0.8, 40), np.repeat([3, 4], [30, 10]))
SEEDS = Dataset("seed-set", points(0.2, 20))
TEST = Dataset("test", points(0.8, 50), np.repeat([3, 4, 5], [25, 20, 5]))
SOLD: dict[str, tuple[Any, list[int | None]]] = {
    "alpha": (points(0.8, 12), [3] * 12),
    "beta": (points(0.6, 8), [4] * 6 + [None, None]),
    "gamma": (points(0.2, 5), [7] * 5),
}


def entry(owner: str, point: Any, label: Any, dispute: str = "") -> Delivered:
    candidate = Candidate(
        point=point,
        features=np.zeros(64, dtype=np.int16),
        attributes=pack_attributes(Attributes(label, None), 16),
    )
    return Delivered(owner, 1, candidate, dispute)


DELIVERED = [
    entry(owner, point, label)
    for owner, (sold, labels) in SOLD.items()
    for point, label in zip(sold, labels, strict=True)
]


def figures(
    delivered: Sequence[Delivered] = DELIVERED,
    *,
    validation: Dataset = WANTED,
    test: Dataset | None = TEST,
    weights: bool = True,
) -> OwnFigures:
    by = Evaluation(validation, test, model="logistic", seed=0)
    _, matching = appraise(SESSION, delivered, by)
    return own_figures(SESSION, delivered, by, SEEDS, matching if weights else None)


@pytest.fixture(scope="module")
def of_all() -> OwnFigures:
    """The figures of the whole delivery."""
    return figures()


def without(owner: str) -> Any:
    return np.concatenate([sold for name, (sold, _) in SOLD.items() if name != owner])


def test_gains_add_up_to_what_the_purchase_gained_on_the_seed_set(of_all: OwnFigures) -> None:
    parts = of_all.by_owner
    everything = np.concatenate([sold for sold, _ in SOLD.values()])
    gained = mmd2(SEEDS.features, WANTED.features, GAMMA) - mmd2(everything, WANTED.features, GAMMA)
    assert sum(part.gain for part in parts.values()) == pytest.approx(gained, abs=1e-8)
    assert parts["alpha"].gain > parts["beta"].gain > parts["gamma"].gain
    assert {owner: part.points for owner, part in parts.items()} == {"alpha": 12, "beta": 8, "gamma": 5}


@pytest.mark.parametrize("owner", SOLD)
def test_an_owner_that_is_left_out_leaves_what_the_others_sold(of_all: OwnFigures, owner: str) -> None:
    part = of_all.by_owner[owner]
    assert part.mmd2_without == pytest.approx(mmd2(without(owner), WANTED.features, GAMMA), abs=1e-8)
    again = match(without(owner), WANTED.features, GAMMA)
    assert part.weighted_mmd2_without == pytest.approx(again.mmd2, abs=1e-8)


def test_who_sold_all_cannot_be_left_out() -> None:
    parts = figures([each for each in DELIVERED if each.owner == "alpha"]).by_owner or {}
    assert (parts["alpha"].mmd2_without, parts["alpha"].weighted_mmd2_without) == (None, None)


def test_a_disputed_point_is_nobody_s_part(of_all: OwnFigures) -> None:
    disputed = [entry("gamma", points(0.2, 1)[0], 3, "it is wrong"), *DELIVERED]
    assert figures(disputed) == of_all


@pytest.mark.parametrize("limit", ["MOST_SELLERS", "MOST_WEIGHED"])
def test_many_are_left_out_without_weights_alone(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, limit, 2)
    found = figures()
    parts = found.by_owner
    assert {part.weighted_mmd2_without for part in parts.values()} == {None}
    assert all(part.mmd2_without is not None for part in parts.values())
    assert found.by_owner_why.startswith("more than 2 ")


def test_baselines_are_of_the_test_points(of_all: OwnFigures) -> None:
    """Of 50 test points 25 are 3s, like most bought points; the model learns 3s and 4s."""
    assert of_all.baselines.majority is not None
    assert (of_all.baselines.majority.label, of_all.baselines.majority.accuracy) == (3, 0.5)
    assert of_all.baselines.majority.accuracy_interval == wilson_interval(0.5, 50)
    assert of_all.baselines.validation_only is not None
    assert 0.3 < of_all.baselines.validation_only.accuracy <= 0.9


def test_without_labels_there_are_no_baselines() -> None:
    bare = Dataset("validation", WANTED.features)
    assert figures(validation=bare).baselines.validation_only is None
    assert figures(validation=bare).label_shares.wanted_from == "test"
    unjudged = figures(test=None)
    assert unjudged.baselines == Unbought()
    assert unjudged.label_shares.wanted_from == "validation"
    unlabelled = figures(
        [entry(each.owner, each.candidate.point, None) for each in DELIVERED if each.candidate]
    )
    assert unlabelled.baselines.majority is None


def test_shares_are_of_those_that_have_a_label(of_all: OwnFigures) -> None:
    found = figures(weights=False)
    assert found.label_shares.wanted_from == "validation"
    assert found.label_shares.classes == (
        ClassShares(3, 0.75, 12 / 23, None),
        ClassShares(4, 0.25, 6 / 23, None),
        ClassShares(7, 0.0, 5 / 23, None),
    )
    assert found.label_shares.line(10) == "wanted/bought: 3 75/52, 4 25/26, others 0/22"
    weighted = [each.weighted for each in of_all.label_shares.classes]
    assert None not in weighted
    assert sum(share for share in weighted if share is not None) == pytest.approx(1.0)
    assert of_all.label_shares.line(1).startswith("wanted/bought/weighted: 3 75/52/")


def test_nothing_was_delivered() -> None:
    found = figures([])
    assert found.baselines.validation_only is not None
    assert found == OwnFigures(Unbought(found.baselines.validation_only))
    assert found.lines(None).keys() == {"accuracy of the validation rows alone"}


def test_json_has_what_it_was_made_from(of_all: OwnFigures) -> None:
    assert OwnFigures.from_json(json.loads(json.dumps(of_all.as_json(), allow_nan=False))) == of_all
    assert OwnFigures.from_json(json.loads(json.dumps(OwnFigures().as_json()))) == OwnFigures()


def test_lines_for_people_have_an_owner_each_who_gained_most_first(of_all: OwnFigures) -> None:
    lines = of_all.lines(0.25)
    assert [name for name in lines if name in SOLD] == ["alpha", "beta", "gamma"]
    assert lines["alpha"].startswith("12 points, exact gain +0.")
    single = figures([*DELIVERED, entry("delta", points(0.7, 1)[0], 3)]).lines(0.25)
    assert single["delta"].startswith("1 point, exact gain ")
    assert lines["accuracy of the class most bought"] == "0.500 (0.366 to 0.634)"


@pytest.mark.parametrize(
    ("right", "count", "interval"),
    [(8, 10, (0.4902, 0.9433)), (0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (50, 100, (0.4038, 0.5962))],
)
def test_intervals_are_wilson_s(right: int, count: int, interval: tuple[float, float]) -> None:
    assert wilson_interval(right / count, count) == pytest.approx(interval, abs=5e-5)


def test_intervals_are_scipy_s() -> None:
    """Parties start without SciPy, so the formula is written out."""
    for count in (1, 2, 7, 40, 999):
        for right in range(0, count + 1, max(1, count // 7)):
            theirs = binomtest(right, count).proportion_ci(0.95, method="wilson")
            assert wilson_interval(right / count, count) == pytest.approx((theirs.low, theirs.high), abs=1e-8)


def test_every_accuracy_of_a_judgement_has_an_interval() -> None:
    judgement, _ = appraise(SESSION, DELIVERED, Evaluation(WANTED, TEST, model="logistic", seed=0))
    assert judgement.weighted is not None
    for quality in (judgement.plain, judgement.weighted.quality):
        assert quality.accuracy is not None
        assert quality.accuracy_interval == wilson_interval(quality.accuracy, 50)
    assert Judgement.from_json(json.loads(json.dumps(judgement.as_json()))) == judgement
    old = {key: value for key, value in judgement.as_json().items() if key != "accuracy_interval"}
    assert Judgement.from_json(old).plain.accuracy_interval is None
    assert Judgement(Quality(0.5), Weighted(Quality(0.25), 1.0, 0.0)).plain.accuracy_interval is None
