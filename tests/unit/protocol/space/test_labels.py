"""Labels in the choice: their effect on the kernel, bit by bit and on average."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.errors import ConfigError, DataError, LocalProtocolError
from hushbid.protocol.space.expansion import Expansion
from hushbid.protocol.space.features import FourierMap, feature_space
from hushbid.protocol.space.grid import features_to_float
from hushbid.protocol.space.labels import UNKNOWN, LabelCode, LabelTurns
from tests.unit.protocol.space.test_expansion import slow_normal

CLASSES = LabelCode(0.5, (3, 4, 7))
AMOUNTS = LabelCode(0.3, (), -1.0, 3.0)
POINTS = np.array([[0.2, 0.7], [0.2, 0.7], [0.9, 0.1]])


def labelled_map(code: LabelCode, dimension: int = 8, name: str = "paired") -> FourierMap:
    public: dict[str, Any] = {"dimension": dimension, "gamma": 0.7, "lower": 0.0, "upper": 1.0, "columns": 2}
    made = feature_space(name, **public).with_labels(code).map(5)
    assert isinstance(made, FourierMap)
    return made


def slow_turn(code: LabelCode, label: Any, frequency: int, frequencies: int, seed: int) -> int:
    """Docs/wire.md, "Labels", in Python's own numbers."""
    getcontext().prec = 50
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")
    width = int(((-Decimal(code.similarity).ln()).sqrt() / (2 * pi) * 2**28).to_integral_value())
    words = Expansion(b"hushbid label turns 1", seed).rows(frequencies, code.corners)[frequency]
    theta = [(slow_normal(int(word)) * width + 2**23) >> 24 for word in words]
    if label is None:
        return 0
    if code.classes:
        turn = theta[code.classes.index(label)]
    else:
        place = round((label - code.lower) / (code.upper - code.lower) * 2**16)
        turn = ((2**16 - place) * theta[0] + place * theta[1]) >> 16
    return (turn + 2**15) >> 16


@pytest.mark.parametrize(
    ("code", "labels"), [(CLASSES, [3, 7, None, 4.0]), (AMOUNTS, [-1.0, 3, None, 0.123])]
)
def test_turns_are_those_of_the_specification(code: LabelCode, labels: list[Any]) -> None:
    turns = LabelTurns(code, 6, 5).of(code.codes(labels))
    expected = [[slow_turn(code, label, f, 6, 5) for f in range(6)] for label in labels]
    assert turns.tolist() == expected


@pytest.mark.parametrize("name", ["paired", "cosine"])
@pytest.mark.parametrize(
    ("code", "pairs"),
    [
        (CLASSES, {(3, 3): 1.0, (3, 4): 0.5, (7, 4): 0.5, (3, None): 0.5**0.5, (None, None): 1.0}),
        (AMOUNTS, {(-1.0, 3.0): 0.3, (1.0, 1.0): 1.0, (-1.0, 1.0): 0.3**0.25, (3.0, None): 0.3**0.5}),
    ],
)
def test_the_kernel_of_points_is_multiplied_by_the_similarity_of_their_labels(
    name: str, code: LabelCode, pairs: dict[tuple[Any, Any], float]
) -> None:
    made = labelled_map(code, 4096, name)
    points = np.array([[0.2, 0.7], [0.5, 0.4]])
    alike = math.exp(-0.7 * (0.3**2 + 0.3**2))
    for labels, factor in pairs.items():
        first, second = features_to_float(made.hash(points, labels))
        assert first @ second == pytest.approx(alike * factor, abs=0.05)


def test_a_row_without_a_label_has_the_features_of_a_map_without_labels() -> None:
    plain = feature_space("paired", dimension=8, gamma=0.7, lower=0.0, upper=1.0, columns=2).map(5)
    assert np.array_equal(labelled_map(CLASSES).hash(POINTS, [None] * 3), plain.hash(POINTS))
    assert np.array_equal(plain.hash(POINTS, [3, 4, 7]), plain.hash(POINTS))
    assert labelled_map(CLASSES).digest != plain.digest
    assert labelled_map(CLASSES).digest != labelled_map(LabelCode(0.4, (3, 4, 7))).digest


def test_features_are_admitted_and_as_long_as_without_labels() -> None:
    made = labelled_map(CLASSES, 64)
    points = np.random.default_rng(0).uniform(size=(200, 2))
    labels = [CLASSES.classes[row % 3] for row in range(200)]
    features = made.hash(points, labels)
    assert made.space.admits(features).all()
    assert np.linalg.norm(features_to_float(features), axis=1).max() <= made.space.norm_bound


def test_long_tables_are_hashed_as_short_ones() -> None:
    made = labelled_map(AMOUNTS)
    rng = np.random.default_rng(1)
    points, labels = rng.uniform(size=(70_000, 2)), rng.uniform(-1.0, 3.0, size=70_000)
    hashed = made.hash(points, labels)
    for row in (0, 65_535, 65_536, 69_999):
        assert np.array_equal(hashed[row], made.hash(points[row : row + 1], labels[row : row + 1])[0])


def test_labels_have_to_be_given_to_a_map_that_looks_at_them() -> None:
    for labels in (None, [3, 4]):
        with pytest.raises(LocalProtocolError, match="labels"):
            labelled_map(CLASSES).hash(POINTS, labels)


@pytest.mark.parametrize(
    ("code", "labels", "expected"),
    [
        (CLASSES, [3, 5], r"Row 1 .*no class of the session's list"),
        (CLASSES, ["3", 3], r"Row 0 .*no class"),
        (CLASSES, [3, 3.5], r"Row 1 .*no class"),
        (AMOUNTS, [0.0, 3.01], r"Row 1 .*outside of the range"),
        (AMOUNTS, ["a", 0.0], r"Row 0 .*text where the session has amounts"),
    ],
)
def test_a_label_that_the_session_does_not_have_is_named_by_its_row(
    code: LabelCode, labels: list[Any], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        code.codes(labels)


def test_codes() -> None:
    assert CLASSES.codes(np.array([7, 3])).tolist() == [2, 0]
    assert LabelCode(0.5, ("no", "yes")).codes(["yes", None]).tolist() == [1, UNKNOWN]
    assert AMOUNTS.codes([-1.0, 1.0, None, 3.0]).tolist() == [0, 2**15, UNKNOWN, 2**16]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.0, (1, 2)), "similarity is 0"),
        ((1.0, (1, 2)), "similarity is 1"),
        ((0.5, (1,)), "one only"),
        ((0.5, (1, 2, 1)), "a class twice"),
        ((0.5, (), 1.0, 1.0), "no range"),
        ((0.5, (), 0.0, math.inf), "no range"),
    ],
)
def test_what_labels_cannot_be(arguments: tuple[Any, ...], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        LabelCode(*arguments)


def test_cells_of_hash_functions_have_no_place_for_labels() -> None:
    space = feature_space("lsh", dimension=8, gamma=1.0, lower=0.0, upper=1.0, columns=2)
    with pytest.raises(ConfigError, match="no place for labels"):
        space.with_labels(CLASSES)
