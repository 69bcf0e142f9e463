"""The lifetime ledger: durable before it is spent, paid once, and never over the dataset's budget."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError, HushbidError
from hushbid.protocol.privacy.accounting import (
    ApproximateCost,
    Cost,
    DiscreteGaussianCost,
    LaplaceCost,
    adaptive_epsilon,
    epsilon_of,
)
from hushbid.protocol.privacy.accounting.costs import GaussianCost
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending

BUDGET = BudgetSection(epsilon=2.0)
RELATION = "add-remove-one"
GAUSSIAN: tuple[Cost, ...] = (DiscreteGaussianCost(sensitivity=65536.0, sigma=8e6, width=140, count=1000),)


def session(identifier: str = "spring", costs: tuple[Cost, ...] = GAUSSIAN, **changes: Any) -> Spending:
    fields: dict[str, Any] = {
        "kind": "session",
        "identifier": identifier,
        "date": date(2026, 3, 1),
        "neighbours": RELATION,
        "epsilon": 1.0,
        "delta": 1e-5,
        "costs": costs,
    }
    return Spending(**(fields | changes))


def opened(
    path: Path, budget: BudgetSection | None = BUDGET, neighbours: str = RELATION, *, record: bool = True
) -> LifetimeLedger:
    return LifetimeLedger.open(path, budget=budget, neighbours=neighbours, rows=None, record=record)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.ledger"


# -- Spending ---------------------------------------------------------------------------------------


def test_what_is_charged_is_there_after_a_restart(path: Path) -> None:
    first, second = session(), session("entry", (LaplaceCost(epsilon=0.1, count=1),), kind="catalogue")
    with opened(path) as ledger:
        assert ledger.charge(first)
        assert ledger.charge(second)
    with opened(path) as ledger:
        assert ledger.spendings == (first, second)
        assert ledger.cut == 0
        assert ledger.spent(1e-5) == adaptive_epsilon([GAUSSIAN, second.costs], 1e-5)


def test_the_file_is_json_lines_of_a_header_and_the_spendings_for_its_owner_alone(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
    header, entry = (json.loads(line) for line in path.read_text().splitlines())
    assert header == {
        "format": "hushbid-lifetime-ledger",
        "version": 2,
        "neighbours": RELATION,
        "budget": {"epsilon": 2.0, "delta": 1e-5},
    }
    assert (entry["kind"], entry["identifier"], entry["date"]) == ("session", "spring", "2026-03-01")
    assert (entry["epsilon"], entry["delta"], len(entry["costs"])) == (1.0, 1e-5, 1)
    assert entry["neighbours"] == RELATION
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_charge_is_durable_before_it_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []

    def sync(descriptor: int) -> None:
        synced.append(path.read_bytes())

    with opened(path) as ledger:
        monkeypatch.setattr(os, "fsync", sync)
        ledger.charge(session())
        assert synced[-1] == path.read_bytes()
        assert b"spring" in synced[-1]


def test_a_session_that_starts_again_does_not_pay_twice(path: Path) -> None:
    with opened(path) as ledger:
        assert ledger.charge(session())
    with opened(path) as ledger:
        content = path.read_bytes()
        assert not ledger.charge(session(date=date(2026, 3, 9)))
        # However its costs are split up.
        parts = tuple(
            DiscreteGaussianCost(sensitivity=65536.0, sigma=8e6, width=140, count=count) for count in (1, 999)
        )
        assert not ledger.charge(session(costs=parts))
        assert path.read_bytes() == content
        assert ledger.charge(session(kind="catalogue", costs=(LaplaceCost(epsilon=0.1, count=1),)))


def test_the_same_name_at_another_cost_is_refused(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
        for other in (session(costs=(GaussianCost(noise_multiplier=9.0, count=1),)), session(delta=1e-6)):
            with pytest.raises(ConfigError, match=r"'spring' was charged on 2026-03-01 at another cost"):
                ledger.charge(other)
        assert ledger.spendings == (session(),)


def test_an_inquiry_makes_no_file(path: Path) -> None:
    with opened(path, BudgetSection(epsilon=0.5), record=False) as ledger:
        assert (ledger.spendings, ledger.cut) == ((), 0)
        with pytest.raises(BudgetExceeded, match="'spring' would bring"):
            ledger.check(session())
    assert list(path.parent.iterdir()) == []


# -- The budget -------------------------------------------------------------------------------------


def test_a_charge_over_the_budget_is_refused_and_not_recorded(path: Path) -> None:
    """Each of these sessions has ε = 0.963 at δ = 10⁻⁵; three cost 1.993 by the filter, four 2.335."""
    with opened(path) as ledger:
        for name in ("one", "two", "three"):
            ledger.charge(session(name))
        content = path.read_bytes()
        with pytest.raises(
            BudgetExceeded, match=r"'four' would bring .* to ε = 2\.33\d+ .* budget of ε = 2;"
        ) as caught:
            ledger.charge(session("four"))
        assert "raise the dataset's budget" in caught.value.advice
        assert path.read_bytes() == content
        assert ledger.spent(1e-5) < 2.0
        assert ledger.charge(session("small", (LaplaceCost(epsilon=0.01, count=1),)))


def test_a_check_says_what_a_charge_would_and_records_nothing(path: Path) -> None:
    with opened(path, BudgetSection(epsilon=1.0)) as ledger:
        assert ledger.check(session("one"))
        assert ledger.spendings == ()
        ledger.charge(session("one"))
        assert not ledger.check(session("one"))
        with pytest.raises(BudgetExceeded):
            ledger.check(session("two"))
        with pytest.raises(ConfigError):
            ledger.check(session("one", delta=1e-6))


def test_sessions_compose_better_than_their_epsilons_add_up(path: Path) -> None:
    with opened(path, None) as ledger:
        for name in ("one", "two", "three"):
            ledger.charge(session(name))
        one = epsilon_of(GAUSSIAN, 1e-5)
        assert one < ledger.spent(1e-5) < 0.75 * 3 * one
        assert ledger.spent(1e-5) == adaptive_epsilon([GAUSSIAN] * 3, 1e-5)


def test_what_is_known_by_epsilon_and_delta_alone_is_added_up(path: Path) -> None:
    known: dict[str, Any] = {"costs": (), "epsilon": 0.8, "delta": 2e-6}
    with opened(path) as ledger:
        ledger.charge(session("one", **known))
        ledger.charge(session("two", **known))
        assert ledger.spent(8e-6) == pytest.approx(1.6)
        with pytest.raises(BudgetExceeded, match="no ε that could be stated"):
            ledger.charge(session("three", **known))  # the half of δ that is kept for theirs is used up
    with opened(path) as ledger:
        assert ledger.spendings[0].charged == (ApproximateCost(epsilon=0.8, delta=2e-6, count=1),)


def test_without_a_budget_everything_is_recorded(path: Path) -> None:
    with opened(path, None) as ledger:
        for number in range(5):
            ledger.charge(session(str(number)))
        assert len(ledger.spendings) == 5


def test_a_session_without_a_guarantee_is_refused_by_a_budget_and_else_recorded(path: Path) -> None:
    bare = session("bare", (), epsilon=None)
    with opened(path) as ledger, pytest.raises(BudgetExceeded):
        ledger.charge(bare)
    with opened(path, BudgetSection(lift=True)) as ledger:
        assert ledger.charge(bare)
    with opened(path, None) as ledger:
        assert ledger.spendings == (bare,)
        assert ledger.spent(1e-5) == float("inf")


def test_a_budget_lowered_below_what_was_spent_refuses_everything_and_says_so(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
    with opened(path, BudgetSection(epsilon=0.5)) as ledger:
        assert not ledger.charge(session())  # paid already
        with pytest.raises(BudgetExceeded, match=r"budget is ε = 0\.5 .* is spent already"):
            ledger.charge(session("tiny", (LaplaceCost(epsilon=1e-6, count=1),)))
    with opened(path, BudgetSection(epsilon=2.0, lift=True)) as ledger:
        assert ledger.charge(session("two"))


def test_every_change_of_the_budget_stays_on_record_with_the_word_that_lifted_it(path: Path) -> None:
    lower, lifted = BudgetSection(epsilon=0.5), BudgetSection(epsilon=3.0, lift=True)
    for budget in (BUDGET, lower, lower, None, lifted, lifted, BudgetSection(lift=True), lower):
        opened(path, budget).close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(record["budget"] or {}).get("epsilon") for record in records] == [2.0, 0.5, 3.0, None, 0.5]
    assert [record.get("lifted") for record in records] == [None, False, True, True, False]


def test_a_file_that_says_nothing_of_a_budget_never_lifts_the_one_on_record(path: Path) -> None:
    """A budget of 1.0, 0.9 spent by pure ε: without [budget] a charge of 0.2 is refused all the same."""
    with opened(path, BudgetSection(epsilon=1.0)) as ledger:
        ledger.charge(session("first", (LaplaceCost(epsilon=0.9, count=1),)))
    content = path.read_bytes()
    for _ in range(2):
        with opened(path, None) as ledger:
            with pytest.raises(BudgetExceeded, match=r"to ε = 1\.1 at .* over its budget of ε = 1;"):
                ledger.charge(session("more", (LaplaceCost(epsilon=0.2, count=1),)))
            with pytest.raises(BudgetExceeded):
                ledger.charge(session("bare", (), epsilon=None))
    assert path.read_bytes() == content
    with opened(path, None) as ledger:
        assert ledger.charge(session("last", (LaplaceCost(epsilon=0.05, count=1),)))


@pytest.mark.parametrize(
    "more",
    [
        BudgetSection(epsilon=2.1),
        BudgetSection(epsilon=2.0, delta=1e-4),
        BudgetSection(epsilon=1.0, delta=1e-4),
        BudgetSection(epsilon=1.0, neighbours="substitute-one"),
    ],
)
def test_a_budget_is_raised_or_changed_by_the_word_alone(path: Path, more: BudgetSection) -> None:
    opened(path).close()
    content = path.read_bytes()
    with pytest.raises(ConfigError, match=r"budget on record is ε = 2 at .* was asked for") as caught:
        opened(path, more)
    assert "lift = true" in caught.value.advice
    assert path.read_bytes() == content
    with opened(path, more.model_copy(update={"lift": True})) as ledger:
        assert ledger.cap is not None
        assert (ledger.cap.budget.epsilon, ledger.cap.budget.delta) == (more.epsilon, more.delta)
    assert json.loads(path.read_text().splitlines()[-1])["lifted"] is True


def test_a_budget_without_an_epsilon_needs_the_word() -> None:
    with pytest.raises(ValidationError, match="epsilon is missing"):
        BudgetSection()
    assert BudgetSection(lift=True).budget() is None


# -- Neighbours -------------------------------------------------------------------------------------


def entry_of(epsilon: float, **changes: Any) -> Spending:
    costs = (LaplaceCost(epsilon=epsilon, count=1),)
    return session("entry", costs, kind="catalogue", neighbours="substitute-one", **changes)


def test_one_ledger_has_both_relations_and_its_budget_says_which_it_compares(path: Path) -> None:
    """By substitution 0.2 of add-remove counts twice: 2 · 0.2 + 0.3."""
    budget = BudgetSection(epsilon=0.75, neighbours="substitute-one")
    with opened(path, budget) as ledger:
        ledger.charge(session("one", (LaplaceCost(epsilon=0.2, count=1),)))
        ledger.charge(entry_of(0.3))
        assert ledger.neighbours == "substitute-one"
        assert ledger.spent(1e-5) == pytest.approx(0.7)
        with pytest.raises(BudgetExceeded, match=r"\(substitute-one\)"):
            ledger.charge(session("two", (LaplaceCost(epsilon=0.03, count=1),)))
    with opened(path, None) as ledger:
        assert [each.neighbours for each in ledger.spendings] == ["add-remove-one", "substitute-one"]
        assert ledger.spent(1e-5) == pytest.approx(0.7)


def test_what_holds_by_substitution_alone_has_no_epsilon_by_add_and_remove(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
        with pytest.raises(BudgetExceeded, match="no ε that could be stated") as caught:
            ledger.charge(entry_of(0.01))
        assert 'neighbours = "substitute-one" and lift = true' in caught.value.advice
        assert ledger.charge(
            session("free", (), kind="screening", neighbours="substitute-one", epsilon=0.0, delta=0.0)
        )
    with opened(path, BudgetSection(epsilon=3.0, neighbours="substitute-one", lift=True)) as ledger:
        assert ledger.charge(entry_of(0.001))


def test_without_a_budget_a_total_is_stated_for_what_all_spendings_have(path: Path) -> None:
    with opened(path, None) as ledger:
        ledger.charge(session("one", (LaplaceCost(epsilon=0.2, count=1),)))
        assert ledger.neighbours == "add-remove-one"
        assert ledger.spent(1e-5) == pytest.approx(0.2, rel=1e-3)
        ledger.charge(entry_of(0.3))
        assert ledger.neighbours == "substitute-one"
        assert ledger.spent(1e-5) == pytest.approx(0.7)


def test_a_ledger_of_the_first_format_is_read_and_goes_on(path: Path) -> None:
    """Its lines name no neighbours: they are those of its first line. Its budget holds."""
    spent = session("old").as_record()
    del spent["neighbours"]
    budget = {"epsilon": 1.0, "delta": 1e-5}
    header = {"format": "hushbid-lifetime-ledger", "version": 1, "neighbours": RELATION, "budget": None}
    lines = (header, spent, {"kind": "budget", "budget": budget})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path.chmod(0o600)
    with opened(path, None, neighbours="substitute-one") as ledger:
        assert ledger.spendings == (session("old"),)
        assert str(ledger.cap) == "ε = 1 at δ = 1e-05 (add-remove-one)"
        with pytest.raises(BudgetExceeded):
            ledger.charge(session("new"))
    with opened(path, BudgetSection(epsilon=2.0, lift=True)) as ledger:
        assert ledger.charge(session("new"))
    with opened(path, None) as ledger:
        assert [each.identifier for each in ledger.spendings] == ["old", "new"]


# -- One process at a time --------------------------------------------------------------------------


def test_a_second_holder_is_turned_away_until_the_first_is_done(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger\n"
        "from hushbid.protocol.errors import ConfigError\n"
        "try: LifetimeLedger.open(\n"
        "    Path(sys.argv[1]), budget=None, neighbours='add-remove-one', rows=None).close()\n"
        "except ConfigError as error: print(error.what)\n"
    )

    def other_process() -> str:
        command = [sys.executable, "-c", script, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with opened(path, None):
        assert "another process holds" in other_process()
        with pytest.raises(ConfigError, match="another process holds"):
            opened(path, None)
    assert other_process() == ""


def test_a_holder_that_is_done_in_a_moment_is_waited_for(path: Path) -> None:
    first = opened(path, None)
    release = threading.Timer(0.2, first.close)
    release.start()
    opened(path, None).close()
    release.join()


def test_a_ledger_that_others_may_use_is_refused(path: Path) -> None:
    opened(path).close()
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=r"mode 0640"):
        opened(path)


@pytest.mark.parametrize("what", ["missing directory", "directory", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "place"
    if what == "directory":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path = tmp_path / "nowhere" / "ledger"
    with pytest.raises(ConfigError):
        opened(path)


# -- Crashes and damage -----------------------------------------------------------------------------


def test_a_crash_in_the_middle_of_a_write_loses_that_charge_alone(path: Path) -> None:
    """The process dies after half of the line is written. The charge never returned: nothing was released."""
    with opened(path) as ledger:
        ledger.charge(session("before"))
    script = (
        "import os, sys; from datetime import date; from pathlib import Path\n"
        "from hushbid.protocol.privacy.accounting import LaplaceCost\n"
        "from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger\n"
        "from hushbid.protocol.runtime.ledger.spending import Spending\n"
        "ledger = LifetimeLedger.open(\n"
        "    Path(sys.argv[1]), budget=None, neighbours='add-remove-one', rows=None)\n"
        "whole = os.write\n"
        "def half(descriptor, data):\n"
        "    whole(descriptor, bytes(data)[:len(data) // 2]); os._exit(9)\n"
        "os.write = half\n"
        "cost = LaplaceCost(epsilon=0.1, count=1)\n"
        "ledger.charge(Spending(kind='session', identifier='torn', date=date(2026, 3, 2), epsilon=0.1,\n"
        "                       neighbours='add-remove-one', delta=1e-5, costs=(cost,)))\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    assert not path.read_bytes().endswith(b"\n")
    with opened(path) as ledger:
        assert ledger.cut > 50
        assert ledger.spendings == (session("before"),)
        assert ledger.charge(session("after"))
    with opened(path) as ledger:
        assert ledger.cut == 0
        assert [spending.identifier for spending in ledger.spendings] == ["before", "after"]


def test_a_last_line_that_is_whole_but_for_its_end_counts(path: Path) -> None:
    """An editor or a copy may drop the last newline; what was paid stays paid."""
    with opened(path) as ledger:
        ledger.charge(session("one"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with opened(path) as ledger:
        assert [spending.identifier for spending in ledger.spendings] == ["one"]
        assert ledger.cut == 0
        assert ledger.charge(session("two"))
    assert path.read_bytes().startswith(whole)
    with opened(path) as ledger:
        assert len(ledger.spendings) == 2


def test_a_last_line_torn_at_any_byte_does_not_count_and_is_cut_by_the_next(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session("one"))
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for length in range(len(whole) - 1):
        if length == start - 1:
            continue  # the header, whole but for its end
        path.write_bytes(whole[:length])
        with opened(path) as ledger:
            assert ledger.spendings == ()
            if length > start:
                assert ledger.cut == length - start
                assert path.read_bytes() == whole[:length], "nothing was written"
            assert ledger.charge(session("two"))
        content = path.read_bytes()
        assert content.startswith(whole[:start])
        assert (content.count(b"\n"), b'"one"' in content) == (2, False)


def test_a_full_disk_leaves_the_ledger_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(descriptor: int, data: Any) -> int:
        if len(data) > 20:
            return real(descriptor, bytes(data)[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(path) as ledger:
        content = path.read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(HushbidError, match="No space left"):
                ledger.charge(session())
        assert path.read_bytes() == content
        assert ledger.spendings == ()
        assert ledger.charge(session())
    assert path.read_bytes().count(b"\n") == 2


def entry(**changes: Any) -> bytes:
    """A line of a session's spending, with changes."""
    return json.dumps(session("x").as_record() | changes).encode() + b"\n"


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b"[1]\n",
        b'{"kind": "session"}\n',
        b'{"kind": "budget"}\n',
        b'{"kind": "budget", "budget": {"epsilon": -1.0, "delta": 1e-05}}\n',
        entry(kind="gift"),
        entry(date="soon"),
        entry(epsilon=float("nan")),
        entry(epsilon="1.0"),
        entry(epsilon=10**400),
        entry(delta=10**400),
        entry(costs=[{"kind": "laplace", "epsilon": 10**400, "count": 1}]),
        entry(costs=[{"kind": "laplace", "epsilon": 1.0, "count": 10**400}]),
        b'{"kind": "budget", "budget": {"epsilon": 1%s, "delta": 1e-05}}\n' % (b"0" * 400),
        entry(costs=[1]),
        entry(costs=[{"kind": "laplace", "epsilon": 0.0, "count": 1}]),
        entry(more=1),
        entry(neighbours="kin"),
        b"\xff\xfe\n",
    ],
)
def test_a_malformed_line_is_an_error_that_names_it(path: Path, damage: bytes) -> None:
    with opened(path) as ledger:
        ledger.charge(session("one"))
        ledger.charge(session("two"))
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], lines[1], damage, lines[2]])
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"data\.ledger, line 3: malformed") as caught:
        opened(path)
    assert ".." not in caught.value.what
    assert path.read_bytes() == damaged


