"""The operator's baselines, and the consumer's downstream models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.cluster import evaluation
from hushbid.cluster.evaluation import (
    AT_RANDOM,
    GREEDY,
    UNLIKE_LEVEL,
    Baselines,
    evaluate,
    greedy,
    too_large,
    uniform,
    unlike,
)
from hushbid.cluster.file import open_cluster
from hushbid.consumer.appraisal import Judgement
from hushbid.consumer.downstream import accuracy
from hushbid.consumer.learners import MODELS
from hushbid.datasets import Partition, Table, build
from hushbid.protocol.config.session import NetworkSection, RosterSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space import scoring
from hushbid.protocol.space.features import FeatureMap, feature_map
from hushbid.protocol.space.grid import FEATURE_UNIT, Features
from hushbid.protocol.space.mmd import mmd2


def map_of(partition: Partition) -> FeatureMap:
    return feature_map(
        "paired",
        seed=0,
        dimension=140,
        gamma=float(partition.suggested["gamma"]),
        lower=partition.lower,
        upper=partition.upper,
        columns=partition.columns,
    )


def baselines(partition: Partition, *, p: int, seed: int = 0) -> Baselines:
    return evaluate(
        partition.owners,
        partition.validation,
        partition.seed_set.features,
        map_of(partition),
        p=p,
        seed=seed,
        test=partition.test,
        model=str(partition.suggested["model"]),
    )


def unlabelled(partition: Partition, *, p: int, seed: int = 0, **options: Any) -> Baselines:
    """The baselines without a model, which take a moment."""
    wanted = Dataset.from_arrays("validation", partition.validation.features)
    return evaluate(
        partition.owners, wanted, partition.seed_set.features, map_of(partition), p=p, seed=seed, **options
    )


@pytest.fixture(scope="module")
def of_a_hundred() -> Baselines:
    return baselines(build("digits", seed=0), p=100)


class TestGreedy:
    GENERATOR = np.random.default_rng(3)

    def hashes(self, rows: int) -> Features:
        return (self.GENERATOR.integers(-3, 4, size=(rows, 8)) * 1000).astype(np.int16)

    @staticmethod
    def objective(total: np.ndarray, count: int, target: np.ndarray) -> float:
        """‖mean - g̃‖², the squared distance to D_v's embedding."""
        return float(np.square(total * FEATURE_UNIT / count - target).sum())

    @pytest.mark.parametrize("seeds", [0, 5])
    def test_it_takes_the_point_that_comes_closest_of_all(self, seeds: int) -> None:
        """Against brute force on the objective.

        All points have one norm, so the best gain is the closest point's.
        """
        signs = np.random.default_rng(seeds).choice([-1, 1], size=(90, 8))
        phi = (signs * 8192).astype(np.int16)
        owners = {"a": phi[:40], "b": phi[40:60]}
        validation, seed_set = phi[60:80], phi[80 : 80 + seeds]
        target = validation.mean(axis=0) * FEATURE_UNIT
        total, count = seed_set.sum(axis=0, dtype=np.int64), len(seed_set)
        taken: set[tuple[str, int]] = set()
        for name, row in greedy(owners, validation, seed_set, 25, 1.0):
            distances = {
                (owner, index): self.objective(total + hashed, count + 1, target)
                for owner, rows in owners.items()
                for index, hashed in enumerate(rows)
                if (owner, index) not in taken
            }
            assert distances[name, row] == pytest.approx(min(distances.values()), abs=1e-12)
            taken.add((name, row))
            total, count = total + owners[name][row], count + 1
        assert len(taken) == 25

    def test_it_does_not_depend_on_the_order_of_the_owners(self) -> None:
        owners = {name: self.hashes(30) for name in "abc"}
        backwards = {name: owners[name] for name in "cba"}
        validation, seed_set = self.hashes(9), self.hashes(4)
        assert greedy(owners, validation, seed_set, 20, 1.0) == greedy(
            backwards, validation, seed_set, 20, 1.0
        )

    def test_owners_that_have_fewer_points_than_asked_for(self) -> None:
        owners = {"a": self.hashes(3), "b": self.hashes(0), "c": self.hashes(2)}
        chosen = greedy(owners, self.hashes(4), self.hashes(2), 99, 1.0)
        assert sorted(chosen) == [("a", 0), ("a", 1), ("a", 2), ("c", 0), ("c", 1)]


