"""The weights of bought points beside own rows: candidates, folds, and a choice by own rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hushbid.consumer.learners import Learner, learner
from hushbid.consumer.matching import effective_points
from hushbid.consumer.training_weights import (
    FOLDS,
    Labelled,
    Share,
    ShareTrial,
    outcome,
    shares,
    tried,
    union,
)

RNG = np.random.default_rng(8)


def made(*, amounts: bool = False) -> Learner:
    found = learner("logistic", seed=0, amounts=amounts)
    assert isinstance(found, Learner)
    return found


def rows(count: int, *, turned: bool = False) -> Labelled:
    """Points whose class shows in their first column; `turned`: the other way round."""
    points = RNG.random((count, 3))
    return Labelled(points, ((points[:, 0] > 0.5) != turned).astype(np.int64))


def test_what_is_tried_are_own_rows_alone_and_three_totals_of_each_kind() -> None:
    plain, known = RNG.dirichlet(np.ones(50)), RNG.dirichlet(np.ones(50))
    labelled = np.arange(50) < 40
    found = list(shares({"labels": known, "plain": plain}, labelled))
    assert [share.kind for share in found] == ["none", *["labels"] * 3, *["plain"] * 3]
    assert found[0].total == found[0].weights.sum() == 0.0
    for kind, start in ((known, 1), (plain, 4)):
        held = kind[:40] / kind[:40].sum()
        effective = effective_points(held)
        totals = [share.total for share in found[start : start + 3]]
        assert totals == pytest.approx([effective / 4, effective, 40])
        for share in found[start : start + 3]:
            np.testing.assert_allclose(share.weights[:40], held * share.total)
            assert not share.weights[40:].any(), "no label, no weight"


def test_equal_totals_are_tried_once_and_points_without_weight_never() -> None:
    every = np.ones(20, dtype=np.bool_)
    totals = [share.total for share in shares({"equal": np.full(20, 0.05)}, every)]
    assert totals == pytest.approx([0.0, 5.0, 20.0])
    only = np.where(np.arange(20) < 10, 0.1, 0.0)
    assert [share.kind for share in shares({"plain": only}, np.arange(20) >= 10)] == ["none"]


def test_each_fold_has_its_part_of_every_class_and_of_the_amounts() -> None:
    nothing = (Share("none", 0.0, np.empty(0)),)
    own = Labelled(RNG.random((50, 2)), np.repeat([0, 1], [40, 10]))
    trial = tried(made(), own, own.of(np.zeros(50, dtype=np.bool_)), nothing, seed=0)
    assert [np.bincount(own.labels[trial.fold == part]).tolist() for part in range(FOLDS)] == [[8, 2]] * FOLDS
    again = tried(made(), own, own.of(np.zeros(50, dtype=np.bool_)), nothing, seed=0)
    assert np.array_equal(trial.losses, again.losses)
    assert not np.array_equal(trial.fold, tried(made(), own, own.of(np.zeros(50, bool)), nothing, 1).fold)


def test_points_that_help_get_weight_and_points_that_mislead_get_none() -> None:
    own, equal = rows(30), np.full(200, 1 / 200)
    found = tuple(shares({"plain": equal}, np.ones(200, dtype=np.bool_)))
    assert tried(made(), own, rows(200), found, seed=0).best.total > 0.0
    assert tried(made(), own, rows(200, turned=True), found, seed=0).best.kind == "none"


def test_amounts_are_chosen_by_squared_errors() -> None:
    points = RNG.random((230, 2))
    amounts = 4 * points[:, 0] - points[:, 1] + 0.05 * RNG.standard_normal(230)
    own, bought = Labelled(points[:30], amounts[:30]), Labelled(points[30:], amounts[30:])
    found = tuple(shares({"plain": np.full(200, 1 / 200)}, np.ones(200, dtype=np.bool_)))
    trial = tried(made(amounts=True), own, bought, found, seed=0)
    assert np.array_equal(trial.losses, trial.outcomes), "what is lost is what is judged"
    assert trial.best.total > 0.0
    misled = tried(made(amounts=True), own, replace(bought, labels=-bought.labels), found, seed=0)
    assert misled.best.kind == "none"


def test_a_row_has_no_part_in_the_choice_that_it_is_judged_by() -> None:
    """Two shares are each best on their own fold: judged by the other folds, none profits."""
    found = tuple(Share("plain", float(total), np.empty(0)) for total in (1, 2))
    fold = np.repeat([0, 1], 10)
    losses = np.array([np.where(fold == 0, 0.0, 1.0), np.where(fold == 1, 0.0, 1.0)])
    trial = ShareTrial(found, losses, 1.0 - losses, fold)
    assert trial.judged().tolist() == [0.0] * 20


def test_of_equal_losses_own_rows_alone_are_taken() -> None:
    found = (Share("none", 0.0, np.empty(0)), Share("plain", 1.0, np.empty(0)))
    assert ShareTrial(found, np.ones((2, 4)), np.ones((2, 4)), np.zeros(4, dtype=np.intp)).best.kind == "none"


def test_own_rows_weigh_one_in_the_training() -> None:
    own, bought = rows(4), rows(3)
    both, weights = union(own, bought, np.array([0.5, 0.25, 0.0]))
    assert len(both) == 7
    assert weights.tolist() == [1.0] * 4 + [0.5, 0.25, 0.0]
    assert outcome(made(), both, weights, own).shape == (4,)
