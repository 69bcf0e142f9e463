"""A session's charge to a dataset's lifetime ledger, and when it may not enrol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.config.party import BudgetSection, OwnerFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError
from hushbid.protocol.privacy.accounting import epsilon_of
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.runtime.ledger.dataset_budget import DatasetBudget, dataset_budget
from hushbid.protocol.runtime.ledger.spending import epsilon_of_spendings
from hushbid.protocol.session.session import Session, open_session
from tests.simulation.harness import names
from tests.support.session_files import load
from tests.unit.protocol.runtime.test_party import GAUSSIAN, SECURE, session

TENDER = {
    "acquisition": {"rule": "tender", "box_bytes": 64},
    "features.seed": None,
    "target": GAUSSIAN | {"neighbours": "substitute-one"},
    "summary": GAUSSIAN | {"neighbours": "add-remove-one"},
}
RUN, ANOTHER = "ab" * 32, "cd" * 32
"""Beginnings of transcripts."""
POINTS = Dataset.from_arrays("points.npz", np.array([[0.1, 0.2], [0.3, 0.4]]))


def budget_of(
    place: Path, opened: Session, name: str = "alpha", *, root: str = "", **changes: Any
) -> DatasetBudget:
    data = place / "points.npz"
    file = OwnerFile(name=name, state=place / "state", data=data).model_copy(update=changes)
    machine = OwnerMachine(opened, name=name)
    return dataset_budget(opened, file, data, POINTS, machine.charge, opened.privacy()[0], root=root)


@pytest.mark.parametrize(("delta", "refused"), [(0.49, False), (0.5, True)])
def test_a_delta_that_lets_a_row_be_published_is_no_guarantee(
    tmp_path: Path, delta: float, refused: bool
) -> None:
    opened = session()
    wide = opened.file.session.model_copy(update={"delta": delta})
    opened = open_session(opened.file.model_copy(update={"session": wide}))
    if not refused:
        budget_of(tmp_path, opened).check()
        return
    with pytest.raises(ConfigError, match="not below 1 over the number of rows of the data") as caught:
        budget_of(tmp_path, opened)
    assert " 2 " not in caught.value.what, "how many there are is private"
    assert not (tmp_path / "points.npz.ledger").exists()


def committed_to(place: Path, name: str, root: str, *, key: str | None = None) -> DatasetBudget:
    """The budget of an owner that commits to rows of this root, with the roster's key or this one."""
    budget = budget_of(place, session(), root=root)
    found = replace(budget.spending, identifier=f"{name}/{'0' * 32}/alpha")
    return replace(budget, spending=found if key is None else replace(found, key=key))


def test_rows_that_are_other_ones_than_the_last_session_was_told_of_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ones, others, deeper = f"{'ab' * 32}/8", f"{'cd' * 32}/8", f"{'ef' * 32}/9"
    first = committed_to(tmp_path, "first", ones)
    first.check()
    first.charge(RUN)
    assert json.loads((tmp_path / "points.npz.ledger").read_text().splitlines()[1])["root"] == ones
    for name, root in (("same", ones), ("deeper", deeper), ("none", "")):
        committed_to(tmp_path, name, root).check()
        assert "was told of" not in caplog.text
    committed_to(tmp_path, "other", others).check()
    assert "that the session first was told of" in caplog.text


