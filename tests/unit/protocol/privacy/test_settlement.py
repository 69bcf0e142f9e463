"""A private settlement: its session file, its cost, and its single release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tomli_w

from hushbid.curator.machine import CuratorMachine
from hushbid.plan.flags import PlanFlags
from hushbid.plan.noise import noise_values
from hushbid.plan.setting import plan_setting
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import BudgetExceeded, ConfigError
from hushbid.protocol.machine.machine import Charge
from hushbid.protocol.machine.weighing import NOISE_BATCH, DrawNoise, NoiseDrawn
from hushbid.protocol.names import CURATOR
from hushbid.protocol.privacy.accounting import epsilon_of
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.privacy.settlement import UNITS, PrivateSettlement, SettlementTerms, worths
from hushbid.protocol.session.guarantee import OWNERS_DATA
from hushbid.protocol.session.odometer import odometers, promised
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.messages import Broadcast
from hushbid.report.page import page_of
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from hushbid.transcripts.replay import replayed
from tests.simulation.harness import CuratorBench, Player, corners, names, session_file, weights_of
from tests.support.report_sessions import record

OWNERS = names(3)
SUMMARY = {"mechanism": "gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"}
TARGET = {"mechanism": "gaussian", "epsilon": 1.0, "neighbours": "substitute-one"}
EPSILON = 0.5


def private_file(points: int = 6, rule: str = "ask-all", **changes: Any) -> SessionFile:
    values: dict[str, Any] = {"summary": SUMMARY, "target": TARGET, "settlement": EPSILON} | changes
    return session_file(owners=OWNERS, points=points, rule=rule, **values)


def with_table(table: dict[str, Any]) -> SessionFile:
    values = private_file(settlement=None).model_dump() | {"settlement": table}
    return validated(SessionFile, values, where="session.toml")


def settlement_of(session: Session) -> PrivateSettlement:
    assert session.settlement is not None
    return session.settlement


# -- the session file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"private": True}, "needs an epsilon of its own"),
        ({"epsilon": 1.0}, "set private = true"),
        ({"private": False, "epsilon": 1.0}, "set private = true"),
        ({"private": True, "epsilon": 0.0}, "greater than 0"),
        ({"private": True, "epsilon": -1.0}, "greater than 0"),
        ({"private": True, "epsilon": float("inf")}, "finite"),
        ({"private": True, "epsilon": "1"}, "should be a number"),
        ({"private": 1, "epsilon": 1.0}, "should be true or false"),
        ({"private": True, "epsilon": 1.0, "delta": 1e-5}, "delta"),
    ],
)
def test_tables_that_cannot_hold_are_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        with_table(table)
    assert "settlement" in refused.value.what


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rule": "winner-only"}, "the rule winner-only tells an owner"),
        ({"rule": "published"}, "the rule published tells an owner"),
        ({"summary": {"mechanism": "exact"}}, "the release exact has no noise"),
    ],
)
def test_rounds_that_guarantee_nothing_have_no_private_settlement(changes: dict[str, Any], said: str) -> None:
    # These sessions are allowed to protect nobody.
    with pytest.raises(ConfigError, match=said) as refused:
        open_session(private_file(**changes))
    assert "[settlement]" in refused.value.what
    open_session(private_file(settlement=None, **changes))


@pytest.mark.parametrize(("tiny", "said"), [(1e-15, "No noise makes"), (1e-13, "does not fit into 64 bits")])
def test_an_epsilon_whose_noise_is_too_large_is_refused(tiny: float, said: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[settlement\]: .*{said}"):
        PrivateSettlement.of(epsilon=tiny, delta=tiny, owners=3)


def test_sessions_without_one_are_the_sessions_that_they_were() -> None:
    plain = private_file(settlement=None)
    assert with_table({"private": False}).digest() == with_table({}).digest() == plain.digest()
    assert "settlement" not in plain.model_dump()
    assert private_file().digest() != plain.digest() != private_file(settlement=0.6).digest()
    assert SessionFile.model_validate(private_file().model_dump()) == private_file()


# -- what it costs ------------------------------------------------------------------------------------


def test_the_noise_is_of_the_epsilon_that_is_asked_for() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        settlement = PrivateSettlement.of(epsilon=epsilon, delta=1e-5, owners=20)
        stated = epsilon_of(settlement.costs, 1e-5)
        assert stated <= epsilon
        assert stated == pytest.approx(epsilon, rel=1e-6)
        assert settlement.draw == Draw("discrete-gaussian", settlement.sigma, 20)
        drawn = SimulatedNoise(0, "curator").draw(Draw("discrete-gaussian", settlement.sigma, 20_000)) / UNITS
        # A standard deviation of 20,000 values is off by 3 % with a probability below 10^-8.
        assert float(drawn.std()) == pytest.approx(settlement.standard_error, rel=0.03)


@pytest.mark.parametrize("points", [1, 6])
def test_the_owners_are_told_what_rounds_and_settlement_cost_together(points: int) -> None:
    session, plain = open_session(private_file(points)), open_session(private_file(points, settlement=None))
    stated, before = session.privacy()[0], plain.privacy()[0]
    assert stated.protects == OWNERS_DATA
    assert stated.epsilon is not None
    assert before.epsilon is not None
    assert before.epsilon < stated.epsilon <= before.epsilon + EPSILON
    assert session.privacy()[1:] == plain.privacy()[1:], "the consumer's is as it was"
    assert session.owners_costs() == (*plain.owners_costs(), *settlement_of(session).costs)


def test_the_odometer_ends_with_the_settlement() -> None:
    session = open_session(private_file())
    stated = session.privacy()[0].epsilon
    complete, cut = (odometers(session, 6, settled=settled)[0] for settled in (True, False))
    assert complete.settled == stated
    assert cut.settled is None
    assert cut.epsilon == complete.epsilon
    assert complete.epsilon[-1] < complete.settled  # type: ignore[operator]
    assert odometers(open_session(private_file(settlement=None)), 6, settled=True)[0].settled is None


def test_what_was_spent_is_read_off_the_odometer_and_never_understated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hushbid.protocol.session.odometer.READINGS", 3)
    session = open_session(private_file())
    [odometer, consumers] = odometers(session, 6, settled=True)
    assert odometer.rounds == (0, 3, 6)
    read = [odometer.spent(rounds)["epsilon"] for rounds in range(-1, 7)]
    assert read == [0.0, odometer.epsilon[0], *[odometer.epsilon[1]] * 3, *[odometer.epsilon[2]] * 3]
    settled = odometer.spent(6, settled=True)
    assert settled == {
        "protects": OWNERS_DATA,
        "neighbours": "add-remove-one",
        "epsilon": odometer.settled,
        "delta": session.file.session.delta,
    }
    assert consumers.spent(0)["neighbours"] == "substitute-one"


def test_nothing_is_promised_where_anybody_can_draw_the_noise() -> None:
    assert not open_session(private_file()).noise_protects
    assert promised(open_session(private_file()), OWNERS_DATA) is None


def test_the_filter_admits_one_settlement_and_no_second() -> None:
    session = open_session(private_file())
    accountant, costs_of = session.summary_filter(), session.release_costs()
    assert accountant is not None
    for number in range(1, 8):
        accountant.charge(*costs_of(number))
    with pytest.raises(BudgetExceeded):
        accountant.charge(*costs_of(7))


def test_a_plan_has_its_noise_and_its_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "session.toml"
    path.write_text(
        tomli_w.dumps(private_file().model_dump(mode="json", exclude_none=True)), encoding="utf-8"
    )
    setting = plan_setting(path, PlanFlags(validation=20))
    terms = setting.session().settlement_terms
    assert terms.standard_error == settlement_of(open_session(private_file())).standard_error
    plain = noise_values(plan_setting(path, PlanFlags(validation=20)).with_session(nonce="other"))
    assert plain["discrete-gaussian"] == 4 + 5 * 4 + len(OWNERS)


# -- who may be told ----------------------------------------------------------------------------------


def test_an_exact_settlement_is_not_to_be_disclosed() -> None:
    terms = open_session(private_file(settlement=None)).settlement_terms
    assert terms.disclosure.startswith("not to be disclosed to owners")
    assert terms.as_json() == terms.as_json() | dict.fromkeys(
        ("neighbours", "epsilon", "delta", "standard_error")
    )
    assert not terms.private


def test_a_private_one_may_be_told_where_its_noise_is_secret() -> None:
    told = SettlementTerms.of(settlement_of(open_session(private_file())), "")
    assert told.disclosure == "private: owners may be told it, and be paid by it"
    assert (told.private, told.unit, told.neighbours, told.epsilon) == (
        True,
        "points",
        "add-remove-one",
        EPSILON,
    )
    assert "ε = 0.5 at δ = 1e-05, add-remove-one" in told.sentence()
    assert told.figures(12.345) == ("+12.35", f"{told.standard_error:.2f}")
    simulated = open_session(private_file()).settlement_terms
    assert simulated.disclosure.startswith("not to be disclosed to owners: the noise is simulated")


# -- the curator --------------------------------------------------------------------------------------


class Drawing(CuratorBench):
    """A bench that draws noise, and counts for which releases."""

    def __init__(self, session: SessionFile) -> None:
        super().__init__(session)
        self.batches: list[tuple[int, int]] = []

    def draw(self) -> None:
        effect = self.job(DrawNoise)
        assert isinstance(effect, DrawNoise)
        self.batches.append((effect.first, effect.last))
        draws_of = self.opened.release_draws()

        def drawn(draws: tuple[Draw, ...]) -> tuple[npt.NDArray[Any], ...]:
            return tuple(np.arange(1, draw.size + 1, dtype=np.int64) * 1000 for draw in draws)

        rounds = tuple((drawn(draws_of(number)[0]), ()) for number in range(effect.first, effect.last + 1))
        self.step(NoiseDrawn(effect.first, rounds))


def played(points: int) -> Drawing:
    """A session up to the delivery, in which every owner has a point of another worth for each round."""
    bench = Drawing(private_file(points))
    players = {
        owner: Player(bench, owner, np.repeat(corners()[place : place + 1], points, axis=0))
        for place, owner in enumerate(OWNERS)
    }
    bench.enrol()
    for _ in range(points):
        bench.broadcast(weights_of(3000, 1000, 500, -200))
        for owner in OWNERS:
            broadcast = bench.last(owner)
            assert isinstance(broadcast, Broadcast)
            bench.say(owner, players[owner].answer(broadcast))
        bench.verify_all()
    assert bench.machine.phase == "delivering"
    return bench


def test_it_is_released_with_the_last_receipt_and_charged_in_the_same_step() -> None:
    bench = played(4)
    assert bench.machine.settlement() is None
    charged = len(bench.charges)
    effects = bench.say("consumer", bench.receipt(1))
    (charge,) = (effect for effect in effects if type(effect) is Charge)
    assert (charge.first, charge.last, charge.neighbours) == (5, 5, Neighbours.ADD_REMOVE_ONE.value)
    assert charge.costs == settlement_of(bench.opened).costs
    assert len(bench.charges) == charged + 1

    first = weights_of(3000, 1000, 500, -200)
    wanted = {owner: 1000 * place for place, owner in enumerate(OWNERS, start=1)}
    for win in bench.machine.ledger.wins:
        wanted[win.owner] += worths([win.candidate.features], first)[0]
    assert bench.machine.settlement() == {owner: units / UNITS for owner, units in wanted.items()}
    assert sum(wanted.values()) > 6000, "points count for something"


def test_a_disputed_point_counts_nothing() -> None:
    paid = played(4)
    paid.say("consumer", paid.receipt(1))
    disputed = played(4)
    disputed.say("consumer", disputed.receipt(1, 2))
    win = disputed.machine.ledger.wins[2]
    before, after = paid.machine.settlement(), disputed.machine.settlement()
    assert before is not None
    assert after is not None
    first = weights_of(3000, 1000, 500, -200)
    counted = worths([win.candidate.features], first)[0] / UNITS
    assert counted > 0
    assert before[win.owner] - after[win.owner] == counted


@pytest.mark.parametrize("points", [1, NOISE_BATCH - 1, NOISE_BATCH, NOISE_BATCH + 1])
def test_its_noise_is_drawn_once_with_that_of_the_last_rounds(points: int) -> None:
    bench = played(points)
    for part in range(1, len(bench.machine.ending.parts) + 1):
        bench.say("consumer", bench.receipt(part))
    drawn = [number for first, last in bench.batches for number in range(first, last + 1)]
    assert drawn == list(range(1, points + 2))
    assert bench.machine.selection.weighing.noise_drawn == points + 1
    assert not bench.jobs
    assert bench.machine.settlement() is not None


def test_a_session_that_is_given_up_releases_none() -> None:
    bench = played(4)
    bench.fire("delivery")
    assert bench.machine.settlement() is None
    assert all(charge.last <= 4 for charge in bench.charges)


# -- whole sessions -----------------------------------------------------------------------------------


def simulated(file: SessionFile) -> tuple[SimulationOutcome, Simulation]:
    rng = np.random.default_rng(0)
    simulation = Simulation(
        open_session(file),
        owners={name: Dataset.from_arrays(name, rng.random((8, 3))) for name in OWNERS},
        validation=Dataset.from_arrays("validation", rng.random((10, 3))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((6, 3))),
    )
    return simulation.run(), simulation


@pytest.mark.parametrize("rule", ["sealed", "ask-all"])
def test_it_changes_neither_what_is_bought_nor_what_is_broadcast(rule: str) -> None:
    settled, _ = simulated(private_file(rule=rule, dimension=8, columns=3))
    plain, _ = simulated(private_file(rule=rule, dimension=8, columns=3, settlement=None))
    for one, other in zip(settled.curator.ledger.wins, plain.curator.ledger.wins, strict=True):
        assert (one.chosen_round, one.owner, one.score) == (other.chosen_round, other.owner, other.score)
    totals, exact = settled.curator.settlement(), plain.curator.settlement()
    assert totals is not None
    assert exact is not None
    assert totals.keys() == exact.keys()
    assert totals != exact


def test_a_replay_and_a_report_have_the_number_that_was_released(tmp_path: Path) -> None:
    found = record(tmp_path, summary=SUMMARY, target=TARGET, settlement=EPSILON)
    released = found.outcome.curator.settlement()
    assert released is not None
    machine = replayed(found.paths[CURATOR]).machine
    assert isinstance(machine, CuratorMachine)
    assert machine.settlement() == released
    figures = found.figures(CURATOR)
    assert dict(zip(figures.owners.name, figures.owners.settlement or (), strict=True)) == released
    assert figures.settlement_terms == found.session.settlement_terms
    assert figures.odometers[0].settled == found.session.privacy()[0].epsilon
    text = page_of(figures)
    assert f"{found.session.settlement_terms.standard_error:.2f}" in text
    assert "All other columns are exact, and are not to be disclosed to owners." in text


def test_owners_are_charged_for_it_beforehand() -> None:
    outcome, _ = simulated(private_file(dimension=8, columns=3))
    session = open_session(private_file(dimension=8, columns=3))
    for owner in outcome.owners.values():
        assert owner.charge.costs == session.owners_costs()
        assert (owner.charge.first, owner.charge.last) == (1, 7)
