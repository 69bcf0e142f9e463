"""The hash of a point by any map or hash family depends on that point alone.

It must not depend on the number, order or memory layout of points hashed together, on threads, or on
processor instructions: otherwise one more record changes what others add to a sum, and no sensitivity holds.
Points lie next to rounding boundaries, where the last bit of a sum would show.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.space.features import FEATURE_SPACES, PairedSpace, feature_map
from hushbid.protocol.space.features import base as features_base
from hushbid.protocol.space.lsh import squared_lengths
from hushbid.race.reference import in_ball
from tests.boundaries import Hash, at_boundaries, views
from tests.conformance import boundary_hashes
from tests.conformance.boundary_hashes import COLUMNS, KINDS, PAIRS, control, digests, hashed, spread
from tests.conformance.float_maps import BlasSpace, TurningSpace

Points = npt.NDArray[np.float64]

every_hash = pytest.mark.parametrize(("kind", "name"), KINDS)


def differences(hash: Hash, points: Points) -> list[str]:
    """The conditions that change φ of some point."""
    together = hash(points)
    return [what for what, view, rows in views(points) if not np.array_equal(hash(view), together[rows])]


@every_hash
def test_a_point_is_hashed_alike_whatever_stands_beside_it_and_however_it_lies_in_memory(
    kind: str, name: str
) -> None:
    assert differences(*hashed(kind, name)) == []


def test_a_sum_that_turns_with_the_number_of_rows_is_found_out() -> None:
    hash = control(TurningSpace).hash
    found = differences(hash, at_boundaries(hash, spread(PAIRS, 1), spread(PAIRS, 2)))
    assert "17 rows from 0" in found
    assert any("alone" in what for what in found)
    assert "another order" not in found


def test_the_arithmetic_that_maps_had_is_found_out() -> None:
    hash = control(BlasSpace).hash
    found = differences(hash, at_boundaries(hash, spread(PAIRS, 1), spread(PAIRS, 2)))
    if not found:
        pytest.skip("on this machine BLAS adds in one order whatever the number of rows")
    assert any("alone" in what for what in found)


@pytest.mark.parametrize("columns", [1, 3, COLUMNS])
def test_a_length_and_a_point_moved_to_the_ball_follow_from_the_point_alone(columns: int) -> None:
    """The asymmetric families and regression sketches hash these."""
    points = np.random.default_rng(6).uniform(-0.4, 0.4, (PAIRS, columns))
    for hash in (squared_lengths, in_ball):
        together = hash(points)
        for what, view, rows in views(points):
            assert np.array_equal(hash(view), together[rows]), what
    # The control: numpy's own lengths add up in other orders.
    if columns == COLUMNS:
        assert differences(lambda some: np.linalg.norm(some, axis=1, keepdims=True), points)


@pytest.mark.parametrize("name", sorted(FEATURE_SPACES))
def test_chunks_change_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hash, points = hashed("map", name)
    together = hash(points)
    for rows in (1, 2, 17, 18, 79):
        monkeypatch.setattr(features_base, "CHUNK_VALUES", rows * COLUMNS)
        assert np.array_equal(hash(points), together)


@pytest.mark.parametrize("name", sorted(FEATURE_SPACES))
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float16, np.float32])
def test_a_point_is_hashed_alike_whatever_type_holds_it(name: str, dtype: type) -> None:
    """Each row alone too: one more record may widen the type of a table."""
    phi = feature_map(name, seed=5, dimension=140, gamma=0.3, lower=0.0, upper=255.0, columns=COLUMNS)
    held: npt.NDArray[Any] = np.random.default_rng(4).uniform(0.0, 255.0, (60, COLUMNS)).astype(dtype)
    together = phi.hash(held)
    assert np.array_equal(together, phi.hash(held.astype(np.float64)))
    assert [
        what for what, view, rows in views(held) if not np.array_equal(phi.hash(view), together[rows])
    ] == []


# -- other machines ------------------------------------------------------------------------------------

WIDE = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
MACHINES: dict[str, dict[str, str]] = {
    "one thread": {"OPENBLAS_NUM_THREADS": "1"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": WIDE},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
}


@pytest.mark.timeout(600)
def test_other_threads_and_other_processors_hash_alike(tmp_path: Path) -> None:
    """The control has the maps' former arithmetic, which differs between machines."""
    for kind, name in KINDS:
        np.save(tmp_path / f"{kind}-{name}.npy", hashed(kind, name)[1])
    hash = control(BlasSpace).hash
    np.save(tmp_path / "control.npy", at_boundaries(hash, spread(PAIRS, 1), spread(PAIRS, 2)))
    here = digests(str(tmp_path))
    controls = {here[-1]}
    for machine, environment in MACHINES.items():
        run = subprocess.run(
            [sys.executable, "-m", boundary_hashes.__name__, str(tmp_path)],
            env=os.environ | environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        found = run.stdout.splitlines()
        assert found[:-1] == here[:-1], machine
        controls.add(found[-1])
    if len(controls) == 1:
        pytest.skip("this BLAS chooses its kernels otherwise than by OPENBLAS_CORETYPE")


def test_the_control_is_paired_but_for_its_arithmetic() -> None:
    """It is caught for its sums, and not for its features."""
    phi = control(BlasSpace)
    assert isinstance(phi.space, PairedSpace)
    made = phi.hash(spread(200, 3))
    assert phi.space.admits(made).all()
    assert np.linalg.norm(made * 2.0**-15, axis=1).max() <= phi.space.norm_bound
