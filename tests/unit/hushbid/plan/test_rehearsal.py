"""A rehearsal shows the effect of noise on a choice before any ε is spent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.appraisal import Judge
from hushbid.consumer.verdict import Rehearsal, Staged
from hushbid.plan.coded_rows import coded, evenly_labelled
from hushbid.plan.rehearsal import FEWEST, MOST, looked_at, rehearse
from hushbid.plan.verdict import Rehearsing, Sets, what_is_wrong
from hushbid.protocol.data import Dataset
from hushbid.protocol.data.column import Column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.labels import UNKNOWN
from hushbid.protocol.space.mmd import at_even_distances
from tests.simulation.harness import names, session_file

COLUMNS = 3


def session(
    epsilon: float | None, points: int = 40, *, columns: int = COLUMNS, upper: float = 1.0, **changes: Any
) -> Session:
    def release(neighbours: str) -> dict[str, Any]:
        if epsilon is None:
            return {"mechanism": "exact"}
        return {"mechanism": "filtered-gaussian", "epsilon": epsilon, "neighbours": neighbours}

    file = session_file(
        owners=names(3),
        points=points,
        dimension=60,
        columns=columns,
        summary=release("add-remove-one"),
        target=release("substitute-one"),
        **{"rule": "sealed", "batch": 2, "seed_weight": 0.1, "jitter": 25.0, **changes},
    )
    features = file.features.model_copy(update={"gamma": 5.0, "upper": upper})
    return open_session(file.model_copy(update={"features": features}))


def curve(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Points along a curve in the cube, which no single column shows."""
    rng = np.random.default_rng(seed)
    place = rng.random(count)
    rows = np.stack([place, place**2, 1.0 - place], axis=1) + rng.normal(0, 0.02, (count, COLUMNS))
    return np.clip(rows, 0.0, 1.0)


def test_without_noise_it_pays_where_little_of_what_is_wanted_is_there() -> None:
    found = rehearse(session(None), curve(120, 1), curve(40, 2))
    assert found.word == "good"
    assert len(found.staged) == 4
    for each in found.staged[1:]:
        assert each.bought < each.uniform
        assert each.bought_plain < each.uniform_plain
    assert [line.split("  ")[-1] for line in found.lines()[1:]] == [each.owners for each in found.staged]
    assert max(map(len, found.lines())) < 73, "with what stands before them, within a hundred columns"


def test_where_noise_chooses_a_uniform_choice_is_better_with_all_owners() -> None:
    found = rehearse(session(0.05), curve(40, 1), curve(40, 2))
    assert found.word == "hopeless"
    assert min(each.ratio for each in found.staged) > 1.2


def test_a_seed_set_that_is_easily_told_from_what_is_wanted_is_not_hopeless() -> None:
    """The choice is far better than a uniform one if owners' other points are like the seed set."""

    def place(count: int, seed: int, centre: float) -> npt.NDArray[np.float64]:
        drawn = np.random.default_rng(seed).normal(size=(count, COLUMNS))
        return np.clip(centre + 0.08 * drawn, 0.0, 1.0)

    found = rehearse(session(0.02), place(60, 1, 0.75), place(40, 2, 0.25))
    assert min(each.ratio for each in found.staged[:3]) > 1.2, "hopeless by the other kinds"
    assert found.staged[3].ratio < 0.5
    assert found.word == "uncertain"


def test_it_is_the_same_every_time_and_says_how_far_it_is() -> None:
    shares: list[float] = []
    one = session(1.0, points=20)
    first = rehearse(one, curve(40, 1), curve(40, 2), progress=shares.append)
    assert rehearse(one, curve(40, 1), curve(40, 2)) == first
    assert len(shares) == 8 * one.rounds
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_where_the_kernel_tells_nothing_nothing_is_played() -> None:
    shares: list[float] = []
    equal = np.repeat(curve(1, 1), 40, axis=0)
    found = rehearse(session(1.0), equal, curve(40, 2), progress=shares.append)
    assert (found.word, found.staged, shares) == ("hopeless", (), [])
    assert found.kernel == pytest.approx(1.0)
    looked = Rehearsal((), 0.001, 0.002)
    assert rehearse(session(1.0), curve(40, 1), curve(40, 2), looked=looked).lines() == [
        "nothing was played: the mean kernel value of two rows is 0.001, of one and a seed 0.002"
    ]


