"""A copy of the data, renamed, in another format or order, is recognised: it gets no second budget."""

from __future__ import annotations

import hashlib
import json
import logging
import stat
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.data import DataColumns, Dataset, load_dataset, rows_digest, shared_rows
from hushbid.protocol.data.rows import rows_as
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError
from hushbid.protocol.privacy.accounting import LaplaceCost
from hushbid.protocol.runtime.files.line_file import LineFile
from hushbid.protocol.runtime.ledger.known_ledgers import FORMAT, KnownRows, known_ledgers_path
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending

RELATION = "add-remove-one"
ROWS = np.random.default_rng(5).random((40, 3), dtype=np.float32)
LABELS = np.arange(40)
ONE = BudgetSection(epsilon=1.0)


def table(rows: Any = ROWS, labels: Any = None) -> Dataset:
    return Dataset.from_arrays("points", rows, labels)


def opened(path: Path, dataset: Dataset, budget: BudgetSection | None = None) -> LifetimeLedger:
    return LifetimeLedger.open(path, budget=budget, neighbours=RELATION, rows=KnownRows(dataset))


def spending(name: str = "one", epsilon: float = 0.9) -> Spending:
    return Spending(
        kind="session",
        identifier=name,
        date=date(2026, 3, 1),
        neighbours=RELATION,
        epsilon=epsilon,
        delta=0.0,
        costs=(LaplaceCost(epsilon=epsilon, count=1),),
    )


def known(dataset: Dataset) -> Path | None:
    """The list's ledger for these rows."""
    with KnownRows(dataset).hold() as listed:
        return None if listed.known is None else listed.known.path


def spend(
    path: Path,
    dataset: Dataset,
    budget: BudgetSection | None = None,
    *,
    name: str = "one",
    epsilon: float = 0.9,
) -> None:
    with opened(path, dataset, budget) as ledger:
        ledger.charge(spending(name, epsilon))


# -- The same rows -------------------------------------------------------------------------------------


def test_rows_are_the_same_in_any_order_type_and_format(tmp_path: Path) -> None:
    key = bytes(range(32))
    np.savez(tmp_path / "a.npz", features=ROWS)
    lines = ["p,q,r", *(",".join(repr(float(value)) for value in row) for row in ROWS)]
    (tmp_path / "b.csv").write_text("\n".join(lines) + "\n")
    short = ["p,q,r", *(",".join(np.format_float_positional(v, unique=True) for v in row) for row in ROWS)]
    (tmp_path / "c.csv").write_text("\n".join(short) + "\n")
    digests = {
        rows_digest(features, key)
        for features in (
            ROWS,
            ROWS.astype(np.float64),
            ROWS[np.random.default_rng(1).permutation(40)],
            np.asfortranarray(ROWS),
            load_dataset(tmp_path / "a.npz", DataColumns()).features,
            load_dataset(tmp_path / "b.csv", DataColumns()).features,
            load_dataset(tmp_path / "c.csv", DataColumns()).features,
        )
    }
    assert len(digests) == 1
    assert rows_digest(np.array([[0, 1]], dtype=np.uint8), key) == rows_digest(np.array([[-0.0, 1.0]]), key)


def test_other_rows_are_others_and_without_the_key_nothing_is_known() -> None:
    key = bytes(range(32))
    changed = ROWS.copy()
    changed[7, 1] += 0.25
    others = [changed, ROWS[:-1], np.concatenate([ROWS, ROWS[:1]]), ROWS.T, ROWS[:, ::-1]]
    digests = [rows_digest(features, key) for features in (ROWS, *others)]
    assert len(set(digests)) == len(digests)
    assert rows_digest(ROWS, bytes(32)) != digests[0]


def test_the_digest_is_the_keyed_one_of_the_sum_of_the_rows_own() -> None:
    """Lists of ledgers on disk hold it, so it never changes, however many chunks rows are read in."""
    key = bytes(range(32))
    features = np.random.default_rng(1).random((500, 5000))
    of_rows = [
        hashlib.blake2b(row, key=key, digest_size=32).digest() for row in rows_as(features, np.float32)
    ]
    total = sum(int.from_bytes(digest, "big") for digest in of_rows) % 2**256
    whole = hashlib.blake2b(b"500 5000 " + total.to_bytes(32, "big"), key=key, digest_size=32)
    assert rows_digest(features, key) == whole.digest()
    assert rows_digest(features[:0], key) == rows_digest(features[:0].astype(np.float32), key)


