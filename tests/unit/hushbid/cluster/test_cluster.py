"""The cluster file: its content, what its dataset adds, and the directory made from it for a run."""

from __future__ import annotations

import stat
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.cluster.data import spread
from hushbid.cluster.file import Cluster, found_cluster, open_cluster
from hushbid.protocol.config.loading import load_toml, validated
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import SessionFile, TimeoutSection
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.runtime.keys import new_keypair, read_secret
from hushbid.protocol.session.session import open_session
from hushbid.running.directory import prepare
from hushbid.running.fork_server import party_environment
from hushbid.running.simulate import simulate
from tests.conftest import ROOT

CONFIGS = ROOT / "configs"
DIGITS = CONFIGS / "digits" / "cluster.toml"
ROUNDS = CONFIGS / "digits" / "sealed.toml"
DIGITS_OWNERS = ("digits-01", "digits-34", "digits-56", "digits-78", "digits-92")


def test_an_example_is_found_by_its_name_and_a_file_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert found_cluster(Path("digits")).samefile(DIGITS)
    assert found_cluster(Path("digits.toml")) == Path("digits.toml")
    with pytest.raises(ConfigError, match="unknown: no such file, and no example of that name"):
        found_cluster(Path("unknown"))
    Path("digits").mkdir()  # no cluster file
    assert found_cluster(Path("digits")).samefile(DIGITS)
    Path("digits").rmdir()
    Path("digits").touch()
    assert found_cluster(Path("digits")) == Path("digits")


def test_a_directory_stands_for_the_cluster_file_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("purchase").mkdir()
    for path in (Path("purchase"), tmp_path / "purchase"):
        with pytest.raises(ConfigError, match=r"purchase is a directory without cluster\.toml"):
            found_cluster(path)
    (tmp_path / "purchase" / "cluster.toml").touch()
    for path in (Path("purchase"), tmp_path / "purchase"):
        assert found_cluster(path) == path / "cluster.toml"


def files_cluster(place: Path, **changes: Any) -> Path:
    """A cluster file with an existing file for each party; `changes` replace sections, None drops."""
    generator = np.random.default_rng(0)
    for name, rows in (("north", 20), ("south", 12), ("test", 10)):
        np.savez(place / f"{name}.npz", features=generator.random((rows, 2)), labels=np.arange(rows) % 2)
    for name in ("validation", "seed"):
        np.savez(place / f"{name}.npz", features=generator.random((8, 2)))
    sections: dict[str, Any] = {
        "session": {"name": "files", "points": 5, "allow_nonprivate": True},
        "features": {"gamma": 1.0, "seed": 1, "columns": 2, "dimension": 8},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "owners": {"south": {"data": "south.npz"}, "north": {"data": "north.npz"}},
        "consumer": {"validation": "validation.npz", "seed_set": "seed.npz", "test": "test.npz"},
    }
    sections = {name: table for name, table in (sections | changes).items() if table is not None}
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(sections))
    return path


@pytest.fixture(scope="module")
def digits() -> Cluster:
    return open_cluster(DIGITS)


def test_a_drawn_seed_set_is_in_place_of_the_dataset_s() -> None:
    cluster = open_cluster(DIGITS, settings=["consumer.seed_points=9", "consumer.seed=3"])
    data = cluster.load()
    assert data.seed_set.features.shape == (9, 64)
    assert data.seed_set.features.dtype == np.uint8
    assert data.seed_set.features.max() <= 16
    assert np.array_equal(cluster.load().seed_set.features, data.seed_set.features)


def test_a_drawn_seed_set_stands_for_a_file_that_is_not_named(tmp_path: Path) -> None:
    path = files_cluster(tmp_path, consumer={"validation": "validation.npz", "seed_points": 30})
    cluster = open_cluster(path)
    assert cluster.load().seed_set.features.shape == (30, 2)
    assert simulate(cluster, models=False).points_delivered == 5
    prepared = prepare(cluster, tmp_path / "runs")
    own = load_toml(ConsumerFile, prepared.path / "parties" / "consumer" / "party.toml")
    assert (own.seed_set, own.seed_points) == (None, 30)


