"""`hushbid bench records`: real verbs on transcripts of sessions of two sizes."""

from __future__ import annotations

import pytest

from hushbid.lab.bench.records import RULES, bench_records
from hushbid.protocol.errors import ConfigError

SIZES = (20, 80)
LIKELY = (0.5, 1.2)
"""Powers between which a transcript's bytes grow at such sizes: a part of it is the same at all."""


@pytest.fixture(scope="module", params=[pytest.param(rule, marks=pytest.mark.slow) for rule in RULES])
def found(request: pytest.FixtureRequest) -> dict[str, object]:
    said: list[str] = []
    result = bench_records(rules=[request.param], points=SIZES, say=said.append)
    assert said == [f"{request.param}, {points} points" for points in SIZES]
    return result


def test_every_verb_is_measured_at_every_size(found: dict[str, list[dict[str, float]]]) -> None:
    assert [row["points"] for row in found["rows"]] == list(SIZES)
    for row in found["rows"]:
        assert {name for name, value in row.items() if name != "rule" and value <= 0} == set()


def test_what_grows_with_the_points_has_a_power(found: dict[str, dict[str, dict[str, float]]]) -> None:
    (powers,) = found["powers"].values()
    assert LIKELY[0] < powers["transcript_bytes"] < LIKELY[1]
    assert powers.keys() == {
        "transcript_bytes",
        *(f"{name}_seconds" for name in ("session", "verify", "report", "curator", "owner")),
    }


@pytest.mark.parametrize(
    ("rules", "points", "why"),
    [
        (["published"], SIZES, "published: no rule of this benchmark"),
        (RULES, (100,), "100 points are no two sizes"),
        (RULES, (100, 100), "100 points are no two sizes"),
        (RULES, (0, 100), "0, 100 points"),
        (RULES, (100, 20_000), "100, 20000 points"),
    ],
)
def test_what_cannot_be_measured_is_refused(rules: list[str], points: tuple[int, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        bench_records(rules=rules, points=points, say=print)