class TestUniform:
    @pytest.mark.parametrize(
        ("sizes", "p", "shares"),
        [
            ({"a": 9, "b": 9, "c": 9}, 6, {"a": 2, "b": 2, "c": 2}),
            ({"a": 9, "b": 9, "c": 9}, 7, {"a": 3, "b": 2, "c": 2}),
            ({"a": 1, "b": 9, "c": 9}, 7, {"a": 1, "b": 3, "c": 3}),
            ({"a": 2, "b": 0, "c": 1}, 9, {"a": 2, "c": 1}),
            ({"a": 5}, 0, {}),
        ],
        ids=["even", "remainder", "short owner", "fewer than p", "none"],
    )
    def test_shares(self, sizes: dict[str, int], p: int, shares: dict[str, int]) -> None:
        chosen = uniform(sizes, p, np.random.default_rng(0))
        assert len(set(chosen)) == len(chosen)
        assert all(0 <= row < sizes[name] for name, row in chosen)
        counts = {name: sum(owner == name for owner, _ in chosen) for name in sizes}
        assert {name: count for name, count in counts.items() if count} == shares


class TestEvaluate:
    def test_greedy_beats_uniform_on_digits(self, of_a_hundred: Baselines) -> None:
        found = of_a_hundred
        assert found.greedy.plain.mmd2 is not None
        assert found.uniform.plain.mmd2 is not None
        assert found.greedy.plain.mmd2 < 0.5 * found.uniform.plain.mmd2
        assert found.greedy.plain.accuracy is not None
        assert found.uniform.plain.accuracy is not None
        assert found.greedy.plain.accuracy > found.uniform.plain.accuracy

    def test_the_curves_lead_to_the_figures(self, of_a_hundred: Baselines) -> None:
        found = of_a_hundred
        for curve, whole in (
            (found.greedy_by_round, found.greedy.plain.mmd2),
            (found.uniform_by_round, found.uniform.plain.mmd2),
        ):
            assert len(curve) == 100
            assert curve[-1] == pytest.approx(whole, abs=1e-12)

    def test_the_first_points_of_the_uniform_choice_are_of_all_owners(self) -> None:
        """Owner by owner, they would come from one group of digits, and twice as far from D_v."""
        partition = build("digits", seed=0)
        chosen = [unlabelled(partition, p=100, seed=seed, with_greedy=False) for seed in range(8)]
        firsts = [each.uniform_by_round[19] for each in chosen]
        space, table = map_of(partition).space, partition.owners["digits-01"]
        target = space.scale(partition.validation.features)
        of_one = mmd2(space.scale(table.features[:20]), target, space.gamma)
        assert np.mean(firsts) < 0.75 * of_one

    def test_the_same_seed_gives_the_same(self) -> None:
        partition = build("digits", seed=0)
        found = baselines(partition, p=40)
        assert found == baselines(partition, p=40)
        assert found.uniform != baselines(partition, p=40, seed=1).uniform

    def test_without_labels_or_test_points_there_is_no_accuracy(self) -> None:
        partition = build("digits", seed=0)
        bare = {name: Dataset.from_arrays(name, table.features) for name, table in partition.owners.items()}
        points = partition.validation, partition.seed_set.features, map_of(partition)
        for owners, test in ((bare, partition.test), (partition.owners, None)):
            found = evaluate(owners, *points, p=30, seed=0, test=test)
            assert found.greedy.plain.accuracy is None
            assert found.uniform.plain.accuracy is None
            assert found.greedy.plain.mmd2

    def test_owners_without_points(self) -> None:
        partition = build("digits", seed=0)
        none = {"a": Table(np.empty((0, 64), np.uint8), np.empty(0, np.uint8))}
        found = evaluate(
            none, partition.validation, partition.seed_set.features, map_of(partition), p=5, seed=0
        )
        assert found.greedy == found.uniform == Judgement()
        assert found.greedy_by_round == found.uniform_by_round == ()

    def test_a_greedy_choice_that_is_too_large_is_left_out_with_a_reason_unless_it_is_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        partition = build("digits", seed=0)
        whole = unlabelled(partition, p=40)
        assert whole.not_computed == ()
        rows = sum(len(table) for table in partition.owners.values())
        for bound, most in (("MOST_READ", rows * 140 * 40), ("MOST_HELD", rows * 140 * 3)):
            monkeypatch.setattr(evaluation, bound, most)
            assert unlabelled(partition, p=40) == whole
            monkeypatch.setattr(evaluation, bound, most - 1)
            found = unlabelled(partition, p=40)
            [left_out] = found.not_computed
            assert left_out.figure == "greedy"
            assert left_out.why.startswith(f"among {rows:,} rows it takes about a minute")
            assert found == replace(
                whole, greedy=Judgement(), greedy_by_round=(), not_computed=found.not_computed
            )
            assert unlabelled(partition, p=40, with_greedy=True) == whole
            monkeypatch.undo()
        [unwanted] = unlabelled(partition, p=40, with_greedy=False).not_computed
        assert unwanted.why == "`run.greedy` is false"

    def test_points_with_prices_take_more_memory(self) -> None:
        names = [f"digits-{number:02}" for number in (1, 23, 45, 67, 89)]
        cluster = open_cluster(Path("digits"), settings={"wishes.prices": dict.fromkeys(names, 2.0)})
        network = NetworkSection(address="tcp://127.0.0.1:*", insecure=True)
        file = cluster.session_file(RosterSection(owners=dict.fromkeys(names, "")), network)
        assert too_large(10**6, 100, 1) == ""
        assert too_large(10**6, 100, 1, open_session(file)).endswith(" and 2.0 GB")

    def test_where_features_lie_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        partition = build("digits", seed=0)
        in_memory = unlabelled(partition, p=40)
        kinds: list[type] = []

        class Seen(scoring.Points):
            def __init__(self, features: Features, **kept: Any) -> None:
                kinds.append(type(features))
                super().__init__(features, **kept)

        monkeypatch.setattr(scoring, "Points", Seen)
        monkeypatch.setattr(evaluation, "_IN_MEMORY", 0)
        assert unlabelled(partition, p=40) == in_memory
        assert kinds == [np.memmap]

    def test_it_is_told_how_far_the_work_is(self) -> None:
        told: list[tuple[str, float | None]] = []
        unlabelled(build("digits", seed=0), p=4, told=lambda *step: told.append(step))
        assert told == [(AT_RANDOM, None), *((GREEDY, share) for share in (0.0, 0.25, 0.5, 0.75))]

    def test_the_reference_figures_of_mnist(self, shared_data: Callable[[str], Path]) -> None:
        found = unlabelled(build("mnist", path=shared_data("mnist.npz"), seed=0), p=1000)
        assert found.greedy.plain.mmd2 == pytest.approx(0.0023, abs=0.0005)
        assert found.uniform.plain.mmd2 == pytest.approx(0.038, abs=0.006)

    def test_the_reference_figures_of_insurance(self, shared_data: Callable[[str], Path]) -> None:
        found = baselines(build("insurance", path=shared_data("allstate.csv.gz"), seed=0), p=1000)
        assert found.greedy.plain.mmd2 == pytest.approx(0.0006, abs=0.0004)
        assert found.uniform.plain.mmd2 == pytest.approx(0.077, abs=0.01)
        assert found.greedy.plain.accuracy == pytest.approx(0.67, abs=0.03)


