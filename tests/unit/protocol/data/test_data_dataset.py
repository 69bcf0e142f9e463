"""Datasets: the checks against public bounds, attributes of one length, and hashing in chunks."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushbid.protocol import limits
from hushbid.protocol.config.boxes import attribute_rooms
from hushbid.protocol.crypto.sealing import content_bytes
from hushbid.protocol.data import Dataset, check_dataset, feature_table
from hushbid.protocol.data.attributes import (
    Attributes,
    pack_attributes,
    packed_length,
    packed_lengths,
    unpack_attributes,
)
from hushbid.protocol.data.dataset import FEATURE_DTYPES
from hushbid.protocol.errors import DataError

SECRET = 7351.25


def dataset(features: Any, **attributes: Any) -> Dataset:
    return Dataset.from_arrays("points.npz", np.asarray(features), **attributes)


class TestCheck:
    @pytest.mark.parametrize(
        ("value", "says"),
        [(np.nan, "missing (NaN)"), (np.inf, "infinite"), (-np.inf, "infinite"), (SECRET, "out of")],
        ids=["nan", "inf", "-inf", "out of bounds"],
    )
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_first_bad_value_is_named_by_row_and_column(
        self, value: float, says: str, dtype: type
    ) -> None:
        features: npt.NDArray[Any] = np.zeros((500_000, 4), dtype=dtype)  # several chunks
        features[400_001, 2] = value
        features[400_001, 3] = features[450_000, 0] = np.nan
        with pytest.raises(DataError) as caught:
            check_dataset(dataset(features), columns=4, lower=0.0, upper=1.0)
        message = str(caught.value)
        assert "points.npz: row 400001, feature column 2 (both counted from 0)" in message
        assert says in message
        assert "7351" not in message
        assert caught.value.advice

    def test_infinite_bounds_do_not_admit_infinite_values(self) -> None:
        with pytest.raises(DataError, match="row 0, feature column 1"):
            check_dataset(dataset([[SECRET, np.inf]]), columns=2, lower=-np.inf, upper=np.inf)

    def test_empty(self) -> None:
        with pytest.raises(DataError, match=r"points\.npz holds no rows"):
            check_dataset(dataset(np.empty((0, 3))), columns=3, lower=0, upper=1)

    def test_wrong_number_of_columns(self) -> None:
        with pytest.raises(DataError, match="has 3 feature columns where the session has 4"):
            check_dataset(dataset(np.zeros((2, 3))), columns=4, lower=0, upper=1)

    def test_bounds_may_differ_by_column(self) -> None:
        points = dataset([[1, 10], [2, 20]])
        check_dataset(points, columns=2, lower=[1, 10], upper=[2, 20])
        with pytest.raises(DataError, match="row 1, feature column 1"):
            check_dataset(points, columns=2, lower=[1, 10], upper=[2, 19])

    @pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
    def test_values_on_the_bounds_are_within_them(self, dtype: str) -> None:
        check_dataset(dataset(np.array([[0, 16]], dtype=dtype)), columns=2, lower=0.0, upper=16.0)

    def test_a_float32_value_saved_as_the_bound_is_within_it(self) -> None:
        check_dataset(dataset(np.full((1, 1), 0.1, dtype=np.float32)), columns=1, lower=0.0, upper=0.1)

    def test_integers_out_of_bounds(self) -> None:
        with pytest.raises(DataError, match="row 1, feature column 0"):
            check_dataset(dataset(np.array([[3], [17]], dtype=np.uint8)), columns=1, lower=0, upper=16)

    def test_memory_mapped_data(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.full((300_000, 5), 2.0))
        mapped = dataset(np.load(tmp_path / "a.npy", mmap_mode="r"))
        check_dataset(mapped, columns=5, lower=0, upper=2)
        with pytest.raises(DataError, match="row 0, feature column 0"):
            check_dataset(mapped, columns=5, lower=0, upper=1)


class TestArrays:
    def test_small_types_are_widened(self) -> None:
        for given_type, held in [
            ("bool", "uint8"),
            ("int8", "int16"),
            ("uint16", "int32"),
            ("float16", "float32"),
        ]:
            assert dataset(np.ones((1, 1), dtype=given_type)).features.dtype == np.dtype(held)

    def test_byte_order_becomes_the_machines(self) -> None:
        features = dataset(np.array([[1.5]], dtype=">f4")).features
        assert features.dtype == np.float32
        assert features.dtype.isnative
        assert features.tolist() == [[1.5]]

    def test_arrays_are_read_only_and_the_callers_stay_as_they_are(self) -> None:
        given_array = np.ones((2, 2))
        held = dataset(given_array, labels=np.arange(2))
        assert held.labels is not None
        for array in (held.features, held.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 3
        given_array[0, 0] = 5.0


class TestAttributes:
    @pytest.mark.parametrize(
        ("labels", "identifiers"),
        [
            (None, None),
            (np.array([0, 200, -(2**40)]), None),
            (np.array([1.5, -2.0, 0.0]), np.array([1, 2, 2**63], dtype=np.uint64)),
            (np.array(["x", "x" * 40, "žluť"]), np.array(["a", "b" * 300, "c"])),
            (np.array([True, False, True]), np.array(["x", "x", "x"])),
        ],
        ids=["none", "integers", "floats", "text", "booleans"],
    )
    def test_every_row_packs_to_one_length_and_unpacks_to_itself(self, labels: Any, identifiers: Any) -> None:
        points = dataset(np.zeros((3, 1)), labels=labels, identifiers=identifiers)
        packed = [points.attributes(row) for row in range(3)]
        own = [packed for row in range(3) for packed in points.own_attributes_of([row])]
        assert list(points.each_own_attributes()) == own
        assert points.attributes_of([2, 0]) == [packed[2], packed[0]]
        assert points.own_attributes_of([2, 0]) == [own[2], own[0]]
        assert {len(data) for data in packed} == {points.attribute_length}
        for row, data in enumerate(packed):
            found = unpack_attributes(data)
            assert found.label == (None if labels is None else labels[row].item())
            assert found.identifier == (None if identifiers is None else identifiers[row].item())

    # NumPy's text ends at its last character that is not NUL, and half a surrogate pair is no text.
    NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60).filter(
        str.strip
    )

    @given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), NAMES), min_size=1, max_size=20))
    def test_one_length_for_any_labels_and_identifiers(self, rows: list[tuple[int, str]]) -> None:
        names = np.array([name for _, name in rows])
        points = dataset(
            np.zeros((len(rows), 1)), labels=np.array([label for label, _ in rows]), identifiers=names
        )
        packed = [points.attributes(row) for row in range(len(rows))]
        assert len({len(data) for data in packed}) == 1
        assert [unpack_attributes(data) for data in packed] == [Attributes(*row) for row in rows]

    @pytest.mark.parametrize("what", ["labels", "identifiers"])
    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("bad", [0xD800, 0xDFFF, 0x110000])
    def test_text_without_an_encoding_is_refused_by_its_row(self, what: str, order: str, bad: int) -> None:
        texts = np.array(["plain", "\U0010ffff", "halved", "halved"], dtype=f"{order}U8")
        texts.view(f"{order}u4").reshape(4, 8)[2:, 3] = bad
        with pytest.raises(DataError, match=rf"points\.npz: row 2 .* {what}") as caught:
            dataset(np.zeros((4, 1)), **{what: texts})
        assert "halved" not in str(caught.value)

    @pytest.mark.parametrize("gap", ["", "  ", "\t\n", "\u00a0"])
    @pytest.mark.parametrize("what", ["labels", "identifiers"])
    def test_empty_text_is_a_gap(self, what: str, gap: str) -> None:
        texts = np.array(["benign", "malign", gap, ""])
        with pytest.raises(DataError, match=rf"points\.npz: row 2 .* of the {what} is missing") as caught:
            dataset(np.zeros((4, 1)), **{what: texts})
        assert "benign" not in str(caught.value)
        assert "remove the row" in caught.value.advice

    def test_over_the_limit(self) -> None:
        points = dataset(np.zeros((1, 1)), labels=np.array(["x" * limits.MAX_ATTRIBUTES]))
        with pytest.raises(DataError, match=r"points\.npz.*4096"):
            points.attributes(0)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\x92\x01",
            b"\x91\x01",
            b"\x01",
            msgpack.packb([1, 2]) + b"\0\0\x07",
            msgpack.packb([1, 2, 3]),
            msgpack.packb([True, 1]),
            msgpack.packb([1, 1.5]),
            msgpack.packb([float("nan"), 1]),
            msgpack.packb([b"x", 1]),
            msgpack.packb([[1], 1]),
            msgpack.packb({"label": 1}),
            b"\x92\xa1\xff\x01",
            b"\xc1",
            b"\xdd\xff\xff\xff\xff",
            msgpack.packb(["x" * limits.MAX_ATTRIBUTES, 1]),
        ],
        ids=range(16),
    )
    def test_garbage_is_a_data_error(self, data: bytes) -> None:
        with pytest.raises(DataError, match="attributes of a point"):
            unpack_attributes(data)

    @given(st.binary(max_size=64))
    def test_any_bytes_unpack_or_are_a_data_error(self, data: bytes) -> None:
        try:
            found = unpack_attributes(data)
        except DataError:
            return
        assert isinstance(found, Attributes)

    def test_packing_into_too_few_bytes_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="3 bytes"):
            pack_attributes(Attributes(1, 2), 2)


class TestFeatureTable:
    @staticmethod
    def hash(points: npt.NDArray[Any], _labels: object = None) -> npt.NDArray[np.int16]:
        return np.column_stack([points.sum(axis=1), points[:, 0]]).astype(np.int16)

    POINTS = dataset(np.arange(600_000, dtype=np.int32).reshape(-1, 3) % 97)

    def test_in_memory_and_on_disk_agree(self, tmp_path: Path) -> None:
        size = len(self.POINTS) * 2 * 2
        held = feature_table(self.POINTS, self.hash, 2, scratch=None, memory_limit=size)
        mapped = feature_table(self.POINTS, self.hash, 2, scratch=tmp_path, memory_limit=size - 1)
        assert not isinstance(held, np.memmap)
        assert isinstance(mapped, np.memmap)
        assert np.array_equal(held, self.hash(self.POINTS.features))
        assert np.array_equal(held, mapped)
        for table in (held, mapped):
            assert table.dtype == np.int16
            assert not table.flags.writeable

    def test_the_file_is_private_and_leaves_nothing_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        modes = []
        unlink = Path.unlink

        def note_mode(path: Path, missing_ok: bool = False) -> None:
            if path.exists():
                modes.append(stat.S_IMODE(path.stat().st_mode))
            unlink(path, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", note_mode)
        table = feature_table(self.POINTS, self.hash, 2, scratch=tmp_path, memory_limit=0)
        assert modes == [0o600]
        assert list(tmp_path.iterdir()) == []
        assert table[1].tolist() == [12, 3]  # and yet it can be read

    def test_it_tells_how_far_it_is(self, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []
        keep = {"scratch": tmp_path, "memory_limit": 0}
        many = dataset(np.zeros((400_000, 3), dtype=np.int32))
        feature_table(many, self.hash, 2, progress=lambda *far: told.append(far), **keep)  # type: ignore[arg-type]
        assert len(told) > 1
        assert told == sorted(told)
        assert told[-1] == (400_000, 400_000)

    def test_no_scratch_directory(self) -> None:
        with pytest.raises(DataError, match=r"points\.npz.*scratch directory"):
            feature_table(self.POINTS, self.hash, 2, scratch=None, memory_limit=1000)

    def test_a_scratch_directory_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="No such file"):
            feature_table(self.POINTS, self.hash, 2, scratch=tmp_path / "gone", memory_limit=0)


# -- how long packed labels and identifiers are ----------------------------------------------------------

ATTRIBUTES: list[Any] = [
    [0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1],
    [-1, -32, -33, -128, -129, -(2**15), -(2**15) - 1, -(2**31) - 1, -(2**63)],
    [0.0, -1.5, 1e300],
    ["x" * length for length in (1, 31, 32, 255, 256, 4000)],
    ["é" * length for length in (1, 15, 16, 127, 128)],
]


@pytest.mark.parametrize("values", ATTRIBUTES, ids=["whole", "negative", "floats", "text", "marks"])
def test_every_row_s_packed_length_is_that_of_its_value(values: list[Any]) -> None:
    found = packed_lengths(np.array(values), len(values))
    assert found.tolist() == [packed_length(value) for value in values]
    assert packed_lengths(None, 2).tolist() == [packed_length(None)] * 2


def test_a_row_without_a_label_takes_no_room_for_one() -> None:
    held = np.array([True, False])
    points = Dataset.from_arrays("a", np.zeros((2, 1)), np.array(["x" * 90, "y"]), labelled=held)
    assert points.attribute_lengths[0].tolist() == [packed_length("x" * 90), packed_length(None)]


@pytest.mark.parametrize("columns", [1, 3, 20])
@pytest.mark.parametrize("size", [64, 128, 300, 512, 4096])
def test_a_box_has_as_much_room_as_fits(columns: int, size: int) -> None:
    rooms = attribute_rooms("sealed", {"box_bytes": size}, columns, 2)
    for dtype in FEATURE_DTYPES:
        room = rooms.get(dtype.name)
        if room is None:
            assert content_bytes(columns, dtype, 3) > size
        else:
            assert content_bytes(columns, dtype, room) <= size < content_bytes(columns, dtype, room + 3)
    assert attribute_rooms("ask-all", {}, columns, 2) == {}
