"""How each demonstration dataset is read and dealt out."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.datasets import load_digits

from hushbid.datasets import Partition, build
from hushbid.datasets.idx import read_idx
from hushbid.datasets.insurance import CATEGORIES, COLUMNS, NUMERIC
from hushbid.protocol.errors import ConfigError, DataError

GROUPS = {
    "digits-01": {0, 1},
    "digits-34": {3, 4},
    "digits-56": {5, 6},
    "digits-78": {7, 8},
    "digits-92": {9, 2},
}


def share_of_threes(partition: Partition) -> float:
    labels = np.concatenate([partition.validation.labels, partition.test.labels])
    assert set(labels) == {3, 4}
    return float(np.mean(labels == 3))


def all_rows(partition: Partition) -> list[bytes]:
    tables = [*partition.owners.values(), partition.validation, partition.seed_set, partition.test]
    return [row.tobytes() for table in tables for row in table.features]


class TestBuild:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ({"name": "iris", "seed": 0}, "'iris'"),
            ({"name": "digits", "seed": -1}, "negative"),
            ({"name": "digits", "seed": 0, "options": {"points": 3}}, "'points'"),
            ({"name": "digits", "seed": 0, "options": {"seed_points": 0}}, "'seed_points'"),
            ({"name": "digits", "seed": 0, "options": {"seed_points": "9"}}, "'seed_points'"),
            ({"name": "digits", "seed": 0, "options": {"owner_points": True}}, "'owner_points'"),
        ],
        ids=["dataset", "seed", "unknown option", "zero", "text", "boolean"],
    )
    def test_what_cannot_hold_is_a_config_error(self, arguments: dict[str, Any], says: str) -> None:
        with pytest.raises(ConfigError, match=says) as caught:
            build(**arguments)
        assert caught.value.advice


class TestDigits:
    def test_owners_hold_their_digits_and_the_consumer_wants_threes_and_fours(self) -> None:
        partition = build("digits", seed=0)
        assert {name: set(table.labels) for name, table in partition.owners.items()} == GROUPS
        assert share_of_threes(partition) == pytest.approx(0.7, abs=0.01)
        assert set(partition.seed_set.labels) <= {0, 1, 2, 5, 6, 7, 8, 9}
        assert len(partition.seed_set) == 150

    def test_no_image_is_dealt_twice(self) -> None:
        images = all_rows(build("digits", seed=3))
        assert len(set(images)) == len(images)


@pytest.fixture(scope="module")
def archived(shared_data: Callable[[str], Path]) -> tuple[Any, Any, Partition]:
    """The archive's images and labels, and their partition by seed 1; tests only read them."""
    path = shared_data("mnist.npz")
    with np.load(path) as archive:
        images, labels = archive["images"].reshape(-1, 28, 28), archive["labels"]
    images.flags.writeable = labels.flags.writeable = False
    return images, labels, build("mnist", path=path, seed=1)


