"""A caller's control of a party: events, the stop, and BLAS's threads afterwards."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from hushbid.consumer.role import ConsumerRole
from hushbid.curator.role import Curator
from hushbid.owner.role import Owner
from hushbid.protocol.errors import ConfigError, Stopped
from hushbid.protocol.machine.progress import Progress
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.control import Control
from hushbid.protocol.runtime.telemetry.vitals import Seen, Vitals
from tests.simulation.harness import names, session_file

BEGUN = Progress(
    party="curator",
    phase="rounds",
    round=0,
    rounds=9,
    points=0,
    points_planned=18,
    points_per_second=None,
    seconds_left=None,
)


def test_an_event_comes_when_something_changed() -> None:
    told: list[Progress] = []
    control = Control(told.append)
    for round_number in (0, 0, 2, 2, 5):
        control.tell(replace(BEGUN, round=round_number))
    assert [event.round for event in told] == [0, 2, 5]


def test_a_stop_holds_until_the_party_has_ended() -> None:
    control = Control()
    control.raise_if_stopped()
    control.stop()
    with control.one_run():
        for _ in range(2):
            with pytest.raises(Stopped, match=r"Stopped by stop\(\)"):
                control.raise_if_stopped()
    control.raise_if_stopped()


def test_a_stop_serves_one_run_though_it_be_refused(tmp_path: Path) -> None:
    none = tmp_path / "none.toml"
    bad: dict[str, Any] = {"session": none, "config": none}
    parties: tuple[Any, ...] = (Owner(**bad), ConsumerRole(**bad), Curator(**bad))
    for party in parties:
        party.stop()
        with pytest.raises(Stopped):
            party._control.raise_if_stopped()
        with pytest.raises(ConfigError, match="no such file"):
            party.run()
        party._control.raise_if_stopped()


def test_only_the_main_thread_is_ended_by_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    control = Control()
    during = []

    def enter() -> None:
        with control:
            during.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert during == [before]
    with control:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped, match="Stopped by SIGTERM"):
            control.raise_if_stopped()
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_stop_that_comes_after_the_last_round_is_not_kept_for_the_next_run(tmp_path: Path) -> None:
    control = Control()
    file = session_file(owners=names(2), points=3, rule="ask-all")
    vitals = Vitals(tmp_path, party="curator", role="curator", session=file, control=control)
    with control.one_run(), vitals:
        vitals.begin(lambda: Seen("done", 3))
        control.stop()
    control.raise_if_stopped()


@pytest.mark.parametrize("rule", ["ask-all", "winner-only"])
def test_where_a_rule_asks_no_event_says_who_was_asked(tmp_path: Path, rule: str) -> None:
    """One point less, or a name beside a round, would reveal that an owner was asked and is gone."""
    told: list[Progress] = []
    file = session_file(owners=names(2), points=3, rule=rule)
    seen = iter(
        [Seen("enrolling", 0, points=0, missing=names(2)), Seen("rounds", 1, points=1, missing=("north",))]
    )
    with Vitals(
        tmp_path, party="curator", role="curator", session=file, control=Control(told.append)
    ) as vitals:
        vitals.begin(lambda: next(seen, Seen("done", 1)))
        vitals.turn(0.0, "rounds")
    expected = (
        [(0, tuple(names(2))), (1, ("north",))]
        if rule == "ask-all"
        else [(None, tuple(names(2))), (None, ())]
    )
    assert [(event.points, event.missing) for event in told[1:]] == expected


def test_what_a_watcher_raises_at_once_leaves_a_status_that_says_so(tmp_path: Path) -> None:
    def refuse(_progress: Progress) -> None:
        raise KeyError("a bug of the user's")

    file = session_file(owners=names(2), points=3, rule="ask-all")
    vitals = Vitals(tmp_path, party="curator", role="curator", session=file, control=Control(refuse))
    with pytest.raises(KeyError), vitals:
        raise AssertionError("it has begun")
    assert (vitals.status.finished, vitals.status.exit_code) == (True, 5)


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_its_threads_again_after_the_last_party_whichever_that_is() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        before = blas_threads()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        assert before == {2}


def test_a_library_that_is_loaded_in_a_block_has_its_threads_again_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """scikit-learn loads SciPy's BLAS when the first model is fitted."""
    everything = ThreadpoolController()
    known = iter([everything.select(prefix="not loaded yet"), everything, everything])
    monkeypatch.setattr("hushbid.protocol.runtime.blas_threads._libraries", lambda _imported: next(known))
    with threadpool_limits(limits=2, user_api="blas"):
        with one_blas_thread():
            assert blas_threads() == {2}
            with one_blas_thread(), one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}
