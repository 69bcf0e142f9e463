"""The RBF kernel: as exact as stated, and the same bits for two points whatever is beside them."""

from __future__ import annotations

import decimal
import os
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.kme import kernels, subspace
from hushbid.kme.kernels import LARGEST, kernel
from hushbid.kme.subspace import KERNEL_BITS, Subspace, span
from tests.boundaries import at_boundaries, views
from tests.conftest import ROOT
from tests.support.kernel_bits import GAMMA, bits, library_bits, points

Points = npt.NDArray[np.float64]


def exact(x: Points, y: Points, gamma: float) -> list[list[decimal.Decimal]]:
    """The kernel to 40 digits: float64 numbers are decimal fractions."""
    with decimal.localcontext(prec=80):
        xs, ys = ([[*map(decimal.Decimal, point)] for point in side.tolist()] for side in (x, y))
        return [
            [
                (-decimal.Decimal(gamma) * sum((a - b) ** 2 for a, b in zip(p, q, strict=True))).exp()
                for q in ys
            ]
            for p in xs
        ]


@pytest.mark.parametrize("columns", [1, 2, 5, 40])
@pytest.mark.parametrize("gamma", [1e-3, GAMMA, 100.0, 1e4])
def test_a_value_errs_by_no_more_than_it_says(columns: int, gamma: float) -> None:
    x, y = points(12, columns, 1), points(40, columns, 2)
    y[:12] = x + 1e-3 * (points(12, columns, 3) - 0.5)  # near ones, too
    found = kernel(x, y, gamma)
    errors = [
        abs(decimal.Decimal(float(value)) - true)
        for row, truths in zip(found, exact(x, y, gamma), strict=True)
        for value, true in zip(row, truths, strict=True)
    ]
    assert max(errors) <= (columns + 5) * decimal.Decimal(2) ** -53


def test_a_point_has_the_kernel_1_with_itself_and_never_more_with_others() -> None:
    x = points(300, 3)
    found = kernel(x, x, GAMMA)
    assert (np.diag(found) == 1.0).all()
    assert found.max() == 1.0
    assert (found > 0.0).all()
    far = kernel(np.zeros((1, 1)), np.array([[1e3], [1e150]]), GAMMA)
    assert (far <= 2.0**-63).all()
    assert (kernel(np.zeros((1, 1)), np.full((1, 1), np.sqrt(LARGEST - 1e-9)), 1.0) > far[0, 0]).all()


@pytest.mark.parametrize(("columns", "others"), [(1, 1), (2, 1), (2, 50), (5, 7)])
def test_a_value_follows_from_its_two_points_alone(columns: int, others: int) -> None:
    x, y = points(80, columns, 1), points(others, columns, 2)
    together = kernel(x, y, GAMMA)
    for what, view, rows in views(x):
        assert np.array_equal(kernel(view, y, GAMMA), together[rows]), what
    for row in range(others):
        assert np.array_equal(kernel(x, y[row : row + 1], GAMMA)[:, 0], together[:, row])
    assert np.array_equal(kernel(y, x, GAMMA), together.T)


@pytest.mark.parametrize("block", [1, 7, 2**20])
def test_blocks_change_no_bit(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = points(50, 3, 1), points(11, 3, 2)
    expected = kernel(x, y, GAMMA)
    monkeypatch.setattr(kernels, "BLOCK_VALUES", block)
    assert np.array_equal(kernel(x, y, GAMMA), expected)


BITS = "93d812bd98f6dabf123841e96c608c3e5a3b759fb9938212845d619bc650e87d"
_PRINT_BITS = """
import sys, types
package = types.ModuleType("hushbid.kme")  # whose own imports, such as scikit-learn, take a second
package.__path__ = ["hushbid/kme"]
sys.modules[package.__name__] = package
from tests.support.kernel_bits import bits, library_bits
print(bits(), library_bits())
"""


def test_the_bits_are_the_same_on_every_machine() -> None:
    assert bits() == BITS


def test_the_bits_are_the_same_on_processors_with_other_instructions() -> None:
    """The control: those of `np.exp` are not."""
    wide = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
    found = subprocess.run(
        [sys.executable, "-c", _PRINT_BITS],
        env=os.environ | {"NPY_DISABLE_CPU_FEATURES": wide},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    there, library_there = found.stdout.split()
    assert bits() == there == BITS
    if library_bits() == library_there:
        pytest.skip("on this machine np.exp has one implementation only")


def spans() -> list[Subspace]:
    """Spans of one direction, of some, and of as many as there are points."""
    return [span(points(count, 2, 5), GAMMA, np.random.default_rng(1)) for count in (1, 6, 60)]


@pytest.mark.parametrize("number", range(3))
def test_one_record_more_adds_its_own_kernel_values_and_changes_nothing_else(number: int) -> None:
    """Bit for bit, for records at which the rounding of some kernel value changes."""
    found = spans()[number]
    pivots = found.points[found.pivots]

    def rounded(data: Points) -> Points:
        return np.rint(kernel(data, pivots, GAMMA) * 2.0**KERNEL_BITS)

    records = at_boundaries(rounded, points(40, 2, 8), points(40, 2, 9))
    assert (rounded(records[:40]) != rounded(records[40:])).any(axis=1).all()
    alone = np.stack([found.kernel_sums(record[None]) for record in records])
    for count in (1, 2, 17, 18, 79, 80):
        assert np.array_equal(found.kernel_sums(records[:count]), alone[:count].sum(axis=0))
    for what, view, rows in views(records):
        assert np.array_equal(found.kernel_sums(view), alone[rows].sum(axis=0)), what


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_neither_threads_nor_chunks_change_a_total(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, data = spans()[2], points(1000, 2, 3)
    expected = found.totals(data)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(cores))
    for chunk in (1, 977, 2**17):
        monkeypatch.setattr(subspace, "CHUNK_VALUES", chunk)
        assert np.array_equal(found.totals(data), expected)