def test_a_ledger_of_a_newer_release_is_called_newer_and_left_as_it_is(path: Path) -> None:
    """After a downgrade nobody is told to restore a copy, which would forget what was spent."""
    content = '{"format": "hushbid-lifetime-ledger", "version": 3}\n'
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(DataError, match="format 3, which a newer release of hushbid writes") as caught:
        opened(path)
    assert "Use that release" in caught.value.advice
    assert path.read_text() == content


@pytest.mark.parametrize("version", ['"3"', "0", "null"])
def test_another_format_is_refused(version: str, path: Path) -> None:
    path.write_text(f'{{"format": "hushbid-lifetime-ledger", "version": {version}}}\n')
    path.chmod(0o600)
    with pytest.raises(DataError, match="line 1: not a lifetime ledger of format"):
        opened(path)


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize(
    "content",
    [b"\x00\xff\x80", b"a,b\n1,2\n3,4", b"{}\n", b'{"format": "other"', b"one line", b"PK\x03\x04\nrest"],
)
def test_another_file_is_refused_and_left_as_it_is(path: Path, content: bytes, record: bool) -> None:
    """Naming one's data as the ledger by mistake does no harm."""
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DataError, match=r"not the dataset's lifetime ledger: its first line does not say so"):
        opened(path, record=record)
    assert path.read_bytes() == content


# -- Bad input --------------------------------------------------------------------------------------


def test_a_ledger_is_begun_for_a_neighbour_relation_that_there_is(path: Path) -> None:
    with pytest.raises(ConfigError, match="no neighbour relation was named"):
        opened(path, neighbours="")
    with pytest.raises(ConfigError, match="no neighbour relation named 'kin'"):
        opened(path, neighbours="kin")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "gift"},
        {"neighbours": "kin"},
        {"identifier": ""},
        {"identifier": "x" * 1025},
        {"epsilon": -1.0},
        {"epsilon": None},
        {"delta": 1.0},
        {"costs": (), "epsilon": -1.0},
    ],
)
def test_a_spending_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        session(**change)