@pytest.mark.parametrize("model", MODELS)
class TestDownstream:
    GENERATOR = np.random.default_rng(0)
    FEATURES = np.concatenate([GENERATOR.uniform(0, 0.4, (60, 3)), GENERATOR.uniform(0.6, 1, (60, 3))])

    def judge(self, model: str, labels: object, test_labels: object) -> float | None:
        return accuracy(model, self.FEATURES, labels, self.FEATURES, test_labels, seed=0)  # type: ignore[arg-type]

    def test_two_clouds_are_told_apart(self, model: str) -> None:
        for low, high in ((3, 4), ("no", "yes"), (0.0, 1.5)):
            labels = [low] * 60 + [high] * 60
            found = self.judge(model, labels, np.array(labels))
            assert found is not None
            assert found > 0.95

    def test_numbers_are_compared_as_numbers_and_text_as_text(self, model: str) -> None:
        labels = [3] * 60 + [4] * 60
        assert self.judge(model, labels, np.array(labels, dtype=np.float32)) == self.judge(
            model, labels, labels
        )
        assert self.judge(model, labels, ["3"] * 60 + ["4"] * 60) == 0.0

    def test_the_same_seed_gives_the_same(self, model: str) -> None:
        labels = self.GENERATOR.integers(0, 3, 120)
        assert self.judge(model, labels, labels) == self.judge(model, labels, labels)

    def test_points_without_a_label_are_left_out(self, model: str) -> None:
        labels = [0] * 60 + [1] * 60
        gaps = [label if row % 2 else None for row, label in enumerate(labels)]
        found = self.judge(model, gaps, gaps)
        assert found is not None
        assert found > 0.95

    def test_nothing_to_judge(self, model: str) -> None:
        labels = [0] * 60 + [1] * 60
        assert self.judge(model, [1] * 120, labels) is None
        assert self.judge(model, [None] * 120, labels) is None
        assert self.judge(model, labels, [None] * 120) is None

    def test_a_class_that_was_not_trained_on_is_got_wrong(self, model: str) -> None:
        assert self.judge(model, [0] * 60 + [1] * 60, [2] * 120) == 0.0


