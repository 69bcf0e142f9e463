"""A run's output at its end: for programs, and for people."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hushbid.cluster.file import open_cluster
from hushbid.consumer.appraisal import Judgement, Quality, Weighted
from hushbid.consumer.model_figures import Figure, ModelFigures, TrainingWeights
from hushbid.consumer.own_figures import (
    Baseline,
    ClassShares,
    LabelShares,
    Majority,
    OwnerPart,
    OwnFigures,
    Unbought,
)
from hushbid.curator.ledger import PointFault
from hushbid.curator.result import RefusalOf
from hushbid.protocol.privacy.payment import PaidStatement, Price
from hushbid.protocol.privacy.settlement import PrivateSettlement, SettlementTerms
from hushbid.protocol.session.guarantee import TRUSTED, PrivacyStatement
from hushbid.protocol.session.odometer import Odometer
from hushbid.results.run import Choices, RunResult
from hushbid.results.terminal import render
from hushbid.running.simulate import simulate
from tests.conftest import ROOT

DEMONSTRATION = ROOT / "configs" / "digits" / "cluster.toml"

GUARANTEE = PrivacyStatement(
    protects="the records of every owner",
    against="every other owner",
    neighbours="add-remove-one",
    epsilon=1.25,
    delta=1e-5,
    claimed_epsilon=0.5,
    noise="secure",
    why="",
)
ODOMETER = Odometer(
    protects=GUARANTEE.protects,
    neighbours=GUARANTEE.neighbours,
    delta=1e-5,
    rounds=(0, 50, 100),
    epsilon=(0.0, 0.75, 1.25),
)


def judged(distance: float, accuracy: float, *, weighted: float) -> Judgement:
    better = Quality(weighted, 2 * weighted, accuracy + 0.0625, 45.0)
    return Judgement(Quality(distance, 2 * distance, accuracy, 90.0), Weighted(better, 1.0, 1e-8))


RESULT = RunResult(
    session="demo",
    p=100,
    batch=2,
    seed_weight=0.1,
    rule="sealed",
    jitter=25.0,
    distinct=True,
    owners=2,
    rounds=100,
    wall_seconds=0.5,
    choices=Choices(
        judged(0.0125, 0.75, weighted=0.005),
        judged(0.0025, 0.875, weighted=0.001),
        judged(0.0625, 0.625, weighted=0.02),
    ),
    points_accessed_curator=300,
    points_delivered=90,
    disputed=0,
    m=50,
    privacy=(GUARANTEE,),
    odometers=(ODOMETER,),
    settlement={"north": 0.125, "south": -0.25},
    settlement_terms=SettlementTerms.of(None, ""),
    absences={},
    faults=(),
    transcripts={"curator": Path("runs/demo-1/parties/curator/state/curator.transcript")},
    data=Path("runs/demo-1/parties/consumer/state/delivered.npz"),
    directory=Path("runs/demo-1"),
    processes={"curator": 17},
)

REQUIRED = {
    "session", "p", "owners", "rounds", "wall_seconds", "rounds_per_second", "mmd2", "mmd2_greedy",
    "mmd2_uniform", "accuracy", "points_accessed_curator", "points_delivered", "parsimony", "privacy",
    "odometer", "settlement", "transcripts", "report", "processes", "refusals", "failed_parties",
}  # fmt: skip


def shown(result: RunResult, width: int = 100, *, details: bool = True) -> str:
    stream = io.StringIO()
    render(result, Console(file=stream, width=width), details=details)
    return stream.getvalue()


def as_json(result: RunResult) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(json.dumps(result.as_json(), allow_nan=False))
    return parsed


def test_the_odometer_is_in_the_json_round_by_round() -> None:
    (found,) = as_json(RESULT)["odometer"]
    assert found == {
        "protects": "the records of every owner",
        "neighbours": "add-remove-one",
        "delta": 1e-5,
        "rounds": [0, 50, 100],
        "epsilon": [0.0, 0.75, 1.25],
        "settled": None,
    }


def test_what_owners_trust_others_with_is_said_and_is_no_missing_privacy() -> None:
    trust = replace(
        GUARANTEE,
        against=TRUSTED,
        epsilon=None,
        claimed_epsilon=None,
        why="with sealed nobody is handed points",
    )
    text = shown(replace(RESULT, privacy=(GUARANTEE, trust)))
    assert "Owners trust the curator and the consumer: with sealed nobody is handed points." in text
    assert "NO PRIVACY" not in text


def test_the_json_has_every_field_that_programs_rely_on() -> None:
    found = as_json(RESULT)
    assert set(found) >= REQUIRED
    assert (found["rounds_per_second"], found["parsimony"], found["report"]) == (200.0, 2.0, None)
    assert set(found["privacy"][0]) >= {
        "protects",
        "from",
        "neighbours",
        "epsilon",
        "delta",
        "claimed_epsilon",
    }


def test_figures_that_nobody_could_work_out_are_null() -> None:
    empty = replace(RESULT, choices=Choices(), wall_seconds=0.0)
    found = as_json(empty)
    assert {found[name] for name in ("mmd2", "accuracy", "mmd2_greedy", "rounds_per_second")} == {None}
    assert "nan" not in shown(empty)


def test_an_infinite_epsilon_is_null_in_json() -> None:
    unbounded = replace(RESULT, privacy=(replace(GUARANTEE, epsilon=float("inf")),))
    assert as_json(unbounded)["privacy"][0]["epsilon"] is None


def test_people_see_the_choice_beside_greedy_and_uniform_with_weights_and_without() -> None:
    lines = shown(RESULT).splitlines()
    start = next(place for place, line in enumerate(lines) if line.strip().startswith("this run"))
    assert [line.split()[-4:] for line in lines[start : start + 6]] == [
        ["0.01250", "0.02500", "0.750", "90"],
        ["0.00500", "0.01000", "0.812", "45"],
        ["0.00250", "0.00500", "0.875", "90"],
        ["0.00100", "0.00200", "0.938", "45"],
        ["0.06250", "0.12500", "0.625", "90"],
        ["0.02000", "0.04000", "0.688", "45"],
    ]


def test_without_a_test_set_there_is_no_column_of_it_and_without_weights_it_is_said_why() -> None:
    plain = Judgement(Quality(0.5, None, 0.75, 90.0), None, "they are too many")
    text = shown(replace(RESULT, choices=Choices(plain)))
    assert "to test" not in text
    assert "There are no weights: they are too many." in text


def test_the_json_has_every_choice_s_figures() -> None:
    choices = as_json(RESULT)["choices"]
    assert list(choices) == ["run", "greedy", "uniform"]
    assert all(Judgement.from_json(choices[name]).as_json() == choices[name] for name in choices)
    assert Judgement.from_json(choices["run"]) == RESULT.choices.run
    assert Judgement.from_json(Judgement(why="none").as_json()) == Judgement(why="none")


def test_people_see_what_was_accessed_and_where_things_lie() -> None:
    text = shown(RESULT)
    assert "90 of 100 points" in text
    assert "300 raw points: parsimony 2.00" in text
    assert "runs/demo-1/parties/consumer/state/delivered.npz" in text
    assert "+0.12500" in text
    assert "-0.25000" in text


def test_a_guarantee_is_stated_with_its_neighbours_and_no_warning() -> None:
    text = shown(RESULT)
    assert "ε = 1.25, δ = 1e-05" in text
    assert "add-remove-one" in text
    assert "ε = 0.5" in text
    assert "NO PRIVACY" not in text


@pytest.mark.parametrize("epsilon", [None, 1.25])
def test_where_nothing_is_guaranteed_it_is_said_loudly_and_why(epsilon: float | None) -> None:
    # A figure that simulated noise would give is no guarantee.
    weak = replace(GUARANTEE, epsilon=epsilon, why="the noise is simulated")
    text = shown(replace(RESULT, privacy=(weak,)))
    assert "NO PRIVACY for the records of every owner from every other owner: the noise is simulated." in text
    assert "nothing" in text


def test_faults_absences_and_disputes_are_shown() -> None:
    text = shown(
        replace(
            RESULT,
            absences={"south": 7},
            faults=(
                PointFault(3, "south", "the bid is not the score of the features"),
                PointFault(4, "north", "the signature does not hold", 9),
            ),
            disputed=2,
        )
    )
    assert "south in 7 rounds" in text
    assert "Round 3, south: the bid is not the score of the features." in text
    assert "Round 4, north: the signature does not hold (9 points)." in text
    assert "2 delivered points do not match" in text


def test_refusals_and_failed_parties_are_told_to_programs_and_people() -> None:
    refusal = RefusalOf("south", 4, "sequence")
    lost = RefusalOf("west", 5, "state-lost")
    result = replace(
        RESULT, refusals=(refusal, lost), failed_parties={"north": "its process was ended by SIGKILL."}
    )
    found = as_json(result)
    assert found["refusals"] == [refusal.as_json(), lost.as_json()]
    assert found["failed_parties"] == {"north": "its process was ended by SIGKILL."}
    text = shown(result)
    assert "Round 4, south was refused: sequence." in text
    assert "one of them lost its state, or has an older copy" in " ".join(text.split()), "nobody is named"
    assert "north failed: its process was ended by SIGKILL." in text
    # The control: nothing of the kind is said where nothing was wrong.
    assert "refused" not in shown(RESULT)
    assert "failed" not in shown(RESULT)


def test_a_thousand_owners_are_summed_up() -> None:
    settlement = {f"owner-{number:04}": float(number) for number in range(1000)}
    text = shown(replace(RESULT, settlement=settlement))
    assert "owner-0999" in text
    assert "988 others" in text
    assert len(text.splitlines()) < 50


# -- who may be told the settlement ---------------------------------------------------------------------


def test_an_exact_settlement_is_said_to_be_the_curator_s_alone() -> None:
    text = " ".join(shown(RESULT).split())
    assert "The settlement is not to be disclosed to owners: the numbers are exact" in text
    assert as_json(RESULT)["settlement_terms"]["standard_error"] is None


def test_what_should_be_paid_is_shown_beside_the_settlement_who_gets_most_first() -> None:
    errors = {"north": 0.5, "south": 0.0625}
    told = replace(RESULT, settlement_standard_error=errors)
    assert "north +0.12500 0.50000 – – –" in " ".join(shown(told).split())
    values = {"north": 0.001, "south": 0.25}
    paid = PaidStatement.of("the gain", values, errors, signal=True, price=Price(total=80.0))
    told = replace(told, settlement_paid=paid)
    text = " ".join(shown(told).split())
    assert "south -0.25000 0.06250 0.25000 0.06250 100.0% 80.00" in text
    assert "north +0.12500 0.50000 0.00000 0.50000 0.0% 0.00" in text
    assert text.index("south -0.25") < text.index("north +0.125")
    assert paid.sentence() in text
    assert told.as_json()["settlement_standard_error"] == errors
    assert told.as_json()["settlement_paid"] == paid.as_json()


def test_what_the_consumer_tells_by_itself_is_shown() -> None:
    parts = {"north": OwnerPart(60, 0.25, 0.5, None)}
    classes = (
        ClassShares(3, 0.75, 0.5, 0.625),
        ClassShares(4, 0.25, 0.25, 0.25),
        ClassShares(7, 0.0, 0.25, 0.125),
    )
    own = OwnFigures(
        Unbought(Baseline(0.5, (0.25, 0.75)), Majority(0.375, (0.125, 0.625), 3)),
        LabelShares("test", classes),
        parts,
    )
    text = " ".join(shown(replace(RESULT, own=own)).split())
    assert "Labels in %, wanted/bought/weighted: 3 75/50/62, 4 25/25/25, others 0/25/12." in text
    assert "+0.25000 +0.48750" in text, "less the MMD² of all"
    found = replace(RESULT, own=own).as_json()
    assert {name: found[name] for name in own.as_json()} == own.as_json()


def test_the_first_sentence_says_whether_the_model_gets_better() -> None:
    own, both = Figure(0.5, 0.4, 0.6), Figure(0.75, 0.7, 0.8)
    model = ModelFigures(
        metric="accuracy",
        judged_on="test",
        judged=120,
        own=own,
        own_and_bought=both,
        own_and_uniform=own,
        gain=Figure(0.25, 0.125, 0.375),
        training_weights=TrainingWeights("labels", 30.0),
    )
    told = replace(RESULT, model=model)
    first, *_ = [line for line in shown(told, width=400).split("\n") if not line.startswith("demo ")]
    assert first.strip() == (
        "The model gets better: 75.0 % right on 120 test rows with own rows and bought points, 50.0 % with "
        "own rows alone (+25.0 points, 95 % interval +12.5 to +37.5)."
    )
    assert as_json(told)["judgement"][0] == first.strip()
    beside = f"{first.strip().removesuffix('.')}; as many at random: 50.0 %."
    assert as_json(told)["model"]["sentence"] == beside
    assert as_json(told)["model"]["own_and_bought"] == {"value": 0.75, "low": 0.7, "high": 0.8}
    assert as_json(RESULT)["model"]["own"] is None


@pytest.fixture(scope="module")
def demonstration() -> RunResult:
    return simulate(open_cluster(DEMONSTRATION))


@pytest.mark.parametrize(("details", "most"), [(False, 16), (True, 41)])
def test_the_demonstration_fits_a_terminal_of_80_columns(
    demonstration: RunResult, *, details: bool, most: int
) -> None:
    """Unless a path is too long for a line; sixteen lines unless all figures are requested."""
    shown_by_run = replace(
        demonstration,
        wall_seconds=2.75,
        privacy=tuple(
            replace(each, why="", epsilon=each.epsilon if each.epsilon is not None else 3.0)
            if each.against != TRUSTED
            else each
            for each in demonstration.privacy
        ),
        data=Path("/runs/d.npz"),
        directory=Path("/runs"),
        report=Path("/runs/r.html"),
        transcripts={"curator": Path("/runs/c")},
    )
    lines = shown(shown_by_run, width=80, details=details).rstrip("\n").split("\n")
    assert max(map(len, lines)) <= 80
    assert len(lines) <= most, "\n".join(lines)


def test_a_result_is_read_back_from_its_json() -> None:
    paid = PaidStatement.of("gain", {"north": 1.0}, {"north": 0.25}, signal=True, price=Price())
    faulty = replace(RESULT, faults=(PointFault(3, "south", "a fault", 2),), settlement_paid=paid)
    for result in (RESULT, faulty):
        assert RunResult.from_json(as_json(result)) == result


def test_a_private_settlement_is_shown_with_its_standard_error_and_its_epsilon() -> None:
    settlement = PrivateSettlement.of(epsilon=1.0, delta=1e-5, owners=20)
    values = {f"owner-{number:02}": float(number) for number in range(20)}
    told = replace(RESULT, settlement=values, settlement_terms=SettlementTerms.of(settlement, ""))
    text = " ".join(shown(told).split())
    assert "owner-19 +19.00 5.28" in text
    assert "8 others +28.00 14.92" in text, "independent errors add up by squares"
    assert "The settlement is private: owners may be told it, and be paid by it." in text
    assert "ε = 1 at δ = 1e-05, add-remove-one" in text
    terms = as_json(told)["settlement_terms"]
    assert (terms["private"], terms["epsilon"], terms["delta"]) == (True, 1.0, 1e-5)


def test_greedy_that_comes_out_worse_is_said_to_be_no_best_choice() -> None:
    def judged(plain: float, weighted: float) -> Judgement:
        return Judgement(Quality(mmd2=plain), Weighted(Quality(mmd2=weighted), 1.0, 0.0))

    def beside(greedy: Judgement) -> RunResult:
        return replace(RESULT, choices=Choices(judged(0.02, 0.002), greedy, judged(0.03, 0.003)))

    assert "Greedy" not in shown(beside(judged(0.01, 0.001)))
    worse = " ".join(shown(beside(judged(0.025, 0.001))).split())
    assert "of points that all count alike. It is no best choice: this run came out better." in worse
    worst = " ".join(shown(beside(judged(0.04, 0.004))).split())
    assert "It is no best choice: this run and a uniform choice came out better." in worst
    weighted = " ".join(shown(beside(judged(0.01, 0.0025))).split())
    assert "this run came out better" in weighted
