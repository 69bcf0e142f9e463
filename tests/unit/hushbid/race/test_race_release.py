"""The noise of a sketch: scales, costs, statements, and the effect of merging on them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import ApproximateCost, DiscreteGaussianCost, epsilon_of
from hushbid.protocol.privacy.noise import SecureNoise, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import L2Family
from hushbid.race import SketchPrivacy, calibrate, optimal_rows
from hushbid.race.marginals import measure_marginals
from hushbid.race.release import default_size_share
from hushbid.race.sketch import Sketch

ADD, SUBSTITUTE = Neighbours.ADD_REMOVE_ONE, Neighbours.SUBSTITUTE_ONE


def statement(neighbours: Neighbours = ADD, epsilon: float = 1.0, delta: float = 0.0) -> SketchPrivacy:
    calibration = calibrate(rows=100, cells=500, neighbours=neighbours, epsilon=epsilon, delta=delta)
    return calibration.privacy(SimulatedNoise(1, "owner"))


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 10.0])
def test_under_substitution_all_of_epsilon_goes_to_cells_of_which_2r_may_change(
    rows: int, epsilon: float
) -> None:
    calibration = calibrate(rows=rows, cells=5 * rows, neighbours=SUBSTITUTE, epsilon=epsilon)
    assert calibration.sizes is None
    assert calibration.cells.distribution == "discrete-laplace"
    assert calibration.cells.scale == pytest.approx(2 * rows / epsilon)
    assert calibration.costs == (
        ApproximateCost(epsilon=1.0 / calibration.cells.scale, delta=0.0, count=2 * rows),
    )


@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 10.0])
def test_under_addition_r_cells_may_change_and_the_size_has_a_share(rows: int, epsilon: float) -> None:
    calibration = calibrate(rows=rows, cells=5 * rows, neighbours=ADD, epsilon=epsilon, size_share=0.1)
    assert calibration.sizes is not None
    assert calibration.cells.scale == pytest.approx(rows / (0.9 * epsilon))
    assert calibration.sizes.scale == pytest.approx(1 / (0.1 * epsilon))
    assert calibration.sizes.size == 1


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("sizes", [1, 3])
@pytest.mark.parametrize("epsilon", [0.007, 0.1, 1.0, 3.0])
def test_what_is_stated_is_at_most_what_was_asked_for_and_hardly_less(
    neighbours: Neighbours, sizes: int, epsilon: float
) -> None:
    for delta in (0.0, 1e-6):
        calibration = calibrate(
            rows=300, cells=4000, sizes=sizes, neighbours=neighbours, epsilon=epsilon, delta=delta
        )
        stated = calibration.privacy(SecureNoise())
        assert 0.9 * epsilon < stated.epsilon <= epsilon * (1 + 1e-12)
        assert stated.delta == delta
        assert stated.protects
        assert stated.sources == ("secure",)
        if delta > 0.0:
            assert epsilon_of(stated.costs, delta) <= epsilon


def test_sizes_of_classes_are_not_public_under_substitution_as_a_record_may_change_its_class() -> None:
    calibration = calibrate(rows=10, cells=30, sizes=3, neighbours=SUBSTITUTE, epsilon=1.0, size_share=0.2)
    assert calibration.sizes is not None
    assert calibration.sizes.size == 3
    assert calibration.sizes.scale == pytest.approx(2 / 0.2)


def test_with_a_delta_many_rows_have_gaussian_noise_and_few_have_laplace_noise() -> None:
    many = calibrate(rows=1000, cells=9000, neighbours=SUBSTITUTE, epsilon=1.0, delta=1e-6)
    assert isinstance(many.costs[0], DiscreteGaussianCost)
    assert many.costs[0].sensitivity == math.sqrt(2000)
    few = calibrate(rows=2, cells=18, neighbours=SUBSTITUTE, epsilon=1.0, delta=1e-6)
    assert few.cells.distribution == "discrete-laplace"
    pure = calibrate(rows=1000, cells=9000, neighbours=SUBSTITUTE, epsilon=1.0)
    privacy = [calibration.privacy(SecureNoise()) for calibration in (many, pure)]
    assert privacy[0].cell_variance < 0.05 * privacy[1].cell_variance


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"size_share": 0.0},
        {"size_share": 1.0},
        {"size_share": 1e-17},
        {"epsilon": 1e-310},
    ],
    ids=str,
)
def test_noise_that_cannot_be_calibrated_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        calibrate(**{"rows": 10, "cells": 50, "neighbours": ADD, "epsilon": 1.0} | wrong)  # type: ignore[arg-type]


def test_half_of_what_makes_counts_private_releases_nothing() -> None:
    calibration = calibrate(rows=10, cells=50, neighbours=ADD, epsilon=1.0)
    family = L2Family(rows=10, width=5, lower=[0.0], upper=[1.0], seed=0, bandwidth=0.3)
    for half in ((calibration, None), (None, SimulatedNoise(1, "owner"))):
        with pytest.raises(LocalProtocolError, match="half"):
            Sketch.empty(family, *half)
        with pytest.raises(LocalProtocolError, match="half"):
            measure_marginals(np.zeros((20, 1)), 5, *half)


def test_a_relation_by_its_name_is_that_relation() -> None:
    assert calibrate(rows=10, cells=50, neighbours="substitute-one", epsilon=1.0) == calibrate(  # type: ignore[arg-type]
        rows=10, cells=50, neighbours=SUBSTITUTE, epsilon=1.0
    )


def test_the_default_share_of_the_size_has_the_least_error_of_a_density_of_about_a_third() -> None:
    for rows in (50, 1000):

        def error(share: float, rows: int = rows) -> float:
            return rows / (1 - share) ** 2 + 0.125 / share**2

        best = default_size_share(rows)
        assert error(best) <= min(error(1.05 * best), error(0.95 * best))


def test_rows_are_fewer_the_smaller_epsilon_is_and_half_under_substitution() -> None:
    assert optimal_rows(57_535, 0.01, neighbours=ADD) == 117
    assert optimal_rows(57_535, 0.01, neighbours=SUBSTITUTE) == 59
    assert optimal_rows(10, 0.01, neighbours=ADD) == 1


def test_the_number_of_rows_has_about_the_least_variance_if_counts_are_anywhere_as_likely() -> None:
    size, epsilon = 10_000.0, 0.1

    def variance(rows: float) -> float:
        return size**2 / 12 / rows + 2 * rows / epsilon**2

    best = optimal_rows(size, epsilon, neighbours=ADD)
    assert variance(best) <= min(variance(0.9 * best), variance(1.1 * best))


# Merging


def test_of_disjoint_datasets_the_larger_epsilon_holds() -> None:
    small, large = statement(epsilon=0.5), statement(epsilon=2.0)
    merged = small.merged(large, "disjoint")
    assert merged.epsilon == pytest.approx(2.0)
    assert merged.epsilon <= 2.0 * (1 + 1e-12)
    assert merged.cell_variance == pytest.approx(small.cell_variance + large.cell_variance)
    assert merged.size_variance == pytest.approx(small.size_variance + large.size_variance)
    assert small.merged(small, "disjoint").costs == small.costs


def test_of_shared_records_costs_add_up() -> None:
    one, other = statement(epsilon=0.5, delta=1e-6), statement(epsilon=2.0)
    merged = one.merged(other, "shared")
    assert merged.costs == one.costs + other.costs
    assert one.merged(one, "shared").delta == 2e-6
    assert merged.delta == 1e-6
    assert merged.epsilon <= 2.5 * (1 + 1e-9)
    assert statement(epsilon=0.5).merged(other, "shared").epsilon == pytest.approx(2.5)


def test_relations_do_not_mix_and_what_records_are_has_to_be_said() -> None:
    with pytest.raises(ConfigError, match="one neighbour relation"):
        statement(ADD).merged(statement(SUBSTITUTE), "disjoint")
    with pytest.raises(ConfigError, match="disjoint"):
        statement().merged(statement(), "both")  # type: ignore[arg-type]


def test_a_sum_protects_if_all_of_its_noise_does() -> None:
    secure = replace(statement(), sources=("secure",), protects=True)
    merged = secure.merged(statement(), "disjoint")
    assert merged.sources == ("secure", "simulated")
    assert not merged.protects
