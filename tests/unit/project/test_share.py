"""Which tests run in which order, and by `--share I/N` every slow test in exactly one of N shares."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONGEST, ROOT, deal_out, parse_share, shares_of

SLOW, QUICK, SHARES = 20, 3, 3
SUITE = f"""
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("number", range({SLOW}))
def test_slow(number): pass

@pytest.mark.parametrize("number", range({QUICK}))
def test_quick(number): pass
"""
CONFIGURATION = "[pytest]\nmarkers =\n    slow\n    needs_data\n    processes\n    timeout\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A separate suite, with this project's conftest.py and its plugin."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "timing.py", tmp_path / "tests")
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(CONFIGURATION)
    return tmp_path


def run_pytest(suite: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *arguments],
        cwd=suite,
        # Plugins that the suite does not use take longer than the suite.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def passed(output: str) -> list[str]:
    return re.findall(r"::(test_\w+\[\d+\]) PASSED", output)


def test_shares_part_the_slow_tests_and_leave_the_others(suite: Path) -> None:
    runs = [passed(run_pytest(suite, "--share", f"{index}/{SHARES}").stdout) for index in range(SHARES)]
    slow = [name for run in runs for name in run if name.startswith("test_slow")]
    assert sorted(slow) == sorted(f"test_slow[{number}]" for number in range(SLOW))
    assert max(len(run) for run in runs) < SLOW + QUICK
    for run in runs:
        assert [name for name in run if name.startswith("test_quick")] == [
            f"test_quick[{number}]" for number in range(QUICK)
        ]


def test_a_share_together_with_a_mark_runs_slow_tests_only(suite: Path) -> None:
    result = run_pytest(suite, "-m", "slow", "--share", f"0/{SHARES}")
    assert result.returncode == 0
    assert passed(result.stdout)
    assert not [name for name in passed(result.stdout) if name.startswith("test_quick")]


def test_without_the_option_everything_runs(suite: Path) -> None:
    assert len(passed(run_pytest(suite).stdout)) == SLOW + QUICK


def test_no_share_is_empty_while_there_are_as_many_slow_tests() -> None:
    assert set(shares_of((f"test[{number}]" for number in range(8)), 8).values()) == set(range(8))


def test_an_empty_share_is_no_failure_but_an_empty_run_is(suite: Path) -> None:
    assert run_pytest(suite, "-m", "slow", "--share", f"{SLOW}/1000").returncode == 0
    assert run_pytest(suite, "-k", "no_such_test").returncode == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("share", ["3/3", "1", "a/b", "-1/3", "1/0", ""])
def test_a_share_that_cannot_be_is_refused(share: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="I/N"):
        parse_share(share)


def test_to_refuse_a_share_is_a_usage_error(suite: Path) -> None:
    result = run_pytest(suite, "--share=3/3")
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "I/N" in result.stderr


@pytest.mark.parametrize("computing", [0, 3, 60])
@pytest.mark.parametrize("waiting", [0, 1, 20])
def test_what_waits_is_begun_early_and_among_what_computes(waiting: int, computing: int) -> None:
    computes = [f"tests/unit/test_{number}.py" for number in range(computing)]
    waits = [f"tests/processes/test_{number:02}.py" for number in range(waiting)]
    files = ["tests/containers/test_black_box.py", LONGEST, *waits, *computes]
    found = deal_out(files)
    assert sorted(found) == sorted(files)
    assert found[0] == LONGEST
    assert [file for file in found if file in computes] == computes
    assert [file for file in found if file in waits] == [*waits[::3], *waits[1::3], *waits[2::3]]
    assert found.index("tests/containers/test_black_box.py") > max(map(found.index, waits), default=0)
    if waiting == 20 and computing == 60:
        places = [place for place, file in enumerate(found) if file not in computes]
        assert places[-1] < 0.8 * len(found)
        assert max(later - earlier for earlier, later in itertools.pairwise(places)) <= 4


def test_any_selection_of_files_keeps_its_order_if_all_compute() -> None:
    assert deal_out(files := ["tests/unit/test_b.py", "tests/docs/test_a.py"]) == files
