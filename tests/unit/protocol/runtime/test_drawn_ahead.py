"""Noise drawn ahead: each value once, ready when expected, and no error lost."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.party import consumer_party
from hushbid.evidence.sweep.small_session import small_session
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.machine.machine import Computation
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import Draw, NoiseSource, SecureNoise, SimulatedNoise
from hushbid.protocol.runtime.blas_threads import _libraries
from hushbid.protocol.runtime.drawn_ahead import BULK_VALUES, DrawnAhead, expect_noise
from hushbid.protocol.transcript.environment import environment_fingerprint
from hushbid.simulation.simulator import Crash, Simulation

SIZE = 140
VECTOR = Draw("discrete-gaussian", 1000.0, SIZE)
OTHER = Draw("discrete-gaussian", 2000.0, 10)
PATIENCE = 20.0
"""Seconds after which a test that waits for a thread has failed."""


class Counting:
    """A source whose values are 0, 1, 2, ...: a repeated or lost value shows.

    It fails a test in which two threads use it at once, and waits while its gate is closed.
    """

    name = "counting"
    protects = True

    def __init__(self) -> None:
        self.requests: list[Draw] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failure: Exception | None = None
        self.overlapped = False
        self._next = 0
        self._inside = threading.Lock()
        self._requested = threading.Condition()

    def check(self, request: Draw) -> None:
        if request.distribution == "laplace":
            raise ConfigError("There is no Laplace noise.")

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        with self._alone():
            with self._requested:
                self.requests.append(request)
                self._requested.notify_all()
            assert self.gate.wait(PATIENCE)
            if self.failure is not None:
                raise self.failure
            first, self._next = self._next, self._next + request.size
            return np.arange(first, first + request.size)

    def random_bytes(self, count: int) -> bytes:
        with self._alone():
            return bytes(range(count))

    def wait_for(self, happened: Callable[[], bool]) -> None:
        with self._requested:
            assert self._requested.wait_for(happened, PATIENCE)

    @property
    def drawn(self) -> int:
        return sum(request.size for request in self.requests)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._inside.acquire(blocking=False):
            self.overlapped = True
            raise AssertionError("Two threads are in the source.")
        try:
            yield
        finally:
            self._inside.release()


@pytest.fixture
def source() -> Iterator[Counting]:
    source = Counting()
    yield source
    assert not source.overlapped


@pytest.fixture
def ahead(source: Counting) -> Iterator[DrawnAhead]:
    with DrawnAhead(source) as ahead:
        yield ahead


def test_what_is_expected_is_drawn_in_bulk_before_it_is_asked_for(
    source: Counting, ahead: DrawnAhead
) -> None:
    ahead.expect(VECTOR, 20)
    source.wait_for(lambda: source.drawn == 20 * SIZE)
    drawn = [ahead.draw(VECTOR) for _ in range(20)]
    assert {noise.shape for noise in drawn} == {(SIZE,)}
    assert sorted(np.concatenate(drawn)) == list(range(20 * SIZE))
    assert max(request.size for request in source.requests) == BULK_VALUES // SIZE * SIZE
    assert len(source.requests) == 3


def test_what_is_not_expected_is_drawn_when_it_is_asked_for(source: Counting, ahead: DrawnAhead) -> None:
    assert list(ahead.draw(OTHER)) == list(range(10))
    assert source.requests == [OTHER]


def test_what_is_expected_but_not_begun_is_drawn_once_and_not_again_by_the_thread(
    source: Counting, ahead: DrawnAhead
) -> None:
    source.gate.clear()
    ahead.expect(OTHER, 1)
    source.wait_for(lambda: source.requests == [OTHER])  # the thread is busy with it
    ahead.expect(VECTOR, 1)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ahead.draw, VECTOR)
        source.gate.set()
        assert len(asked.result(PATIENCE)) == SIZE
    assert list(ahead.draw(OTHER)) == list(range(10))
    assert sorted(request.size for request in source.requests) == [10, SIZE]


def test_a_caller_waits_for_its_vector_if_that_is_under_way(source: Counting, ahead: DrawnAhead) -> None:
    source.gate.clear()
    ahead.expect(VECTOR, 1)
    source.wait_for(lambda: source.requests == [VECTOR])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ahead.draw, VECTOR)
        source.gate.set()
        assert list(asked.result(PATIENCE)) == list(range(SIZE))
    assert source.requests == [VECTOR]


def test_the_thread_leaves_the_source_alone_while_a_caller_is_in_it(
    source: Counting, ahead: DrawnAhead
) -> None:
    source.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ahead.draw, OTHER)
        source.wait_for(lambda: source.requests == [OTHER])
        ahead.expect(VECTOR, 1)
        time.sleep(0.05)  # time enough for the thread to do what it must not
        assert source.requests == [OTHER]
        source.gate.set()
        assert list(asked.result(PATIENCE)) == list(range(10))
    assert len(ahead.draw(VECTOR)) == SIZE


def test_a_caller_goes_before_what_is_only_expected(source: Counting, ahead: DrawnAhead) -> None:
    source.gate.clear()
    ahead.expect(VECTOR, 500)
    source.wait_for(lambda: len(source.requests) == 1)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ahead.draw, OTHER)
        while ahead._waiting == 0:  # nothing else shows that the caller has come as far as to wait
            time.sleep(0.001)
        source.gate.set()
        asked.result(PATIENCE)
    assert source.requests[1] == OTHER


def test_no_value_is_handed_out_twice_nor_skipped_among_many_threads(
    source: Counting, ahead: DrawnAhead
) -> None:
    threads, each = 8, 60
    start = threading.Barrier(threads)

    def ask(number: int) -> list[npt.NDArray[Any]]:
        start.wait(PATIENCE)
        drawn = []
        for turn in range(each):
            if turn % 20 == 0:
                ahead.expect(VECTOR if number % 2 else OTHER, 15)  # fewer than will be asked for
            drawn.append(ahead.draw(VECTOR if turn % 3 else OTHER))
            assert ahead.random_bytes(3) == bytes(range(3))
        return drawn

    with ThreadPoolExecutor(threads) as pool:
        drawn = [noise for part in pool.map(ask, range(threads)) for noise in part]
    assert len(drawn) == threads * each
    values = np.concatenate(drawn)
    assert len(np.unique(values)) == len(values)
    # A vector is of neighbours, as the source drew them: values of two are never mixed.
    assert all((np.diff(noise) == 1).all() for noise in drawn)


def test_secure_noise_drawn_ahead_repeats_no_value() -> None:
    wide = Draw("discrete-gaussian", 2.0**50, SIZE)  # a value comes twice by chance once in 10⁸ runs
    with DrawnAhead(SecureNoise()) as ahead, ThreadPoolExecutor(4) as pool:
        ahead.expect(wide, 20)
        values = np.concatenate(list(pool.map(lambda _: ahead.draw(wide), range(40))))
    assert len(np.unique(values)) == len(values) == 40 * SIZE


def test_a_vector_is_its_caller_s_alone(source: Counting, ahead: DrawnAhead) -> None:
    ahead.expect(VECTOR, 2)
    source.wait_for(lambda: source.drawn == 2 * SIZE)
    first = ahead.draw(VECTOR)
    first[:] = -1
    assert first.base is None  # it keeps no vector of others in memory
    assert ahead.draw(VECTOR).min() >= 0


def test_no_more_is_kept_than_the_capacity(source: Counting) -> None:
    with DrawnAhead(source, capacity=3 * SIZE) as ahead:
        ahead.expect(VECTOR, 10)
        source.wait_for(lambda: source.drawn == 3 * SIZE)
        ahead.expect(OTHER, 1)  # gives the thread a reason to look again
        assert source.drawn == 3 * SIZE
        for handed_out in range(1, 11):
            ahead.draw(VECTOR)
            refilled = min(handed_out + 3, 10) * SIZE
            source.wait_for(lambda refilled=refilled: source.drawn >= refilled)  # type: ignore[misc]
            assert source.drawn <= refilled + OTHER.size
        assert ahead.draw(OTHER).size == OTHER.size
    assert source.drawn == 10 * SIZE + OTHER.size


def test_a_vector_longer_than_the_capacity_is_drawn_when_it_is_asked_for(source: Counting) -> None:
    with DrawnAhead(source, capacity=SIZE - 1) as ahead:
        ahead.expect(VECTOR, 1)
        assert source.requests == []
        assert len(ahead.draw(VECTOR)) == SIZE


def test_an_error_of_the_thread_reaches_who_asks_and_all_who_ask_later(
    source: Counting, ahead: DrawnAhead
) -> None:
    source.failure = OSError("no randomness")
    ahead.expect(VECTOR, 1)
    source.wait_for(lambda: source.requests == [VECTOR])
    for request in (VECTOR, OTHER):
        with pytest.raises(OSError, match="no randomness"):
            ahead.draw(request)
    with pytest.raises(OSError, match="no randomness"):
        ahead.random_bytes(1)
    assert source.requests == [VECTOR]


def test_an_error_reaches_a_caller_that_waits(source: Counting, ahead: DrawnAhead) -> None:
    source.gate.clear()
    ahead.expect(VECTOR, 1)
    source.wait_for(lambda: source.requests == [VECTOR])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ahead.draw, VECTOR)
        source.failure = OSError("no randomness")
        source.gate.set()
        with pytest.raises(OSError, match="no randomness"):
            asked.result(PATIENCE)


def test_what_the_source_does_not_have_is_refused_when_it_is_expected(
    source: Counting, ahead: DrawnAhead
) -> None:
    for refuse in (ahead.check, lambda draw: ahead.expect(draw, 1)):
        with pytest.raises(ConfigError, match="no Laplace"):
            refuse(Draw("laplace", 1.0, 1))
    assert len(ahead.draw(VECTOR)) == SIZE  # and harms nobody else


def test_a_negative_count_is_refused(ahead: DrawnAhead) -> None:
    ahead.expect(VECTOR, 0)
    with pytest.raises(LocalProtocolError, match="-1 draws"):
        ahead.expect(VECTOR, -1)


def test_closing_tells_who_waits_waits_for_the_thread_and_draws_no_more(source: Counting) -> None:
    before = threading.active_count()
    ahead = DrawnAhead(source)
    source.gate.clear()
    ahead.expect(VECTOR, 1000)
    source.wait_for(lambda: len(source.requests) == 1)
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(ahead.draw, OTHER)
        closing = pool.submit(ahead.close)
        with pytest.raises(LocalProtocolError, match="closed"):
            asked.result(PATIENCE)
        assert not closing.done()
        source.gate.set()
        closing.result(PATIENCE)
    assert threading.active_count() == before
    assert len(source.requests) == 1


def test_another_process_gets_no_noise_that_was_drawn_for_this_one(
    ahead: DrawnAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a fork both would have the same vectors ready."""
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(LocalProtocolError, match="another process"):
        ahead.draw(Draw("uniform", 1.0, 3))


