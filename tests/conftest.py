"""What all tests share: Hypothesis profiles, the data beside the project, and shares of long tests."""

from __future__ import annotations

import argparse
import gc
import itertools
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from threadpoolctl import threadpool_limits

pytest_plugins = ["tests.timing"]

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
SLOW_TIMEOUT = 1800
"""Seconds for a slow test that sets no time-out of its own."""

LONGEST = "tests/containers/test_troubled.py"
_WAITING = (
    LONGEST,
    *(f"tests/{each}/" for each in ("processes", "containers", "hosts", "installed", "blackbox")),
)
"""Where tests mostly wait for processes, containers and installers, in their turn."""
_BEGUN = 2 / 3
"""The part of all files with which the last of these begins: none is still waited for at the end."""
_APART = 3
"""Files of like names wait alike, as those of lost parties do: every third comes, then those after them."""

# Deadlines are off in all: a test on a busy machine may be slow without being wrong. `make test` looks at a
# quarter of the examples of a property; all of them come round with the slow tests.
settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile(
    "thorough",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", parent=settings.get_profile("thorough"), max_examples=25)
settings.load_profile("dev")  # --hypothesis-profile comes later, and wins

# What a user's state directory keeps, such as which rows have a ledger, is the tests' own: here for fixtures
# of a wider scope, and for each test by `own_state`.
_STATE = tempfile.TemporaryDirectory(prefix="hushbid-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# What a script starts in the background ignores Ctrl-C, and so would all that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def user_states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Directories for each test's state: pytest would search thousands of them for the next number."""
    parent = tmp_path_factory.mktemp("user-states")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, user_states: Iterator[Path]) -> Path:
    """`$XDG_STATE_HOME` of this test alone."""
    place = next(user_states)
    place.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    return place


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """A verb that runs in this process sets up logging, on a stream that is closed after the test.

    And its `--quiet` holds for the process.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    if (command := sys.modules.get("hushbid.protocol.runtime.command")) is not None:
        command._quieten(False)


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread() -> None:
    """Use one BLAS thread from the start; processes that a test starts have all.

    Several tests run at a time, and BLAS threads wait for each other in loops, which cost as much as work.
    """
    if "numpy" in sys.modules:
        threadpool_limits(limits=1, user_api="blas")


@pytest.fixture(autouse=True, scope="session")
def _parsers() -> Iterator[None]:
    """Command lines that tests call by typer's runner are made once, as in their own process (`built`)."""
    with pytest.MonkeyPatch.context() as patch:
        if "typer.testing" in sys.modules:
            from hushbid.protocol.runtime.command import built

            patch.setattr("typer.testing._get_command", built)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """`shared_data("mnist.npz")`: that file beside the project, or a skip that names what is missing."""

    def locate(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.is_file():
            pytest.skip(f"needs ../shared/data/{name}, which is not here")
        return path

    return locate


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share",
        type=parse_share,
        metavar="I/N",
        help="of the slow tests and those of properties, run only the I-th of N shares (counted from 0)",
    )


def parse_share(text: str) -> tuple[int, int]:
    """Read `I/N`.

    Raises:
        argparse.ArgumentTypeError: It is not two integers with 0 <= I < N.
    """
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"{text}: give I/N with 0 <= I < N, such as 0/8")
    return int(index), int(count)


def shares_of(nodeids: Iterable[str], count: int) -> dict[str, int]:
    """The share of each test: dealt out in the order of their names, so none is empty."""
    return {nodeid: place % count for place, nodeid in enumerate(sorted(nodeids))}


def _takes_long(item: pytest.Item) -> bool:
    """Whether a test is slow, or checks a property with few examples in `make test`."""
    return item.get_closest_marker("slow") is not None or is_hypothesis_test(getattr(item, "obj", None))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they use, before `-m` selects by mark, and leave out the other shares."""
    share: tuple[int, int] | None = config.getoption("--share")
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    dealt = [item.nodeid for item in items if _takes_long(item)] if share is not None else []
    shares = shares_of(dealt, share[1]) if share is not None else {}
    for item in items:
        if "shared_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs_data)
        for place in ("processes", "containers"):
            if item.nodeid.startswith(f"tests/{place}/"):
                item.add_marker(place)
        slow = item.get_closest_marker("slow") is not None
        if slow and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT))
        elsewhere = share is not None and shares.get(item.nodeid, share[0]) != share[0]
        (left_out if elsewhere else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    files: dict[str, list[pytest.Item]] = {}
    for item in kept:
        files.setdefault(item.nodeid.split("::")[0], []).append(item)
    items[:] = [item for file in deal_out(list(files)) for item in files[file]]


def deal_out(files: Sequence[str]) -> list[str]:
    """Deal the files whose tests wait among those that compute, so that all cores are busy all the time.

    The longest comes first, and builds the image for the other files of containers, which come late enough.
    """
    waiting = [file for kind in _WAITING for file in _apart([each for each in files if _kind(each) == kind])]
    computing = [file for file in files if not file.startswith(_WAITING)]
    # At equal places what waits comes first: the order is stable.
    places = {file: _BEGUN * place / len(waiting) for place, file in enumerate(waiting)}
    places |= {file: place / len(computing) for place, file in enumerate(computing)}
    return sorted(places, key=places.__getitem__)


def _kind(file: str) -> str | None:
    return next((kind for kind in _WAITING if file.startswith(kind)), None)


def _apart(files: Sequence[str]) -> list[str]:
    return [file for first in range(_APART) for file in files[first::_APART]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage meanwhile: nearly everything stays, and looking takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A share can be empty if there are fewer slow tests than shares; pytest calls that a failure."""
    if session.config.getoption("--share") and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_finish() -> None:
    """Exclude permanent objects, modules and the tests themselves, from garbage collection."""
    gc.freeze()