def test_a_root_of_another_key_tells_nothing_of_the_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same rows have another root with another key. Older ledgers do not say which key it was."""
    ones, others = f"{'ab' * 32}/8", f"{'cd' * 32}/8"
    for name, key, root in (("first", None, ones), ("new", "new key", others)):
        budget = committed_to(tmp_path, name, root, key=key)
        budget.check()
        budget.charge(RUN)
    ledger = tmp_path / "points.npz.ledger"
    header, *charged = map(json.loads, ledger.read_text().splitlines())
    assert [each["key"] for each in charged] == [session().file.roster.owners["alpha"], "new key"]
    committed_to(tmp_path, "same", ones).check()
    assert "was told of" not in caplog.text
    committed_to(tmp_path, "other", f"{'ef' * 32}/8").check()
    assert "that the session first was told of" in caplog.text
    caplog.clear()
    for each in charged:
        del each["key"]
    ledger.write_text("".join(f"{json.dumps(each)}\n" for each in (header, *charged)))
    committed_to(tmp_path, "since", others, key="new key").check()
    committed_to(tmp_path, "since", f"{'ef' * 32}/8").check()
    assert "was told of" not in caplog.text


def lines(place: Path) -> int:
    return len((place / "points.npz.ledger").read_text().splitlines())


def test_a_session_is_checked_without_a_charge_and_charged_once(tmp_path: Path) -> None:
    budget = budget_of(tmp_path, session())
    budget.check()
    assert lines(tmp_path) == 1, "the header alone"
    budget.charge(RUN)
    budget.charge(RUN)
    assert lines(tmp_path) == 2


def test_a_session_with_secure_noise_is_run_once(tmp_path: Path) -> None:
    """Its boxes, signatures and releases would be indistinguishable from those of the first run."""
    budget_of(tmp_path, session()).charge(RUN)
    with pytest.raises(ConfigError, match="has been run before") as caught:
        budget_of(tmp_path, session()).check()
    assert "session.nonce" in caught.value.advice


def test_a_charge_pays_for_the_releases_of_one_transcript(tmp_path: Path) -> None:
    """A second state directory, begun before the first was charged, would draw other noise for free."""
    first, second = (budget_of(tmp_path, session()) for _ in range(2))
    first.check(transcript=RUN)
    second.check(transcript=ANOTHER)
    first.charge(RUN)
    with pytest.raises(ConfigError, match="has been run before"):
        second.check(transcript=ANOTHER)
    with pytest.raises(ConfigError, match="has been run before"):
        second.charge(ANOTHER)
    first.check(transcript=RUN)
    first.charge(RUN)
    assert lines(tmp_path) == 2


def test_a_charge_of_an_older_version_pays_for_the_transcript_that_goes_on(tmp_path: Path) -> None:
    """It did not say for which."""
    budget = budget_of(tmp_path, session())
    budget.charge("")
    budget.check(transcript=RUN)
    budget.charge(RUN)
    assert lines(tmp_path) == 2
    with pytest.raises(ConfigError, match="has been run before"):
        budget.check()


def test_two_owners_of_a_session_with_the_same_data_are_both_charged(tmp_path: Path) -> None:
    """Each releases what it is charged for, so the second one has not paid with the first."""
    opened = session()
    budgets = [budget_of(tmp_path, opened, name) for name in ("alpha", "beta")]
    for budget in budgets:
        budget.check()
    for budget in budgets:
        budget.charge(RUN)
    records = [json.loads(line) for line in (tmp_path / "points.npz.ledger").read_text().splitlines()[1:]]
    assert [record["identifier"].rpartition("/")[2] for record in records] == ["alpha", "beta"]
    assert records[0]["costs"] == records[1]["costs"] != []


def test_a_budget_for_one_does_not_pay_for_two_owners_of_a_session(tmp_path: Path) -> None:
    opened = session()
    one = opened.privacy()[0].epsilon
    assert one is not None
    enough = BudgetSection(epsilon=one * 1.01)
    first, second = (budget_of(tmp_path, opened, name, budget=enough) for name in ("alpha", "beta"))
    first.check()
    second.check()
    first.charge(RUN)
    with pytest.raises(BudgetExceeded, match="over its budget"):
        second.charge(RUN)


def test_a_session_that_an_older_version_charged_is_known_and_charged_no_more(tmp_path: Path) -> None:
    """That version left the party's name out of the identifier."""
    opened = session()
    budget = budget_of(tmp_path, opened)
    older = replace(budget.spending, identifier=f"{opened.file.session.name}/{opened.identifier.hex()}")
    replace(budget, spending=older).charge("")
    with pytest.raises(ConfigError, match="has been run before"):
        budget.check()
    budget.check(transcript=RUN)
    budget.charge(RUN)
    assert lines(tmp_path) == 2


def test_a_session_that_protects_nobody_may_be_run_again_and_is_recorded_each_time(tmp_path: Path) -> None:
    opened = session(secure=False)
    for _ in range(2):
        budget = budget_of(tmp_path, opened)
        budget.check()
        budget.charge(RUN)
    assert lines(tmp_path) == 3