def test_what_is_closed_gives_no_noise_not_even_what_was_ready(source: Counting) -> None:
    ahead = DrawnAhead(source)
    ahead.expect(VECTOR, 1)
    source.wait_for(lambda: source.requests == [VECTOR])
    ahead.close()
    ahead.close()  # twice is as once
    for use in (
        lambda: ahead.draw(VECTOR),
        lambda: ahead.expect(VECTOR, 1),
        lambda: ahead.random_bytes(1),
    ):
        with pytest.raises(LocalProtocolError, match="closed"):
            use()


def test_it_is_the_source_by_name_and_by_what_it_protects(source: Counting, ahead: DrawnAhead) -> None:
    as_source: NoiseSource = ahead
    assert (as_source.name, as_source.protects) == (source.name, source.protects)


def test_seeded_noise_is_not_drawn_ahead_since_it_would_not_repeat() -> None:
    with pytest.raises(LocalProtocolError, match="simulated"):
        DrawnAhead(SimulatedNoise(1, "curator"))


@pytest.mark.parametrize("rule", ["sealed", "blind"])
@pytest.mark.parametrize("drawn", [0, 1, 3, 6])
def test_what_was_drawn_before_a_restart_is_not_expected_again(rule: str, drawn: int) -> None:
    """Five rounds and a private settlement: six releases, some of which have their noise."""
    session = small_session(rule, release="gaussian", rounds=5, owners=2)
    assert session.owners_releases == 6
    expected: Counter[Draw] = Counter()
    expect_noise(cast(DrawnAhead, SimpleNamespace(expect=_adding(expected))), session, drawn=drawn)
    draws_of = session.release_draws()
    left = chain.from_iterable(chain(*draws_of(number)) for number in range(drawn + 1, 7))
    assert +expected == Counter(left)


