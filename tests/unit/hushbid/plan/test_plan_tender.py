"""Plans of sessions with the rule `tender`."""

from __future__ import annotations

from hushbid.plan.batches import batches
from hushbid.plan.noise import release_errors
from hushbid.plan.prediction import predict
from hushbid.plan.quality import verdict
from hushbid.plan.traffic import traffic
from tests.unit.hushbid.plan.test_plan import SPEED, expected, setting


def test_a_tender_is_planned_as_one_round_that_chooses_point_by_point() -> None:
    planned = setting(rule="tender", points=100, owner_points=1_000, epsilon_consumer=30.0)
    assert (planned.rounds, planned.file.batch) == (1, 100)
    rounds = setting(rule="sealed", points=100, owner_points=1_000, epsilon_consumer=30.0)
    assert expected(planned) < expected(rounds) < expected(rounds.with_session(batch=100))
    assert [row.batch for row in batches(planned, SPEED, cores=2, round_trip=0.0)] == [100]
    # A call has g̃ and the seed set's total beside the weight, 8 bytes a coordinate each.
    called = (
        traffic(planned, 0.0).owner_received - traffic(rounds.with_session(batch=100), 0.0).owner_received
    )
    assert 16 * 140 < called < 16 * 140 + 100


def test_more_points_than_owners_can_submit_are_not_advised() -> None:
    planned = setting(rule="tender", points=100, batch=50, owners=4, owner_points=1_000, validation=60)
    judgement = verdict(planned, *release_errors(planned), predict(planned, *release_errors(planned)))
    assert all((remedy.points or 0) <= 200 for remedy in judgement.remedies)