def narrow(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Points of one narrow cluster, all alike to the session, whose bounds are right."""
    return 0.5 + np.random.default_rng(seed).normal(0, 0.01, (count, COLUMNS))


def test_a_narrow_validation_set_is_judged_by_whether_the_seed_set_is_told_from_it() -> None:
    one, related = session(1.0), curve(60, 2)
    found = rehearse(one, narrow(60, 1), related)
    assert found.kernel > 0.98 > (found.beside or 1.0)
    assert len(found.staged) == 4, "it is played"
    assert found.word in ("good", "uncertain")
    assert found.word == replace(found, drawn=False).word
    alike = looked_at(one, narrow(60, 1), narrow(60, 2))
    assert (alike.alike, alike.word) == (True, "hopeless"), "nothing shows that others are told from it"
    wide = session(1.0, upper=1000.0)
    assert looked_at(wide, curve(60, 1), curve(60, 2)).word == "hopeless", "bounds that are too wide"


def test_a_drawn_seed_set_shows_nothing_of_bounds_that_are_too_wide() -> None:
    wide = session(1.0, upper=1000.0)
    anywhere = 1000.0 * np.random.default_rng(1).random((60, COLUMNS))
    looked = looked_at(wide, curve(60, 1), anywhere, drawn=True)
    assert not looked.blind
    found = rehearse(wide, curve(60, 1), anywhere, looked=looked)
    assert found.word != "good"
    best = replace(found, staged=(Staged("some", 0.1, 1.0, 0.1, 1.0),) * 3)
    assert (best.word, replace(best, drawn=False).word) == ("uncertain", "good")
    assert "one of related data (`seed_set`) would" in best.meaning


def test_rows_of_categories_are_played_by_rows_of_the_schema() -> None:
    table: list[Column | dict[str, Any]] = [
        {"name": "kind", "kind": "category", "categories": ["a", "b", "c"]},
        {"name": "size", "kind": "number", "lower": 0.0, "upper": 1.0},
    ]
    schema = Schema.of(table)
    one = session(3.0, columns=schema.width)
    bounds = {"lower": list(schema.lower), "upper": list(schema.upper)}
    features = one.file.features.model_copy(update=bounds)
    file = one.file.model_copy(update={"columns": list(schema.columns), "features": features})
    generator = np.random.default_rng(1)
    rows = schema.drawn(60, generator)
    rows[:, :3] = [1.0, 0.0, 0.0]
    seeds = schema.drawn(30, generator)
    found = rehearse(open_session(file), rows, seeds)
    assert len(found.staged) == 4
    few = Sets(Dataset.from_arrays("few", rows[:5]), Dataset.from_arrays("seeds", seeds))
    planned = Rehearsing(anyway=True).verdict(open_session(file), lambda: few)
    assert planned.rehearsal is not None
    assert planned.rehearsal.expected is not None


def test_columns_of_few_values_are_played_though_rows_are_shared() -> None:
    def few(count: int, seed: int) -> npt.NDArray[np.float64]:
        return np.round(4.0 * curve(count, seed)) / 4.0

    one = session(1.0)
    declared = one.file.session.model_copy(update={"column_values": 5})
    found = rehearse(open_session(one.file.model_copy(update={"session": declared})), few(60, 1), few(30, 2))
    assert len(found.staged) == 4


def test_a_batch_that_open_points_have_no_room_for_is_played_all_the_same() -> None:
    assert rehearse(session(1.0, points=300, batch=300), curve(40, 1), curve(40, 2)).staged


def test_of_a_large_purchase_a_thousand_points_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    judge = Judge.judge

    def judging(self: Judge, points: npt.NDArray[np.float64], labels: Any) -> Any:
        compared.append(len(points))
        return judge(self, points, labels)

    monkeypatch.setattr(Judge, "judge", judging)
    monkeypatch.setattr("hushbid.plan.rehearsal.at_even_distances", lambda rows: at_even_distances(rows, 30))
    assert rehearse(session(1.0), curve(40, 1), curve(40, 2)).staged
    assert compared == [30] * 16


def test_it_is_of_the_session_and_of_no_other_rule_or_map() -> None:
    # What is bought of one owner with all points by `ask-all` is what `sealed` buys of several.
    sealed, opened = (
        rehearse(session(1.0, 20, rule=rule), curve(40, 1), curve(40, 2)) for rule in ("sealed", "ask-all")
    )
    assert sealed == opened
    assert rehearse(session(1.0, points=18), curve(40, 1), curve(40, 2)) != sealed


@pytest.mark.parametrize(("ratios", "verdict"), [
    ((1.5, 0.5, 0.1), "good"),
    ((0.1, 0.6, 0.1), "uncertain"),
    ((1.3, 1.3, 1.1), "uncertain"),
    ((1.2, 1.3, 5.0), "hopeless"),
    ((1.2, 1.3, 5.0, 1.2), "hopeless"),
    ((1.2, 1.3, 5.0, 1.1), "uncertain"),
    ((1.5, 0.5, 0.1, 9.0), "good"),
])  # fmt: skip
def test_verdicts(ratios: tuple[float, ...], verdict: str) -> None:
    staged = tuple(Staged("some", ratio, 1.0, ratio, 1.0) for ratio in ratios)
    found = Rehearsal(staged, 0.5)
    assert found.word == found.as_json()["verdict"] == verdict
    assert found.as_json()["why"] == found.meaning
    assert {Rehearsal(staged, kernel).word for kernel in (0.001, 0.99)} == {"hopeless"}
    assert Rehearsal((), 0.5, expected=ratios[0]).word == ("hopeless" if ratios[0] >= 1.0 else "uncertain")
    assert Rehearsal.from_json(found.as_json()) == found
    assert [each["mmd2_weighted"] for each in found.as_json()["staged"]] == list(ratios)
    without = tuple(replace(each, bought_plain=0.5) for each in staged)
    assert Rehearsal(without, 0.5).word == (
        "uncertain" if len(ratios) == 4 and verdict != "good" else verdict
    )


@pytest.mark.parametrize(
    ("plain", "verdict"), [(1.19, "hopeless"), (1.0, "hopeless"), (0.95, "hopeless"), (0.94, "uncertain")]
)
def test_points_like_the_seed_set_save_a_session_only_if_they_are_told_apart(
    plain: float, verdict: str
) -> None:
    """Chosen by noise alone, they are as far as a uniform choice of them."""
    staged = (*(Staged("some", 2.0, 1.0, 2.0, 1.0),) * 3, Staged("like the seed set", 2.0, 1.0, plain, 1.0))
    found = Rehearsal(staged, 0.5)
    assert (found.word, found.weights_alone) == (verdict, False)


def test_what_is_too_little_or_too_much_is_refused() -> None:
    with pytest.raises(DataError, match="it takes 8 rows"):
        rehearse(session(1.0), curve(FEWEST - 1, 1), curve(40, 2))
    with pytest.raises(DataError, match=r"it buys 50,000 points at most"):
        rehearse(session(1.0, points=MOST + 1), curve(40, 1), curve(40, 2))


def test_an_odd_number_of_rows_is_the_target_s_own_number() -> None:
    assert rehearse(session(1.0, points=10), curve(FEWEST + 1, 1), curve(40, 2)).staged


# -- labels of a few rows alone ----------------------------------------------------------------------------

CLASSES = {"classes": ["a", "b"]}


def labelled(count: int, rows: int = 40) -> Dataset:
    """D_v whose last rows, so many, have a label."""
    names = np.array(["a", "b"] * (rows // 2))
    return Dataset.from_arrays(
        "validation.csv", curve(rows, 1), names, labelled=np.arange(rows) >= rows - count
    )


@pytest.mark.parametrize("count", [1, FEWEST - 1])
def test_too_few_labelled_rows_to_rehearse_with_are_named_and_the_rule_of_thumb_decides(count: int) -> None:
    sets = Sets(labelled(count), Dataset.from_arrays("seed-set", curve(40, 2)))
    found = Rehearsing().measured(session(1.0, labels=CLASSES), sets)
    assert (
        found.why
        == f"it takes {FEWEST} rows of validation data that have a label, where the choice looks at labels"
    )
    assert found.rehearsal is not None
    assert found.rehearsal.expected is not None
    what, advice = what_is_wrong(session(1.0, labels=CLASSES), sets.validation.features, found)
    assert f"{FEWEST} rows of validation data that have a label" in what
    assert advice.startswith("Label more rows")


def test_each_half_of_a_rehearsal_has_labelled_rows() -> None:
    opened, given = session(1.0, labels=CLASSES), labelled(FEWEST)
    rows = coded(opened, given.features, given.known)
    for seed in range(20):
        order = evenly_labelled(opened, rows, np.random.default_rng(seed).permutation(40))
        assert sorted(order) == list(range(40))
        assert (rows[order[:20], -1] != UNKNOWN).sum() == FEWEST // 2
    assert rehearse(opened, given.features, curve(40, 2), labels=given.known).word is not None


def test_a_plan_refuses_an_unlabelled_validation_set_as_the_session_does() -> None:
    unlabelled = Dataset.from_arrays("validation.csv", curve(40, 1))
    with pytest.raises(DataError, match=r"validation\.csv has no labels"):
        Rehearsing().measured(session(1.0, labels=CLASSES), Sets(unlabelled, unlabelled))
