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

from protocol.accounting import (
    ApproximateCost,
    Budget,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    epsilon_of,
)
from protocol.errors import BudgetExceeded, ConfigError, DataError, HushbidError
from protocol.runtime.lifetime_ledger import LifetimeLedger
from protocol.runtime.spending import Spending

BUDGET = Budget(2.0, 1e-5)
RELATION = "add-remove-one"
GAUSSIAN: tuple[Cost, ...] = (DiscreteGaussianCost(sensitivity=65536.0, sigma=8e6, width=140, count=1000),)


def session(identifier: str = "spring", costs: tuple[Cost, ...] = GAUSSIAN, **changes: Any) -> Spending:
    fields: dict[str, Any] = {
        "kind": "session",
        "identifier": identifier,
        "date": date(2026, 3, 1),
        "epsilon": 1.0,
        "delta": 1e-5,
        "costs": costs,
    }
    return Spending(**(fields | changes))


def opened(path: Path, budget: Budget | None = BUDGET, neighbours: str = RELATION) -> LifetimeLedger:
    return LifetimeLedger.open(path, budget=budget, neighbours=neighbours)


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
        assert ledger.spent(1e-5) == epsilon_of((*GAUSSIAN, *second.costs), 1e-5)


def test_the_file_is_json_lines_of_a_header_and_the_spendings_for_its_owner_alone(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
    header, entry = (json.loads(line) for line in path.read_text().splitlines())
    assert header == {
        "format": "hushbid-lifetime-ledger",
        "version": 1,
        "neighbours": RELATION,
        "budget": {"epsilon": 2.0, "delta": 1e-5},
    }
    assert (entry["kind"], entry["identifier"], entry["date"]) == ("session", "spring", "2026-03-01")
    assert (entry["epsilon"], entry["delta"], len(entry["costs"])) == (1.0, 1e-5, 1)
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


# -- The budget -------------------------------------------------------------------------------------


def test_a_charge_over_the_budget_is_refused_and_not_recorded(path: Path) -> None:
    """Each of these sessions has ε = 0.963 at δ = 10⁻⁵, three of them together 1.767, four 2.074."""
    with opened(path) as ledger:
        for name in ("one", "two", "three"):
            ledger.charge(session(name))
        content = path.read_bytes()
        with pytest.raises(
            BudgetExceeded, match=r"'four' would bring .* to ε = 2\.0\d+ .* budget of ε = 2;"
        ) as caught:
            ledger.charge(session("four"))
        assert "raise the dataset's budget" in caught.value.advice
        assert path.read_bytes() == content
        assert ledger.spent(1e-5) < 2.0
        assert ledger.charge(session("small", (LaplaceCost(epsilon=0.01, count=1),)))


def test_a_check_says_what_a_charge_would_and_records_nothing(path: Path) -> None:
    with opened(path, Budget(1.0, 1e-5)) as ledger:
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


def test_what_is_known_by_epsilon_and_delta_alone_is_added_up(path: Path) -> None:
    known: dict[str, Any] = {"costs": (), "epsilon": 0.8, "delta": 4e-6}
    with opened(path) as ledger:
        ledger.charge(session("one", **known))
        ledger.charge(session("two", **known))
        assert ledger.spent(8e-6) == pytest.approx(1.6)
        with pytest.raises(BudgetExceeded, match="no ε that could be stated"):
            ledger.charge(session("three", **known))  # δ is used up
    with opened(path) as ledger:
        assert ledger.spendings[0].charged == (ApproximateCost(epsilon=0.8, delta=4e-6, count=1),)


def test_without_a_budget_everything_is_recorded(path: Path) -> None:
    with opened(path, None) as ledger:
        for number in range(5):
            ledger.charge(session(str(number)))
        assert len(ledger.spendings) == 5


def test_a_session_without_a_guarantee_is_refused_by_a_budget_and_else_recorded(path: Path) -> None:
    bare = session("bare", (), epsilon=None)
    with opened(path) as ledger, pytest.raises(BudgetExceeded):
        ledger.charge(bare)
    with opened(path, None) as ledger:
        assert ledger.charge(bare)
    with opened(path, None) as ledger:
        assert ledger.spendings == (bare,)
        assert ledger.spent(1e-5) == float("inf")


def test_a_budget_lowered_below_what_was_spent_refuses_everything_and_says_so(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(session())
    with opened(path, Budget(0.5, 1e-5)) as ledger:
        assert not ledger.charge(session())  # paid already
        with pytest.raises(
            BudgetExceeded, match=r"budget is ε = 0\.5 .* was spent before it was set to that"
        ):
            ledger.charge(session("tiny", (LaplaceCost(epsilon=1e-6, count=1),)))
    with opened(path) as ledger:
        assert ledger.charge(session("two"))


def test_every_change_of_the_budget_stays_on_record(path: Path) -> None:
    for budget in (BUDGET, Budget(0.5, 1e-5), Budget(0.5, 1e-5), None):
        opened(path, budget).close()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["budget"] for record in records] == [
        {"epsilon": 2.0, "delta": 1e-5},
        {"epsilon": 0.5, "delta": 1e-5},
        None,
    ]


# -- One process at a time --------------------------------------------------------------------------


def test_a_second_holder_is_turned_away_until_the_first_is_done(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from protocol.runtime.lifetime_ledger import LifetimeLedger\n"
        "from protocol.errors import ConfigError\n"
        "try: LifetimeLedger.open(Path(sys.argv[1]), budget=None, neighbours='add-remove-one').close()\n"
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
        "from protocol.accounting import Budget, LaplaceCost\n"
        "from protocol.runtime.lifetime_ledger import LifetimeLedger\n"
        "from protocol.runtime.spending import Spending\n"
        "budget = Budget(2.0, 1e-5)\n"
        "ledger = LifetimeLedger.open(Path(sys.argv[1]), budget=budget, neighbours='add-remove-one')\n"
        "whole = os.write\n"
        "def half(descriptor, data):\n"
        "    whole(descriptor, bytes(data)[:len(data) // 2]); os._exit(9)\n"
        "os.write = half\n"
        "cost = LaplaceCost(epsilon=0.1, count=1)\n"
        "ledger.charge(Spending(kind='session', identifier='torn', date=date(2026, 3, 2), epsilon=0.1,\n"
        "                       delta=1e-5, costs=(cost,)))\n"
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
        assert path.read_bytes() == whole
        assert ledger.charge(session("two"))
    with opened(path) as ledger:
        assert len(ledger.spendings) == 2


def test_a_last_line_torn_at_any_byte_is_cut(path: Path) -> None:
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
            assert ledger.cut == (length - start if length >= start else length)
            assert path.read_bytes() == whole[:start]


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
        entry(costs=[1]),
        entry(costs=[{"kind": "laplace", "epsilon": 0.0, "count": 1}]),
        entry(more=1),
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
    with pytest.raises(DataError, match=r"data\.ledger, line 3: malformed"):
        opened(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("header", ["{}", '{"format": "hushbid-lifetime-ledger", "version": 2}'])
def test_another_format_is_refused(path: Path, header: str) -> None:
    path.write_text(header + "\n")
    path.chmod(0o600)
    with pytest.raises(DataError, match="line 1"):
        opened(path)


# -- Neighbours, and bad input ----------------------------------------------------------------------


def test_a_ledger_keeps_one_neighbour_relation(path: Path) -> None:
    opened(path).close()
    with pytest.raises(ConfigError, match=r"'add-remove-one'.*'substitute-one'"):
        opened(path, neighbours="substitute-one")
    with pytest.raises(ConfigError, match="no neighbour relation"):
        opened(path, neighbours="")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "gift"},
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
