"""What each test file costs: the dearest are listed when tests end, and those over their budget are named.

Processor time is counted, of the test's process, of those that it started and of those that these waited for:
it is nearly the same on a busy machine. Nothing fails for want of time.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator
from multiprocessing import forkserver
from typing import Final

import psutil
import pytest

BUDGET: Final = 12.0
"""Processor seconds that the tests of a file may take, the slow ones aside."""
SHOWN: Final = 15
"""Files that are listed."""
_ATTRIBUTE: Final = "processor_seconds"
"""Of a report; it comes with the report from the process that ran the test."""
_COLLECTING: Final = "collecting_seconds"
"""What that process took to find the tests, with the first of its reports."""


def processor_seconds() -> float:
    """Of this process, of its children that have ended, and of the one that forks others, with its own."""
    ended = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in ended) + _forked()


def _forked() -> float:
    # The server lives as long as the tests, and no public name tells which process it is.
    server = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    return 0.0 if server is None else sum(psutil.Process(server).cpu_times()[:4])


class Timing:
    """Adds up what reports say, file by file."""

    def __init__(self) -> None:
        self._last = processor_seconds()
        self._found = 0.0
        self.collecting = 0.0
        self.processor: defaultdict[str, float] = defaultdict(float)
        self.wall: defaultdict[str, float] = defaultdict(float)

    def pytest_collection_finish(self) -> None:
        """What it took to find the tests is no file's own."""
        now = processor_seconds()
        self._found, self._last = now - self._last, now

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note what the phase that has ended took; the process that runs tests may be another than ours."""
        report = yield
        now = processor_seconds()
        setattr(report, _ATTRIBUTE, now - self._last)
        setattr(report, _COLLECTING, self._found)
        self._last, self._found = now, 0.0
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a phase of a test that is not slow."""
        self.collecting += getattr(report, _COLLECTING, 0.0)
        if "slow" in report.keywords:
            return
        file = report.nodeid.partition("::")[0]
        self.wall[file] += report.duration
        self.processor[file] += getattr(report, _ATTRIBUTE, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the dearest files, and those over the budget."""
        if len(self.processor) < 2:
            return
        write = terminalreporter.write_line
        dearest = sorted(self.processor.items(), key=lambda item: -item[1])
        terminalreporter.section("processor seconds by file", sep="-")
        for file, seconds in dearest[:SHOWN]:
            over = "  over its budget" if seconds > BUDGET else ""
            write(f"{seconds:8.1f}  (wall {self.wall[file]:6.1f})  {file}{over}")
        write(f"{self.collecting:8.1f}  to find the tests, in every process that runs some")
        write(f"{self.collecting + sum(self.processor.values()):8.1f}  in all; a file's budget is {BUDGET:g}")


def pytest_configure(config: pytest.Config) -> None:
    """Count from now on."""
    config.pluginmanager.register(Timing(), "timing")
