"""A drawn seed set: within the bounds, of D_v's number type, and the same after a restart."""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.consumer.drawn_seed_set import STREAM, drawn_seed_set
from hushbid.consumer.process import consumer_seed_set, drawn_path
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import FeatureSection, NoiseSection
from hushbid.protocol.data import Dataset, check_dataset
from hushbid.protocol.data.dataset import FEATURE_DTYPES
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import Session, open_session
from tests.simulation.harness import names, session_file

OWN = {"state": "state", "validation": "v.npz"}


def section(lower: Any = 0.0, upper: Any = 1.0, columns: int = 2) -> FeatureSection:
    given = {"gamma": 1.0, "seed": 0, "columns": columns, "lower": lower, "upper": upper}
    return validated(FeatureSection, given, where="x")


def draw(features: FeatureSection, count: int, dtype: Any, **options: Any) -> Dataset:
    return drawn_seed_set(features, count, np.dtype(dtype), SimulatedNoise(0, STREAM).random_bytes, **options)


@pytest.mark.parametrize("dtype", FEATURE_DTYPES, ids=str)
@pytest.mark.parametrize("bounds", [(-3.5, 3.5), ([0.0, 9.25], [1.0, 1000.5]), (-1e12, 1e12)], ids=str)
def test_it_is_within_the_bounds_whatever_the_type(dtype: Any, bounds: tuple[Any, Any]) -> None:
    features = section(*bounds)
    drawn = draw(features, 50, dtype)
    assert (drawn.features.dtype, drawn.features.shape) == (np.dtype(dtype), (50, 2))
    check_dataset(drawn, columns=2, lower=features.lower, upper=features.upper)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_are_uniform(dtype: str) -> None:
    drawn = draw(section(2.0, 4.0), 20_000, dtype).features
    assert drawn.mean(axis=0) == pytest.approx(3.0, abs=0.02)
    assert drawn.std(axis=0) == pytest.approx(2.0 / np.sqrt(12.0), abs=0.01)
    assert (drawn[:, 0] != drawn[:, 1]).mean() > 0.999


def test_whole_numbers_come_alike_with_the_bounds_themselves() -> None:
    values, counts = np.unique(draw(section(-1.5, 3.0), 20_000, "int16").features, return_counts=True)
    assert values.tolist() == [-1, 0, 1, 2, 3]
    assert counts == pytest.approx(8000, rel=0.05)


@pytest.mark.parametrize(
    ("dtype", "upper", "most", "values"),
    [
        ("float64", 1.0, 3, [0.0, 0.5, 1.0]),
        ("uint8", 10.0, 3, [0, 5, 10]),
        ("uint8", 1.0, 4, [0, 1]),
        ("int32", 3.0, 4, [0, 1, 2, 3]),
    ],
)
def test_columns_of_few_values_get_no_more_than_the_session_declares(
    dtype: str, upper: float, most: int, values: list[float]
) -> None:
    drawn = draw(section(0.0, upper), 200, dtype, column_values=most)
    assert [np.unique(drawn.features[:, column]).tolist() for column in (0, 1)] == [values] * 2


def test_bounds_without_a_value_of_the_type_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"column 1 .* no uint8 lies within its bounds") as caught:
        draw(section([0.0, 0.2], [1.0, 0.8]), 5, "uint8")
    assert "name a file" in caught.value.advice


def test_a_set_that_the_curator_could_guess_is_refused_under_sealed() -> None:
    assert len(draw(section(), 10, "uint8")) == 10
    with pytest.raises(ConfigError, match="20 bits, and the curator could guess it"):
        draw(section(), 10, "uint8", sealed=True)
    assert len(draw(section(), 64, "uint8", sealed=True)) == 64


COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": -2, "upper": 3},
    {"name": "height", "kind": "number", "lower": 1.0, "upper": 2.0, "weight": 0.5},
    {"name": "level", "kind": "ordinal", "categories": ["low", "mid", "high"]},
    {"name": "job", "kind": "category", "categories": ["clerk", "nurse"], "missing": "own"},
    {"name": "member", "kind": "boolean"},
    {"name": "scan", "kind": "image", "size": [2, 1], "channels": 3},
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
def test_in_a_session_with_columns_it_has_rows_of_them(dtype: str) -> None:
    schema = Schema.of(COLUMNS)
    drawn = draw(section(list(schema.lower), list(schema.upper), schema.width), 3_000, dtype, schema=schema)
    assert drawn.features.dtype == np.dtype(dtype)
    assert schema.holds(drawn.features).all()
    rows = schema.decode(drawn.features)
    for name, values in {
        "age": range(-2, 4),
        "level": ["low", "mid", "high"],
        "job": ["clerk", "nurse", None],
        "member": [False, True],
    }.items():
        counts = Counter(rows[name].to_pylist())
        assert counts.keys() == set(values)
        # A deviation of 27 at most.
        assert list(counts.values()) == pytest.approx([3_000 / len(values)] * len(values), abs=150)
    scans = np.array(rows["scan"].to_pylist())
    # Each of 6 × 256 counts is of 3,000 draws with a probability of 1/256: a deviation of 3.4.
    pixels = np.array([np.bincount(scans[:, place], minlength=256) for place in range(6)])
    assert pixels.shape == (6, 256)
    assert abs(pixels - 3_000 / 256).max() < 25
    assert abs(np.corrcoef(scans, rowvar=False) - np.eye(6)).max() < 0.1
    heights = drawn.features[:, 1].astype(np.float64)
    assert (heights.min(), heights.max()) == pytest.approx((1.0, 2.0), abs=0.01)


