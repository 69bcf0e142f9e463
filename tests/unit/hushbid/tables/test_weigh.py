"""`hushbid weigh`: the consumer's weights recomputed, with other choices."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.consumer.matching import match
from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.errors import DataError
from hushbid.protocol.space.features import PairedSpace
from hushbid.tables.training_table import training_table
from hushbid.tables.weighing import named_table
from tests.support.session_files import text
from tests.unit.protocol.runtime.test_invitation import CURATOR, session, written

LOWER, UPPER, GAMMA = -1.0, np.array([3.0, 1.0]), 2.0
RNG = np.random.default_rng(4)
POINTS = LOWER + RNG.random((60, 2)) * (UPPER - LOWER)
LABELS = np.arange(60) % 2
WANTED = LOWER + RNG.beta(2, 5, (40, 2)) * (UPPER - LOWER)


def scaled(points: Any) -> Any:
    return PairedSpace(dimension=8, gamma=GAMMA, lower=LOWER, upper=UPPER, columns=2).scale(points)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A delivery of a session, a validation set and labelled test points."""
    labelled = np.ones(60, dtype=bool)
    labelled[7] = False
    np.savez(
        tmp_path / "delivered.npz",
        features=POINTS, labels=LABELS, labelled=labelled, identified=np.zeros(60, dtype=bool),
        owners=np.array(["heron", "magpie"] * 30), rounds=np.arange(1, 61), weights=np.full(60, 1 / 60),
        gamma=np.float64(GAMMA), lower=np.float64(LOWER), upper=UPPER,
    )  # fmt: skip
    np.savez(tmp_path / "validation.npz", features=WANTED)
    np.savez(tmp_path / "test.npz", features=WANTED + 0.01, labels=np.arange(40) % 2)
    return tmp_path


def weigh(place: Path, *options: str, delivered: str = "delivered.npz") -> Result:
    arguments = ["weigh", str(place / delivered), "--validation", str(place / "validation.npz"), *options]
    return CliRunner().invoke(app, arguments)


def test_the_weights_are_those_of_the_exact_kernel_on_scaled_points(place: Path) -> None:
    done = weigh(place, "--json")
    assert done.exit_code == 0, done.stderr
    found, expected = json.loads(done.stdout), match(scaled(POINTS), scaled(WANTED), GAMMA)
    with np.load(place / "delivered.npz") as archive:
        assert np.array_equal(archive["weights"], expected.weights)
        assert np.array_equal(archive["features"], POINTS)
        assert archive["labelled"].sum() == 59
        assert (archive["ridge"], archive["weights_gamma"], archive["gamma"]) == (1.0, GAMMA, GAMMA)
    assert (found["points"], found["gamma"], found["effective_points"]) == (60, GAMMA, 60.0)
    assert found["weighted"]["mmd2"] == expected.mmd2 < found["mmd2"]
    assert found["weighted"]["effective_points"] == expected.effective_points
    assert found["weighted"]["gap"] <= 1e-7
    assert found["accuracy"] is None
    assert found["output"] == str((place / "delivered.npz").resolve())
    assert (place / "delivered.npz").stat().st_mode & 0o077 == 0


def test_ridge_width_and_test_points_are_of_choice(place: Path) -> None:
    loose = json.loads(weigh(place, "--ridge", "0", "--json").stdout)
    even = json.loads(weigh(place, "--ridge", "50", "--json").stdout)
    assert loose["weighted"]["effective_points"] < even["weighted"]["effective_points"]
    narrow = json.loads(weigh(place, "--gamma", "200", "--json").stdout)
    assert narrow["gamma"] == 200.0
    with np.load(place / "delivered.npz") as archive:
        assert (archive["weights_gamma"], archive["gamma"]) == (200.0, GAMMA)
    assert narrow["mmd2"] != even["mmd2"]
    judged = json.loads(weigh(place, "--test", str(place / "test.npz"), "--json").stdout)
    assert 0.0 <= judged["accuracy"] <= 1.0
    assert 0.0 <= judged["weighted"]["accuracy"] <= 1.0
    assert judged["weighted"]["mmd2_test"] < judged["mmd2_test"]


