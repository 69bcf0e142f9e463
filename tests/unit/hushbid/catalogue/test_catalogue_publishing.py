"""Publishing: what is charged, when, and what happens to data that do not fit."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.catalogue import publishing
from hushbid.catalogue.entry import SUFFIX, read_entry
from hushbid.catalogue.kme import KmeRelease, feature_map_of
from hushbid.catalogue.publish_options import PublishKme, PublishRace
from hushbid.cli.app import main
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.errors import BudgetExceeded, ConfigError, DataError
from hushbid.protocol.privacy.noise import Draw, SecureNoise, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.keys import write_secret
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from tests.support.catalogue_entries import (
    FEATURES,
    HASHES,
    ProtectingNoise,
    key_of,
    points_about,
    published,
)
from tests.support.session_files import text

RELATION = Neighbours.ADD_REMOVE_ONE.value


def spendings(path: Path) -> list[tuple[str, float | None]]:
    with LifetimeLedger.open(path, budget=None, neighbours=RELATION, rows=None) as ledger:
        return [(each.kind, each.epsilon) for each in ledger.spendings]


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
def test_publishing_twice_is_charged_twice_and_has_other_noise(tmp_path: Path, functions: Any) -> None:
    first = published(tmp_path, noise=SecureNoise(), functions=functions)
    second = published(tmp_path, noise=SecureNoise(), functions=functions)
    assert [kind for kind, _ in spendings(first.ledger)] == ["catalogue", "catalogue"]
    assert first.spent < second.spent <= 2.0
    assert first.path != second.path
    assert first.entry.release.count != second.entry.release.count or not np.array_equal(
        first.entry.release.noisy_mean().mean, second.entry.release.noisy_mean().mean
    )


def test_a_crash_before_the_file_is_there_wastes_budget_and_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(Exception):
        pass

    def die(*_arguments: object) -> None:
        assert [kind for kind, _ in spendings(tmp_path / "north.ledger")] == ["catalogue"]
        raise Died

    for where, step in ((KmeRelease, "of"), (publishing, "write_new")):
        with monkeypatch.context() as patch:
            patch.setattr(where, step, die)
            with pytest.raises(Died):
                published(tmp_path)
        assert entries(tmp_path) == []
        assert [kind for kind, _ in spendings(tmp_path / "north.ledger")] == ["catalogue"]
        (tmp_path / "north.ledger").unlink()


def test_what_the_budget_does_not_allow_is_not_made(tmp_path: Path) -> None:
    published(tmp_path, budget=BudgetSection(epsilon=1.2))
    before = (tmp_path / "north.ledger").read_bytes()
    with pytest.raises(BudgetExceeded, match="catalogue"):
        published(tmp_path)  # the budget on record holds, though none is named
    assert (tmp_path / "north.ledger").read_bytes() == before
    assert len(entries(tmp_path)) == 1


def test_nothing_is_charged_for_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="directory"):
        published(tmp_path, directory=tmp_path / "north.npy")
    assert not (tmp_path / "north.ledger").exists()


def test_the_catalogue_s_directory_is_made(tmp_path: Path) -> None:
    made = published(tmp_path, directory=tmp_path / "new" / "catalogue")
    assert entries(tmp_path / "new" / "catalogue") == [made.path]


def test_entries_of_both_relations_share_a_ledger_and_its_budget(tmp_path: Path) -> None:
    """By substitution the first entry counts twice; by add and remove the second has no ε."""
    first = published(tmp_path)
    second = published(tmp_path, neighbours=Neighbours.SUBSTITUTE_ONE)
    assert (first.spent_neighbours, second.spent_neighbours) == ("add-remove-one", "substitute-one")
    assert second.spent > 2.0 * first.spent
    budget = BudgetSection(epsilon=9.0, neighbours="add-remove-one")
    with pytest.raises(BudgetExceeded, match="no ε that could be stated"):
        published(tmp_path, budget=budget)
    budget = BudgetSection(epsilon=9.0, neighbours="substitute-one", lift=True)
    assert published(tmp_path, budget=budget).spent < 9.0


def test_simulated_noise_is_charged_as_what_guarantees_nothing(tmp_path: Path) -> None:
    made = published(tmp_path, noise=SimulatedNoise(1, "north"))
    assert spendings(made.ledger) == [("catalogue", None)]


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
def test_rows_out_of_bounds_are_refused_or_clipped_and_counted_either_way(
    tmp_path: Path, functions: Any
) -> None:
    points = points_about((0.3, 0.5), 100, seed=1)
    points[[3, 7, 8], 1] = 2.5
    np.save(tmp_path / "north.npy", points)
    with pytest.raises(DataError, match=r"^3 of the 100 rows of north\.npy"):
        published(tmp_path, functions=functions)
    assert not (tmp_path / "north.ledger").exists()
    made = published(tmp_path, functions=functions, clip=True)
    assert (made.clipped, made.rows) == (3, 100)
    assert made.entry.out_of_bounds == "clip"
    # The number is the publisher's own: nothing of it is in the entry.
    assert "clipped" not in repr(made.entry)

    clipped, other = np.clip(points, None, [1.0, 2.0]), tmp_path / "other"
    other.mkdir()
    np.save(other / "north.npy", clipped)
    again = published(other, functions=functions)
    assert np.array_equal(again.entry.release.noisy_mean().mean, made.entry.release.noisy_mean().mean)


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
def test_float32_values_at_a_bound_that_it_rounds_to_are_within_it(tmp_path: Path, functions: Any) -> None:
    narrow = functions.model_copy(update={"lower": 0.0, "upper": 0.1})
    assert float(np.float32(0.1)) > 0.1
    np.save(tmp_path / "north.npy", np.full((300, 2), 0.1, dtype=np.float32))
    made = published(tmp_path, functions=narrow)
    assert made.clipped == 0
    np.save(tmp_path / "south.npy", np.full((300, 2), 0.1))
    same = published(tmp_path, "south", functions=narrow, noise=ProtectingNoise(7, "north"))
    # The same cells, and for features the same up to what float32 leaves of the value.
    means = [each.entry.release.noisy_mean().mean for each in (made, same)]
    assert np.allclose(means[0], means[1], rtol=0.0, atol=1e-3 if functions is FEATURES else 0.0)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (np.array([[0.1, np.nan], [0.2, 0.3]]), "missing"),
        (np.array([[0.1, np.inf], [0.2, 0.3]]), "infinite"),
        (np.zeros((3, 3)), "3 feature columns"),
        (np.zeros((0, 2)), "no rows"),
    ],
)
@pytest.mark.parametrize("clip", [False, True])
def test_data_that_cannot_be_used_are_refused_before_a_charge(
    tmp_path: Path, content: Any, why: str, clip: bool
) -> None:
    np.save(tmp_path / "north.npy", content)
    with pytest.raises(DataError, match=why):
        published(tmp_path, clip=clip)
    assert not (tmp_path / "north.ledger").exists()


def test_synthetic_points_are_made_of_the_noisy_mean_within_the_bounds(tmp_path: Path) -> None:
    made = published(tmp_path, points=20, epsilon=4.0)
    release = read_entry(made.path).release
    assert isinstance(release, KmeRelease)
    assert release.points is not None
    assert release.weights is not None
    assert release.points.shape == (20, 2)
    phi = feature_map_of(FEATURES).hash(release.points) * 2.0**-15
    mean = release.noisy_mean()
    off = float(np.sum((release.weights @ phi - mean.mean) ** 2))
    # No further from the released mean than its own noise is from the true one.
    assert off < 2.0 * len(mean.mean) * mean.variance
    assert made.as_json()["points"] == 20


@pytest.mark.parametrize(
    "changes",
    [
        {"points": 10_001},
        {"name": "Nord"},
        {"epsilon": 1e12},
        {"epsilon": 1e-20},
        {"epsilon": 0.0},
        {"delta": 0.0},
        {"functions": HASHES, "epsilon": 1e9, "delta": 0.0},
        {"functions": HASHES, "epsilon": 1e-20, "delta": 0.0},
        {"points": 5, "functions": HASHES},
        {"points": 5, "functions": FEATURES.model_copy(update={"map": "cosine"})},
        {"functions": FEATURES.model_copy(update={"dimension": 4096, "columns": 100_000, "upper": 1.0})},
        {"functions": HASHES.model_copy(update={"rows": 2**19, "columns": 1000, "upper": 1.0})},
    ],
)
def test_what_no_entry_can_have_is_refused_before_a_charge(tmp_path: Path, changes: dict[str, Any]) -> None:
    np.save(tmp_path / "north.npy", np.zeros((3, changes.get("functions", FEATURES).columns), dtype=np.uint8))
    with pytest.raises(ConfigError):
        published(tmp_path, **{"name": "north", **changes})
    assert list(tmp_path.glob("*.ledger")) == []


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_delta_that_is_no_guarantee_for_the_rows_is_refused_before_a_charge(
    tmp_path: Path, functions: Any, neighbours: Neighbours
) -> None:
    """The number of rows may be private: the error does not state it."""
    np.save(tmp_path / "north.npy", points_about((0.3, 0.5), 128, seed=1))
    changes: dict[str, Any] = {"functions": functions, "neighbours": neighbours}
    for delta in (1 / 128, 0.5):
        with pytest.raises(ConfigError, match="not below 1 over the number of rows of the data") as refused:
            published(tmp_path, delta=delta, **changes)
        assert "128" not in str(refused.value)
    assert list(tmp_path.glob("*.ledger")) == []
    published(tmp_path, delta=0.5, noise=SimulatedNoise(1, "north"), **changes)
    published(tmp_path, delta=1 / 129, **changes)


class NoNoise(SimulatedNoise):
    """A source whose noise is 0: a release is its bare sum."""

    def draw(self, request: Draw) -> Any:
        return np.zeros_like(super().draw(request))


def bare(place: Path, points: Any, functions: Any, neighbours: Neighbours) -> Any:
    """The vector of whole numbers that noise is added to, and the release."""
    place.mkdir()
    np.save(place / "north.npy", points)
    release = published(
        place, functions=functions, neighbours=neighbours, noise=NoNoise(1, "n")
    ).entry.release
    if isinstance(release, KmeRelease):
        vector = release.total.astype(np.float64)
        size = release.count if release.count_unit else 0
        return np.append(vector, size), release
    return release.counts.astype(np.float64), release


@pytest.mark.parametrize("functions", [FEATURES, HASHES], ids=["kme", "race"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_neighbouring_datasets_differ_by_the_sensitivity_that_is_charged_at_most(
    tmp_path: Path, functions: Any, neighbours: Neighbours
) -> None:
    points = points_about((0.3, 0.5), 40, seed=1)
    other = points[:-1].copy()
    if neighbours is Neighbours.SUBSTITUTE_ONE:
        other = np.vstack([other, [[1.0, 2.0]]])
    (one, release), (two, _) = (
        bare(tmp_path / name, data, functions, neighbours) for name, data in (("one", points), ("two", other))
    )
    (cost, *_) = release.costs(neighbours)
    moved = np.abs(one - two)
    assert moved.any()
    if isinstance(release, KmeRelease):
        assert 0.3 * cost.sensitivity < np.linalg.norm(moved) <= cost.sensitivity
    else:
        # One cell of a row more or less, or two of them; the noise is Gaussian here, δ being positive.
        assert np.linalg.norm(moved) <= cost.sensitivity
        assert moved.sum() <= round(cost.sensitivity**2)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with data, a key and a session file, in which verbs run."""
    monkeypatch.chdir(tmp_path)
    np.savez("north.npz", features=points_about((0.3, 0.5), 300, seed=1))
    write_secret(Path("north.key"), key_of("north"))
    Path("session.toml").write_text(text({"features.columns": 2, "features.upper": [1.0, 2.0]}))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hushbid", *arguments])
        with pytest.raises(SystemExit) as ending:
            main()
    said = capsys.readouterr()
    return int(ending.value.code or 0), said.out, said.err


