"""The figures of a report against the machines of the transcripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hushbid.consumer.appraisal import Judgement, Quality
from hushbid.consumer.model_figures import Figure, ModelFigures
from hushbid.consumer.own_figures import Baseline, OwnerPart, OwnFigures, Unbought
from hushbid.protocol.errors import ConfigError, DataError, HushbidError, TranscriptDamaged
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.space.mmd import mmd2
from hushbid.report import rounds
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.page import page_of
from hushbid.report.sources import open_sources
from tests.simulation.harness import RULES_FOR_FEW
from tests.support.report_sessions import OWNERS, Recorded, record
from tests.support.transcripts import transcript

ALL = (CURATOR, CONSUMER, *OWNERS)
PRIVATE = {"mechanism": "filtered-gaussian", "epsilon": 3.0}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(
        tmp_path_factory.mktemp("private"),
        rule="sealed",
        target=PRIVATE | {"neighbours": "substitute-one"},
        summary=PRIVATE | {"neighbours": "add-remove-one"},
    )


def states(figures: ReportFigures, owner: str) -> str:
    assert figures.rounds.map is not None
    return figures.rounds.map.states[figures.rounds.map.owners.index(owner)]


# -- what the curator's transcript tells --------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
def test_winners_and_settlement_are_the_curator_s(rule: str, tmp_path: Path) -> None:
    found = record(tmp_path, rule=rule)
    ledger = found.outcome.curator.ledger
    figures = found.figures(CURATOR)
    winners = [OWNERS[place] for place in figures.rounds.winner or () if place is not None]
    # Where a round buys several points, its winner is the seller of the first.
    assert winners == [win.owner for win in ledger.wins][:: 12 if RULES[rule].herds else 1]
    assert figures.session.bought == len(ledger.wins) == 12
    assert figures.owners.settlement == tuple((found.outcome.curator.settlement() or {}).values())
    assert figures.owners.won == tuple(Counter(win.owner for win in ledger.wins)[owner] for owner in OWNERS)


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
def test_points_handed_over_are_counted_as_the_curator_counts_them(rule: str, tmp_path: Path) -> None:
    found = record(tmp_path, rule=rule)
    series = found.figures(CURATOR).rounds.curator
    assert series is not None
    ledger = found.outcome.curator.ledger
    assert sum(series.raw) == ledger.points_accessed
    assert sum(series.raw) + sum(series.sealed) == ledger.candidates
    assert (sum(series.asked) > 0) == (not RULES[rule].candidate_with_bid)
    assert (sum(series.sealed) > 0) == RULES[rule].sealed


def test_gains_add_up_to_the_settlement_and_lead_from_one_objective_to_the_next(session: Recorded) -> None:
    figures = session.figures(CURATOR)
    series, winners = figures.rounds.curator, figures.rounds.winner
    assert series is not None
    assert winners is not None
    owed = dict.fromkeys(range(len(OWNERS)), 0.0)
    before = series.objective_before
    for objective, gain, winner in zip(series.objective, series.gain, winners, strict=True):
        assert before is not None
        assert gain is not None
        assert winner is not None
        assert objective - before == pytest.approx(gain, abs=1e-8)
        owed[winner] += gain
        before = objective
    assert list(owed.values()) == pytest.approx(list(figures.owners.settlement or ()), rel=1e-7)


def test_a_round_lasts_until_the_next_and_the_last_until_the_delivery(session: Recorded) -> None:
    # A frame travels a thousandth of a second: a broadcast there, a bid back.
    assert list(session.figures(CURATOR).rounds.seconds or ()) == pytest.approx([2e-3] * 12)


def test_who_is_away_is_absent_lost_and_back(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda number: ["beta"] if 4 <= number < 7 else [])
    figures = found.figures(CURATOR)
    absent = [absence.round for absence in found.outcome.curator.ledger.absences]
    assert absent
    assert [number for number, state in enumerate(states(figures, "beta"), start=1) if state == "a"] == absent
    assert figures.owners.absent == (0, len(absent), 0)
    assert figures.rounds.curator is not None
    assert sum(figures.rounds.curator.absent) == len(absent)
    assert [(each.what, each.party) for each in figures.incidents.listed][:1] == [("lost", "beta")]


def test_the_map_has_a_letter_for_what_happened(session: Recorded) -> None:
    figures = session.figures(CURATOR)
    for place, owner in enumerate(OWNERS):
        won = [winner == place for winner in figures.rounds.winner or ()]
        assert states(figures, owner) == "".join("W" if wins else "r" for wins in won)


def test_owners_that_have_nothing_left_hand_nothing_over(tmp_path: Path) -> None:
    figures = record(tmp_path, rows=2).figures(CURATOR)
    assert figures.session.bought == 6
    assert figures.rounds.run == 12
    assert (figures.rounds.winner or ())[6:] == (None,) * 6
    assert figures.rounds.curator is not None
    assert figures.rounds.curator.gain[6:] == (None,) * 6
    assert all(states(figures, owner)[6:] == "-" * 6 for owner in OWNERS)


def test_a_session_that_was_given_up_before_any_point_was_chosen(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda number: OWNERS if number else ())
    figures = found.figures(CURATOR, CONSUMER)
    assert (figures.session.bought, figures.rounds.run) == (0, 1)
    assert figures.rounds.seconds == (None,)
    assert figures.quality.session is None
    assert figures.owners.won == (0, 0, 0)
    assert figures.transcripts[0].finish is not None
    assert figures.transcripts[0].finish["code"] == 3
    assert any("nothing was delivered" in each.why for each in figures.missing)


def test_a_session_that_was_given_up_before_its_first_round(tmp_path: Path) -> None:
    figures = record(tmp_path, away=lambda _number: OWNERS).figures(CURATOR, CONSUMER)
    assert (figures.rounds.run, figures.rounds.number) == (0, ())
    assert figures.session.m == 9
    assert figures.owners.settlement == (0.0, 0.0, 0.0)


def test_a_session_of_one_round(tmp_path: Path) -> None:
    figures = record(tmp_path, points=1).figures(*ALL)
    assert figures.rounds.number == (1,)
    assert list(figures.rounds.seconds or ()) == pytest.approx([2e-3])
    assert figures.quality.session is not None
    assert figures.quality.session.points == (1,)


def test_of_many_rounds_some_are_shown_and_all_are_counted(
    session: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = session.figures(CURATOR, CONSUMER)
    monkeypatch.setattr(rounds, "SHOWN_ROUNDS", 5)
    figures = session.figures(CURATOR, CONSUMER)
    numbers = figures.rounds.number
    assert (len(numbers), numbers[0], numbers[-1], figures.rounds.run) == (5, 1, 12, 12)
    assert figures.owners == whole.owners
    assert figures.rounds.curator is not None
    assert whole.rounds.curator is not None
    assert figures.rounds.curator.gain == tuple(whole.rounds.curator.gain[number - 1] for number in numbers)
    assert figures.quality.session is not None
    assert whole.quality.session is not None
    assert figures.quality.session.last == whole.quality.session.last


def test_of_many_owners_those_that_won_most_have_a_row(
    session: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    won = session.figures(CURATOR).owners.won
    assert won is not None
    monkeypatch.setattr(rounds, "MAP_OWNERS", 1)
    found = session.figures(CURATOR).rounds.map
    assert found is not None
    assert found.owners == (OWNERS[won.index(max(won))],)
    assert found.left_out == 2


# -- what the others tell -----------------------------------------------------------------------------------


def test_mmd2_is_the_consumer_s_point_by_point(session: Recorded) -> None:
    curve = session.figures(CONSUMER).quality.session
    assert curve is not None
    space = session.session.space
    points = [entry.candidate.point for entry in session.outcome.consumer.delivered if entry.candidate]
    wanted = space.scale(session.validation.features)
    expected = [
        mmd2(space.scale(np.stack(points[:size])), wanted, space.gamma) for size in range(1, len(points) + 1)
    ]
    assert curve.points == tuple(range(1, 13))
    assert curve.mmd2 == pytest.approx(expected, rel=1e-8)
    assert curve.last == pytest.approx(expected[-1], abs=1e-12)


def test_how_far_the_seed_set_lies_is_the_consumer_s_to_tell(session: Recorded) -> None:
    found = session.figures(CONSUMER)
    assert found.quality.seed_distance == session.outcome.consumer.seed_distance is not None
    assert found.as_json()["quality"]["seed_distance"].keys() == {"mmd2", "by_chance", "radii"}
    assert session.figures(CURATOR, *OWNERS).quality.seed_distance is None


def test_how_the_purchase_went_is_the_consumer_s_to_tell(session: Recorded) -> None:
    found = session.figures(CONSUMER)
    assert found.quality.course == session.outcome.consumer.course is not None
    assert session.figures(CURATOR, *OWNERS).quality.course is None


def test_without_the_curator_the_consumer_tells_who_won(session: Recorded) -> None:
    alone, together = session.figures(CONSUMER), session.figures(CURATOR, CONSUMER)
    assert alone.rounds.winner == together.rounds.winner
    assert alone.owners.won == together.owners.won
    assert alone.rounds.run == 12
    assert alone.rounds.curator is None
    assert alone.owners.settlement is None
    assert any("curator's transcript" in each.why for each in alone.missing)
    assert not any("Who won" in each.what for each in alone.missing)
    assert any("Who won" in each.what for each in session.figures("alpha").missing)


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
def test_an_owner_tells_what_it_handed_over_itself(rule: str, tmp_path: Path) -> None:
    found = record(tmp_path, rule=rule)
    alone, told = found.figures("beta"), found.figures(CURATOR)
    handed = (alone.owners.sealed if RULES[rule].sealed else alone.owners.raw) or ()
    assert handed == (None, found.outcome.owners["beta"].handed_over, None)
    assert alone.rounds.map is not None
    assert alone.rounds.map.owners == ("beta",)
    for own, curator_s in zip(states(alone, "beta"), states(told, "beta"), strict=True):
        assert curator_s in (own, "W")
    assert alone.rounds.timed_by == "beta"


def test_with_all_transcripts_nothing_is_missing_but_the_baselines(session: Recorded) -> None:
    missing = session.figures(*ALL).missing
    assert [each.what for each in missing] == ["MMD² of the greedy and the uniform choice"]


def test_disputes_are_told_by_who_knows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.consumer.numerics.matching", lambda own, _: np.zeros(len(own), bool))
    found = record(tmp_path)
    for parties, why in (((CURATOR,), ""), ((CURATOR, CONSUMER), "the features are not those of the point")):
        figures = found.figures(*parties)
        disputes = [each for each in figures.incidents.listed if each.what == "dispute"]
        assert [each.round for each in disputes] == list(range(1, 13))
        assert {each.detail for each in disputes} == {why}
        assert sum(figures.owners.disputed or ()) == 12
        assert figures.owners.settlement == (0.0, 0.0, 0.0)


# -- redacted transcripts -----------------------------------------------------------------------------------


def test_a_redacted_transcript_tells_what_is_public_and_what_is_missing(private: Recorded) -> None:
    whole = private.figures(CURATOR)
    figures = figures_of(open_sources([private.redacted(CURATOR)]))
    assert figures.rounds.number == whole.rounds.number
    assert figures.rounds.seconds == whole.rounds.seconds
    assert figures.odometers == whole.odometers
    assert [each.epsilon for each in figures.privacy] == [each.epsilon for each in whole.privacy]
    assert figures.session.identifier == whole.session.identifier
    assert (figures.rounds.winner, figures.rounds.curator, figures.rounds.map) == (None, None, None)
    assert (figures.owners.won, figures.owners.raw, figures.session.m) == (None, None, None)
    (facts,) = figures.transcripts
    assert not facts.replayed
    assert facts.redacted_fields == facts.private_fields > 0
    assert facts.finish == {"code": 0, "reason": None, "advice": None}
    assert any("redacted" in each.why for each in figures.missing)


def test_why_a_party_ended_is_told_by_a_whole_transcript(private: Recorded) -> None:
    (facts,) = private.figures(CURATOR).transcripts
    assert facts.finish == {"code": 0, "reason": "The session is complete.", "advice": ""}


def test_a_redacted_curator_and_a_whole_consumer(private: Recorded) -> None:
    figures = figures_of(open_sources([private.redacted(CURATOR), private.paths[CONSUMER]]))
    assert figures.session.bought == 12
    assert figures.quality.session is not None
    assert figures.rounds.seconds is not None
    assert figures.rounds.curator is None


def test_no_seed_is_in_the_figures(tmp_path: Path) -> None:
    found = record(tmp_path, noise_seed=918273645)
    assert "918273645" not in json.dumps(found.figures(*ALL).as_json())


def test_the_figures_are_json(private: Recorded) -> None:
    found = private.figures(*ALL).as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


# -- files that do not do -----------------------------------------------------------------------------------


def test_transcripts_of_two_sessions_are_refused(session: Recorded, private: Recorded) -> None:
    with pytest.raises(ConfigError, match="another session"):
        open_sources([session.paths[CURATOR], private.paths[CONSUMER]])


def test_two_transcripts_of_one_party_are_refused(session: Recorded) -> None:
    with pytest.raises(ConfigError, match="both of curator"):
        open_sources([session.paths[CURATOR], session.redacted(CURATOR)])


def damaged(path: Path) -> None:
    image = bytearray(path.read_bytes())
    image[len(image) // 2] ^= 1
    path.write_bytes(image)


def other_steps(path: Path) -> None:
    path.write_bytes(transcript())


def header_only(path: Path) -> None:
    path.write_bytes(transcript([]))


@pytest.mark.parametrize(
    ("spoil", "error", "told"),
    [
        (damaged, TranscriptDamaged, "is damaged"),
        (other_steps, DataError, "does not begin with the session file"),
        (header_only, DataError, "no record"),
        (lambda path: path.write_bytes(b""), DataError, "empty"),
        (lambda path: path.write_text("a page\n" * 9), DataError, "not a transcript"),
        (lambda path: path.unlink(), DataError, "cannot read"),
    ],
    ids=["damaged", "another's steps", "no record", "empty", "text", "missing"],
)
def test_what_is_no_transcript_is_refused(
    session: Recorded, tmp_path: Path, spoil: Callable[[Path], None], error: type[HushbidError], told: str
) -> None:
    path = tmp_path / "curator.transcript"
    path.write_bytes(session.paths[CURATOR].read_bytes())
    spoil(path)
    with pytest.raises(error, match=told):
        open_sources([path])


def test_a_torn_tail_is_told(session: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "curator.transcript"
    path.write_bytes(session.paths[CURATOR].read_bytes()[:-40])
    (facts,) = figures_of(open_sources([path])).transcripts
    assert facts.torn_bytes > 0
    assert facts.replayed
    assert facts.finish is None


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"mmd2_greedy": [0.1]}',
        '{"mmd2_greedy": [0.1], "mmd2_uniform": 1}',
        '{"mmd2_greedy": [0.1], "mmd2_uniform": [-1]}',
        '{"mmd2_greedy": ["<b>"], "mmd2_uniform": [1]}',
        '{"mmd2_greedy": [NaN], "mmd2_uniform": [1]}',
        '{"mmd2_greedy": [], "mmd2_uniform": [], "appraisal": 1}',
        '{"role": "consumer", "baselines": {}}',
    ],
)
def test_what_is_no_evaluation_is_refused(session: Recorded, tmp_path: Path, content: str) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(content)
    with pytest.raises(DataError, match="not an evaluation"):
        session.figures(CONSUMER, evaluation=path)


def test_the_baselines_stand_beside_the_session(session: Recorded, tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text('{"mmd2_greedy": [0.5, 0.25], "mmd2_uniform": []}')
    figures = session.figures(CONSUMER, evaluation=path)
    assert figures.quality.greedy is not None
    assert (figures.quality.greedy.mmd2, figures.quality.greedy.last) == ((0.5, 0.25), 0.25)
    assert figures.quality.uniform is None


def test_a_consumer_s_own_result_is_an_evaluation(session: Recorded, tmp_path: Path) -> None:
    own = OwnFigures(Unbought(Baseline(0.5, (0.25, 0.75))), by_owner={"a": OwnerPart(3, 0.25, 0.5, None)})
    values = {"role": "consumer", **Judgement(Quality(0.125, None, 0.75, 3.0)).as_json(), **own.as_json()}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(values))
    quality = session.figures(CONSUMER, evaluation=path).quality
    assert (quality.greedy, quality.uniform) == (None, None)
    assert quality.appraisal is not None
    assert quality.appraisal.own == own
    names = [(each.name, each.accuracy) for each in quality.appraisal.choices]
    assert names == [("this session", 0.75), ("the validation rows alone", 0.5)]
    assert quality.appraisal.model is None, "of an older version"
    model = ModelFigures(metric="r2", judged_on="test", judged=9, own=Figure(0.5, 0.25, 0.75), why="<b>")
    values["model"] = model.as_json()
    path.write_text(json.dumps(values))
    found = session.figures(CONSUMER, evaluation=path).quality.appraisal
    assert found is not None
    assert found.model == model
    page = page_of(session.figures(CONSUMER, evaluation=path))
    assert "R²" in page
    assert "&lt;b&gt;" in page
    assert "told: <b>" not in page
    assert "What owners sold" in page
    assert "Shares and settlement" not in page, "it has no such section, so it refers to none"
    assert "hushbid results STATE" in page
    values["model"]["own"]["low"] = "<b>"
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match="not those of a consumer"):
        session.figures(CONSUMER, evaluation=path)
    values["model"] = model.as_json()
    values["by_owner"]["a"]["gain"] = "<b>"
    path.write_text(json.dumps(values))
    with pytest.raises(DataError, match="not those of a consumer"):
        session.figures(CONSUMER, evaluation=path)
    path.write_text(json.dumps({"role": "consumer", "mmd2": 0.5}))
    assert session.figures(CONSUMER, evaluation=path).quality.appraisal is None


def test_what_should_be_paid_is_the_curator_s(session: Recorded) -> None:
    figures = session.figures(CURATOR)
    curator = session.outcome.curator
    found = curator.statement(Price())
    assert found is not None
    assert figures.owners.standard_error == tuple(found[0][name] for name in figures.owners.name)
    assert figures.owners.paid == tuple(found[1].owners[name].paid for name in figures.owners.name)
    assert figures.owners.paid_for == found[1].sentence()
    alone = session.figures(CONSUMER).owners
    assert (alone.standard_error, alone.paid, alone.paid_for) == (None, None, None)
