"""docs/results.md names every field of what is printed, in its order."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consumer.events import Delivered, StorePurchases
from consumer.store import PurchaseFile
from hushbid.bench.rules import SETTINGS as BENCHED
from hushbid.cli import main
from hushbid.experiments.kme import KmeRow
from hushbid.experiments.race import RaceRow
from hushbid.experiments.regression import RegressionRow
from hushbid.experiments.selection import Row
from hushbid.results import RunResult
from protocol.data.attributes import Attributes, pack_attributes
from protocol.messages import Candidate
from protocol.odometer import Odometer
from protocol.session import PrivacyStatement
from protocol.settlement import SettlementTerms
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def stated(title: str) -> list[str]:
    """The first column of the table under a heading."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S)
    assert found, f"no section {title}"
    return re.findall(r"^\| `([\w-]+)` \|", found[1], re.M)


def returned(path: str, *functions: str) -> list[str]:
    """The keys of the dictionaries that functions return."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    bodies = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    assert len(bodies) == len(functions)
    results = [
        node.value
        for body in bodies
        for node in ast.walk(body)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict)
    ]
    keys = [key.value for result in results for key in result.keys if isinstance(key, ast.Constant)]
    return [key for key in keys if isinstance(key, str)]


def test_the_fields_of_a_run_are_there() -> None:
    result = RunResult(
        session="s", p=1, owners=1, rounds=1, wall_seconds=1.0,
        mmd2=None, mmd2_greedy=None, mmd2_uniform=None,
        accuracy=None, accuracy_greedy=None, accuracy_uniform=None,
        points_accessed_curator=0, points_delivered=0, disputed=0, m=1,
        privacy=(), odometers=(), settlement={}, settlement_terms=SettlementTerms.of(None, ""), absences={},
        faults=(),
    )  # fmt: skip
    assert stated("Of `run` and `simulate`") == list(result.as_json())


def test_the_fields_of_a_privacy_statement_are_there() -> None:
    statement = PrivacyStatement("", "", "", None, 1e-5, None, "", "")
    assert stated("`privacy`") == list(statement.as_json())


def test_the_fields_of_an_odometer_are_there() -> None:
    assert stated("`odometer`") == list(Odometer("", "", 1e-5, (), ()).as_json())


def test_the_fields_of_a_dispute_are_there() -> None:
    tree = ast.parse((ROOT / "consumer" / "process.py").read_text(encoding="utf-8"))
    keys = [
        [key.value for key in node.keys if isinstance(key, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
    ]
    stated_of = re.search(r"^\| `disputes` \| each of these:(.*)\|$", PAGE, re.M)
    assert stated_of
    assert re.findall(r"`(\w+)`", stated_of[1]) in keys


@pytest.mark.parametrize(
    ("title", "path", "functions"),
    [
        ("Curator", "curator/process.py", ("_curate", "_result")),
        ("Owner", "owner/process.py", ("_take_part",)),
        ("Consumer", "consumer/process.py", ("_take_part",)),
    ],
)
def test_the_fields_of_a_party_s_result_are_there(title: str, path: str, functions: tuple[str, ...]) -> None:
    fields = returned(path, *functions)
    assert "transcript" in fields
    assert sorted(stated(title)) == sorted(fields)


@pytest.mark.parametrize(
    ("verb", "path", "function", "more"),
    [
        ("rounds", "hushbid/bench/rounds.py", "bench_rounds", set()),
        (
            "rules",
            "hushbid/bench/rules.py",
            "bench_rules",
            {f"{setting}_rounds_per_second" for setting in BENCHED},
        ),
    ],
)
def test_the_figures_of_a_bench_are_there(verb: str, path: str, function: str, more: set[str]) -> None:
    fields = {*returned(path, function), *more}
    assert len(fields) > 6
    assert sorted(stated(f"`bench {verb}`")) == sorted(fields)


def test_the_fields_of_an_experiment_s_row_are_there() -> None:
    assert stated("Of `experiment selection`") == [field.name for field in dataclasses.fields(Row)]
    assert stated("Of `experiment kme`") == [field.name for field in dataclasses.fields(KmeRow)]
    assert stated("Of `experiment race`") == [field.name for field in dataclasses.fields(RaceRow)]
    assert stated("Of `experiment regression`") == [field.name for field in dataclasses.fields(RegressionRow)]


def each(field: str) -> list[list[str]]:
    """The fields of each item of a list, for every list of that name that a table of the page has."""
    rows = re.findall(rf"^\| `{field}` \| each [^:|]*: (.*) \|$", PAGE, re.M)
    return [re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", row.partition(". ")[0])) for row in rows]


def test_the_fields_of_keys_and_invite_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "configs" / "separate" / "session.toml", "session.toml")
    parties = {"curator": "curator", "consumer": "consumer", "north": "owner", "south": "owner"}

    def printed(verb: str, *arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["hushbid", *verb.split(), *arguments, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert stated(f"`{verb}`") == list(found), verb
        return found

    for name, role in parties.items():
        printed("keys new", name)
        printed("keys request", name, "--role", role)
    printed("keys show", "north.pub")
    session = ("--session", "session.toml")
    approved = printed("keys approve", *(f"{name}.request" for name in parties), *session, "--yes")
    assert each("approved") == [list(approved["approved"][0])]
    assert each("parties") == [list(printed("keys list", *session)["parties"][0])]
    printed("invite", *session, "--consumer")
    printed("keys revoke", "south", *session)


def delivered(round_number: int, label: int, identifier: str) -> Delivered:
    """A point that was bought, with a label and an identifier."""
    features, attributes = np.zeros(8, dtype=np.int16), Attributes(label, identifier)
    candidate = Candidate(point=np.zeros(3), features=features, attributes=pack_attributes(attributes, 16))
    return Delivered("owner-1", round_number, candidate, "")


def test_the_arrays_of_a_delivery_are_there(tmp_path: Path) -> None:
    kept = PurchaseFile(tmp_path / "delivered.npz")
    kept.store(StorePurchases((delivered(1, 3, "a"), delivered(2, 4, "b"))))
    with np.load(kept.path) as archive:
        assert sorted(stated("The delivered points")) == sorted(archive.files)
