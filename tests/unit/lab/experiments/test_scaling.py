"""Scaling and privacy-utility: a curator's view by K and rule, and releases at the same sound ε."""

from __future__ import annotations

import pytest

from hushbid.lab.experiments.privacy_utility import privacy_utility
from hushbid.lab.experiments.scaling import ScalingRow, scaling
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES

P = 4


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, int, int], ScalingRow]:
    found = scaling(owners=[3, 12], batches=[1, 2], points=P, owner_points=8, seeds=1)
    return {(row.rule, row.owners, row.batch): row for row in found}


def test_every_rule_has_each_number_of_owners(rows: dict[tuple[str, int, int], ScalingRow]) -> None:
    wanted = {(rule, owners) for rule in RULES for owners in (3, 12)}
    assert {(rule, owners) for rule, owners, _ in rows} == wanted
    assert {batch for rule, _, batch in rows if rule == "sealed"} == {1, 2}


@pytest.mark.parametrize("owners", [3, 12])
def test_what_the_curator_is_shown_is_what_its_rule_says(
    owners: int, rows: dict[tuple[str, int, int], ScalingRow]
) -> None:
    asked = rows["ask-all", owners, 1]
    assert asked.raw_points == asked.features == owners * P, "every owner's point in every round"
    assert asked.raw_per_point == owners
    sealed, blind = rows["sealed", owners, 1], rows["blind", owners, 1]
    assert (sealed.raw_points, sealed.features) == (0, owners * P)
    assert (blind.raw_points, blind.features) == (0, 0)
    winner = rows["winner-only", owners, 1]
    assert winner.raw_points is not None
    assert P <= winner.raw_points < asked.raw_points
    assert winner.epsilon_owners is None, "who wins is told by who is asked"
    assert asked.epsilon_owners == pytest.approx(3.0, rel=0.01)


def test_more_owners_send_more_and_batches_less(rows: dict[tuple[str, int, int], ScalingRow]) -> None:
    few, many, batched = (rows[key] for key in (("sealed", 3, 1), ("sealed", 12, 1), ("sealed", 12, 2)))
    assert few.bytes_sent is not None
    assert many.bytes_sent is not None
    assert batched.bytes_sent is not None
    assert 3.0 < many.bytes_sent / few.bytes_sent < 5.0
    assert batched.bytes_sent < 0.9 * many.bytes_sent
    assert (many.rounds, batched.rounds) == (P, P / 2)
    assert many.memory_mb is not None
    assert many.memory_mb > 20.0


def test_a_rule_that_is_not_for_so_few_owners_says_so(rows: dict[tuple[str, int, int], ScalingRow]) -> None:
    row = rows["logistic", 12, 1]
    assert "logistic is not for 12 owners" in row.note
    assert (row.raw_points, row.mmd2, row.seconds) == (None, None, None)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no acquisition rule lottery.*Rules are: "):
        scaling(rules=["lottery"])


def test_releases_are_compared_at_the_same_sound_epsilon() -> None:
    releases = ["private", "gaussian"]
    found = privacy_utility(
        dataset="digits", methods=["uniform", *releases], epsilons=[1.0, 100.0], points=[30], seeds=2
    )
    assert [(row.method, row.epsilon) for row in found] == [
        ("uniform", None),
        *((name, epsilon) for name in releases for epsilon in (1.0, 100.0)),
    ]
    uniform, *private = found
    for row in private:
        assert row.epsilon is not None
        assert row.epsilon_owners == pytest.approx(row.epsilon, rel=0.01)
        assert row.epsilon_consumer == pytest.approx(row.epsilon, rel=0.01)
    for little, much in (private[:2], private[2:]):
        assert much.mmd2 is not None
        assert little.mmd2 is not None
        assert uniform.mmd2 is not None
        assert much.mmd2 < 0.8 * little.mmd2
        assert much.mmd2 < uniform.mmd2
