"""What the consumer keeps and judges of a delivery, whatever single owners made of their points."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from consumer.appraisal import Appraisal, appraise
from consumer.events import StorePurchases
from consumer.store import PurchaseFile
from protocol.data import Dataset
from protocol.messages import Candidate, Purchase
from protocol.session import open_session
from tests.simulation.harness import names, session_file

GARBLED = (b"\xff\xff\xff", b"", b"\x92\xa3\xed\xa0\x80\x01", msgpack.packb((1,)), b"\x91" * 4096)
"""Attributes that cannot be unpacked: no msgpack, nothing at all, no UTF-8, no pair, too deep."""


def packed(label: Any, identifier: Any = None) -> bytes:
    data: bytes = msgpack.packb((label, identifier))
    return data


def bought(attributes: Sequence[bytes], points: Any = None) -> tuple[Purchase, ...]:
    """One purchase per entry; by default the first point is all 0, the second all 1, and so on."""
    raw = np.repeat(np.arange(len(attributes), dtype=np.float64), 3).reshape(-1, 3)
    raw = raw if points is None else points
    return tuple(
        Purchase(
            owner=f"owner-{row % 2}",
            round=row + 1,
            candidate=Candidate(point=raw[row], features=np.zeros(8, dtype=np.int16), attributes=data),
        )
        for row, data in enumerate(attributes)
    )


def stored(
    directory: Path, attributes: Sequence[bytes], disputed: tuple[int, ...] = ()
) -> Mapping[str, np.ndarray[Any, Any]]:
    """The arrays of the file that the purchases were stored to."""
    path = directory / "delivered.npz"
    PurchaseFile(path).store(StorePurchases(bought(attributes), disputed))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def judged(attributes: Sequence[bytes], points: Any) -> Appraisal:
    session = open_session(session_file(owners=names(2), points=20, columns=3, dimension=8))
    rng = np.random.default_rng(0)
    test = Dataset.from_arrays("test", rng.random((10, 3)), np.arange(10) % 2)
    return appraise(
        session,
        bought(attributes, points),
        validation=Dataset.from_arrays("validation", rng.random((10, 3))),
        test=test,
        model="logistic",
        seed=0,
    )


def test_disputed_points_are_not_kept(tmp_path: Path) -> None:
    found = stored(tmp_path, [packed(7, "a"), packed(8, "b"), packed(9, "c")], disputed=(1,))
    assert found["features"].tolist() == [[0.0] * 3, [2.0] * 3]
    assert found["labels"].tolist() == [7, 9]
    assert found["identifiers"].tolist() == ["a", "c"]
    assert found["owners"].tolist() == ["owner-0", "owner-0"]
    assert found["rounds"].tolist() == [1, 3]


@pytest.mark.parametrize("garbled", GARBLED)
def test_garbled_attributes_cost_no_point(tmp_path: Path, garbled: bytes) -> None:
    found = stored(tmp_path, [packed(7, "a"), garbled, packed(9, "c")])
    assert found["features"].tolist() == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("garbled", GARBLED)
def test_garbled_attributes_leave_the_rest_to_be_judged(garbled: bytes) -> None:
    points = np.random.default_rng(1).random((5, 3))
    labels = [packed(0), packed(1), packed(0), packed(1)]
    found = judged([*labels, garbled], points)
    assert found.mmd2 is not None
    assert found.accuracy == judged(labels, points[:4]).accuracy is not None


@pytest.mark.parametrize("far", [1e160, -1e308])
def test_a_point_that_voids_the_distance_is_no_perfect_score_and_trains_nothing(far: float) -> None:
    points = np.random.default_rng(1).random((5, 3))
    labels = [packed(0), packed(1), packed(0), packed(1), packed(1)]
    points[4] = far
    found = judged(labels, points)
    assert found.mmd2 is None
    assert found.accuracy == judged(labels[:4], points[:4]).accuracy is not None