class TestMnist:
    def test_the_setting_of_appendix_g(self, shared_data: Callable[[str], Path]) -> None:
        partition = build("mnist", path=shared_data("mnist.npz"), seed=0)
        assert {name: set(table.labels) for name, table in partition.owners.items()} == GROUPS
        assert sum(len(table) for table in partition.owners.values()) == 60_000
        assert share_of_threes(partition) == pytest.approx(0.7, abs=0.001)
        # All 1,010 threes of the test images and 433 fours: a binomial count of mean 361, deviation 16.
        assert len(partition.validation) + len(partition.test) == 1443
        assert 295 < len(partition.validation) < 427
        assert len(partition.seed_set) == 150
        assert not set(partition.seed_set.labels) & {3, 4}
        images = all_rows(partition)
        assert len(set(images)) == len(images)  # no two images are the same, so none is dealt twice

    @pytest.mark.parametrize("mark", ["-", "."])
    @pytest.mark.parametrize("packed", [False, True])
    def test_idx_files_give_the_same_as_the_archive(
        self, mark: str, packed: bool, tmp_path: Path, archived: tuple[Any, Any, Partition]
    ) -> None:
        images, labels, theirs = archived
        for part, rows in (("train", slice(0, 60_000)), ("t10k", slice(60_000, None))):
            # Level 0: this is about the format, not about time spent on compression.
            write_idx(tmp_path / f"{part}-images{mark}idx3-ubyte", images[rows], packed)
            write_idx(tmp_path / f"{part}-labels{mark}idx1-ubyte", labels[rows], packed)
        ours = build("mnist", path=tmp_path, seed=1)
        assert np.array_equal(ours.validation.features, theirs.validation.features)
        for name, table in ours.owners.items():
            assert np.array_equal(table.features, theirs.owners[name].features)
            assert np.array_equal(table.labels, theirs.owners[name].labels)

    def test_a_directory_without_the_files(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no file train-images-idx3-ubyte"):
            build("mnist", path=tmp_path, seed=0)

    def test_a_path_that_is_not_there_is_said_not_to_be(self, tmp_path: Path) -> None:
        for name in ("gone", "gone.npz"):
            with pytest.raises(DataError, match=f"{name}, does not exist"):
                build("mnist", path=tmp_path / name, seed=0)

    @pytest.mark.parametrize("name", ["a.csv", "train-images-idx3-ubyte.gz", "notes", "a.npz", "points.npz"])
    def test_a_file_of_another_kind_brings_what_mnist_takes(self, name: str, tmp_path: Path) -> None:
        (tmp_path / name).write_text("x,y\n1,2\n")
        if name == "points.npz":
            np.savez(tmp_path / name, features=np.ones((2, 2)))
        with pytest.raises(DataError, match=f"{name} .*MNIST") as caught:
            build("mnist", path=tmp_path / name, seed=0)
        assert "directory with the four IDX files" in caught.value.advice
        assert ".npz file with `images` and `labels`" in caught.value.advice
        assert "party" not in str(caught.value)

    def test_files_of_another_size(self, tmp_path: Path) -> None:
        for part in ("train", "t10k"):
            write_idx(tmp_path / f"{part}-images-idx3-ubyte", np.zeros((9, 28, 28), np.uint8), False)
            write_idx(tmp_path / f"{part}-labels-idx1-ubyte", np.zeros(9, np.uint8), False)
        with pytest.raises(DataError, match="does not hold MNIST: 9 images"):
            build("mnist", path=tmp_path, seed=0)

    def test_an_archive_of_something_else(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", images=np.zeros((9, 784), np.uint8), labels=np.zeros(9, np.uint8))
        with pytest.raises(DataError, match=r"a\.npz does not hold MNIST"):
            build("mnist", path=tmp_path / "a.npz", seed=0)


def write_idx(path: Path, array: npt.NDArray[np.uint8], packed: bool) -> None:
    content = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content, compresslevel=0))
    else:
        path.write_bytes(content)


class TestIdx:
    ARRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)

    def test_round_trip(self, tmp_path: Path) -> None:
        write_idx(tmp_path / "a", self.ARRAY, False)
        assert np.array_equal(read_idx(tmp_path / "a", axes=3), self.ARRAY)

    @pytest.mark.parametrize("size", [0, 3, 15, 16, 39])
    def test_cut_short(self, size: int, tmp_path: Path) -> None:
        write_idx(tmp_path / "a", self.ARRAY, False)
        (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:size])
        with pytest.raises(DataError, match=r"^a "):
            read_idx(tmp_path / "a", axes=3)

    def test_too_long_of_another_type_or_number_of_axes(self, tmp_path: Path) -> None:
        write_idx(tmp_path / "a", self.ARRAY, False)
        good = (tmp_path / "a").read_bytes()
        for content in (good + b"\0", b"\0\0\x0d\x03" + good[4:], b"\0\0\x08\x02" + good[4:]):
            (tmp_path / "a").write_bytes(content)
            with pytest.raises(DataError, match=r"^a "):
                read_idx(tmp_path / "a", axes=3)

    def test_not_gzip(self, tmp_path: Path) -> None:
        (tmp_path / "a.gz").write_bytes(b"\0\0\x08\x03")
        with pytest.raises(DataError, match=r"a\.gz cannot be read"):
            read_idx(tmp_path / "a.gz", axes=3)


HEADER = (
    "customer_ID,shopping_pt,record_type,day,time,state,location,group_size,homeowner,car_age,car_value,"
    "risk_factor,age_oldest,age_youngest,married_couple,C_previous,duration_previous,A,B,C,D,E,F,G,cost"
)