def test_the_consumer_of_a_run_directory_draws_its_own(tmp_path: Path) -> None:
    prepared = prepare(open_cluster(DIGITS, settings=["consumer.seed_points=9"]), tmp_path)
    place = prepared.path / "parties" / "consumer"
    assert load_toml(ConsumerFile, place / "party.toml").seed_points == 9
    assert not (place / "seed-set.npz").exists()


# -- what a file says ---------------------------------------------------------------------------------


def test_a_dataset_gives_the_features_that_the_file_leaves_out(digits: Cluster) -> None:
    features = digits.features
    assert (features.columns, features.lower, features.upper, features.gamma) == (64, 0.0, 16.0, 0.1)
    assert digits.owners == DIGITS_OWNERS


def test_what_the_file_says_of_the_features_goes_before_the_dataset() -> None:
    cluster = open_cluster(DIGITS, settings=["features.gamma=0.5", "features.upper=20"])
    assert (cluster.features.gamma, cluster.features.upper, cluster.features.columns) == (0.5, 20.0, 64)


def test_a_setting_may_be_text_without_quotes() -> None:
    cluster = open_cluster(DIGITS, settings=["session.name=other", "session.min_owners = 3"])
    assert (cluster.file.session.name, cluster.file.session.min_owners) == ("other", 3)


def test_settings_may_be_python_s_own_values() -> None:
    settings = {"session.points": np.int64(40), "session.name": "7", "features.upper": np.float64(20)}
    cluster = open_cluster(DIGITS, settings=settings)
    session = cluster.file.session
    assert (session.points, session.name, cluster.features.upper) == (40, "7", 20.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"session.btch": 5}, r"session\.btch: unknown key, did you mean 'batch'\?"),
        ({"session.batch": "five"}, r"session\.batch: should be a whole number"),
        ({"session.batch": None}, r"setting 'session\.batch' is neither a number nor text"),
        ({"session": {"batch": 5}}, "setting 'session' is not of the form"),
        ({"session.": 5}, r"setting 'session\.' is not of the form"),
        (["session=5"], "setting 'session' is not of the form"),
        (["owners.zeta.data=x.csv"], "setting 'owners.zeta.data' is of a table within 'owners'"),
        (["session.batch"], r"setting 'session\.batch' is not of the form"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_cluster(DIGITS, settings=settings)


def test_options_of_the_dataset_reach_it() -> None:
    cluster = open_cluster(DIGITS, settings=["dataset.owner_points=7", "dataset.seed_points=5"])
    data = cluster.load()
    assert {len(owner) for owner in data.owners.values()} == {7}
    assert len(data.seed_set) == 5


def test_the_data_flag_goes_before_the_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="elsewhere"):
        open_cluster(
            CONFIGS / "mnist" / "cluster.toml",
            data=tmp_path / "elsewhere.npz",
            settings=["dataset.path=/nowhere"],
        )


def test_relative_paths_start_at_the_cluster_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files_cluster(tmp_path, run={"directory": "out"})
    monkeypatch.chdir("/")
    cluster = open_cluster(path)
    assert cluster.file.run.directory == tmp_path / "out"
    assert {name: len(owner) for name, owner in cluster.load().owners.items()} == {"north": 20, "south": 12}
    assert cluster.owners == ("north", "south")


