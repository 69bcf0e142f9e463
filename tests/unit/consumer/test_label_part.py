"""Labels in the weights: the added kernel, and MMD² that remains one of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.label_part import MOST_FOR_SURE, LabelPart, check_label_weight, label_part
from hushbid.consumer.matching import match
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.space.mmd import kernel_matrix, kernel_means

RNG = np.random.default_rng(11)
POINTS, WANTED = RNG.random((40, 3)), RNG.random((60, 3))
GAMMA = 2.0


def part(labels: Any, wanted: Any, strength: float = 0.6) -> LabelPart:
    found = label_part(labels, wanted, strength)
    assert found is not None
    return found


def similar(mine: list[Any], theirs: list[Any], width: float | None = None) -> npt.NDArray[np.float64]:
    """The module's similarity of every pair."""

    def one(first: Any, second: Any) -> float:
        if first is None or second is None:
            return 0.0
        return float(first == second) if width is None else float(np.exp(-((first - second) ** 2) / width))

    return np.array([[one(first, second) for second in theirs] for first in mine])


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("amounts", [False, True])
def test_the_kernel_is_that_of_features_and_of_labels(amounts: bool, gaps: bool) -> None:
    labels: list[Any] = (RNG.random(40) * 9).tolist() if amounts else RNG.integers(0, 3, 40).tolist()
    wanted: list[Any] = (RNG.random(60) * 9).tolist() if amounts else RNG.integers(0, 4, 60).tolist()
    if gaps:
        labels[3] = labels[17] = wanted[5] = wanted[6] = None
    known = [label for label in wanted if label is not None]
    width = None
    if amounts:
        squares = [(a - b) ** 2 for place, a in enumerate(known) for b in known[:place]]
        width = float(np.median(squares))
    found, strength = part(labels, wanted), 0.6
    plain = kernel_matrix(POINTS, GAMMA)
    beside = similar(labels, labels, width)
    np.fill_diagonal(beside, 1.0)  # a point is like itself, with a label or without
    kernel = plain.copy()
    found.add_to(kernel)
    np.testing.assert_allclose(kernel, (1 - strength) * plain + strength * beside, atol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9, "a kernel"
    np.testing.assert_allclose(found.cross, similar(labels, known, width).mean(axis=1), atol=1e-12)
    weights = RNG.dirichlet(np.ones(40))
    assert found.square(weights) == pytest.approx(weights @ beside @ weights)


def test_weights_with_labels_minimise_the_sum_of_both_distances() -> None:
    labels, wanted = RNG.integers(0, 2, 40), np.repeat([0, 1], [45, 15])
    found = match(POINTS, WANTED, GAMMA, ridge=0.5, labels=part(labels, wanted))
    kernel = 0.4 * kernel_matrix(POINTS, GAMMA) + 0.6 * similar(labels.tolist(), labels.tolist())
    cross = 0.4 * kernel_means(POINTS, WANTED, GAMMA) + 0.6 * np.where(labels == 0, 0.75, 0.25)

    def objective(weights: npt.NDArray[np.float64]) -> float:
        return float(weights @ kernel @ weights - 2 * weights @ cross + 0.5 * weights @ weights)

    least = objective(found.weights)
    for _ in range(200):
        other = 0.9 * found.weights + 0.1 * RNG.dirichlet(np.full(40, 0.2))
        assert objective(other) >= least - found.gap
    assert found.label_weight == 0.6
    # MMD² is of features: the same as of these weights without labels.
    plain = kernel_matrix(POINTS, GAMMA)
    constant = kernel_means(WANTED, WANTED, GAMMA).mean()
    features = found.weights @ plain @ found.weights - 2 * found.weights @ kernel_means(POINTS, WANTED, GAMMA)
    assert found.mmd2 == pytest.approx(float(features + constant), abs=1e-10)
    assert found.weights[labels == 0].sum() == pytest.approx(0.75, abs=0.05), "D_v's own share"


def test_classes_that_enough_own_rows_lack_get_no_weight() -> None:
    labels = np.repeat([0, 1, 7], [10, 10, 20])
    enough, few = np.arange(MOST_FOR_SURE) % 2, np.arange(MOST_FOR_SURE - 1) % 2
    sure = match(POINTS, WANTED, GAMMA, labels=part(labels, enough))
    assert sure.weights[labels == 7].sum() == 0.0
    assert sure.weights.sum() == pytest.approx(1.0)
    assert sure.gap <= 1e-7
    assert not part(labels, few).lacking.any(), "49 rows may lack a class that is wanted"
    assert label_part(np.full(40, 7), enough) is None, "where all points lack, labels say nothing"


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ([1] * 40, None),
        ([1] * 40, [1] * 9),
        ([1] * 40, [2] * 60),
        ([1] * 40, [None] * 60),
        ([None] * 40, [1] * 60),
        ([f"row {row}" for row in range(40)], [f"row {row}" for row in range(60)]),
        (["a"] * 40, np.linspace(0.5, 9.5, 60)),
        (np.linspace(0.5, 9.5, 40), [0.5]),
    ],
    ids=[
        "no labels",
        "too few",
        "none in common",
        "none known",
        "none bought",
        "names of rows",
        "text and amounts",
        "one amount",
    ],
)
def test_labels_that_say_nothing_add_nothing(labels: Any, wanted: Any) -> None:
    assert label_part(labels, wanted) is None


def test_no_strength_leaves_labels_out_and_one_is_refused() -> None:
    assert label_part([1] * 40, [1] * 60, 0.0) is None
    for strength in (1.0, -0.1, float("nan")):
        with pytest.raises(ConfigError, match="label_weight"):
            check_label_weight(strength)