def quote(
    customer: int, point: int, state: str, *, car_value: str = "e", risk: str = "3", g: str = "2"
) -> str:
    cost = 400 + customer % 500  # tells customers apart
    return (
        f"{customer},{point},{int(point == 9)},0,08:35,{state},10001,2,0,2,{car_value},{risk},46,42,1,1,2,"
        f"1,0,2,2,1,2,{g},{cost}"
    )


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    """100 customers of each state with three quotes each, out of order, as published but smaller."""
    lines = []
    for number, state in enumerate(("FL", "CT", "OH", "NY")):
        for customer in range(100 * number, 100 * number + 100):
            lines += [quote(customer, point, state, g=str(1 + point // 3)) for point in (3, 9, 6)]
    path = tmp_path / "train.csv"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return path


class TestInsurance:
    def test_the_setting_of_section_4(self, quotes: Path) -> None:
        partition = build("insurance", path=quotes, seed=0)
        assert [len(table) for table in partition.owners.values()] == [25 + 70, 25, 25, 25]
        assert (len(partition.validation), len(partition.test)) == (8, 22)
        assert len(partition.seed_set) == 100  # all of Ohio, which has no 150

    def test_each_customer_is_dealt_once_by_its_last_quote(self, quotes: Path) -> None:
        partition = build("insurance", path=quotes, seed=0)
        tables = [*partition.owners.values(), partition.validation, partition.seed_set, partition.test]
        cost = list(NUMERIC).index("cost")
        customers = [np.rint(table.features[:, cost] * 500).astype(int).tolist() for table in tables]
        assert sorted(itertools.chain(*customers)) == list(range(300))
        for table in tables:
            assert set(table.labels) == {4}  # of shopping point 9, which is not the last line
        owned = list(itertools.chain(*customers[:4]))
        assert sum(customer >= 100 for customer in owned) == 70
        assert sum(customer >= 100 for customer in customers[0]) == 70
        assert all(100 <= customer < 200 for customer in customers[4] + customers[6])

    def test_encoding(self, tmp_path: Path) -> None:
        lines = [quote(number, 1, "FL") for number in range(4)]
        lines += [quote(number, 1, "CT", car_value="", risk="NA") for number in range(10, 30)]
        lines += [quote(40, 1, "OH", car_value="z", risk="4.0")]
        path = tmp_path / "train.csv.gz"
        path.write_bytes(gzip.compress("\n".join([HEADER, *lines]).encode()))
        partition = build("insurance", path=path, seed=0)
        names = [*NUMERIC]
        for name, values in CATEGORIES.items():
            names += [f"{name}={value}" for value in values] + [f"{name}=?"]
        assert len(names) == COLUMNS == partition.columns

        def named(row: npt.NDArray[np.float32]) -> dict[str, float]:
            return {name: float(value) for name, value in zip(names, row, strict=True) if value}

        florida = named(partition.owners["insurer-2"].features[0])
        assert florida["age_oldest"] == pytest.approx((46 - 18) / 57)
        assert florida["group_size"] == pytest.approx(1 / 3)
        assert {name: value for name, value in florida.items() if "=" in name} == dict.fromkeys(
            [
                "homeowner=0",
                "married_couple=1",
                "car_value=e",
                "risk_factor=3",
                "C_previous=1",
                "A=1",
                "B=0",
                "C=2",
                "D=2",
                "E=1",
                "F=2",
            ],
            0.5,
        )
        gaps = named(partition.validation.features[0])
        assert gaps["car_value=?"] == gaps["risk_factor=?"] == 0.5
        other = named(partition.seed_set.features[0])
        assert other["car_value=?"] == other["risk_factor=4"] == 0.5

    def test_the_reduced_file_gives_the_papers_sizes(self, shared_data: Callable[[str], Path]) -> None:
        partition = build("insurance", path=shared_data("allstate.csv.gz"), seed=0)
        assert len(partition.validation) == 117
        assert len(partition.seed_set) == 150
        assert sum(len(table) for table in partition.owners.values()) == 8368 + 1090

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("customer_ID,shopping_pt\n1,2\n", "cannot be read as the competition's train.csv"),
            (f"{HEADER}\n{quote(1, 1, 'FL')},7351\n", "cannot be read as the competition's train.csv"),
            (f"{HEADER}\n{quote(1, 1, 'FL', risk='7351x')}\n", "cannot be read as the competition's"),
            (f"{HEADER}\n{quote(1, 1, 'FL')}\n", "1 customers of FL, 0 of CT and 0 of OH"),
            (f"{HEADER}\n{quote(1, 1, 'FL', g='')}\n", "row 0 .* has no 'G'"),
            (f"{HEADER}\n", "0 customers of FL"),
            ("", "cannot be read as the competition's train.csv"),
        ],
        ids=["columns", "ragged", "word", "few", "no label", "no rows", "empty"],
    )
    def test_a_bad_file(self, content: str, says: str, tmp_path: Path) -> None:
        path = tmp_path / "train.csv"
        path.write_text(content)
        with pytest.raises(DataError, match=says) as caught:
            build("insurance", path=path, seed=0)
        assert "7351" not in str(caught.value)

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="does not exist"):
            build("insurance", path=tmp_path / "gone.csv", seed=0)

    def test_a_path_of_another_kind_brings_what_insurance_takes(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", features=np.ones((2, 2)))
        for path, says in ((tmp_path, "is not a file"), (tmp_path / "a.npz", "of another kind")):
            with pytest.raises(DataError, match=says) as caught:
                build("insurance", path=path, seed=0)
            assert "train.csv of Kaggle's Allstate" in caught.value.advice


def test_the_bundled_digits_are_those_that_scikit_learn_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    digits_module = import_module("hushbid.datasets.digits")
    asked = load_digits(return_X_y=True)
    read = digits_module._bundled()
    monkeypatch.setattr(digits_module, "_BUNDLED", Path("elsewhere.csv.gz"))
    for found in (read, digits_module._bundled()):
        for one, other in zip(found, asked, strict=True):
            np.testing.assert_array_equal(one, other)