def test_an_unknown_model_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="'forest'"):
        accuracy("forest", np.ones((2, 1)), [0, 1], np.ones((2, 1)), [0, 1], seed=0)


class TestUnlike:
    @staticmethod
    def rows(count: int, seed: int, shift: float = 0.0) -> np.ndarray:
        return np.random.default_rng(seed).normal(shift, 1.0, (count, 3))

    def test_sets_of_one_distribution_are_rarely_called_unlike(self) -> None:
        """False in at most 1 %: 10 or more of 300 pairs have a probability below 0.001."""
        assert UNLIKE_LEVEL == 0.01
        found = [unlike(self.rows(30, 2 * seed), self.rows(20, 2 * seed + 1), 0.3) for seed in range(300)]
        assert 0 < sum(found) < 10

    def test_sets_of_others_are_and_the_same_every_time(self) -> None:
        assert [unlike(self.rows(200, 1), self.rows(100, 2, 0.7), 0.3) for _ in range(2)] == [True, True]

    def test_of_large_sets_a_thousand_rows_are_compared(self) -> None:
        many = self.rows(3000, 3)
        many[1::3] += 50.0
        assert not unlike(many, self.rows(500, 4), 0.3), "every third row, from the first on"

    def test_equal_rows_are_alike(self) -> None:
        assert not unlike(np.full((5, 2), 0.1), np.full((7, 2), 0.1), 1.0)

    def test_baselines_say_whether_the_test_points_are_like_what_is_wanted(self) -> None:
        rows = {name: Dataset.from_arrays(name, 0.1 * self.rows(60, 5) + 0.5) for name in ("north", "test")}
        space = feature_map("paired", seed=0, dimension=8, gamma=1.0, lower=0.0, upper=1.0, columns=3)
        wanted, far = 0.1 * self.rows(40, 6) + 0.5, 0.02 * self.rows(40, 6) + 0.2

        def found(validation: np.ndarray, test: Dataset | None) -> bool | None:
            owners = {"north": rows["north"]}
            return evaluate(
                owners, Dataset("validation", validation), far, space, p=5, seed=0, test=test
            ).test_unlike

        assert [found(wanted, None), found(wanted, rows["test"]), found(far, rows["test"])] == [
            None,
            False,
            True,
        ]
