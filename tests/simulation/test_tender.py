"""Whole sessions of the rule `tender`: one call, one submission of each owner, one choice of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.party import curator_party
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.herding import herd
from hushbid.protocol.space.mmd import kernel_means
from hushbid.simulation.simulator import Crash, SimulationOutcome
from tests.simulation.harness import names
from tests.simulation.tender_market import (
    DATA,
    OWNERS,
    POINTS,
    VALIDATION,
    bought,
    dataset,
    session,
    simulated,
)

# -- what is chosen ------------------------------------------------------------------------------------------


def test_owners_and_curator_choose_by_running_sums_towards_the_consumer_s_release() -> None:
    opened = session()
    outcome = simulated(opened)
    target = outcome.curator.target
    assert target is not None
    aim = opened.target.aim(target.embedding, Prior.of_total(target.seed_total, target.seed_size))
    wins = outcome.curator.ledger.wins
    assert len(wins) == POINTS == len(bought(outcome))
    chosen = np.stack([win.candidate.features for win in wins])
    # The order of the choice is that of running sums: chosen again of what was chosen, it stays.
    again = herd(aim.statistic.of(chosen), aim.mean, POINTS, features=chosen)
    assert list(again) == list(range(POINTS))


def distance(opened: Session, outcome: SimulationOutcome) -> float:
    """MMD² of the purchase to the validation set."""
    points = [np.frombuffer(point, dtype=VALIDATION.features.dtype) for _, point in bought(outcome)]
    chosen, wanted = (opened.space.scale(each) for each in (np.stack(points), VALIDATION.features))
    within, across, beside = (
        kernel_means(*pair, opened.space.gamma).mean()
        for pair in ((chosen, chosen), (chosen, wanted), (wanted, wanted))
    )
    return float(within - 2.0 * across + beside)


def test_without_noise_it_comes_far_closer_than_the_best_points_of_one_round() -> None:
    """`sealed` in one round buys the points that fit best individually, which are all alike."""
    exact = {name: {"mechanism": "exact"} for name in ("target", "summary")}
    found = {
        rule: distance(opened, simulated(opened))
        for rule in ("tender", "sealed")
        for opened in [session(rule=rule, batch=POINTS, dimension=256, **exact)]
    }
    assert found["tender"] < 0.2 * found["sealed"]


def test_labels_have_a_part_in_the_choice() -> None:
    def labelled(data: Dataset, share: float, seed: int) -> Dataset:
        wanted = np.random.default_rng(seed).random(len(data)) < share
        return Dataset.from_arrays(data.name, data.features, np.where(wanted, "yes", "no"))

    data = {name: labelled(each, 0.4, seed) for seed, (name, each) in enumerate(DATA.items())}
    wanted = labelled(VALIDATION, 1.1, 0)
    shares = []
    for labels in (None, {"classes": ["yes", "no"], "similarity": 0.1}):
        outcome = simulated(session(labels=labels), data, validation=wanted)
        told: dict[bytes, Any] = {}
        for each in data.values():
            assert each.labels is not None
            told |= {row.tobytes(): label for row, label in zip(each.features, each.labels, strict=True)}
        shares.append(np.mean([told[point] == "yes" for _, point in bought(outcome)]))
    assert shares[1] > shares[0] + 0.2


def test_fewer_submitted_points_are_chosen_of() -> None:
    outcome = simulated(session(submission=8))
    owners = [owner for owner, _ in bought(outcome)]
    assert len(owners) == POINTS
    assert max(map(owners.count, DATA)) <= 8
    assert outcome.curator.ledger.candidates == 8 * OWNERS


def test_an_owner_with_fewer_points_than_it_may_submit_sends_padding_of_the_same_size() -> None:
    few = DATA | {"owner-1": dataset("owner-1", 3, 0.5, 5)}
    sizes: dict[str, set[int]] = {}

    def tap(sender: str, _receiver: str, frame: Outgoing) -> None:
        if frame.kind == "submission":
            sizes.setdefault(sender, set()).add(len(frame.data))

    outcome = simulated(session(), few, tap=tap)
    assert len(bought(outcome)) == POINTS
    assert len(set.union(*sizes.values())) == 1


# -- what it says of privacy ---------------------------------------------------------------------------------


def test_owners_are_charged_nothing_and_the_consumer_its_one_release() -> None:
    opened = session()
    owners, consumer, curator = opened.privacy()
    assert owners.epsilon == 0.0
    assert consumer.epsilon == pytest.approx(3.0)
    assert curator.epsilon is None
    assert "features under a map that it does not know" in curator.why
    assert opened.owners_costs() == ()
    assert simulated(opened).owners["owner-0"].charge.costs == ()


# -- what an owner sees --------------------------------------------------------------------------------------


def heard(opened: Session, data: dict[str, Dataset], who: str = "owner-0", **also: Any) -> list[bytes]:
    """Everything sent to an owner, except the signed transcript's head at the end, which salts hide."""
    frames: list[bytes] = []

    def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
        if receiver == who:
            frames.append(frame.kind.encode() if frame.kind == "close" else frame.data)

    simulated(opened, data, tap=tap, **also)
    return frames