def test_a_budget_refuses_what_goes_over_it_and_what_guarantees_nothing(tmp_path: Path) -> None:
    small = BudgetSection(epsilon=0.5)
    with pytest.raises(BudgetExceeded, match=r"over its budget of ε = 0\.5"):
        budget_of(tmp_path, session(), budget=small).check()
    large = BudgetSection(epsilon=100.0, lift=True)
    with pytest.raises(BudgetExceeded, match="no ε that could be stated"):
        budget_of(tmp_path, session(secure=False), budget=large).check()
    assert lines(tmp_path) == 2, "the header, and the change of the budget"


@pytest.mark.parametrize("relation", ["add-remove-one", "substitute-one"])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_tenders_cost_an_owner_nothing_however_many_and_whatever_else_it_pays_for(
    tmp_path: Path, delta: float, relation: Literal["add-remove-one", "substitute-one"]
) -> None:
    """No owner learns about another's records: neither ε nor δ is spent."""
    tenders = [
        open_session(load(SECURE | TENDER | {"session.name": name})) for name in ("one", "two", "three")
    ]
    cap = BudgetSection(epsilon=0.5, delta=delta, neighbours=relation)
    for opened in tenders:
        statement = opened.privacy()[0]
        assert (statement.epsilon, statement.delta) == (0.0, 0.0)
        budget_of(tmp_path, opened, budget=cap).charge(RUN)
    assert lines(tmp_path) == 1 + len(tenders)


RULES_AND_MORE: dict[str, dict[str, Any]] = {
    "ask-all": {},
    "sealed": {"features.seed": None},
    "blind": {"features.seed": None},
    "winner-only": {},
    "published": {"acquisition.epsilon": 3.0},
    "logistic": {  # which is for many owners
        "acquisition.epsilon": 3.0,
        "session.points": 30,
        "network.insecure": True,
        "roster": {"owners": dict.fromkeys(("alpha", *names(300)), "")},
    },
    "private settlement": {"settlement": {"private": True, "epsilon": 0.5}, "session.distinct": False},
    "tender": TENDER,
}


@pytest.mark.parametrize("what", RULES_AND_MORE)
def test_the_ledger_pays_for_all_that_the_statement_covers(tmp_path: Path, what: str) -> None:
    """Releases, asks with their slack, and a settlement: no part of the guarantee goes uncharged."""
    given = SECURE | {name: TENDER[name] for name in ("target", "summary")} | RULES_AND_MORE[what]
    if what in RULES:
        given = {"acquisition": {"rule": what}} | given
    opened = open_session(load(given))
    statement = opened.privacy()[0]
    spending = budget_of(tmp_path, opened).spending
    assert spending.epsilon == (statement.epsilon if not statement.why else None)
    if spending.epsilon is None:
        return
    assert spending.delta == statement.delta
    paid = epsilon_of_spendings([spending], 1e-5, "add-remove-one")
    assert paid >= spending.epsilon * (1 - 1e-6)
    more, _ = opened.rule.slack
    if more:
        assert spending.costs == (), "slack is added to what is composed, so that all counts as one"
        assert spending.epsilon > epsilon_of(opened.owners_costs(), statement.delta)


def test_a_delta_is_compared_with_what_the_owner_declared_and_not_with_how_many_rows_there_are(
    tmp_path: Path,
) -> None:
    """Two owners with different numbers of rows, and the same declaration, refuse the same sessions."""
    opened = session()

    def takes_part(rows: int, delta: float) -> bool:
        given = opened.file.session.model_copy(update={"delta": delta})
        asked = open_session(opened.file.model_copy(update={"session": given}))
        data = tmp_path / "points.npz"
        file = OwnerFile(name="alpha", state=tmp_path / "state", data=data, most_rows=100)
        points = Dataset.from_arrays("points.npz", np.zeros((rows, 2)))
        charge = OwnerMachine(asked, name="alpha").charge
        try:
            dataset_budget(asked, file, data, points, charge, asked.privacy()[0])
        except ConfigError:
            return False
        return True

    deltas = (0.5, 0.3, 0.1, 0.03, 0.011, 0.0099, 1e-5)
    few, many = ([takes_part(rows, delta) for delta in deltas] for rows in (3, 100))
    assert few == many == [delta * 100 < 1 for delta in deltas]
    with pytest.raises(DataError, match="more rows than most_rows, 100"):
        takes_part(101, 1e-5)