def test_rows_are_rounded_chunk_by_chunk_without_a_warning() -> None:
    large = np.array([[1e300, 1.0], [0.1, -0.0]])
    assert list(rows_as(large, np.float32)) == [
        np.array([np.inf, 1.0], dtype="<f4").tobytes(),
        np.array([0.1, 0.0], dtype="<f4").tobytes(),
    ]


def test_rows_of_two_tables_are_compared_as_finely_as_both_of_them_are() -> None:
    fine = np.array([[0.5, 0.1], [0.5 + 1e-12, 0.1], [0.5, 0.1]])
    assert shared_rows(fine, fine[:1]) == (1, 2)
    assert shared_rows(fine, np.array([[0.5 + 2e-12, 0.1]])) == (0, 2)
    assert shared_rows(fine, fine[:1].astype(np.float32)) == (1, 1)
    assert shared_rows(np.array([[1, 0]]), np.array([[1.0, -0.0]])) == (1, 1)


# -- A second ledger -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copy",
    [table(ROWS[::-1]), table(ROWS.astype(np.float64)), table(ROWS, LABELS)],
    ids=["order", "type", "labels"],
)
@pytest.mark.parametrize("budget", [None, ONE], ids=["no budget of its own", "a budget of its own"])
def test_a_copy_of_the_rows_has_no_budget_of_its_own(
    tmp_path: Path, copy: Dataset, budget: BudgetSection | None
) -> None:
    """A cap of 1.0, 0.9 spent; the copy would have the whole cap again, or none."""
    first = tmp_path / "points.npz.ledger"
    spend(first, table(), ONE)
    with pytest.raises(
        ConfigError, match=r"the rows of these data were charged to .*points\.npz\.ledger"
    ) as e:
        opened(tmp_path / "copy.csv.ledger", copy, budget)
    assert "--ledger" in e.value.advice
    with pytest.raises(BudgetExceeded):
        spend(first, copy, budget, name="two")


def test_a_budget_counts_where_the_other_ledger_has_none(tmp_path: Path) -> None:
    spend(tmp_path / "a.ledger", table())
    with pytest.raises(ConfigError, match="were charged to"):
        opened(tmp_path / "b.ledger", table(), ONE)


def test_without_any_budget_a_second_ledger_is_said_and_not_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spend(tmp_path / "a.ledger", table())
    with caplog.at_level(logging.WARNING), opened(tmp_path / "b.ledger", table()) as ledger:
        assert ledger.elsewhere == tmp_path / "a.ledger"
        ledger.warn()
    assert "the same rows were charged to" in caplog.text


def test_a_ledger_that_was_removed_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    spend(path, table())
    path.unlink()
    for again in (path, tmp_path / "b.ledger"):
        with pytest.raises(ConfigError, match="is not there any more"):
            opened(again, table(), ONE)
        again.unlink(missing_ok=True)
    with opened(path, table()) as ledger:
        assert ledger.elsewhere == path


@pytest.mark.parametrize("budget", [None, ONE], ids=["no budget in the file", "a budget in the file"])
@pytest.mark.parametrize("lost", ["removed", "emptied"])
def test_a_ledger_with_a_budget_that_was_lost_is_missed_whatever_the_file_says(
    tmp_path: Path, lost: str, budget: BudgetSection | None
) -> None:
    path = tmp_path / "a.ledger"
    spend(path, table(), ONE)
    if lost == "removed":
        path.unlink()
    else:
        path.write_bytes(b"")
    with pytest.raises(ConfigError, match="is not there any more, or empty") as caught:
        opened(path, table(), budget)
    assert "--lift-budget" in caught.value.advice
    spend(path, table(), BudgetSection(epsilon=1.0, lift=True), name="two")
    assert '"lifted": true' in path.read_text()


def test_a_budget_that_was_set_after_the_charge_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    spend(path, table())
    opened(path, table(), ONE).close()
    path.unlink()
    with pytest.raises(ConfigError, match="is not there any more"):
        opened(path, table())