def others(case: int) -> dict[str, Dataset]:
    """The other owners' possible rows: anything, as many as they like."""
    rng = np.random.default_rng(case)
    return {
        name: dataset(name, int(rng.integers(1, 90)), float(rng.random()), case + 7 * number)
        for number, name in enumerate(DATA)
        if name != "owner-0"
    }


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_an_owner_is_sent_the_same_whatever_the_others_hold(first: int) -> None:
    opened = session()
    expected = heard(opened, DATA)
    assert len(expected) >= 4
    for case in range(first, first + 10):
        assert heard(opened, DATA | others(case)) == expected


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_owner_is_sent_the_same_in_ten_thousand_cases() -> None:
    """Cases vary the other owners' rows and the size of the purchase."""
    for setting in range(100):
        rng = np.random.default_rng([setting, 1])
        opened = session(dimension=int(rng.choice([4, 8, 16])), points=int(rng.integers(2, 12)))
        expected = heard(opened, DATA)
        for case in range(100):
            assert heard(opened, DATA | others(100 * setting + case)) == expected, (setting, case)


def test_an_owner_is_sent_the_same_where_another_fails() -> None:
    opened = session(timeouts=TimeoutSection(round=5.0))
    expected = heard(opened, DATA)
    for step in (3, 5, 8):
        assert heard(opened, DATA, crashes=[Crash("owner-1", step, 0, 1e5)]) == expected


class Acknowledging(CuratorMachine):
    """Tells each owner that it was chosen from, as soon as it knows."""

    _acknowledged = False

    def check(self) -> None:
        super().check()
        message = self.current.message
        if self.ledger.wins and message is not None and not self._acknowledged:
            self._acknowledged = True
            for owner in {win.owner for win in self.ledger.wins}:
                self.send(owner, message)


class CallingByThePool(CuratorMachine):
    """Calls again for what the pool lacks."""

    _called = False

    def check(self) -> None:
        super().check()
        message = self.current.message
        if self.phase == "delivering" and message is not None and not self._called:
            self._called = True
            moved = message.model_copy(update={"seed_size": len(self.selection.pooled) + 1})
            for owner in self.owners:
                self.send(owner, moved)


@pytest.mark.parametrize("broken", [Acknowledging, CallingByThePool])
def test_a_curator_that_lets_an_owner_see_the_others_is_found(broken: type[CuratorMachine]) -> None:
    def party(opened: Session, **given: Any) -> Any:
        return broken(opened), curator_party(opened, **given)[1]

    opened = session()
    seen = [heard(opened, DATA | others(case), curator=party) for case in range(12)]
    assert any(each != seen[0] for each in seen)


# -- parties that fail ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, "owner-1"])
@pytest.mark.parametrize("left", [0, 1])
def test_whoever_is_started_again_at_any_step_the_choice_is_the_same(party: str, left: int) -> None:
    opened = session()
    expected = bought(simulated(opened, crashes=[]))
    for step in range(2, 16):
        assert bought(simulated(opened, crashes=[Crash(party, step, left)])) == expected, step


def test_who_is_late_is_left_out_and_who_has_submitted_may_leave() -> None:
    opened = session(timeouts=TimeoutSection(round=5.0, closing=5.0))
    whole = simulated(opened, crashes=[])
    records = 12
    gone = simulated(opened, crashes=[Crash("owner-1", records, 0, 1e5)])
    assert bought(gone) == bought(whole)
    late = simulated(opened, crashes=[Crash("owner-1", 3, 0, 1e5)])
    assert "owner-1" not in {owner for owner, _ in bought(late)}
    assert len(bought(late)) == POINTS


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"submission": 5}, "3 owners submit 5 points each"),
        ({"batch": POINTS + 1}, "an owner submits 20 points in all"),
        ({"jitter": 3.0}, "adds none"),
        ({"points": 17_000}, "chooses 16,384 at most"),
        ({"wishes": {"caps": dict.fromkeys(names(OWNERS), 6)}}, "allow 18 points in all"),
        ({"wishes": {"prices": {"owner-0": 1, "owner-1": 2, "owner-2": 3}, "budget": 19.5}}, "cost 20 at"),
        (
            {
                "target": {
                    "mechanism": "subspace",
                    "directions": 8,
                    "epsilon": 1.0,
                    "neighbours": "substitute-one",
                }
            },
            "does not go with subspace",
        ),
    ],
)
def test_what_a_tender_cannot_be(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        session(**changes)
