"""A launcher that imports while its parties run the session searches for libraries only after it."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hushbid.cluster.file import open_cluster
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.running import launcher
from tests.unit.hushbid.cluster.test_cluster import DIGITS

pytestmark = pytest.mark.processes


def test_no_library_is_searched_for_while_others_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search holds the linker's lock and waits for the interpreter, which a loading thread holds."""
    happened: list[str] = []

    def late() -> None:
        time.sleep(5.0)  # longer than the session takes
        happened.append("imported")

    def searched() -> AbstractContextManager[None]:
        happened.append("searched")
        return one_blas_thread()

    monkeypatch.setattr(launcher, "import_page", late)
    monkeypatch.setattr(launcher, "one_blas_thread", searched)
    settings = ["session.points=2", "run.greedy=false"]
    launcher.run(open_cluster(DIGITS.with_name("exact.toml"), settings=settings), directory=tmp_path)
    assert happened == ["imported", "searched"]