BAD = [
    pytest.param({"surprise": {"x": 1}}, "surprise", id="unknown section"),
    pytest.param({"session": {"name": "x", "points": 5, "pionts": 6}}, r"session\.pionts", id="unknown key"),
    pytest.param({"session": {"name": "x"}}, r"session\.points", id="missing key"),
    pytest.param({"session": {"name": "x", "points": "5"}}, r"session\.points", id="wrong type"),
    pytest.param({"acquisition": None}, "acquisition", id="missing section"),
    pytest.param({"owners": None, "consumer": None}, "no data", id="no data"),
    pytest.param({"owners": None}, r"owners\.NAME\.data is missing", id="no owners"),
    pytest.param(
        {"consumer": {"validation": "v.npz"}},
        r"consumer\.seed_set \(or seed_points\) is missing",
        id="no seed set",
    ),
    pytest.param(
        {"consumer": {"validation": "v.npz", "seed_set": "s.npz", "seed_points": 5}},
        "leave one of them out",
        id="two seed sets",
    ),
    pytest.param(
        {"consumer": {"validation": "v.npz", "seed_points": 0}}, r"consumer\.seed_points", id="no points"
    ),
    pytest.param(
        {"consumer": None},
        r"validation, consumer\.seed_set \(or seed_points\) are missing",
        id="no consumer's files",
    ),
    pytest.param({"owners": {"north": "north.npz"}}, r"owners\.north: should be a table", id="no table"),
    pytest.param(
        {"owners": {"north": {"dta": "x"}}}, r"north\.dta: unknown key, did you mean 'data'", id="nested key"
    ),
    pytest.param({"dataset": {"name": "digits"}}, "not both", id="dataset and files"),
    pytest.param({"features": {"seed": 1, "columns": 2}}, "gamma", id="no gamma and nobody to suggest one"),
    pytest.param({"features": {"seed": 1, "colums": 2, "gamma": 1.0}}, "colums", id="unknown feature key"),
    pytest.param({"owners": {"Bad Name": {"data": "x.npz"}}}, "Bad Name", id="owner's name"),
    pytest.param({"run": {"durability": "hope"}}, r"run\.durability", id="durability"),
]


@pytest.mark.parametrize(("changes", "named"), BAD)
def test_a_bad_cluster_file_is_refused_by_the_key(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    path = files_cluster(tmp_path, **changes)
    with pytest.raises(ConfigError, match=named) as refusal:
        open_cluster(path)
    assert str(path) in refusal.value.what


@pytest.mark.parametrize("setting", ["points=5", "session.points", "=1", "session.=1", ".points=1"])
def test_a_setting_that_names_no_key_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        open_cluster(DIGITS, settings=[setting])


def test_a_dataset_path_for_named_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no dataset"):
        open_cluster(files_cluster(tmp_path), data=tmp_path)


def test_an_unknown_dataset_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="digits, mnist"):
        open_cluster(DIGITS, settings=["dataset.name=imagenet"])


# -- the shipped configurations -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rounds"), [("cluster", 1), ("sealed", 10), ("gaussian", 10), ("published", 10)]
)
def test_a_shipped_digits_cluster_can_be_simulated(name: str, rounds: int) -> None:
    cluster = open_cluster(CONFIGS / "digits" / f"{name}.toml", settings=["session.points=10"])
    result = simulate(cluster, models=False)
    assert (result.points_delivered, result.rounds) == (10, rounds)


@pytest.mark.parametrize("name", ["mnist", "insurance"])
def test_a_shipped_cluster_without_its_data_says_where_to_get_them(name: str) -> None:
    with pytest.raises(ConfigError, match="needs a path") as refusal:
        open_cluster(CONFIGS / name / "cluster.toml")
    assert "docs/data.md" in refusal.value.advice


