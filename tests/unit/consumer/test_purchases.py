"""What the consumer keeps and judges of a delivery, whatever single owners made of their points."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from hushbid.consumer.appraisal import Evaluation, Judgement, Quality, appraise
from hushbid.consumer.columns import column
from hushbid.consumer.events import Delivered, StorePurchases
from hushbid.consumer.store import PurchaseFile
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import DataColumns, Dataset, load_dataset
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.messages import Candidate
from tests.simulation.harness import names, session_file

FEATURES = FeatureSection(gamma=0.5, columns=3, lower=-1.0, upper=[1.0, 2.0, 3.0])
GARBLED = (b"\xff\xff\xff", b"", b"\x92\xa3\xed\xa0\x80\x01", msgpack.packb((1,)), b"\x91" * 4096)
"""Attributes that cannot be unpacked: no msgpack, nothing at all, no UTF-8, no pair, too deep."""


def packed(label: Any, identifier: Any = None) -> bytes:
    data: bytes = msgpack.packb((label, identifier))
    return data


def bought(
    attributes: Sequence[bytes], points: Any = None, disputed: tuple[int, ...] = ()
) -> tuple[Delivered, ...]:
    """One purchase per entry; by default the first point is all 0, the second all 1, and so on."""
    raw = np.repeat(np.arange(len(attributes), dtype=np.float64), 3).reshape(-1, 3)
    raw = raw if points is None else points
    return tuple(
        Delivered(
            owner=f"owner-{row % 2}",
            chosen_round=row + 1,
            candidate=Candidate(point=raw[row], features=np.zeros(8, dtype=np.int16), attributes=data),
            dispute="the features are not those of the point" if row in disputed else "",
        )
        for row, data in enumerate(attributes)
    )


def stored(
    directory: Path, attributes: Sequence[bytes], disputed: tuple[int, ...] = ()
) -> Mapping[str, np.ndarray[Any, Any]]:
    """The arrays of the file that the purchases were stored to."""
    path = directory / "delivered.npz"
    PurchaseFile(path, FEATURES).store(StorePurchases(bought(attributes, disputed=disputed)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def judged(attributes: Sequence[bytes], points: Any) -> Quality:
    session = open_session(session_file(owners=names(2), points=20, columns=3, dimension=8))
    rng = np.random.default_rng(0)
    test = Dataset.from_arrays("test", rng.random((10, 3)), np.arange(10) % 2)
    validation = Dataset.from_arrays("validation", rng.random((10, 3)))
    by = Evaluation(validation, test, model="logistic", seed=0)
    judgement, _ = appraise(session, bought(attributes, points), by)
    return judgement.plain


HONEST: dict[str, list[Any]] = {
    "int64": [3, -1, 0, 7],
    "uint64": [2**64 - 1, 2**63, 5, 1],
    "float64": [0.5, -1.25, 3.0, 7.5],
    "<U2": ["a", "bc", "a", "ü"],
}
LONG = "x" * 4000
ODD: list[Any] = [None, LONG, "a\0", " ", 2**64 - 1, -(2**63), 0.1, 1e300, "evil", 2**53 + 1]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("dtype", HONEST)
def test_no_single_label_costs_the_others_theirs(tmp_path: Path, dtype: str, odd: Any) -> None:
    honest = HONEST[dtype]
    found = stored(
        tmp_path,
        [packed(value, value if type(value) is not float else None) for value in honest]
        + [packed(odd, odd if type(odd) is not float and odd != LONG else None)],
    )
    assert found["labelled"][:4].all()
    assert found["labels"][:4].tolist() == honest
    assert found["labels"].dtype.kind == np.dtype(dtype).kind
    assert found["labels"].dtype.itemsize <= 4 * 256
    if found["labelled"][4]:
        assert found["labels"][4].item() == odd, "what is held is held exactly"
    if dtype != "float64":
        assert found["identified"][:4].all()
        assert found["identifiers"][:4].tolist() == honest


@pytest.mark.parametrize("odd", ["evil", 2**64 - 1, 0.5])
def test_an_owner_that_sells_most_points_does_not_decide_what_labels_are(odd: Any) -> None:
    honest = [3, -1, 0, 7, 2]
    owners = [f"owner-{number}" for number in range(5)] + ["rogue"] * 50
    values, held = column([*honest, *[odd] * 50], owners)
    assert values.dtype == np.int64
    assert values[held].tolist() == honest


def test_digests_of_64_bits_are_held_though_half_of_them_are_beyond_int64() -> None:
    digests = [int(value) for value in np.random.default_rng(2).integers(0, 2**64, 60, dtype=np.uint64)]
    for owners in (["owner-0"] * 60, names(60)):
        values, held = column(digests, list(owners))
        assert held.all()
        assert values.tolist() == digests


def test_a_missing_label_is_a_hole_and_not_the_end_of_the_column(tmp_path: Path) -> None:
    found = stored(tmp_path, [packed(7, "a"), packed(None, "b"), packed("eight"), b"\xff", packed(9.0, "e")])
    assert found["labels"][found["labelled"]].tolist() == [7, 9]
    assert found["labelled"].tolist() == [True, False, False, False, True]
    assert found["identifiers"][found["identified"]].tolist() == ["a", "b", "e"]
    assert found["identified"].tolist() == [True, True, False, False, True]


def test_a_filler_cannot_be_taken_for_a_label(tmp_path: Path) -> None:
    for label, filler in ((0, -(2**63)), (2**63, 2**64 - 1), ("a", "")):
        found = stored(tmp_path, [packed(label), packed(label), packed(None)])
        assert found["labels"].tolist() == [label, label, filler]
    assert np.isnan(stored(tmp_path, [packed(0.5), packed(None)])["labels"][1])


@pytest.mark.parametrize("attributes", [[], [packed(None), b"\xff"]])
def test_without_any_label_there_are_only_masks(tmp_path: Path, attributes: list[bytes]) -> None:
    found = stored(tmp_path, attributes)
    assert "labels" not in found
    assert "identifiers" not in found
    assert found["labelled"].tolist() == found["identified"].tolist() == [False] * len(attributes)


def test_the_loader_reads_what_was_stored(tmp_path: Path) -> None:
    stored(tmp_path, [packed(7, "a"), packed(8, "b")])
    loaded = load_dataset(tmp_path / "delivered.npz", DataColumns())
    assert loaded.features.shape == (2, 3)
    assert loaded.labels is not None
    assert loaded.labels.tolist() == [7, 8]


def test_one_long_label_does_not_swell_the_file(tmp_path: Path) -> None:
    short = [packed("a")] * 2000
    plain = sum(array.nbytes for array in stored(tmp_path, short).values())
    for length in (4000, 256):
        spoilt = sum(array.nbytes for array in stored(tmp_path, [*short, packed("L" * length)]).values())
        assert spoilt < plain + 2001 * 4 * 256


def test_disputed_points_are_not_kept(tmp_path: Path) -> None:
    found = stored(tmp_path, [packed(7, "a"), packed(8, "b"), packed(9, "c")], disputed=(1,))
    assert found["features"].tolist() == [[0.0] * 3, [2.0] * 3]
    assert found["labels"].tolist() == [7, 9]
    assert found["identifiers"].tolist() == ["a", "c"]
    assert found["owners"].tolist() == ["owner-0", "owner-0"]
    assert found["rounds"].tolist() == [1, 3]


def test_a_point_that_cannot_be_read_is_neither_kept_nor_judged(tmp_path: Path) -> None:
    """Its box did not open: nothing is kept, and the others are kept and judged as ever."""
    lost = Delivered("owner-1", 9, None, "the box does not open")
    held = bought([packed(7, "a"), packed(8, "b")])
    path = tmp_path / "delivered.npz"
    PurchaseFile(path, FEATURES).store(StorePurchases((held[0], lost, held[1])))
    with np.load(path) as archive:
        assert archive["labels"].tolist() == [7, 8]
        assert archive["owners"].tolist() == ["owner-0", "owner-1"]
    session = open_session(session_file(owners=names(2), points=20, columns=3, dimension=8))
    validation = Dataset.from_arrays("validation", np.random.default_rng(0).random((10, 3)))
    by = Evaluation(validation, None, model="logistic", seed=0)
    assert appraise(session, [lost], by) == (Judgement(), None)
    (judgement, matching), (alone, weights) = (
        appraise(session, found, by) for found in ([lost, *held], held)
    )
    assert judgement == alone
    assert matching is not None
    assert weights is not None
    assert np.array_equal(matching.weights, weights.weights)


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