@pytest.mark.parametrize("name", ["weighed.npz", "weighed.csv", "weighed.parquet"])
def test_the_points_are_written_with_their_weights_where_asked(place: Path, name: str) -> None:
    before = (place / "delivered.npz").read_bytes()
    done = weigh(place, "--output", str(place / name))
    assert done.exit_code == 0, done.stderr
    assert "MMD² to the validation set with weights" in done.stdout
    assert (place / "delivered.npz").read_bytes() == before
    columns = DataColumns(None, None, None) if name.endswith("npz") else DataColumns(("x0", "x1"), "weight")
    written = load_dataset(place / name, columns)
    assert np.allclose(written.features, POINTS)
    if not name.endswith("npz"):
        assert written.labels is not None
        assert np.allclose(written.labels, match(scaled(POINTS), scaled(WANTED), GAMMA).weights)
    assert (place / name).stat().st_mode & 0o077 == 0


def test_labels_that_some_points_do_not_have_are_no_obstacle(place: Path) -> None:
    """The filler of a text label is empty, which no party's file may have."""
    with np.load(place / "delivered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    names = np.array(["benign", "malignant"])[LABELS]
    names[~arrays["labelled"]] = ""
    np.savez(place / "delivered.npz", **arrays | {"labels": names})
    np.savez(place / "test.npz", features=WANTED, labels=np.array(["benign", "malignant"])[np.arange(40) % 2])
    done = weigh(place, "--test", str(place / "test.npz"), "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["weighted"]["accuracy"] is not None


@pytest.mark.parametrize(
    "change",
    [
        {"labelled": np.ones(3, dtype=bool)},
        {"labels": np.arange(3)},
        {"lower": np.zeros((2, 1))},
        {"upper": np.array("three")},
        {"gamma": np.ones(2)},
        {"owners": np.array(["heron"])},
        {"labelled": np.arange(60)},
        {"labels": np.full(60, "2026", dtype="M8[Y]")},
        {"owners": np.arange(60)},
        {"weights": np.full(60, "many")},
        {"weights": np.full(60, -1.0)},
        {"weights": np.full(60, np.nan)},
        {"upper": np.float64(LOWER)},
        {"gamma": np.float64(-1.0)},
    ],
    ids=lambda change: " ".join(f"{name} {np.ravel(array)[0]}" for name, array in change.items()),
)
def test_arrays_that_do_not_go_together_are_refused(place: Path, change: dict[str, Any]) -> None:
    with np.load(place / "delivered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(place / "odd.npz", **arrays | change)
    done = weigh(place, delivered="odd.npz")
    assert done.exit_code == 4, (done.stdout, done.stderr)
    assert "not a file of delivered points" in done.stderr


def test_a_pipe_is_not_waited_for_and_a_size_beyond_memory_is_refused(place: Path) -> None:
    os.mkfifo(place / "pipe.npz")
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f8", "fortran_order": False, "shape": (2**45, 2)}
    )
    with zipfile.ZipFile(place / "large.npz", "w") as archive:
        archive.writestr("features.npy", content.getvalue())
    for name, why in (
        ("pipe.npz", "not a file of delivered points"),
        ("large.npz", "does not fit in memory, or is damaged"),
    ):
        done = weigh(place, delivered=name)
        assert done.exit_code == 4, (done.stdout, done.stderr)
        assert why in done.stderr
    with pytest.raises(DataError, match="'features' is larger than memory, or damaged"):
        load_dataset(place / "large.npz", DataColumns())


def test_a_table_takes_labels_of_every_type_and_a_delivery_without_them(place: Path) -> None:
    with np.load(place / "delivered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    large = arrays | {"labels": np.full(60, 2**64 - 1, dtype=np.uint64)}
    np.savez(place / "large.npz", **large)
    bare = {name: value for name, value in arrays.items() if name in ("features", "gamma", "lower", "upper")}
    np.savez(place / "bare.npz", **bare)
    for name in ("large", "bare"):
        done = weigh(place, "--output", str(place / f"{name}.parquet"), delivered=f"{name}.npz")
        assert done.exit_code == 0, done.stderr
    assert load_dataset(place / "bare.parquet", DataColumns(("x0", "x1"), "weight")).features.shape == (60, 2)


def test_a_point_at_a_bound_by_its_own_number_type_is_weighed(place: Path) -> None:
    """The nearest float32 of a bound lies beyond it as a float64: the delivery was judged by that."""
    with np.load(place / "delivered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    features = arrays["features"].copy()
    features[0, 0] = np.float32(UPPER[0]) * (1 + 1e-8)
    np.savez(place / "delivered.npz", **arrays | {"features": features})
    assert weigh(place).exit_code == 0


@pytest.mark.parametrize("option", ["--validation", "--test"])
def test_what_is_read_is_not_written_over(place: Path, option: str) -> None:
    read = place / "read.npz"
    np.savez(read, features=WANTED)
    before = read.read_bytes()
    done = weigh(place, option, str(read), "--output", str(read))
    assert done.exit_code == 4
    assert read.read_bytes() == before


def test_a_left_over_of_a_killed_process_is_neither_followed_nor_kept(place: Path) -> None:
    secret = place / "secret.txt"
    secret.write_text("mine")
    (place / ".delivered.npz.partial").symlink_to(secret)
    assert weigh(place).exit_code == 0
    assert secret.read_text() == "mine"
    assert not (place / "delivered.npz").is_symlink()
    assert (place / "delivered.npz").stat().st_mode & 0o077 == 0
    assert not (place / ".delivered.npz.partial").exists()


def older(place: Path) -> None:
    """A delivery by a version that wrote neither weights nor their parameters."""
    with np.load(place / "delivered.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name in ("weights", "gamma", "lower", "upper"):
        del arrays[name]
    np.savez(place / "older.npz", **arrays)


def test_a_delivery_of_an_older_version_needs_the_session_file(place: Path) -> None:
    older(place)
    refused = weigh(place, delivered="older.npz")
    assert refused.exit_code == 4
    assert "--session" in refused.stderr
    public = {"gamma": GAMMA, "columns": 2, "lower": LOWER, "upper": UPPER.tolist()}
    (place / "session.toml").write_text(text({f"features.{name}": value for name, value in public.items()}))
    done = weigh(place, "--session", str(place / "session.toml"), "--json", delivered="older.npz")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["weighted"]["mmd2"] == match(scaled(POINTS), scaled(WANTED), GAMMA).mmd2
    # From then on the file says it, and another session's bounds are refused.
    (place / "session.toml").write_text(text({"features.gamma": GAMMA, "features.columns": 2}))
    other = weigh(place, "--session", str(place / "session.toml"), delivered="older.npz")
    assert other.exit_code == 4
    assert "other bounds" in other.stderr


@pytest.mark.parametrize("bounds", ["of each column", "of all"])
@pytest.mark.parametrize("option", ["--validation", "--test"])
@pytest.mark.parametrize("columns", [1, 3])
def test_other_columns_are_refused_with_what_to_name(
    place: Path, option: str, columns: int, bounds: str
) -> None:
    if bounds == "of all":
        with np.load(place / "delivered.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        np.savez(place / "delivered.npz", **arrays | {"upper": np.float64(3.0)})
    np.savez(place / "other.npz", features=np.zeros((5, columns)))
    done = weigh(place, option, str(place / "other.npz"))
    assert done.exit_code == 4, done.stderr
    assert "other.npz has" in done.stderr
    assert "--features" in done.stderr


def test_columns_of_points_keep_names_that_weights_and_owners_have_too() -> None:
    arrays = {
        "features": POINTS,
        "labels": LABELS,
        "labelled": LABELS >= 0,
        "owners": np.array(["heron"] * 60),
        "rounds": np.arange(60),
        "weights": np.full(60, 0.5),
        "training_weights": np.full(60, 0.25),
    }
    table = named_table(arrays, ["weight", "owner"], label="owner")
    assert table.column_names == [
        *("weight", "owner", "owner_", "owner__", "round", "weight_", "training_weight"),
    ]
    assert table["weight"].to_pylist() == POINTS[:, 0].tolist()
    assert (set(table["owner_"].to_pylist()), set(table["owner__"].to_pylist())) == ({0, 1}, {"heron"})
    own = named_table({"features": WANTED}, ["weight", "owner"])
    training = training_table(own, np.zeros(40, dtype=np.int64), table, arrays["training_weights"])
    assert training.column_names == ["weight", "owner", "owner_", "owner__", "weight_"]
    assert training["owner__"].to_pylist() == [None] * 40 + ["heron"] * 60
    assert training["weight_"].to_pylist() == [1.0] * 40 + [0.25] * 60


@pytest.mark.parametrize("name", ["table.csv", "folder.npz", "nowhere.npz", "text.npz", "flat.npz"])
def test_what_is_no_delivery_is_refused(place: Path, name: str) -> None:
    (place / "table.csv").write_text("x0,x1,weight\n1,2,0.5\n")
    (place / "folder.npz").mkdir()
    (place / "text.npz").write_text("no archive")
    np.savez(place / "flat.npz", features=np.zeros(5))
    done = weigh(place, delivered=name)
    assert done.exit_code == 4, (done.stdout, done.stderr)
    assert "delivered.npz" in done.stderr


BAD = {
    "no validation set": (["--validation", "nowhere.npz"], "nowhere.npz"),
    "negative ridge": (["--ridge=-1"], "ridge"),
    "no width": (["--gamma", "0"], "γ is 0"),
    "no such model": (["--model", "oracle"], "oracle"),
    "no such ending": (["--output", "weighed.txt"], "weighed.txt"),
    "no such directory": (["--output", "/nowhere/at/all.npz"], "/nowhere/at/all.npz"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_refused_and_the_delivery_stays(place: Path, case: str) -> None:
    before = (place / "delivered.npz").read_bytes()
    options, what = BAD[case]
    done = weigh(place, *options)
    assert done.exit_code == 4, (done.stdout, done.stderr)
    assert what in " ".join(done.stderr.split())
    assert (place / "delivered.npz").read_bytes() == before


def test_validation_points_outside_of_the_bounds_are_refused(place: Path) -> None:
    np.savez(place / "validation.npz", features=WANTED + 5.0)
    done = weigh(place)
    assert done.exit_code == 4
    assert "validation.npz" in done.stderr


def test_a_file_without_points_is_refused(place: Path) -> None:
    np.savez(place / "empty.npz", features=np.empty((0, 2)))
    done = weigh(place, delivered="empty.npz")
    assert done.exit_code == 4
    assert "no points" in done.stderr


# -- label shares ---------------------------------------------------------------------------------------


def shares_of(place: Path) -> dict[int, float]:
    with np.load(place / "delivered.npz") as archive:
        weights, labels, held = archive["weights"], archive["labels"], archive["labelled"]
    assert weights.min() >= 0.0
    assert not weights[~held].any(), "a point without a label has no weight"
    return {label: float(weights[labels == label].sum()) for label in (0, 1)}


@pytest.mark.parametrize(("balance", "first"), [("wanted", 0.75), ("equal", 0.5)])
def test_weights_have_the_label_shares_that_are_asked_for(place: Path, balance: str, first: float) -> None:
    np.savez(place / "validation.npz", features=WANTED, labels=np.arange(40) % 4 // 3)
    before = json.loads(weigh(place, "--json").stdout)
    plain = shares_of_all(place)
    done = weigh(place, "--balance", balance, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert shares_of(place) == pytest.approx({0: first, 1: 1.0 - first})
    assert plain[0] != pytest.approx(first, abs=1e-3)
    assert (before["balance"], found["balance"]) == (None, balance)
    free = json.loads(weigh(place, "--label-weight", "0", "--json").stdout)["weighted"]
    held = json.loads(weigh(place, "--label-weight", "0", "--balance", balance, "--json").stdout)["weighted"]
    assert (free["label_weight"], before["weighted"]["label_weight"]) == (0.0, 0.6)
    assert held["mmd2"] >= free["mmd2"], "a condition more"
    assert found["weighted"]["gap"] <= 1e-7
    assert "label shares" in weigh(place, "--balance", balance).stdout


def shares_of_all(place: Path) -> dict[int, float]:
    with np.load(place / "delivered.npz") as archive:
        return {label: float(archive["weights"][archive["labels"] == label].sum()) for label in (0, 1)}


def test_shares_that_no_weights_have_are_refused_and_no_label_is_quoted(place: Path) -> None:
    np.savez(place / "validation.npz", features=WANTED, labels=np.full(40, 8_731))
    refused = weigh(place, "--balance", "wanted")
    assert refused.exit_code == 4
    assert "1 of the 1 labels of the validation set were not bought" in refused.stderr
    assert "8731" not in refused.stderr
    np.savez(place / "validation.npz", features=WANTED)
    assert "nobody knows" in weigh(place, "--balance", "wanted").stderr


def test_a_consumer_that_has_an_invitation_alone_reads_its_tables_by_it(place: Path) -> None:
    columns = [
        {"name": "share", "kind": "number", "lower": -1.0, "upper": 3.0},
        {"name": "score", "kind": "number", "lower": -1.0, "upper": 1.0, "missing": 0.0},
    ]
    named = {"features.gamma": GAMMA, "features.columns": None, "features.lower": None, "columns": columns}
    file = written(place, invitation(session(named), "consumer", CURATOR), "consumer")
    with np.load(place / "delivered.npz") as archive:  # such a session has a bound for each column
        np.savez(place / "delivered.npz", **{**archive, "lower": np.full(2, LOWER)})
    rows = ["score,share", *(f"{score},{share}" for share, score in WANTED[:-1]), f",{WANTED[-1, 0]}"]
    (place / "wanted.csv").write_text("\n".join(rows))
    options = ["--validation", str(place / "wanted.csv"), "--json"]
    assert "score" in weigh(place, *options).stderr, "without a session a gap is refused"
    done = weigh(place, *options, "--session", str(file))
    assert done.exit_code == 0, done.stderr
    meant = np.vstack([WANTED[:-1], [WANTED[-1, 0], 0.0]])
    assert json.loads(done.stdout)["weighted"]["mmd2"] == pytest.approx(
        match(scaled(POINTS), scaled(meant), GAMMA).mmd2
    )
    file.write_text(file.read_text().replace("missing = 0.0", "missing = 0.5"))
    refused = weigh(place, *options, "--session", str(file))
    assert refused.exit_code == 4
    assert "signature is not one of the curator" in refused.stderr


def test_training_weights_go_with_the_points_and_the_model_is_told(place: Path) -> None:
    labels = np.where(np.arange(40) < 30, np.arange(40) % 4 // 3, 0)
    np.savez(place / "validation.npz", features=WANTED, labels=labels, labelled=np.arange(40) < 30)
    found = json.loads(weigh(place, "--json").stdout)
    assert found["model"]["own_rows"] == 30
    assert found["model"]["judged_on"] == "validation"
    with np.load(place / "delivered.npz") as archive:
        assert archive["training_weights"].shape == archive["weights"].shape
        assert archive["training_weights"].sum() == pytest.approx(found["model"]["training_weights"]["total"])
        assert archive["label_weight"] == 0.6
    said = weigh(place)
    assert found["model"]["sentence"] in " ".join(said.stdout.split())
    assert (found["labels_unused"], "WARNING" in said.stderr) == (False, False)
    np.savez(place / "validation.npz", features=WANTED)
    said = weigh(place, "--output", str(place / "weighed.csv"))
    assert (said.exit_code, "WARNING: The points have labels, and no row" in said.stderr) == (0, True)
    assert json.loads(weigh(place, "--json").stdout)["labels_unused"] is True
    assert "training_weight" in (place / "weighed.csv").read_text().splitlines()[0]


def test_a_strength_of_labels_that_cannot_hold_is_refused(place: Path) -> None:
    refused = weigh(place, "--label-weight", "1")
    assert refused.exit_code == 4
    assert "strength of labels" in refused.stderr