def test_rows_of_few_values_can_be_guessed_too() -> None:
    schema = Schema.of(COLUMNS[3:5])
    features = section(list(schema.lower), list(schema.upper), schema.width)
    with pytest.raises(ConfigError, match="26 bits, and the curator could guess it"):
        draw(features, 10, "float64", schema=schema, sealed=True)
    assert len(draw(features, 50, "float64", schema=schema, sealed=True)) == 50


# -- the consumer's file ------------------------------------------------------------------------------------


def file_of(place: Path, **values: Any) -> ConsumerFile:
    return validated(ConsumerFile, OWN | values, where="party.toml").resolved(place)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "a seed set is missing: name a file"),
        ({"seed_set": "s.npz", "seed_points": 5}, "leave one of them out"),
        ({"seed_points": 0}, "seed_points: "),
        ({"seed_points": -3}, "seed_points: "),
        ({"seed_points": 2.5}, "seed_points: "),
        ({"seed_points": 1_000_001}, "seed_points: "),
    ],
    ids=["neither", "both", "none", "fewer", "half", "too many"],
)
def test_a_file_has_one_seed_set(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        validated(ConsumerFile, OWN | values, where="party.toml")
    assert caught.value.what.startswith("party.toml: ")


def test_a_file_on_the_command_line_goes_before_what_would_be_drawn(tmp_path: Path) -> None:
    file = file_of(tmp_path, seed_points=5).with_options(seed_set=tmp_path / "s.npz", key=None)
    assert (file.seed_set, file.seed_points) == (tmp_path / "s.npz", None)
    assert file_of(tmp_path, seed_points=5).with_options(seed_set=None).seed_points == 5


def session_of(source: str) -> Session:
    file = session_file(owners=names(2), points=3, columns=3, dimension=8)
    noise = NoiseSection.model_validate({"source": source, "seed": 4 if source == "simulated" else None})
    return open_session(file.model_copy(update={"noise": noise}))


VALIDATION = Dataset.from_arrays("v", np.random.default_rng(0).random((7, 3), dtype=np.float32))


@pytest.mark.parametrize("source", ["secure", "simulated"])
def test_it_is_drawn_once_and_kept_for_a_restart(tmp_path: Path, source: str) -> None:
    session, file = session_of(source), file_of(tmp_path, seed_points=20)
    first = consumer_seed_set(session, file, VALIDATION)
    assert (len(first), first.features.dtype) == (20, np.dtype(np.float32))
    path = drawn_path(file)
    assert path == tmp_path / "state" / "seed-set.npz"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for when_missing in ("keep", "draw", "refuse"):
        again = consumer_seed_set(session, file, VALIDATION, when_missing=when_missing)
        assert np.array_equal(again.features, first.features)
    path.unlink()
    anew = consumer_seed_set(session, file, VALIDATION)
    assert np.array_equal(anew.features, first.features) == (source == "simulated")


def test_of_the_validation_set_nothing_enters_but_its_number_type(tmp_path: Path) -> None:
    session, file = session_of("simulated"), file_of(tmp_path, seed_points=20)
    other = Dataset.from_arrays("v", np.zeros((1, 3), dtype=np.float32))
    drawn = [consumer_seed_set(session, file, each, when_missing="draw") for each in (VALIDATION, other)]
    assert np.array_equal(drawn[0].features, drawn[1].features)
    assert not file.state.exists(), "a look leaves nothing behind"


def test_another_number_of_points_than_were_drawn_is_refused(tmp_path: Path) -> None:
    session = session_of("secure")
    consumer_seed_set(session, file_of(tmp_path, seed_points=20), VALIDATION)
    with pytest.raises(ConfigError, match="20 points were drawn, and seed_points is 21") as caught:
        consumer_seed_set(session, file_of(tmp_path, seed_points=21), VALIDATION)
    assert "another state directory" in caught.value.advice


def test_what_was_drawn_for_another_session_is_not_taken(tmp_path: Path) -> None:
    """Seeded noise can be drawn again by anybody: no secure session may use it."""
    file, guessed, secure = file_of(tmp_path, seed_points=20), session_of("simulated"), session_of("secure")
    known = consumer_seed_set(guessed, file, VALIDATION)
    looked_at = consumer_seed_set(secure, file, VALIDATION, when_missing="draw")
    drawn = consumer_seed_set(secure, file, VALIDATION)
    for other in (looked_at, drawn):
        assert not np.array_equal(other.features, known.features)
    assert np.array_equal(consumer_seed_set(secure, file, VALIDATION).features, drawn.features)


def test_where_a_session_has_begun_another_ones_is_refused(tmp_path: Path) -> None:
    file = file_of(tmp_path, seed_points=20)
    consumer_seed_set(session_of("simulated"), file, VALIDATION)
    with pytest.raises(ConfigError, match="drawn for another session"):
        consumer_seed_set(session_of("secure"), file, VALIDATION, when_missing="refuse")
    (file.state / "consumer.transcript").write_bytes(b"begun")
    with pytest.raises(ConfigError, match="drawn for another session") as caught:
        consumer_seed_set(session_of("secure"), file, VALIDATION)
    assert "another state directory" in caught.value.advice
    drawn_path(file).write_bytes(b"damaged")
    with pytest.raises(DataError):
        consumer_seed_set(session_of("simulated"), file, VALIDATION)


def test_a_replay_draws_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the seed set that was drawn is not there"):
        consumer_seed_set(
            session_of("secure"), file_of(tmp_path, seed_points=2), VALIDATION, when_missing="refuse"
        )
    assert not (tmp_path / "state").exists()