def test_the_ledger_of_other_data_does_not_stand_in_for_one_that_was_removed(tmp_path: Path) -> None:
    """It has spendings, but not those of these rows: it is not their ledger, moved."""
    first, second = tmp_path / "a.ledger", tmp_path / "b.ledger"
    spend(first, table(), ONE)
    spend(second, table(ROWS / 2), ONE, epsilon=0.05)
    first.unlink()
    with pytest.raises(ConfigError, match="is not there any more"):
        opened(second, table(), ONE)
    spend(second, table(ROWS / 2), ONE, name="two", epsilon=0.05)


def test_an_older_copy_of_a_ledger_is_not_taken_for_the_ledger(tmp_path: Path) -> None:
    path, grown = tmp_path / "a.ledger", table(np.concatenate([ROWS, ROWS[:1] / 2]))
    spend(path, table(), ONE, epsilon=0.05)
    older = path.read_bytes()
    spend(path, grown, ONE, name="two")
    path.write_bytes(older)
    for dataset in (table(), grown):
        with pytest.raises(ConfigError, match="does not begin with the 3 lines that it had"):
            opened(path, dataset, ONE)


def test_a_ledger_whose_spending_was_made_smaller_is_not_taken_for_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    spend(path, table(), ONE)
    path.write_text(path.read_text().replace("0.9", "0.1"))
    with pytest.raises(ConfigError, match="does not begin with the 2 lines"):
        opened(path, table(), ONE)


def test_of_two_ledgers_of_the_same_rows_that_are_open_at_once_one_alone_is_charged(tmp_path: Path) -> None:
    first, second = tmp_path / "a.ledger", tmp_path / "b.ledger"
    with opened(second, table()) as two, opened(first, table(), ONE) as one:
        one.charge(spending("one"))
        with pytest.raises(ConfigError, match="which is another file"):
            two.charge(spending("two"))
        assert two.spendings == ()
        assert not one.charge(spending("one"))


