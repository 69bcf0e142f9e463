from __future__ import annotations

import psutil
import pytest

from hushbid.lab.bench import bare
from hushbid.lab.bench.bare import bare_rounds


@pytest.mark.parametrize("curve", [False, True], ids=["plain", "curve"])
def test_bare_rounds_run_between_processes_and_leave_none(curve: bool) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    cost = bare_rounds(owners=2, rounds=20, broadcast_bytes=640, reply_bytes=6700, curve=curve)
    assert cost.rate == 20 / cost.seconds > 0
    assert cost.processor_seconds > 0
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


def test_an_owner_that_cannot_start_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare, "PATIENCE_MS", 200)
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(TimeoutError, match="did not answer"):
        bare_rounds(owners=1, rounds=1, broadcast_bytes=1, reply_bytes=1, curve=True)


def test_a_round_needs_owners_rounds_and_a_frame_that_is_no_farewell() -> None:
    for owners, rounds, broadcast_bytes in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            bare_rounds(owners, rounds, broadcast_bytes, 1, False)