def test_the_files_for_separate_machines_hold_once_keys_are_filled_in() -> None:
    separate = CONFIGS / "separate"
    values = tomllib.loads((separate / "session.toml").read_text())
    roster = values["roster"]
    roster |= {party: new_keypair().public.text for party in ("curator", "consumer")}
    roster["owners"] = {owner: new_keypair().public.text for owner in roster["owners"]}
    session = open_session(validated(SessionFile, values, where="session.toml"))
    owner = load_toml(OwnerFile, separate / "owner.toml")
    consumer = load_toml(ConsumerFile, separate / "consumer.toml")
    load_toml(CuratorFile, separate / "curator.toml")
    assert owner.name in session.file.owners
    assert session.file.rows is not None, "columns go by their names, whatever order a party has them in"
    assert owner.columns.label == consumer.columns.label
    assert session.file.session.labels == "any"


# -- the directory of a run ------------------------------------------------------------------------------


def test_every_party_gets_its_own_things_in_a_directory_of_its_own(digits: Cluster, tmp_path: Path) -> None:
    prepared = prepare(digits, tmp_path)
    assert [party.name for party in prepared.parties] == ["curator", "consumer", *DIGITS_OWNERS]
    for party in prepared.parties:
        assert stat.S_IMODE(party.directory.stat().st_mode) == 0o700
        data = {"owner": {"data.npz"}, "consumer": {"validation.npz", "seed-set.npz", "test.npz"}}
        own = {"session.toml", "party.toml", "secret.key", "state"} | data.get(party.role, set())
        assert {path.name for path in party.directory.iterdir()} == own
        for path in party.directory.iterdir():
            if path.is_file():
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_roster_has_the_fresh_public_key_of_each_party(digits: Cluster, tmp_path: Path) -> None:
    prepared, another = prepare(digits, tmp_path), prepare(digits, tmp_path)
    roster = prepared.session.roster
    public = {"curator": roster.curator, "consumer": roster.consumer} | roster.owners
    assert len(set(public.values())) == 7
    assert set(public.values()).isdisjoint(another.session.roster.owners.values())
    for party in prepared.parties:
        assert read_secret(party.directory / "secret.key").public.text == public[party.name]
        assert load_toml(SessionFile, party.directory / "session.toml") == prepared.session


def test_private_files_name_nothing_of_other_parties(digits: Cluster, tmp_path: Path) -> None:
    prepared = prepare(digits, tmp_path)
    names = [party.name for party in prepared.parties]
    for party in prepared.parties:
        text = (party.directory / "party.toml").read_text()
        assert [name for name in names if name in text and name != party.name] == []
        assert str(tmp_path) not in text


def test_a_run_has_the_identifier_of_its_simulation_where_noise_is_simulated(tmp_path: Path) -> None:
    # All that is computed follows from it: address and keys do not count.
    simulated = open_cluster(
        DIGITS,
        settings=["noise.source=simulated", "noise.seed=1", "session.allow_nonprivate=true"],
    )
    first, second = prepare(simulated, tmp_path).session, prepare(simulated, tmp_path).session
    assert first.network.address != "tcp://127.0.0.1:*"
    assert first.digest() == second.digest()


def test_a_run_with_secure_noise_is_a_session_of_its_own(digits: Cluster, tmp_path: Path) -> None:
    # Points are sealed to its keys, which are fresh.
    first, second = prepare(digits, tmp_path).session, prepare(digits, tmp_path).session
    assert first.noise.source == "secure"
    assert first.digest() != second.digest()


def test_an_earlier_run_is_never_touched(digits: Cluster, tmp_path: Path) -> None:
    paths = [prepare(digits, tmp_path).path for _ in range(3)]
    assert [path.name for path in paths] == ["digits-1", "digits-2", "digits-3"]
    (tmp_path / "digits-5").mkdir()
    assert prepare(digits, tmp_path).path.name == "digits-4"
    assert prepare(digits, tmp_path).path.name == "digits-6"


def test_an_address_with_a_port_is_kept(tmp_path: Path) -> None:
    cluster = open_cluster(DIGITS, settings=["network.address=tcp://127.0.0.1:23456"])
    assert prepare(cluster, tmp_path).session.network.address == "tcp://127.0.0.1:23456"


