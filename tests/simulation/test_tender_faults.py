"""A sweep of faults finds a tender's choice that contradicts its terms and its release.

`test_faults` has a bug for every invariant; here are those that only a tender can have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hushbid.curator.selection import tender as selection
from hushbid.curator.selection.tender import TenderSelection
from hushbid.evidence.sweep.course import run_plan
from hushbid.evidence.sweep.invariants import INVARIANTS, broken
from hushbid.evidence.sweep.plan import SweepPlan, plan_of
from hushbid.evidence.sweep.small_session import Tendering
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.wishes import terms_of
from hushbid.protocol.space.copies import Copies
from hushbid.protocol.space.scoring import Pool
from hushbid.protocol.space.terms import Terms
from hushbid.protocol.wire.messages import Call, NestedTarget
from hushbid.simulation.simulator import Crash


def test_tenders_with_all_terms_are_among_a_thousand_plans() -> None:
    plans = [plan_of(seed, ["tender"]) for seed in range(1000)]
    drawn = [plan.tendering for plan in plans if plan.tendering is not None]
    assert len(drawn) == len(plans)
    assert {plan.session.messages for plan in plans} == {1, 2, 3}
    for name in ("prices", "budget", "caps", "nested"):
        assert 100 < sum(bool(getattr(each, name)) for each in drawn) < 500, name
    bought = [plan.session.file.session.points for plan in plans]
    assert sum(each.submission != points for each, points in zip(drawn, bought, strict=True)) > 200
    few = [sum(plan.rows) < points for plan, points in zip(plans, bought, strict=True)]
    assert any(few), "owners have too few points in some"


def the_finer_release_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(selection, "NestedTarget", ())


def terms_are_forgotten(patch: pytest.MonkeyPatch, name: str) -> None:
    def others(self: Session) -> Terms:
        changed: Any = {name: None}
        return dataclasses.replace(terms_of(self.file), **changed)

    patch.setattr(Session, "terms", property(others))


def the_first_owner_sells(patch: pytest.MonkeyPatch) -> None:
    def first(self: Copies, entry: int, features: Any, available: Any) -> int:
        return next(each for each in self.same_as(entry) if available[each])

    patch.setattr(Copies, "seller", first)


def absent_owners_sell(patch: pytest.MonkeyPatch) -> None:
    herd = Pool.herd
    patch.setattr(Pool, "herd", lambda self, *args, withheld=None, terms: herd(self, *args, terms=terms))


def the_finer_release_is_called(patch: pytest.MonkeyPatch) -> None:
    call = TenderSelection.broadcast

    def finer(self: TenderSelection, number: int, weights: Any) -> Call:
        assert isinstance(self.target, NestedTarget)
        return call(self, number, weights).model_copy(update={"embedding": self.target.finer})

    patch.setattr(TenderSelection, "broadcast", finer)


PRICED = Tendering(prices=(1, 3, 2), budget=14)
TENDERS: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, Tendering]] = {
    the_finer_release_is_forgotten: ("choice-is-herded", Tendering(nested=True)),
    partial(terms_are_forgotten, name="caps"): ("choice-is-herded", Tendering(caps=(4, 5, 4))),
    partial(terms_are_forgotten, name="prices"): ("choice-is-herded", PRICED),
    partial(terms_are_forgotten, name="budget"): ("choice-is-herded", PRICED),
    the_first_owner_sells: ("choice-is-herded", Tendering()),
    absent_owners_sell: ("choice-is-herded", Tendering()),
    the_finer_release_is_called: ("others-see-releases-only", Tendering(nested=True)),
}


def named(plant: Any) -> str:
    return f"{plant.keywords['name']}_are_forgotten" if isinstance(plant, partial) else plant.__name__


def tender(tendering: Tendering, plant: Callable[[pytest.MonkeyPatch], None]) -> SweepPlan:
    """A tender without faults, except for an owner that leaves in the middle of its submission."""
    leaves = Crash("owner-1", 4, 2, 20.0)
    return dataclasses.replace(
        plan_of(2),
        rule="tender",
        release="filtered-gaussian",
        rounds=4,
        batch=3,
        distinct=plant is the_first_owner_sells,
        tendering=tendering,
        min_owners=1,
        cadence=None,
        rows=(10, 10, 10),
        mild=False,
        byzantine=(),
        crashes=(leaves,) if plant is absent_owners_sell else (),
        faults=(),
    )


@pytest.mark.parametrize("plant", TENDERS, ids=named)
def test_a_tender_in_which_the_choice_is_another_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, tendering = TENDERS[plant]
    drawn = tender(tendering, plant)
    assert broken(run_plan(drawn)) == {}
    plant(monkeypatch)
    assert list(INVARIANTS[name](run_plan(drawn)))
