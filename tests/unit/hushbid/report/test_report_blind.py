"""The report of a session with a blind curator: the consumer's weights come from the consumer."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import hushbid.report.sections as page
from hushbid.consumer.events import Delivered, PurchasesChecked
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.page import page_of
from hushbid.report.plots import plots_of
from hushbid.report.sources import open_sources
from tests.support.report_sessions import OWNERS, Recorded, record

ROUNDS = 6
BATCH = 2
PRIVATE = {"mechanism": "filtered-gaussian", "epsilon": 3.0}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(
        tmp_path_factory.mktemp("blind"),
        rule="blind",
        batch=BATCH,
        points=ROUNDS * BATCH,
        target=PRIVATE | {"neighbours": "substitute-one"},
        summary=PRIVATE | {"neighbours": "add-remove-one"},
    )


def test_the_curator_tells_what_it_has_and_what_it_does_not_see(session: Recorded) -> None:
    figures = session.figures(CURATOR)
    series = figures.rounds.curator
    assert series is not None
    assert (series.objective_before, series.objective, series.gain) == (None, (), (None,) * ROUNDS)
    assert sum(series.sealed) == ROUNDS * BATCH * len(OWNERS), "boxes"
    assert sum(series.raw) == sum(series.asked) == 0
    assert (figures.session.m, figures.session.seed_points) == (None, None)
    assert figures.owners.settlement == tuple(session.outcome.curator.settlement().values())  # type: ignore[union-attr]
    assert [each.what for each in figures.missing] == [
        "The released objective and gains, and which boxes were void",
        "MMD²",
    ]
    assert figures.rounds.seconds is not None
    assert None not in figures.rounds.seconds


def test_the_consumer_tells_its_rounds_and_what_it_weighed(session: Recorded) -> None:
    figures = session.figures(CONSUMER)
    assert (figures.rounds.run, figures.rounds.timed_by, figures.rounds.curator) == (ROUNDS, CONSUMER, None)
    assert figures.rounds.seconds is not None
    assert None not in figures.rounds.seconds
    series = figures.rounds.consumer
    assert series is not None
    assert series.void == (0,) * ROUNDS
    before = series.objective_before
    for objective, gain in zip(series.objective, series.gain, strict=True):
        assert before is not None
        assert gain == pytest.approx(objective - before, abs=1e-7)
        before = objective
    owners = next(each for each in figures.odometers if each.protects == "the records of every owner")
    assert owners.rounds[-1] == ROUNDS, "charges, round by round"


def test_an_owner_tells_its_own_rounds(session: Recorded) -> None:
    figures = session.figures(OWNERS[0])
    assert (figures.rounds.run, figures.rounds.timed_by) == (ROUNDS, OWNERS[0])
    assert figures.owners.sealed == (ROUNDS * BATCH, None, None)


def test_of_all_together_nothing_but_the_baselines_is_missing(session: Recorded) -> None:
    figures = session.figures(CURATOR, CONSUMER, *OWNERS)
    assert [each.what for each in figures.missing] == ["MMD² of the greedy and the uniform choice"]
    assert {"objective", "gains", "map", "shares", "times"} <= plots_of(figures).keys()
    html = page_of(figures)
    assert "boxes handed over" in html
    assert "The consumer computed it, in its signed account" in html
    assert "J(S) = " in html


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, OWNERS[0]])
def test_a_redacted_copy_tells_how_many_rounds_there_were(session: Recorded, party: str) -> None:
    figures: ReportFigures = figures_of(open_sources([session.redacted(party)]))
    assert figures.rounds.run == ROUNDS
    assert figures.rounds.consumer is None
    assert page_of(figures)


def test_a_void_box_is_told_with_its_round_by_the_consumer_and_counted_by_the_curator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hushbid.consumer.numerics import BlindConsumerNumerics

    honest = BlindConsumerNumerics._check_award

    def one_void(self: BlindConsumerNumerics, effect: object) -> PurchasesChecked:
        checked = honest(self, effect)  # type: ignore[arg-type]
        if checked.delivered[0].chosen_round != 2:
            return checked
        first: Delivered = dataclasses.replace(checked.delivered[0], dispute="the score is not the point's")
        return dataclasses.replace(checked, delivered=(first, *checked.delivered[1:]))

    monkeypatch.setattr(BlindConsumerNumerics, "_check_award", one_void)
    found = record(tmp_path, rule="blind")
    alone, theirs, both = (found.figures(*names) for names in ((CURATOR,), (CONSUMER,), (CURATOR, CONSUMER)))
    for figures, rounds in ((alone, [None]), (theirs, [2]), (both, [2])):
        assert figures.owners.disputed is not None
        assert sum(figures.owners.disputed) == 1
        told = [each.round for each in figures.incidents.listed if each.what == "dispute"]
        assert told == rounds
    assert theirs.rounds.consumer is not None
    assert theirs.rounds.consumer.void[1] == 1
    assert page._weigher(theirs) == CONSUMER