COMMON = ("north.npz", "--name", "north", "--neighbours", "add-remove-one", "--epsilon", "1")
BOUNDS = ("--lower", "0", "--upper", "1,2")
PYTHON: Any = {"name": "north", "neighbours": "add-remove-one", "epsilon": 1.0}


@pytest.mark.parametrize(
    "arguments",
    [
        ("kme", *COMMON, "--seed", "3", "--gamma", "2", *BOUNDS),
        ("kme", *COMMON, "--session", "session.toml"),
        ("race", *COMMON, "--bandwidth", "0.5", *BOUNDS),
        ("race", *COMMON, "--family", "srp", "--power", "3", "--width", "8", "--delta", "0", *BOUNDS),
    ],
    ids=["kme", "kme-session", "race", "race-srp"],
)
def test_the_verbs_publish_and_verify(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, out, _ = run(capsys, "publish", *arguments, "--json")
    assert code == 0
    made = json.loads(out)
    assert made["kind"] == arguments[0]
    assert made["spent"] <= 1.0
    assert Path(made["ledger"]) == Path("north.npz.ledger")
    code, out, _ = run(capsys, "publish", "verify", ".", "--json")
    assert code == 0
    checked = json.loads(out)["entries"]
    assert [entry["file"] for entry in checked] == [made["entry"]]
    assert checked[0]["fingerprint"] == made["fingerprint"] == key_of("north").public.fingerprint
    code, out, _ = run(capsys, "publish", *arguments)
    assert code == 0
    assert "add-remove-one" in out
    assert len(entries(place)) == 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("kme", *COMMON, "--gamma", "2"), "not given: seed, lower, upper"),
        (("race", *COMMON, "--bandwidth", "1"), "not given: lower, upper"),
        (("race", *COMMON, *BOUNDS), "the options: the families l2 and l1 need a bandwidth"),
        (("kme", *COMMON, "--session", "session.toml", "--gamma", "2"), "options too: gamma"),
        (("kme", *COMMON, "--session", "session.toml", "--seed", "2"), "seed of its own"),
        (("kme", *COMMON, "--seed", "3", "--gamma", "2", "--lower", "a", "--upper", "1"), "not numbers"),
        (("kme", *COMMON[:-1], "-1", "--seed", "3", "--gamma", "2", *BOUNDS), "epsilon"),
        (("kme", *COMMON[:3], *COMMON[5:], "--session", "session.toml"), "neighbours"),
        (("kme", *COMMON, "--session", "session.toml", "--key", "none.key"), "none.key"),
        (("verify", "north.npz"), "not a catalogue entry"),
        (("verify", "."), "no entry"),
    ],
)
def test_a_bad_command_line_ends_with_code_4_and_charges_nothing(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    code, _, said = run(capsys, "publish", *arguments)
    assert code == 4
    assert why in said
    assert not (place / "north.npz.ledger").exists()


def test_who_publishes_too_few_points_to_tell_from_none_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("kme", *COMMON[:-1], "0.001", "--session", "session.toml", "--json")
    code, out, said = run(capsys, "publish", *arguments)
    assert code == 0
    made = json.loads(out)
    assert ("WARNING" in said) is (made["size"] < max(1.0, 2.0 * made["size_deviation"]))
    assert "WARNING" not in run(capsys, "publish", "kme", *COMMON, "--session", "session.toml")[2]


def test_a_sealed_session_s_catalogue_has_a_public_map_of_its_own(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sealed = {
        "features.columns": 2,
        "features.upper": [1.0, 2.0],
        "features.seed": None,
        "acquisition.rule": "sealed",
    }
    Path("sealed.toml").write_text(text(sealed))
    code, _, said = run(capsys, "publish", "kme", *COMMON, "--session", "sealed.toml")
    assert code == 4
    assert "secret" in said
    code, _, _ = run(capsys, "publish", "kme", *COMMON, "--session", "sealed.toml", "--seed", "5")
    assert code == 0
    (path,) = entries(place)
    release = read_entry(path).release
    assert isinstance(release, KmeRelease)
    assert release.features.seed == 5


TABLES = """
[[columns]]
name = "age"
kind = "integer"
lower = 0
upper = 10
missing = 5
[[columns]]
name = "smokes"
kind = "category"
categories = ["yes", "no"]
"""


@pytest.mark.usefixtures("place")
def test_tables_are_read_by_the_session_s_columns_in_whatever_order_they_have_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = tomllib.loads(text({"features.seed": 3}))
    for key in ("columns", "lower", "upper"):
        values["features"].pop(key, None)
    values["target"] = {"mechanism": "exact"}
    Path("tables.toml").write_text(tomli_w.dumps(values) + TABLES)
    rows = [("" if age == 3 else age, "yes" if age % 3 else "no") for age in (*range(8),) * 50]
    Path("north.csv").write_text("age,smokes\n" + "".join(f"{age},{smokes}\n" for age, smokes in rows))
    Path("south.csv").write_text("smokes,age\n" + "".join(f"{smokes},{age}\n" for age, smokes in rows))
    write_secret(Path("south.key"), key_of("south"))
    for name in ("north", "south"):
        code, _, said = run(
            capsys, "publish", "kme", f"{name}.csv", "--name", name, "--neighbours", "add-remove-one",
            "--epsilon", "20", "--session", "tables.toml",
        )  # fmt: skip
        assert code == 0, said
    first, second = (read_entry(path) for path in entries(Path()))
    assert first.columns == second.columns
    code, out, said = run(
        capsys,
        "screen",
        ".",
        "--session",
        "tables.toml",
        "--validation",
        "south.csv",
        "--unaccounted",
        "--json",
    )
    assert code == 0, said
    found = json.loads(out)
    assert not found["refused"]
    assert all(abs(each["mmd2"]) < 0.02 for each in found["owners"]), found["owners"]


@pytest.mark.usefixtures("place")
def test_an_entry_with_the_columns_in_another_order_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{row % 7 / 7},{row % 5 / 5}\n" for row in range(300))
    Path("north.csv").write_text(f"a,b\n{rows}")
    Path("validation.csv").write_text(f"b,a\n{rows}")
    code, _, said = run(
        capsys, "publish", "kme", "north.csv", *COMMON[1:], "--seed", "3", "--gamma", "2", *BOUNDS
    )
    assert code == 0, said
    code, _, said = run(capsys, "screen", ".", "--validation", "validation.csv", "--unaccounted")
    assert code == 4
    assert "it has the columns in the order a, b, D_v in b, a" in " ".join(said.split())


@pytest.mark.parametrize("seed", [2**63, 2**64])
def test_a_seed_that_no_entry_can_have_is_refused_before_a_charge(
    place: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    Path("sealed.toml").write_text(
        text(
            {
                "features.columns": 2,
                "features.upper": [1.0, 2.0],
                "features.seed": None,
                "acquisition.rule": "sealed",
            }
        )
    )
    for arguments in (
        ("kme", *COMMON, "--session", "sealed.toml"),
        ("kme", *COMMON, "--gamma", "2", *BOUNDS),
        ("race", *COMMON, "--bandwidth", "0.5", *BOUNDS),
    ):
        code, _, said = run(capsys, "publish", *arguments, "--seed", str(seed))
        assert code == 4
        assert "'--seed'" in said
        assert f"should be less than or equal to {2**63 - 1}" in said
        assert not (place / "north.npz.ledger").exists()
        assert entries(place) == []
    for options in (
        PublishKme("north.npz", **PYTHON, session="sealed.toml", seed=seed),
        PublishKme("north.npz", **PYTHON, gamma=2.0, lower="0", upper="1", seed=seed),
        PublishRace("north.npz", **PYTHON, bandwidth=0.5, lower="0", upper="1", seed=seed),
    ):
        with pytest.raises(ConfigError, match=f"seed: should be less than or equal to {2**63 - 1}"):
            options.publish(place)
        assert not (place / "north.npz.ledger").exists()


def test_over_budget_ends_with_code_1(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("publish", "kme", *COMMON, "--session", "session.toml", "--budget-epsilon", "0.5", "--json")
    code, out, _ = run(capsys, *arguments)
    assert code == 1
    assert json.loads(out)["error"]["kind"] == "BudgetExceeded"
    assert entries(place) == []
