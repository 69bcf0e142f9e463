"""Preflight on a party's own rows: how they were read and changed, and what may be wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.hushbid.preflight.test_preflight import wrong


def test_an_owner_is_told_what_was_changed_of_its_rows_and_how_a_file_was_read(party: Any) -> None:
    one = party()
    rows = "\n".join(f"0.{row};0.5;{row}" for row in range(1, 10))
    (one.place / "data.csv").write_text(f"a;b;c\n{rows}\n")
    one.own["data"] = "data.csv"
    wrong(one.preflight("--offline"), "data", 4, says="out of the session's public bounds")
    report = one.preflight("--offline", "--outside", "clip")
    data = report.checks["data"]
    assert (report.code, data["status"]) == (0, "warning")
    assert (
        "data.csv is read as CSV, separated by semicolons; data.csv: 8 values were clipped in column 'c'"
        in data["said"]
    )
    one.own["columns"] = {"outside": "drop"}
    assert "data.csv: 8 rows were dropped" in one.preflight("--offline").checks["data"]["said"]


def test_the_consumer_may_leave_rows_of_its_own_out_and_its_seed_set_stays(party: Any) -> None:
    one = party("consumer")
    for name in ("validation", "seed"):
        rows = np.random.default_rng(len(name)).random((20, 3))
        rows[0, 0] = 1.5
        np.savez(one.place / f"{name}.npz", features=rows)
    wrong(one.preflight("--offline"), "data", 4, says="validation.npz: row 0")
    wrong(one.preflight("--offline", "--outside", "drop"), "data", 4, says="seed.npz: row 0")
    np.savez(one.place / "seed.npz", features=np.random.default_rng(9).random((20, 3)))
    said = one.preflight("--offline", "--no-rehearsal", "--outside", "drop").checks["data"]["said"]
    assert "validation.npz: 1 row was dropped" in said


@pytest.mark.parametrize("lost", [9, 10])
def test_who_loses_half_of_the_rows_is_told_of_the_session_s_columns(party: Any, lost: int) -> None:
    one = party("owner")
    rows = np.random.default_rng(1).random((20, 3))
    rows[:lost, 0] = 1.5
    np.savez(one.place / "data.npz", features=rows)
    one.own |= {"data": "data.npz", "columns": {"outside": "drop"}}
    fix = one.preflight("--offline").checks["data"]["fix"]
    assert ("hushbid init … --categories" in fix) == (lost == 10)
    assert "Keep that to yourself" in fix


def table(one: Any, **columns: Any) -> dict[str, str]:
    """The finding about a table with these columns besides an ordinary one."""
    count = len(next(iter(columns.values())))
    ordinary = {"a": np.arange(count) / count, "b": np.arange(count) % 7 / 7, "c": np.arange(count) % 5 / 5}
    pq.write_table(pa.table(ordinary | columns), one.place / "data.parquet")
    one.own |= {"data": "data.parquet", "columns": {"features": ["a", "b", "c"]}}
    if "id" in columns:
        one.own["columns"]["identifier"] = "id"
    if "y" in columns:
        one.own["columns"]["label"] = "y"
    found: dict[str, str] = one.preflight("--offline").checks["rows"]
    return found


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"a": [0.5] * 40}, "column 'a' has one value alone, or gaps alone"),
        ({"a": [0.5 + row / 1e5 for row in range(39)] + [1.0]}, "of column 'a' lie within a hundredth"),
        ({name: [row % 20 / 20 for row in range(40)] for name in "abc"}, "every row is there at least twice"),
        ({"id": [*range(39), 3]}, "an identifier stands in several rows"),
    ],
    ids=["constant", "bounds", "twice", "identifiers"],
)  # fmt: skip
def test_rows_that_may_be_wrong_are_a_warning(party: Any, columns: dict[str, Any], says: str) -> None:
    found = table(party(), **columns)
    assert found["status"] == "warning"
    assert says in found["said"]
    assert "40" not in found["said"]


def test_rows_with_labels_and_without_are_told_apart(party: Any) -> None:
    one = party()
    assert table(one, y=[row % 2 for row in range(40)])["said"].startswith("rows do not repeat")
    one.own["columns"] = {}
    said = table(one, d=[0] * 40)
    assert (said["status"], said["said"][:24]) == ("warning", "rows have no label, and ")
    assert "points without one teach no model" in said["said"]
    one.session["session"]["labels"] = "optional"
    said = table(one, d=[0] * 40)
    assert (said["status"], said["said"]) == ("ok", "rows have no label, and the session requires none")
    checks = one.preflight("--offline").checks
    assert "taken in the order 'a', 'b', 'c': only the numbers can show" in checks["data"]["said"]
    one.session["session"]["labels"] = "any"
    wrong(one.preflight("--offline"), "data", 4, says="has no labels where the session requires labels")


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("validation", "the test rows are the validation set itself"),
        ("same", "all test rows are rows of the validation set, too"),
        ("half", "many test rows are rows of the validation set, too"),
        ("other", None),
    ],
)
def test_test_rows_that_are_the_validation_set_s_are_a_warning(
    party: Any, test: str, says: str | None
) -> None:
    one = party("consumer")
    rows, others = (np.random.default_rng(seed).random((20, 3)) for seed in (1, 2))
    files = {
        "validation": rows,
        "same": rows[::-1],
        "half": np.concatenate([rows[:10], others[:10]]),
        "other": others,
    }
    for name, features in files.items():
        np.savez(one.place / f"{name}.npz", features=features)
    one.own["test"] = f"{test}.npz"
    found = one.preflight("--offline", "--no-rehearsal").checks["rows"]
    assert (found["status"] == "warning") == (says is not None)
    assert (says or "") in found["said"]


def test_the_consumer_is_told_that_its_session_requires_no_labels(party: Any) -> None:
    one = party("consumer")
    rows = np.random.default_rng(1).random((20, 3))
    np.savez(one.place / "validation.npz", features=rows, labels=np.arange(20) % 2)
    said = one.preflight("--offline", "--no-rehearsal").checks["rows"]
    assert (said["status"], said["said"][:29]) == ("warning", "the validation set has labels")
    for declared in ("any", "optional"):
        one.session["session"]["labels"] = declared
        assert one.preflight("--offline", "--no-rehearsal").checks["rows"]["status"] == "ok"
