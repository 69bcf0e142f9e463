"""Work that is shared among threads."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hushbid.protocol import platform
from hushbid.protocol.runtime.threads import in_threads, threads


def at_work(item: int) -> tuple[int, threading.Thread, set[int]]:
    libraries = threadpool_info()
    return (
        item,
        threading.current_thread(),
        {one["num_threads"] for one in libraries if one["user_api"] == "blas"},
    )


def test_several_items_are_computed_in_threads_of_one_blas_thread_each_and_stay_in_order() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        found = in_threads(at_work, range(20))
    assert [item for item, _, _ in found] == list(range(20))
    assert threading.current_thread() not in {thread for _, thread, _ in found}
    assert {min(blas) for _, _, blas in found} == {max(blas) for _, _, blas in found} == {1}


def test_one_item_alone_is_computed_without_and_none_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "cores", lambda: 2)
    with threadpool_limits(limits=2, user_api="blas"), threads() as mapped:
        assert mapped(at_work, [7]) == [(7, threading.current_thread(), {1})]
        assert mapped(at_work, []) == []
