"""Work shared by several processes has the same result as in one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count

import pytest
from threadpoolctl import threadpool_info

from hushbid.evidence.pool import results_of


def squared(number: int) -> int:
    return number * number


def process_of(_item: int) -> int:
    return os.getpid()


def blas_threads(_item: int) -> int:
    import numpy as np

    np.eye(2) @ np.eye(2)
    return max(int(library["num_threads"]) for library in threadpool_info() if library["user_api"] == "blas")


def refusing(number: int) -> int:
    if number == 3:
        raise ValueError("not that one")
    return number


def growing(number: int) -> int:
    """Keep 400 MB from the second item on, for longer than joblib leaves between two memory checks."""
    if KEPT or number > 1:
        KEPT.append(bytearray(b"x") * 400_000_000)
        time.sleep(1.1)
    KEPT.append(bytearray())
    return os.getpid()


KEPT: list[bytearray] = []


@pytest.mark.slow
def test_a_process_that_keeps_much_is_replaced_without_a_warning_and_nothing_is_lost() -> None:
    """Warnings are errors here: one in its thread would stop joblib's pool, and this test would hang."""
    found = dict(results_of(growing, range(8), jobs=2))
    assert sorted(found) == list(range(8))
    assert len(set(found.values())) > 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_has_a_result_under_its_place(jobs: int) -> None:
    assert dict(results_of(squared, range(20), jobs=jobs)) == {n: n * n for n in range(20)}


def test_one_process_works_here_and_in_order() -> None:
    found = list(results_of(process_of, range(3), jobs=1))
    assert found == [(place, os.getpid()) for place in range(3)]


def test_two_processes_are_others() -> None:
    assert os.getpid() not in dict(results_of(process_of, range(8), jobs=2)).values()


def test_every_process_has_one_blas_thread() -> None:
    assert set(dict(results_of(blas_threads, range(4), jobs=2)).values()) == {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_items_are_taken_as_they_are_needed(jobs: int) -> None:
    taken: list[int] = []

    def without_end() -> Iterator[int]:
        for number in count():
            if number >= 5 and len(done) >= 3:
                return
            taken.append(number)
            yield number

    done: list[int] = []
    for _, result in results_of(squared, without_end(), jobs=jobs):
        done.append(result)
    assert sorted(done) == [number * number for number in taken]
    assert len(taken) < 100


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_fails_is_raised_here(jobs: int) -> None:
    """The last: joblib starts other processes afterwards, and the tests before share theirs."""
    with pytest.raises(ValueError, match="not that one"):
        list(results_of(refusing, range(6), jobs=jobs))