def _adding(expected: Counter[Draw]) -> Callable[[Draw, int], None]:
    return lambda draw, count: expected.update({draw: count})


def test_a_blind_consumer_that_starts_again_knows_what_noise_it_drew() -> None:
    """`hushbid.consumer.process` has the rest drawn ahead once the machine is where its transcript ends."""
    session = small_session("blind", release="gaussian", rounds=5, owners=2)
    starts: list[list[tuple[str, int]]] = []

    def consumer(*given: Any, **more: Any) -> Any:
        parts: Any = consumer_party(*given, **more)
        machine, numerics = parts
        perform = numerics.perform
        noted: list[tuple[str, int]] = []
        starts.append(noted)

        def noting(effect: Computation) -> Any:
            noted.append((effect.KIND, machine.buying.weighing.noise_drawn))
            return perform(effect)

        numerics.perform = noting
        return machine, numerics

    rng = np.random.default_rng(0)
    points = {name: rng.random((8, 3)) for name in (*session.file.owners, "validation", "seed-set")}
    data = {name: Dataset.from_arrays(name, rows) for name, rows in points.items()}
    simulation = Simulation(
        session,
        owners={name: data[name] for name in session.file.owners},
        validation=data["validation"],
        seed_set=data["seed-set"],
        consumer=consumer,
        crashes=[Crash(CONSUMER, 4, 0)],
    )
    simulation.run()
    assert [crash.party for crash in simulation.crashed] == [CONSUMER]
    before, after = starts
    assert before[0] == ("release-target", 0)
    assert {drawn for _, drawn in after} == {session.owners_releases}, "from the first step on"
    assert ("draw-noise", 0) in before
    assert "draw-noise" not in {kind for kind, _ in after}


def search_blas() -> None:
    _libraries.cache_clear()
    _libraries(0)


@pytest.mark.parametrize("search", [environment_fingerprint, search_blas])
def test_no_library_is_searched_for_while_the_first_draw_loads_some(
    source: Counting, ahead: DrawnAhead, search: Callable[[], object]
) -> None:
    """The search holds the linker's lock and waits for the interpreter, which a loading thread holds."""
    source.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        ahead.expect(VECTOR, 1)
        source.wait_for(lambda: len(source.requests) == 1)
        searched = pool.submit(search)
        with pytest.raises(TimeoutError):
            searched.result(timeout=0.3)
        source.gate.set()
        searched.result(timeout=PATIENCE)
        ahead.draw(VECTOR)
        source.gate.clear()
        ahead.expect(OTHER, 1)  # by now all is loaded, and a search need not wait
        source.wait_for(lambda: len(source.requests) == 2)
        pool.submit(search).result(timeout=PATIENCE)
        source.gate.set()