def test_a_run_of_many_owners_waits_longer_than_the_cluster_file_leaves_open(tmp_path: Path) -> None:
    """All of 200 processes start at once on one machine: after the usual 10 s many would be out of it."""
    usual = TimeoutSection()
    owners = {f"owner-{number}": {"data": "north.npz"} for number in range(40)}
    given = {"round": 11.0, "comeback": 3.0}
    for many, patience in (
        (owners, {"enrolment": 80.0, "abandon": 80.0, "silence": 10.0, "closing": 20.0}),
        ({}, {}),
    ):
        changes = {"timeouts": given} | ({"owners": many} if many else {})
        prepared = prepare(open_cluster(files_cluster(tmp_path, **changes)), tmp_path / "runs")
        assert prepared.session.timeouts == usual.model_copy(update=given | patience)
        for party in prepared.parties:
            assert load_toml(SessionFile, party.directory / "session.toml") == prepared.session


def test_an_insecure_session_has_no_keys(tmp_path: Path) -> None:
    settings = ["network.address=tcp://127.0.0.1:*", "network.insecure=true"]
    prepared = prepare(open_cluster(DIGITS, settings=settings), tmp_path)
    assert set(prepared.session.roster.owners.values()) == {""}
    assert not list(prepared.path.rglob("*.key"))


def test_a_place_that_cannot_be_written_is_a_configuration_error(digits: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="--output"):
        prepare(digits, tmp_path / "file" / "runs")


