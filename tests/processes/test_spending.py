"""Processor time of running processes is read from outside, with that of what they started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from hushbid.lab.bench.spent import ProcessorSampler, descendants, processor_seconds, tree_seconds

BURN = 0.3
CHILD = f"import time\nwhile time.process_time() < {BURN}: pass\ninput()"
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE)
while time.process_time() < {BURN}: pass
input()
child.communicate(b"\\n")
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child, which both use as much processor time and then wait."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE) as process:
        yield process
        process.communicate(b"\n")


def until_burnt(process: int) -> None:
    end = time.monotonic() + 60
    while len(descendants(process)) < 1 or tree_seconds(process) < 2 * BURN:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_tree_has_the_time_of_a_child_and_the_child_has_its_own(parent: subprocess.Popen[bytes]) -> None:
    until_burnt(parent.pid)
    [child] = descendants(parent.pid)
    each = [processor_seconds(process) for process in (parent.pid, child)]
    assert all(spent is not None and BURN <= spent < 2 * BURN for spent in each), each
    assert child in descendants(os.getpid())


def test_spending_between_two_times_is_that_of_the_launchers_descendants_in_them() -> None:
    with ProcessorSampler(os.getpid()) as spending:
        idle = time.monotonic()
        time.sleep(0.05)
        began = time.monotonic()
        with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE) as process:
            until_burnt(process.pid)
            ended = time.monotonic()
            time.sleep(0.1)
            process.communicate(b"\n")
        gone = time.monotonic()
        time.sleep(0.05)
        last = time.monotonic()
        time.sleep(0.05)
    # What a process used is not lost when it ends.
    assert 2 * BURN - 0.05 <= spending.between(began, ended) < 3 * BURN
    assert spending.between(idle, began) < 0.05
    assert spending.between(gone, last) < 0.05
    assert spending.between(began, last) >= spending.between(began, ended)
    with pytest.raises(ValueError, match="nothing was read"):
        spending.between(began, last + 60)


def test_a_process_that_is_gone_has_no_clock_and_no_children() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert processor_seconds(process.pid) is None
    assert descendants(process.pid) == []
