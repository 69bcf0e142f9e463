"""An owner's rows affect whether it takes part only in the cases of docs/privacy.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from hushbid.owner.machine import OwnerMachine
from hushbid.owner.party import owner_party
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import load_dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.ledger.dataset_budget import dataset_budget
from hushbid.protocol.session.session import Session, open_session
from tests.docs.pages import Page
from tests.support.session_files import changed
from tests.unit.protocol.runtime.test_party import SECURE

NAME = "alpha"
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
    {"name": "job", "kind": "category", "categories": ["clerk", "nurse"]},
]
GOOD = "30,clerk,no\n40,nurse,yes\n50,nurse,no\n60,clerk,yes\n"
WHOLE = GOOD.replace("no", "0").replace("yes", "1")
PRIVATE = {"mechanism": "gaussian", "epsilon": 3.0}
NONE: dict[str, Any] = {}
DROP, CLIP = {"columns": {"outside": "drop"}}, {"columns": {"outside": "clip"}}


@dataclass(frozen=True)
class Case:
    """Rows that decide about taking part, and the remedies.

    Attributes:
        rows: Added to good rows.
        said: Settings in the owner's file, one remedy after the other; none: there is no remedy.
        session: Keys of the session file.
        good: Rows that are all accepted.
    """

    rows: str
    said: tuple[dict[str, Any], ...]
    session: dict[str, Any]
    good: str = GOOD


CASES = {
    "no row, or none that fits": Case("17,pilot,maybe\n", (), NONE, good=""),
    "a δ of 1/n or more": Case("", ({"most_rows": 4},), {"session.delta": 0.26, **SECURE}),
    "a value out of bounds": Case("17,clerk,no\n", (DROP, CLIP), NONE),
    "a category that is none of the session's": Case("30,pilot,no\n", (DROP,), NONE),
    "a gap where the column has none": Case("30,,no\n", (DROP,), NONE),
    "a cell that is no number": Case("many,clerk,no\n", (DROP,), NONE),
    "a label that is none of the session's": Case("30,clerk,maybe\n", (DROP,), NONE),
    "a label or an identifier that cannot travel, or is of another kind than declared": Case(
        f"30,clerk,{'n' * 5000}\n31,clerk,2.5\n",
        (DROP,),
        {"labels": None, "session.labels": "integer"},
        good=WHOLE,
    ),
    "an identifier that is missing": Case("30,clerk,no,\n", (DROP,), {"session.identifiers": "any"}),
    "a label and an identifier that do not fit into a box": Case(
        f"30,clerk,{'n' * 200}\n", (DROP,), {"labels": None, "acquisition.box_bytes": 128}
    ),
    "more rows than the tree of a commitment has room for": Case(
        GOOD, (DROP,), {"acquisition.commitment_depth": 2}
    ),
}


def opened(place: Path, **changes: Any) -> Session:
    keys: dict[str, Any] = {
        "session.allow_nonprivate": True,
        "acquisition": {"rule": "sealed", "box_bytes": 320},
        "features.seed": None,
        "target": PRIVATE | {"neighbours": "substitute-one"},
        "summary": PRIVATE | {"neighbours": "add-remove-one"},
        "labels": {"classes": ["no", "yes"]},
    }
    values = changed(keys | changes) | {"columns": COLUMNS}
    for key in ("columns", "lower", "upper"):
        values["features"].pop(key, None)
    (place / "session.toml").write_text(tomli_w.dumps(values))
    return open_session(load_toml(SessionFile, place / "session.toml"))


def take_part(session: Session, place: Path, rows: str, said: dict[str, Any]) -> None:
    """Everything that an owner's process does with its rows before it says hello."""
    path = place / "rows.csv"
    names = {"label": "y"}
    if session.file.session.identifiers:
        names["identifier"] = "id"
        lines = rows.splitlines()
        rows = "".join(
            f"{line}\n" if line.count(",") > 2 else f"{line},{row}\n" for row, line in enumerate(lines)
        )
    path.write_text(f"age,job,y{',id' * ('identifier' in names)}\n{rows}")
    values = {**said, "columns": {**names, **said.get("columns", {})}}
    file = OwnerFile.model_validate({"name": NAME, "state": place, "data": path, **values})
    dataset = load_dataset(path, session.file.reading(file.columns.columns(), sold=True))
    identity, noise = session.simulated_identity(NAME), SimulatedNoise(0, NAME)
    owner_party(session, NAME, dataset, identity=identity, noise=noise, scratch=None, memory_limit=2**20)
    machine = OwnerMachine(session, name=NAME)
    dataset_budget(session, file, path, dataset, machine.charge, session.privacy()[0])


def test_the_cases_are_those_of_the_page() -> None:
    page = Page("docs/privacy.md")
    rows = [
        (refused, row[2]) for row in page.rows("What taking part tells") for refused in row[0].split("; ")
    ]
    assert sorted(refused for refused, _ in rows) == sorted(CASES)
    assert [refused for refused, said in rows if said.startswith("nothing")] == [
        name for name, case in CASES.items() if not case.said
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_row_decides_unless_the_owner_has_said_what_becomes_of_it(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    session = opened(tmp_path, **case.session)
    if case.rows and case.good:
        take_part(session, tmp_path, case.good, NONE)
    with pytest.raises((DataError, ConfigError)):
        take_part(session, tmp_path, case.good + case.rows, NONE)
    if name.startswith("a δ"):
        return
    for said in case.said:
        take_part(session, tmp_path, case.good + case.rows, said)
    if not case.said:
        with pytest.raises(DataError):
            take_part(session, tmp_path, case.good + case.rows, DROP)


@pytest.mark.parametrize(("delta", "refused"), [(0.26, True), (0.24, False)])
def test_a_delta_is_refused_by_what_is_said_of_the_rows_alone(
    tmp_path: Path, delta: float, refused: bool
) -> None:
    session = opened(tmp_path, **{"session.delta": delta, **SECURE})
    fewer = "".join(GOOD.splitlines(keepends=True)[:2])
    for rows in (GOOD, fewer):
        if refused:
            with pytest.raises(ConfigError, match=r"delta is 0\.26"):
                take_part(session, tmp_path, rows, {"most_rows": 4})
        else:
            take_part(session, tmp_path, rows, {"most_rows": 4})


@pytest.mark.parametrize("said", [DROP])
def test_one_word_is_enough_for_all_rows_that_do_not_fit(tmp_path: Path, said: dict[str, Any]) -> None:
    fitting = [case.rows for case in CASES.values() if said in case.said and not case.session]
    rows = "".join(fitting)
    assert rows.count("\n") == len(fitting) > 4
    depth = {"acquisition.commitment_depth": 2}
    take_part(opened(tmp_path, **depth), tmp_path, GOOD + rows + GOOD, said)