def test_a_directory_that_could_not_be_filled_is_taken_away(
    digits: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hushbid.running.directory.furnish", fail)
    with pytest.raises(ConfigError, match="No space left"):
        prepare(digits, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_named_files_stay_where_they_are(tmp_path: Path) -> None:
    owners = {"south": {"data": "south.npz"}, "north": {"data": "north.npz", "display": "Hôpital Nord"}}
    named = open_cluster(files_cluster(tmp_path, owners=owners))
    prepared = prepare(named, tmp_path / "runs")
    north = load_toml(OwnerFile, prepared.path / "parties" / "north" / "party.toml")
    assert north.data == tmp_path / "north.npz"
    assert named.display == {"north": "Hôpital Nord"}, "which is the operator's, and in no party's file"
    assert "south" not in (prepared.path / "parties" / "north" / "party.toml").read_text()


def test_a_party_gets_nothing_of_the_environment_that_it_does_not_need() -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C.UTF-8",
        "OPENBLAS_CORETYPE": "Haswell",
        "HUSHBID_DATA": "/data/of/everybody",
        "SECRET_TOKEN": "x",
        "PYTHONPATH": "/extra",
    }
    got = party_environment(given)
    assert got["PYTHONPATH"].split(":") == [str(ROOT), "/extra"]
    assert got == {
        "PATH": "/bin",
        "LC_ALL": "C.UTF-8",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
        "PYTHONPATH": got["PYTHONPATH"],
    }
    assert party_environment({"OMP_NUM_THREADS": "4"})["OMP_NUM_THREADS"] == "4"


# -- simulating many owners ------------------------------------------------------------------------------


def test_spreading_deals_every_point_to_one_owner(digits: Cluster) -> None:
    data = digits.load()
    wide = spread(data, 40, None, seed=1)
    assert len(wide.owners) == 40
    assert list(wide.owners) == sorted(wide.owners)

    def rows(owners: Any) -> list[bytes]:
        return sorted(row.tobytes() for owner in owners.values() for row in owner.features)

    assert rows(wide.owners) == rows(data.owners)


def test_a_spread_owner_has_points_of_one_of_the_dataset_s_owners(digits: Cluster) -> None:
    wide = spread(digits.load(), 12, 30, seed=1)
    assert {len(owner) for owner in wide.owners.values()} == {30}
    groups = [set(np.asarray(owner.labels).tolist()) for owner in wide.owners.values()]
    assert all(group <= {0, 1} for group in groups[::5])
    assert all(group <= {3, 4} for group in groups[1::5])


def test_spreading_to_fewer_owners_leaves_the_others_out(digits: Cluster) -> None:
    data = digits.load()
    wide = spread(data, 2, None, seed=1)
    assert [len(owner) for owner in wide.owners.values()] == [len(data.owners[n]) for n in DIGITS_OWNERS[:2]]


def test_too_few_points_to_deal_out_is_an_error_that_says_what_to_do(digits: Cluster) -> None:
    with pytest.raises(ConfigError, match="--owner-points"):
        spread(digits.load(), 2000, None, seed=1)


def test_rounds_that_bring_nothing_are_told() -> None:
    cluster = open_cluster(ROUNDS, settings=["session.points=30", "session.batch=3"])
    result = simulate(cluster, owners=3, owner_points=4, models=False)
    assert (result.points_delivered, result.rounds) == (12, 10)
    assert result.course is not None
    assert (result.course.last, result.course.rounds) == (4, 10)
    assert result.course.warnings()[-1].startswith("Rounds 5 to 10 brought no point")


def test_points_of_owners_without_their_number_are_refused(digits: Cluster) -> None:
    with pytest.raises(ConfigError, match="--owners"):
        simulate(digits, owner_points=3)


def test_a_simulation_records_where_it_is_told_and_never_over_another(tmp_path: Path) -> None:
    cluster = open_cluster(DIGITS, settings=["session.points=3"])
    result = simulate(cluster, record=tmp_path / "record", models=False)
    assert sorted(result.transcripts) == sorted(["curator", "consumer", *DIGITS_OWNERS])
    assert all(path.is_file() for path in result.transcripts.values())
    with pytest.raises(ConfigError, match="not empty"):
        simulate(cluster, record=tmp_path / "record")


def test_a_limit_on_open_files_is_met_before_the_simulation_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (8, 64))
    with pytest.raises(ConfigError, match="71 open files"):
        simulate(open_cluster(DIGITS), record=tmp_path / "record")
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({}, "data-1.npz, of beta, has no labels, and the validation set has labels"),
        ({"labels": np.arange(9), "labelled": np.arange(9) > 0}, "data-1.npz, of beta, has rows without a"),
        ({"labels": np.arange(9)}, None),
    ],
    ids=["none", "some", "all"],
)
def test_owners_have_labels_where_the_consumer_has(
    tmp_path: Path, labels: dict[str, Any], says: str | None
) -> None:
    rows = np.random.default_rng(0).random((4, 9, 2))
    np.savez(tmp_path / "data-0.npz", features=rows[0], labels=np.arange(9))
    np.savez(tmp_path / "data-1.npz", features=rows[1], **labels)
    np.savez(tmp_path / "wanted.npz", features=rows[2], labels=np.arange(9))
    np.savez(tmp_path / "seeds.npz", features=rows[3])
    values: dict[str, Any] = {
        "session": {"name": "s", "points": 2, "allow_nonprivate": True},
        "features": {"gamma": 1.0, "columns": 2, "seed": 1},
        "target": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
        "owners": {"alpha": {"data": "data-0.npz"}, "beta": {"data": "data-1.npz"}},
        "consumer": {"validation": "wanted.npz", "seed_set": "seeds.npz"},
    }
    (tmp_path / "cluster.toml").write_text(tomli_w.dumps(values))
    held = nullcontext() if says is None else pytest.raises(DataError, match=says)
    with held:
        open_cluster(tmp_path / "cluster.toml").load()
    owners = open_cluster(tmp_path / "cluster.toml", settings={"session.labels": "optional"}).load().owners
    assert [*owners] == ["alpha", "beta"]
    if says is not None:
        with pytest.raises(DataError, match=r'requires labels \(session.labels = "any"'):
            simulate(open_cluster(tmp_path / "cluster.toml", settings={"session.labels": "any"}))
