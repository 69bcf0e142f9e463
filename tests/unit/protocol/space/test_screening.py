"""The memory that screening a table takes; `test_scoring` checks its bound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hushbid.protocol.space.shortlist import FixedScreen
from tests.conftest import ROOT

NORM_BOUND = 1.1
ROWS, DIMENSION = 600_000, 128
KEPT = ROWS * DIMENSION
"""One byte a coordinate; the table has two, so that a copy in int32 alone is four times this."""
BLOCKS = 2 * 2**26
SLACK = 2**24

BUILD = """
import resource, sys
import numpy as np
from hushbid.protocol.space.shortlist import FixedScreen

rows, dimension, allowed = map(int, sys.argv[2:])
FixedScreen(np.ones((2, dimension), dtype=np.int16), norm_bound=1.0)  # what the libraries take once
with open("/proc/self/status") as status:
    now = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
# Counts what is allocated, but no page of a file that is mapped for reading.
resource.setrlimit(resource.RLIMIT_DATA, (now + allowed, now + allowed))
features = np.memmap(sys.argv[1], dtype=np.int16, mode="r", shape=(rows, dimension))
FixedScreen(features, norm_bound=1.0)
"""


def built(table: Path, allowed: int) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", BUILD, str(table), str(ROWS), str(DIMENSION), str(allowed)]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    features = np.memmap(path, dtype=np.int16, mode="w+", shape=(ROWS, DIMENSION))
    features[-1] = 3  # the rest is a hole in the file
    features.flush()
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit what is allocated")
def test_a_memory_mapped_table_takes_one_byte_a_coordinate_and_two_blocks(table: Path) -> None:
    done = built(table, KEPT + BLOCKS + SLACK)
    assert done.returncode == 0, done.stderr
    # The control: the limit is felt.
    assert built(table, KEPT // 2).returncode != 0


@pytest.mark.parametrize("extreme", [-(2**15), 2**15 - 1])
def test_the_grid_s_extremes_are_screened_wherever_they_lie(extreme: int) -> None:
    features = np.ones((400, 4096), dtype=np.int16)  # more than is read at a time
    features[-1, 7] = extreme
    weights = np.zeros(4096, dtype=np.int32)
    weights[7] = 1000
    scores, scale, error = FixedScreen(features, norm_bound=NORM_BOUND).screen(weights)
    exact = features[:, 7].astype(np.int64) * 1000
    assert np.all(np.abs(scores * scale - exact) <= error)
    assert int(np.argmax(np.abs(scores))) == len(features) - 1
