"""A mapped file does not stay resident after reading, and nothing written to it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.space.mapped import let_go
from hushbid.protocol.space.shortlist import FixedScreen

ROWS, COLUMNS = 2**16, 64


def resident() -> int:
    """Bytes of mapped files that this process holds in memory: Linux's ``RssFile``."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssFile:"))


@pytest.fixture
def table(tmp_path: Path) -> npt.NDArray[np.int16]:
    """8 MiB that are mapped, written, and released."""
    made = np.memmap(tmp_path / "table", dtype=np.int16, mode="w+", shape=(ROWS, COLUMNS))
    made[:] = np.arange(ROWS, dtype=np.uint16).astype(np.int16)[:, None]
    made.flush()
    del made
    return np.memmap(tmp_path / "table", dtype=np.int16, mode="r+", shape=(ROWS, COLUMNS))


def test_pages_that_were_read_are_given_back(table: npt.NDArray[np.int16]) -> None:
    before = resident()
    total = int(table.sum(dtype=np.int64))
    held = resident() - before
    if held < table.nbytes / 2:
        pytest.skip("this kernel does not count mapped pages")
    let_go(table[5:9].view(np.ndarray))
    assert resident() - before < table.nbytes / 10
    assert int(table.sum(dtype=np.int64)) == total


def test_what_was_written_is_kept(table: npt.NDArray[np.int16]) -> None:
    table[3] = 7
    let_go(table)
    assert (table[3] == 7).all()


def test_a_private_mapping_and_an_array_in_memory_are_left_alone(
    table: npt.NDArray[np.int16], tmp_path: Path
) -> None:
    private = np.memmap(tmp_path / "table", dtype=np.int16, mode="c", shape=(ROWS, COLUMNS))
    private[3] = 7
    let_go(private)
    assert (private[3] == 7).all(), "its pages are nowhere else"
    assert (table[3] == 3).all()
    held = np.ones(4)
    let_go(held)
    assert held.sum() == 4


@pytest.mark.parametrize(
    "use",
    [lambda table: FixedScreen(table, norm_bound=64.0), lambda table: Jitter(bytes(16)).of(table)],
    ids=["screen", "jitter"],
)
def test_an_owner_s_tables_are_made_without_holding_the_whole_file(
    table: npt.NDArray[np.int16], use: Any
) -> None:
    before = resident()
    table.sum()
    if resident() - before < table.nbytes / 2:
        pytest.skip("this kernel does not count mapped pages")
    kept = use(table)
    assert resident() - before < table.nbytes / 2
    assert kept is not None


def test_jitter_is_the_same_in_parts(table: npt.NDArray[np.int16]) -> None:
    jitter = Jitter(bytes(range(16)))
    assert np.array_equal(jitter.of(table)[40_000:40_010], jitter.of(table[40_000:40_010]))
