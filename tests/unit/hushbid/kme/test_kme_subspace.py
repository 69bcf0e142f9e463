"""Algorithm 1: the span of public points, its sensitivity, and the weights made of noisy coordinates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushbid.kme import shrinkage
from hushbid.kme.kernels import distance, kernel, kernel_means, squared_norm
from hushbid.kme.mechanisms import SubspaceMechanism
from hushbid.kme.shrinkage import ball_weights, shrunk_weights
from hushbid.kme.subspace import (
    BASIS_BITS,
    COORDINATE_BITS,
    COORDINATE_UNIT,
    KERNEL_BITS,
    Subspace,
    _exact_product,
    span,
)
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.releases import Neighbours

GAMMA = 30.0


def subspace(count: int = 120, columns: int = 2, seed: int = 0) -> Subspace:
    points = np.random.default_rng(seed).uniform(size=(count, columns))
    return span(points, GAMMA, np.random.default_rng(1))


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_the_basis_is_as_orthonormal_as_it_says(columns: int) -> None:
    found = subspace(columns=columns)
    pivots = found.points[found.pivots]
    gram = found.basis @ kernel(pivots, pivots, GAMMA) @ found.basis.T
    deviation = np.abs(np.linalg.eigvalsh(gram - np.eye(found.rank))).max()
    assert 0 < deviation <= found.deviation < 0.01


def test_public_points_are_their_coordinates_up_to_the_stated_residual() -> None:
    found = subspace()
    missed = kernel(found.points, found.points, GAMMA) - found.coordinates @ found.coordinates.T
    assert found.rank < len(found.points)
    assert np.abs(missed).max() <= 1.1e-6


def worst_pairs(found: Subspace) -> tuple[np.ndarray, np.ndarray]:
    """Records: the public points themselves (whose vectors are longest), random ones, and the corners."""
    generator = np.random.default_rng(7)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * found.points.shape[1]), axis=-1).reshape(
        -1, found.points.shape[1]
    )
    records = np.concatenate(
        [found.points, generator.uniform(size=(200, found.points.shape[1])), corners, corners * 0.5]
    )
    return records, generator.permutation(len(records))


def test_neighbours_differ_by_no_more_than_the_sensitivity_and_hardly_less_in_the_worst_case() -> None:
    found = subspace()
    records, _ = worst_pairs(found)
    shared = np.random.default_rng(3).uniform(size=(50, 2))
    without = found.totals(shared)
    vectors = np.stack([found.totals(np.vstack([shared, record])) - without for record in records])
    lengths = np.linalg.norm(vectors.astype(float), axis=1)
    apart = np.linalg.norm(vectors[:, None].astype(float) - vectors[None], axis=2)
    assert lengths.max() <= found.record_norm
    assert apart.max() <= found.distance
    assert lengths.max() > 0.99 * found.record_norm
    assert apart.max() > 0.98 * found.distance


def test_the_sensitivity_of_the_paper_would_be_more_and_a_smaller_one_too_little() -> None:
    """√2/N, not 2/N; and a control: records that are far apart exceed 1.3/N."""
    found = subspace()
    assert found.distance * COORDINATE_UNIT == pytest.approx(math.sqrt(2.0), rel=1e-3)
    ends = np.array([[0.01, 0.01], [0.99, 0.99]])
    one, other = (found.totals(found.points[[np.argmin(((found.points - end) ** 2).sum(1))]]) for end in ends)
    assert np.linalg.norm((one - other).astype(float)) * COORDINATE_UNIT > 1.3


def test_a_record_is_as_far_from_the_span_as_its_number_says() -> None:
    found = subspace(60)
    data = np.random.default_rng(8).uniform(size=(200, 2))
    pivots = found.points[found.pivots]
    across = kernel(data, pivots, GAMMA)
    inside = np.sum(across * np.linalg.solve(kernel(pivots, pivots, GAMMA), across.T).T, axis=1)
    exact = np.sqrt(np.maximum(0.0, 1.0 - inside))
    unit = 2**17
    numbers = np.array([found.distances(record[None], unit) for record in data])
    assert ((exact - 1e-9) * unit <= numbers).all()
    assert (numbers <= np.sqrt(exact**2 + 1.1e-6) * unit + 1).all()
    assert numbers.max() <= unit
    # Each record's own whole number, whichever records are beside it.
    assert found.distances(data, unit) == numbers.sum()
    assert found.distances(data[::-1][:77], unit) == numbers[::-1][:77].sum()


def test_records_far_from_all_public_points_are_one_away() -> None:
    points = np.random.default_rng(0).uniform(0.0, 0.1, size=(40, 3))
    found = span(points, 400.0, np.random.default_rng(1))
    assert found.distances(np.full((5, 3), 0.9), 1000) == 5000
    assert found.distances(points, 1000) <= 40 * 3


def test_with_the_distance_beside_the_span_neighbours_differ_by_no_more_than_the_sensitivity() -> None:
    for relation in Neighbours:
        mechanism = SubspaceMechanism(
            subspace().points,
            gamma=GAMMA,
            norm=math.inf,
            seed=0,
            neighbours=relation,
            epsilon=1.0,
            delta=1e-6,
        )
        records, _ = worst_pairs(mechanism.span)
        vectors = np.stack([mechanism.totals(record[None]) for record in records]).astype(float)
        (cost,) = mechanism.calibration.costs
        sensitivity = cost.sensitivity  # type: ignore[union-attr]
        if relation is Neighbours.SUBSTITUTE_ONE:
            changed = np.linalg.norm(vectors[:, None] - vectors[None], axis=2).max()
        else:
            changed = np.hypot(np.linalg.norm(vectors, axis=1), mechanism.calibration.count_unit).max()
        assert 0.97 * sensitivity < changed <= sensitivity
        assert mechanism.calibration.draw.size == mechanism.span.rank + 1 + (
            relation is Neighbours.ADD_REMOVE_ONE
        )


def test_totals_do_not_depend_on_the_order_of_records() -> None:
    found = subspace()
    data = np.random.default_rng(2).uniform(size=(3001, 2))
    shuffled = np.random.default_rng(3).permutation(data)
    assert np.array_equal(found.totals(data), found.totals(shuffled))


def test_the_product_with_the_basis_is_exact() -> None:
    generator = np.random.default_rng(4)
    basis = np.rint(generator.normal(0, 2.0**50, (6, 6))) * 2.0**-BASIS_BITS
    sums = generator.integers(0, 2**61, 6)
    shift = KERNEL_BITS + BASIS_BITS - COORDINATE_BITS
    whole = [[int(entry * 2.0**BASIS_BITS) for entry in row] for row in basis]
    expected = [
        (sum(entry * int(value) for entry, value in zip(row, sums, strict=True)) + 2 ** (shift - 1)) >> shift
        for row in whole
    ]
    if max(map(abs, expected)) < 2**63:
        assert _exact_product(basis, sums).tolist() == expected
    scaled = sums >> 20
    expected = [
        (sum(entry * int(value) for entry, value in zip(row, scaled, strict=True)) + 2 ** (shift - 1))
        >> shift
        for row in whole
    ]
    assert _exact_product(basis, scaled).tolist() == expected


def test_without_noise_the_release_is_the_projection() -> None:
    found = subspace(300)
    data = np.random.default_rng(5).beta(2, 5, size=(2000, 2))
    mean = np.asarray(found.totals(data) * (COORDINATE_UNIT / len(data)), dtype=np.float64)
    weights, risk = shrunk_weights(found.coordinates, mean, 1e-9, math.inf)
    squared = squared_norm(data, GAMMA)
    projection = math.sqrt(squared - mean @ mean)
    assert distance(found.points, weights, data, GAMMA, squared) == pytest.approx(projection, abs=2e-5)
    assert risk.distance(2.0) < 1e-6


@pytest.mark.parametrize(("sigma", "share"), [(1e-3, 1.0), (1e-2, 0.5)])
def test_shrinkage_is_better_than_none_and_its_risk_is_estimated_well(sigma: float, share: float) -> None:
    """30 draws of noise; a mean of estimates would miss by three standard errors once in 400 times."""
    found = subspace(100)
    data = np.random.default_rng(5).beta(2, 5, size=(2000, 2))
    mean = np.asarray(found.totals(data) * (COORDINATE_UNIT / len(data)), dtype=np.float64)
    generator = np.random.default_rng(6)
    losses, estimates, covered = [], [], 0
    for _ in range(30):
        noisy = mean + generator.normal(0, sigma, found.rank)
        weights, risk = shrunk_weights(found.coordinates, noisy, sigma, math.inf)
        loss = float(np.sum((weights @ found.coordinates - mean) ** 2))
        losses.append(loss)
        estimates.append(risk.mean)
        covered += math.sqrt(loss) <= risk.distance(1.645)
    assert np.mean(losses) < share * found.rank * sigma**2
    excess = np.array(estimates) - np.array(losses)
    # λ is chosen by the estimate, which then is a little low.
    assert abs(excess.mean()) < 0.35 * np.mean(losses) + 3 * excess.std() / math.sqrt(30)
    assert covered >= 25


@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 1e-3, 1e-2, 0.1])
def test_weights_of_large_spans_are_nearly_as_good_as_those_by_eigenvectors(
    sigma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = subspace(400, columns=5)
    data = np.random.default_rng(5).beta(2, 5, size=(2000, 5))
    mean = np.asarray(found.totals(data) * (COORDINATE_UNIT / len(data)), dtype=np.float64)
    noisy = mean + np.random.default_rng(6).normal(0, sigma, found.rank)
    losses, risks = [], []
    for largest in (found.rank, 0):
        monkeypatch.setattr(shrinkage, "LARGE_RANK", largest)
        weights, risk = shrunk_weights(found.coordinates, noisy, sigma, math.inf)
        losses.append(float(np.sum((weights @ found.coordinates - mean) ** 2)))
        risks.append(risk)
    assert losses[1] <= 1.3 * losses[0] + 1e-12
    assert risks[1].mean == pytest.approx(risks[0].mean, abs=2.0 * risks[0].deviation + 1e-12)
    assert risks[1].deviation == pytest.approx(risks[0].deviation, rel=0.5)


def test_weights_beyond_the_ball_are_brought_into_it_exactly() -> None:
    found = subspace(60)
    data = np.random.default_rng(5).beta(2, 5, size=(2000, 2))
    mean = np.asarray(found.totals(data) * (COORDINATE_UNIT / len(data)), dtype=np.float64)
    free, _ = shrunk_weights(found.coordinates, mean, 1e-8, math.inf)
    assert np.abs(free).sum() > 3.0
    for norm in (1.0, 2.0):
        weights, risk = shrunk_weights(found.coordinates, mean, 1e-8, norm)
        assert math.fsum(np.abs(weights)) <= norm
        assert risk.excess == pytest.approx(np.linalg.norm(weights @ found.coordinates - mean), rel=0.01)
        fitted = np.linalg.norm(weights @ found.coordinates - mean)
        start = np.full(60, 1.0 / 60)
        assert fitted < 0.3 * np.linalg.norm(start @ found.coordinates - mean)


def test_weights_in_the_ball_are_found_where_they_are_known() -> None:
    """The target is a mixture of three public points: its weights come back."""
    coordinates = np.eye(8)
    target = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0])
    found = ball_weights(coordinates, target, 1.0, start=np.full(8, 0.125))
    assert np.abs(found - target).max() < 1e-4
    signed = ball_weights(coordinates, np.array([1.5, -0.5, 0, 0, 0, 0, 0, 0.0]), 2.0, start=np.full(8, 0.1))
    assert signed[:2] == pytest.approx([1.5, -0.5], abs=1e-3)


def test_kernel_means_and_distance_are_what_they_say() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.uniform(size=(40, 3)), generator.uniform(size=(30, 3))
    dense = np.exp(-2.0 * ((x[:, None] - y[None]) ** 2).sum(-1))
    assert kernel_means(x, y, 2.0) == pytest.approx(dense.mean(axis=1))
    assert distance(x, np.full(40, 1 / 40), x, 2.0, squared_norm(x, 2.0)) < 1e-7


def test_too_many_points_are_refused() -> None:
    with pytest.raises(ConfigError, match="public points"):
        span(np.zeros((0, 2)), GAMMA, np.random.default_rng(0))