def test_the_list_is_held_while_a_ledger_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the check of the rows and the note no other process finds the list as it was."""
    held = []
    append = LineFile.append

    def watched(file: LineFile, record: Any) -> None:
        if "identifier" in record:
            with pytest.raises(ConfigError, match="another process holds"):
                LineFile.open(known_ledgers_path(), what="the list", format_name=FORMAT, patience=0.0)
            held.append(record["identifier"])
        append(file, record)

    monkeypatch.setattr(LineFile, "append", watched)
    spend(tmp_path / "a.ledger", table(), ONE)
    assert held == ["one"]


def older_ledger(path: Path) -> None:
    """A ledger of format 1, unknown to the list: 0.9 of 1.0 is spent."""
    budget = {"epsilon": 1.0, "delta": 1e-5}
    header = {"format": "hushbid-lifetime-ledger", "version": 1, "neighbours": RELATION, "budget": budget}
    record = spending().as_record()
    del record["neighbours"]
    path.write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    path.chmod(0o600)


def test_a_ledger_from_before_there_was_a_list_is_listed_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    older_ledger(path)
    with pytest.raises(BudgetExceeded):
        spend(path, table(), ONE, name="two")
    assert known(table()) == path
    with pytest.raises(ConfigError, match="were charged to"):
        opened(tmp_path / "copy.ledger", table(), ONE)


def test_data_under_the_name_of_another_s_ledger_are_not_listed_before_a_charge(tmp_path: Path) -> None:
    """It may be a slip, after which they would be missed under their own ledger."""
    spend(tmp_path / "a.ledger", table(), ONE, epsilon=0.05)
    opened(tmp_path / "a.ledger", table(ROWS / 2), ONE).close()
    assert known(table(ROWS / 2)) is None


def test_a_ledger_that_moved_with_its_data_is_the_same_one(tmp_path: Path) -> None:
    spend(tmp_path / "a.ledger", table(), ONE)
    moved = (tmp_path / "a.ledger").rename(tmp_path / "moved.ledger")
    with pytest.raises(BudgetExceeded):
        spend(moved, table(), name="two")
    spend(moved, table(), name="two", epsilon=0.05)
    assert known(table()) == moved


def test_a_copy_of_data_and_ledger_is_seen_too(tmp_path: Path) -> None:
    spend(tmp_path / "a.ledger", table(), ONE)
    other = tmp_path / "b.ledger"
    other.write_bytes((tmp_path / "a.ledger").read_bytes())
    other.chmod(0o600)
    with pytest.raises(ConfigError, match="which is another file"):
        opened(other, table())


def test_a_new_ledger_is_begun_by_the_word_which_it_keeps(tmp_path: Path) -> None:
    spend(tmp_path / "a.ledger", table(), ONE)
    path = tmp_path / "b.ledger"
    spend(path, table(), BudgetSection(epsilon=1.0, lift=True), name="two")
    header, word, spent = (json.loads(line) for line in path.read_text().splitlines())
    assert header["budget"] == word["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert (word["kind"], word["lifted"], spent["identifier"]) == ("budget", True, "two")
    with opened(path, table()) as ledger:
        assert ledger.elsewhere is None
    with pytest.raises(ConfigError, match="were charged to"):
        opened(tmp_path / "a.ledger", table())


def test_rows_that_were_added_are_other_rows_of_the_same_ledger(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    spend(path, table(), ONE)
    grown = table(np.concatenate([ROWS, ROWS[:1] / 2]))
    spend(path, grown, name="two", epsilon=0.05)
    assert known(grown) == known(table()) == path


def test_what_was_only_checked_is_not_listed(tmp_path: Path) -> None:
    opened(tmp_path / "a.ledger", table()).close()
    for path, budget in ((tmp_path / "b.ledger", None), (tmp_path / "b.ledger", ONE)):
        LifetimeLedger.open(
            path, budget=budget, neighbours=RELATION, rows=KnownRows(table()), record=False
        ).close()
    assert known(table()) is None


def test_a_budget_binds_copies_before_anything_is_spent(tmp_path: Path) -> None:
    opened(tmp_path / "a.ledger", table(), ONE).close()
    for budget in (None, ONE):
        with pytest.raises(ConfigError, match=r"have a budget in .*/a.ledger, which is another file"):
            opened(tmp_path / "copy.ledger", table(), budget)
    spend(tmp_path / "a.ledger", table(), ONE)


def test_other_rows_do_not_make_a_ledger_forget_what_it_had(tmp_path: Path) -> None:
    """The ledger of capped rows is removed, and unknown rows are charged under its name."""
    path = tmp_path / "a.ledger"
    spend(path, table(), ONE)
    whole = path.read_bytes()
    grown = table(np.concatenate([ROWS, ROWS[:1] / 2]))
    path.unlink()
    for budget in (None, ONE):
        with pytest.raises(ConfigError, match="does not begin with the 2 lines"):
            spend(path, grown, budget, name="two", epsilon=0.001)
    with pytest.raises(ConfigError, match="which is not there any more"):
        spend(path, table(), name="three", epsilon=100.0)
    # By the word that is recorded the name is free for them; the first rows' budget is not.
    spend(path, grown, BudgetSection(epsilon=1.0, lift=True), name="two", epsilon=0.001)
    with pytest.raises(ConfigError, match="does not begin with the 2 lines"):
        spend(path, table(), name="three", epsilon=100.0)
    path.write_bytes(whole)
    with pytest.raises(ConfigError, match="does not begin with the 3 lines"):
        spend(path, grown, name="four", epsilon=0.001)


def test_the_ledger_of_other_data_that_is_put_in_its_place_is_refused_to_both(tmp_path: Path) -> None:
    path, other = tmp_path / "a.ledger", table(ROWS / 2)
    spend(path, table(), ONE, epsilon=0.9)
    spend(tmp_path / "b.ledger", other, ONE, epsilon=0.1)
    (tmp_path / "b.ledger").replace(path)
    for rows in (table(), other, table()):
        with pytest.raises(ConfigError, match="does not begin with the 2 lines"):
            spend(path, rows, name="two", epsilon=0.1)


def test_a_ledger_that_moved_is_known_though_its_old_name_has_another(tmp_path: Path) -> None:
    path, moved = tmp_path / "a.ledger", tmp_path / "moved.ledger"
    spend(path, table(), ONE, epsilon=0.5)
    path.rename(moved)
    # The name is taken by the word, before the moved ledger was ever opened; then without, after that.
    spend(path, table(ROWS / 2), BudgetSection(epsilon=1.0, lift=True), epsilon=0.1)
    with pytest.raises(BudgetExceeded):
        spend(moved, table(), name="two", epsilon=0.6)
    spend(moved, table(), name="two", epsilon=0.1)
    path.unlink()
    third = tmp_path / "third.ledger"
    moved.rename(third)
    spend(third, table(), name="three", epsilon=0.1)
    spend(moved, table(ROWS / 3), ONE, epsilon=0.1)
    assert known(table()) == third


# -- The list ------------------------------------------------------------------------------------------


def test_the_list_is_its_user_s_alone_and_neither_it_nor_a_ledger_tells_rows(tmp_path: Path) -> None:
    spend(tmp_path / "a.ledger", table(), ONE)
    path = known_ledgers_path()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    header, _, line = (json.loads(text) for text in path.read_text().splitlines())
    assert list(header) == ["format", "version", "key"]
    assert line["rows"] == rows_digest(ROWS, bytes.fromhex(header["key"])).hex()
    assert line["ledger"] == str(tmp_path / "a.ledger")
    content = (tmp_path / "a.ledger").read_bytes()
    assert (line["lines"], line["digest"], line["capped"]) == (2, hashlib.sha256(content).hexdigest(), True)
    assert line["rows"] not in (tmp_path / "a.ledger").read_text()


def test_every_list_has_a_key_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for name in ("here", "there"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        spend(tmp_path / f"{name}.ledger", table())
        found.add(json.loads(known_ledgers_path().read_text().splitlines()[1])["rows"])
    assert len(found) == 2


@pytest.mark.parametrize(
    "damage",
    ['{"ledger": 1}', '{"lines": 0}', '{"lines": true}', '{"digest": null}', '{"capped": 1}'],
)
def test_a_damaged_line_of_the_list_is_named(tmp_path: Path, damage: str) -> None:
    spend(tmp_path / "a.ledger", table(), ONE, epsilon=0.05)
    *before, line = known_ledgers_path().read_text().splitlines()
    damaged = json.dumps(json.loads(line) | json.loads(damage))
    known_ledgers_path().write_text("".join(f"{each}\n" for each in (*before, damaged)))
    with pytest.raises(DataError, match="line 3: malformed"):
        opened(tmp_path / "a.ledger", table(), ONE)


@pytest.mark.parametrize(
    "damage", ["{}", '{"format": "hushbid-known-ledgers", "version": 1, "key": "12"}', "not json", "[]"]
)
def test_a_damaged_list_stands_against_a_budget_and_is_said_without_one(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = known_ledgers_path()
    path.parent.mkdir(parents=True)
    path.write_text(damage + "\n")
    path.chmod(0o600)
    with pytest.raises(DataError, match=r"line 1: malformed|first line does not say so"):
        opened(tmp_path / "a.ledger", table(), ONE)
    with caplog.at_level(logging.WARNING), opened(tmp_path / "b.ledger", table()) as ledger:
        ledger.warn()
    assert "not known whether these rows have another ledger" in caplog.text
    spend(tmp_path / "b.ledger", table())
    assert path.read_text() == damage + "\n"


def test_a_list_of_a_newer_release_is_called_newer(tmp_path: Path) -> None:
    path = known_ledgers_path()
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"format": "{FORMAT}", "version": 2, "key": "{"12" * 32}"}}\n')
    path.chmod(0o600)
    with pytest.raises(DataError, match="format 2, which a newer release of hushbid writes"):
        opened(tmp_path / "a.ledger", table(), ONE)


def test_a_state_directory_that_cannot_be_written_stands_against_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="cannot keep the list of known ledgers") as caught:
        opened(tmp_path / "a.ledger", table(), ONE)
    assert "XDG_STATE_HOME" in caught.value.advice
    opened(tmp_path / "b.ledger", table()).close()


@pytest.mark.parametrize("beside", [None, "other rows"])
def test_a_new_ledger_that_is_refused_leaves_no_file(tmp_path: Path, beside: str | None) -> None:
    spend(tmp_path / "a.ledger", table(), BudgetSection(epsilon=1.0))
    refused = tmp_path / "b.ledger"
    if beside is not None:
        spend(refused, table(ROWS + 1))  # one that is there stays as it is
    before = refused.read_bytes() if beside else None
    with pytest.raises(ConfigError, match="Their budget would be allowed twice"):
        opened(refused, table())
    assert (refused.read_bytes() if refused.exists() else None) == before
    opened(refused, table(), BudgetSection(epsilon=1.0, lift=True)).close()
    assert refused.stat().st_size > 0
