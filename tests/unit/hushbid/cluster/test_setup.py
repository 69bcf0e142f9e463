"""`hushbid setup`: the content of each party's directories; existing files stay."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.cluster.containers import OwnKeys, SetUp, set_up
from hushbid.cluster.file import Cluster, open_cluster
from hushbid.cluster.parties import Party
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import DataColumns, dataset_digest, load_dataset
from hushbid.protocol.errors import ConfigError, KeyFileError
from hushbid.protocol.runtime.keys import new_keypair, read_secret, write_public, write_secret
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from tests.conftest import ROOT

DIGITS = ROOT / "configs" / "digits" / "cluster.toml"
ADDRESS = "tcp://curator:5790"
OWNERS = ("owner-1", "owner-2", "owner-3")
DATA: dict[Role, set[str]] = {
    "curator": set(),
    "owner": {"data.npz"},
    "consumer": {"validation.npz", "seed-set.npz", "test.npz"},
}


@pytest.fixture(scope="module")
def digits() -> Cluster:
    return open_cluster(DIGITS)


def digits_in(place: Path, cluster: Cluster, **options: Any) -> SetUp:
    given: dict[str, Any] = {"address": ADDRESS, "owners": len(OWNERS)} | options
    return set_up(cluster, place / "parties", place / "session" / "session.toml", **given)


def file_of(party: Party) -> CuratorFile | OwnerFile | ConsumerFile:
    """A party's private file, read in its place."""
    path = party.directory / "data" / "party.toml"
    if party.role == "owner":
        return load_toml(OwnerFile, path).resolved(path.parent)
    if party.role == "consumer":
        return load_toml(ConsumerFile, path).resolved(path.parent)
    return load_toml(CuratorFile, path).resolved(path.parent)


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def files_cluster(place: Path, extra: str = "") -> Path:
    """A cluster file with a file for each party beside it."""
    generator = np.random.default_rng(0)
    for name, rows in (("north", 20), ("south", 12), ("west", 9)):
        np.savez(
            place / f"{name}.npz",
            features=generator.random((rows, 2)),
            labels=np.arange(rows) % 2,
            identifiers=np.array([f"{name}/{row}" for row in range(rows)]),
        )
    for name in ("validation", "seed"):
        np.savez(place / f"{name}.npz", features=generator.random((8, 2)))
    path = place / "cluster.toml"
    path.write_text(
        """
        session = { name = "files", points = 5, allow_nonprivate = true }
        features = { gamma = 1.0, seed = 1, columns = 2, dimension = 8 }
        target = { mechanism = "exact" }
        summary = { mechanism = "exact" }
        acquisition = { rule = "ask-all" }
        [owners]
        north = { data = "north.npz", budget = { epsilon = 3.0 } }
        south = { data = "south.npz" }
        west = { data = "west.npz" }
        [consumer]
        validation = "validation.npz"
        seed_set = "seed.npz"
        """
        + extra
    )
    return path


class TestWhatAPartyGets:
    def test_directories_and_files_are_its_own_and_closed_to_others(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        made = digits_in(tmp_path, digits)
        assert made.new
        assert [party.name for party in made.parties] == ["curator", "consumer", *OWNERS]
        for party in made.parties:
            files = {str(path.relative_to(party.directory)) for path in party.directory.rglob("*")}
            data = {f"data/{name}" for name in DATA[party.role]}
            assert files == {"key", "key/secret.key", "data", "data/party.toml", "state"} | data
            for path in [party.directory, *party.directory.rglob("*")]:
                mode = stat.S_IMODE(path.stat().st_mode)
                assert mode == (0o700 if path.is_dir() else 0o600), path
        assert {path.name for path in (tmp_path / "parties").iterdir()} == {p.name for p in made.parties}

    def test_the_session_file_is_public_and_names_everybodys_key(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        made = digits_in(tmp_path, digits)
        path = tmp_path / "session" / "session.toml"
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        session = load_toml(SessionFile, path)
        assert session == made.session
        assert session.network.address == ADDRESS
        public = {"curator": session.roster.curator, "consumer": session.roster.consumer}
        public |= session.roster.owners
        assert {
            party.name: read_secret(party.directory / "key" / "secret.key").public.text
            for party in made.parties
        } == public

    def test_its_file_says_where_its_own_things_lie_wherever_its_directories_are_mounted(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        made = digits_in(tmp_path, digits)
        for party in made.parties:
            text = (party.directory / "data" / "party.toml").read_text()
            assert str(tmp_path) not in text
            assert [other.name for other in made.parties if other != party and other.name in text] == []
            there = tmp_path / "elsewhere" / party.name
            shutil.copytree(party.directory, there)
            file = file_of(replace(party, directory=there))
            assert file.key == there / "key" / "secret.key"
            assert file.state == there / "state"
            assert file.durability == "fsync"
            if isinstance(file, OwnerFile):
                assert file.name == party.name
                assert len(load_dataset(file.data, file.columns.columns())) > 0
            if isinstance(file, ConsumerFile):
                assert file.model == digits.model
                assert all(path.is_file() for path in (file.validation, file.seed_set, file.test) if path)

    def test_no_point_of_another_party_is_in_it(self, digits: Cluster, tmp_path: Path) -> None:
        made = digits_in(tmp_path, digits, owners=7)
        rows = {
            party.name: [
                row.tobytes()
                for path in (party.directory / "data").glob("*.npz")
                for row in load_dataset(path, DataColumns()).features
            ]
            for party in made.parties
        }
        dealt = [row for own in rows.values() for row in own]
        data = digits.load()
        test = [] if data.test is None else [data.test]
        held = [*data.owners.values(), data.validation, data.seed_set, *test]
        assert len(dealt) == sum(len(dataset) for dataset in held), "everything is with somebody"
        assert len(set(dealt)) == len(dealt), "and with nobody else"


class TestAgain:
    def test_nothing_that_is_there_changes(self, digits: Cluster, tmp_path: Path) -> None:
        first = digits_in(tmp_path, digits)
        transcript = tmp_path / "parties" / "owner-1" / "state" / "owner-1.transcript"
        transcript.write_bytes(b"begun")
        ledger = tmp_path / "parties" / "owner-1" / "data" / "data.npz.ledger"
        ledger.write_bytes(b"spent")
        before = contents(tmp_path)
        second = digits_in(tmp_path, digits)
        assert not second.new
        assert second.session == first.session
        assert contents(tmp_path) == before

    @pytest.mark.parametrize(
        "lost",
        [
            "session/session.toml",
            "parties/owner-2",
            "parties/consumer/data/seed-set.npz",
            "parties/curator/key/secret.key",
        ],
    )
    def test_what_a_crash_kept_from_being_made_is_made(
        self, digits: Cluster, tmp_path: Path, lost: str
    ) -> None:
        digits_in(tmp_path, digits)
        everything = contents(tmp_path)
        path = tmp_path / lost
        (shutil.rmtree if path.is_dir() else Path.unlink)(path)
        # The session file is written last: a crash before leaves none.
        (tmp_path / "session" / "session.toml").unlink(missing_ok=True)
        kept = contents(tmp_path)
        digits_in(tmp_path, digits)
        assert contents(tmp_path).keys() == everything.keys()
        assert kept.items() <= contents(tmp_path).items()

    def test_what_was_left_half_written_is_not_taken_for_a_file(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        place = tmp_path / "parties" / "owner-1" / "data"
        place.mkdir(parents=True)
        (place / ".data.npz.partial").write_bytes(b"half")
        digits_in(tmp_path, digits)
        assert {path.name for path in place.iterdir()} == {"data.npz", "party.toml"}

    @pytest.mark.parametrize(
        ("other", "options"),
        [
            (["session.points=100"], {}),
            ([], {"owners": 4}),
            ([], {"address": "tcp://elsewhere:5790"}),
            (["consumer.model=mlp"], {}),
            (["dataset.seed=1"], {}),
        ],
        ids=["settings", "owners", "address", "private file", "data"],
    )
    def test_another_session_is_refused_and_nothing_is_replaced(
        self, digits: Cluster, tmp_path: Path, other: list[str], options: dict[str, Any]
    ) -> None:
        digits_in(tmp_path, digits)
        before = contents(tmp_path)
        with pytest.raises(ConfigError, match="is there already") as caught:
            digits_in(tmp_path, open_cluster(DIGITS, settings=other), **options)
        assert "down --volumes" in caught.value.advice
        assert before.items() <= contents(tmp_path).items()

    def test_a_key_that_others_may_read_is_refused(self, digits: Cluster, tmp_path: Path) -> None:
        digits_in(tmp_path, digits)
        (tmp_path / "parties" / "owner-1" / "key" / "secret.key").chmod(0o644)
        with pytest.raises(KeyFileError, match="others"):
            digits_in(tmp_path, digits)

    def test_a_directory_that_was_open_to_others_is_closed(self, digits: Cluster, tmp_path: Path) -> None:
        for name in ("key", "data", "state"):
            (tmp_path / "parties" / "owner-1" / name).mkdir(parents=True)
            (tmp_path / "parties" / "owner-1" / name).chmod(0o777)
        digits_in(tmp_path, digits)
        for name in ("key", "data", "state"):
            assert stat.S_IMODE((tmp_path / "parties" / "owner-1" / name).stat().st_mode) == 0o700

    def test_another_session_on_the_same_data_is_charged_to_the_same_ledger(self, tmp_path: Path) -> None:
        """Without the session file and the states, which people remove by docs/deploy.md."""
        path = files_cluster(tmp_path)
        digits_in(tmp_path, open_cluster(path))
        ledger = tmp_path / "parties" / "owner-1" / "data" / "data.npz.ledger"
        ledger.write_bytes(b"spent")
        (tmp_path / "session" / "session.toml").unlink()
        for state in (tmp_path / "parties").glob("*/state"):
            shutil.rmtree(state)
        kept = contents(tmp_path / "parties")
        made = digits_in(tmp_path, open_cluster(path, settings=["session.nonce=second"]))
        assert made.new
        assert contents(tmp_path / "parties") == kept


class TestTimeLimits:
    def test_parties_have_the_time_in_which_containers_come_back(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        timeouts = digits_in(tmp_path, digits).session.timeouts
        assert (timeouts.enrolment, timeouts.round, timeouts.comeback) == (300.0, 60.0, 60.0)
        assert timeouts.pause == digits.file.timeouts.pause

    def test_those_of_the_cluster_file_hold(self, tmp_path: Path) -> None:
        cluster = open_cluster(DIGITS, settings=["timeouts.comeback=5.0"])
        timeouts = digits_in(tmp_path, cluster).session.timeouts
        assert (timeouts.round, timeouts.comeback) == (60.0, 5.0)


class TestOwners:
    def test_without_a_number_they_are_those_of_the_cluster(self, digits: Cluster, tmp_path: Path) -> None:
        made = digits_in(tmp_path, digits, owners=None)
        assert made.session.owners == digits.owners
        assert {party.name for party in made.parties} == {"curator", "consumer", *digits.owners}

    def test_ten_are_named_without_leading_zeros(self, digits: Cluster, tmp_path: Path) -> None:
        made = digits_in(tmp_path, digits, owners=10)
        assert set(made.session.owners) == {f"owner-{number}" for number in range(1, 11)}

    def test_whose_points_each_has_is_told(self, tmp_path: Path) -> None:
        cluster = open_cluster(files_cluster(tmp_path))
        made = digits_in(tmp_path, cluster, owners=4)
        assert made.points_of == {
            "owner-1": "north",
            "owner-2": "south",
            "owner-3": "west",
            "owner-4": "north",
        }
        for owner, whose in made.points_of.items():
            held = load_dataset(tmp_path / "parties" / owner / "data" / "data.npz", DataColumns())
            assert held.identifiers is not None
            assert all(str(identifier).startswith(f"{whose}/") for identifier in held.identifiers)

    def test_more_than_there_are_places_for_are_refused_before_anything_is_written(
        self, digits: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a container, where the directories exist and the file system is read-only."""
        for name in ("curator", "consumer", "owner-1", "owner-2"):
            (tmp_path / "parties" / name).mkdir(parents=True)
        monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
        with pytest.raises(ConfigError, match="no directory for owner-3") as caught:
            digits_in(tmp_path, digits)
        assert "HUSHBID_OWNERS" in caught.value.advice
        assert contents(tmp_path) == {}

    def test_that_there_is_no_place_is_said_before_that_there_are_too_few_points(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster = open_cluster(files_cluster(tmp_path))
        for name in ("curator", "consumer", *(f"owner-{number + 1}" for number in range(10))):
            (tmp_path / "parties" / name).mkdir(parents=True)
        monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
        with pytest.raises(ConfigError, match=r"owner-11, .*owner-15 and 485 more") as caught:
            digits_in(tmp_path, cluster, owners=500)
        assert "HUSHBID_OWNERS (`--owners`) to a number from 1 to 10" in caught.value.advice

    def test_who_gets_anothers_points_is_bound_by_that_ones_budget(self, tmp_path: Path) -> None:
        made = digits_in(tmp_path, open_cluster(files_cluster(tmp_path)), owners=4)
        budgets = {
            party.name: load_toml(OwnerFile, party.directory / "data" / "party.toml").budget
            for party in made.parties
            if party.role == "owner"
        }
        # Points of north go to owner-1 and owner-4.
        assert {name for name, budget in budgets.items() if budget is not None} == {"owner-1", "owner-4"}
        assert budgets["owner-4"] is not None
        assert budgets["owner-4"].epsilon == 3.0


class TestNamedFiles:
    def test_they_are_copied_whole_to_the_party_whose_they_are(self, tmp_path: Path) -> None:
        made = digits_in(tmp_path, open_cluster(files_cluster(tmp_path)), owners=None)
        assert made.session.owners == ("north", "south", "west")
        for name in made.session.owners:
            given = load_dataset(tmp_path / f"{name}.npz", DataColumns())
            got = load_dataset(tmp_path / "parties" / name / "data" / "data.npz", DataColumns())
            assert given.identifiers is not None
            assert dataset_digest(got) == dataset_digest(given)

    def test_data_with_a_ledger_of_their_own_are_not_copied_out_of_its_sight(self, tmp_path: Path) -> None:
        cluster = open_cluster(files_cluster(tmp_path, 'ledger = "validation.ledger"\n'))
        with pytest.raises(ConfigError, match="lifetime ledger for consumer"):
            digits_in(tmp_path, cluster)
        assert not (tmp_path / "parties").exists()

    @pytest.mark.parametrize("owners", [None, 2])
    @pytest.mark.parametrize(
        ("file", "whose"), [("south.npz", "south"), ("validation.npz", "consumer"), ("seed.npz", "consumer")]
    )
    def test_data_that_were_charged_are_not_copied_away_from_their_ledger(
        self, tmp_path: Path, file: str, whose: str, owners: int | None
    ) -> None:
        cluster = open_cluster(files_cluster(tmp_path))
        ledger = tmp_path / f"{file}.ledger"
        ledger.touch()
        with pytest.raises(ConfigError, match=rf"{re.escape(str(ledger))} .* {whose}'s data") as caught:
            digits_in(tmp_path, cluster, owners=owners)
        assert "on its own machine" in caught.value.advice
        assert not (tmp_path / "parties").exists()

    @pytest.mark.parametrize("closed", ["north.npz", "."])
    def test_who_cannot_read_what_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
    ) -> None:
        cluster = open_cluster(files_cluster(tmp_path))
        monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / closed)
        with pytest.raises(ConfigError) as caught:
            digits_in(tmp_path, cluster)
        assert f"{tmp_path / closed} cannot be read by user {os.geteuid()}" in str(caught.value)
        assert not (tmp_path / "parties").exists()


class TestKeysOfTheirOwn:
    def test_public_halves_make_the_roster_and_no_secret_is_touched(
        self, digits: Cluster, tmp_path: Path
    ) -> None:
        pairs = {name: new_keypair() for name in ("curator", "consumer", *OWNERS)}
        for name, pair in pairs.items():
            write_public(tmp_path / f"{name}.pub", pair.public)
            write_secret(tmp_path / f"{name}.key", pair)
            (tmp_path / f"{name}.key").chmod(0)  # theirs alone
        keys = OwnKeys(public=tmp_path, secret=Path("/run/secrets/hushbid.key"))
        for _ in range(2):
            made = digits_in(tmp_path, digits, own_keys=keys)
            assert made.session.roster.owners == {name: pairs[name].public.text for name in OWNERS}
            for party in made.parties:
                assert file_of(party).key == Path("/run/secrets/hushbid.key")
                assert not list(party.directory.rglob("*.key"))

    def test_a_public_key_that_is_missing_is_named(self, digits: Cluster, tmp_path: Path) -> None:
        write_public(tmp_path / "curator.pub", new_keypair().public)
        with pytest.raises(KeyFileError, match=r"consumer\.pub"):
            digits_in(tmp_path, digits, own_keys=OwnKeys(tmp_path, Path("/run/secrets/hushbid.key")))
        assert not (tmp_path / "parties").exists()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("curator:5790", "--address: address: not an address"),
        ("tcp://curator:5790/", "--address: address: not an address"),
        ("tcp://curator:99999", "is not an address"),
        ("tcp://*:5790", "none to connect to"),
        ("tcp://curator:*", "none to connect to"),
    ],
)
def test_an_address_that_nobody_can_connect_to_is_refused_before_anything_is_made(
    digits: Cluster, tmp_path: Path, address: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)):
        digits_in(tmp_path, digits, address=address)
    assert list(tmp_path.iterdir()) == []


class TestVerb:
    @pytest.fixture
    def invoke(self, tmp_path: Path) -> Callable[..., tuple[int, str]]:
        def run(*more: str, **variables: str) -> tuple[int, str]:
            place = ["--parties", str(tmp_path / "parties"), "--address", ADDRESS]
            variables.setdefault("HUSHBID_SESSION", str(tmp_path / "session" / "session.toml"))
            result = CliRunner().invoke(app, ["setup", str(DIGITS), *place, *more], env=variables)
            return result.exit_code, result.stdout

        return run

    def test_it_takes_its_settings_from_variables_that_may_be_empty(
        self, invoke: Callable[..., tuple[int, str]], tmp_path: Path
    ) -> None:
        settings = {"HUSHBID_OWNERS": "2", "HUSHBID_SET": "session.points=30 session.nonce=second"}
        code, out = invoke("--json", **settings)
        assert code == 0
        made = json.loads(out)
        session = load_toml(SessionFile, Path(made["session_file"]))
        assert (session.session.points, session.session.nonce) == (30, "second")
        assert made["identifier"] == session.digest()[:16].hex()
        assert list(made["parties"]) == ["curator", "consumer", "owner-1", "owner-2"]
        assert made["points_of"] == {"owner-1": "digits-01", "owner-2": "digits-34"}
        assert "owner-2 has points of digits-34.\n" in invoke(**settings)[1]
        shutil.rmtree(tmp_path / "parties")
        (tmp_path / "session" / "session.toml").unlink()
        code, out = invoke(HUSHBID_OWNERS="", HUSHBID_SET="")
        assert code == 0
        assert "digits-34" in out
        assert "has points of" not in out, "names are as they were"

    def test_it_says_whether_the_session_is_new(self, invoke: Callable[..., tuple[int, str]]) -> None:
        assert "is set up" in invoke()[1]
        code, out = invoke()
        assert code == 0
        assert "was there already" in out

    @pytest.mark.parametrize(
        "options",
        [["--public-keys", "keys"], ["--secret-key", "/k"], ["--public-keys", "k", "--secret-key", "k"]],
        ids=["no secret", "no public", "relative"],
    )
    def test_keys_of_their_own_need_both_places(
        self, invoke: Callable[..., tuple[int, str]], options: list[str]
    ) -> None:
        assert invoke(*options)[0] == 4

    def test_a_place_that_cannot_be_written_is_a_configuration_error(
        self, invoke: Callable[..., tuple[int, str]], tmp_path: Path
    ) -> None:
        (tmp_path / "parties").touch()
        assert invoke()[0] == 4


# -- a session that is over ------------------------------------------------------------------------------


def end(party: Party, state: Path, code: int) -> None:
    """Leave the final status of a party's process."""
    Status(
        party=party.name, role=party.role, session="digits", phase="done", busy=None, round=5, rounds=5,
        connected=None, owners_connected=None, owners=None, paused=False, beat=0.0, pid=1, process_start=None,
        started=0.0, ready=True, finished=True, exit_code=code, counters={},
    ).write(status_path(state, party.name))  # fmt: skip


def test_a_setup_of_a_session_that_is_over_says_so(digits: Cluster, tmp_path: Path) -> None:
    first = digits_in(tmp_path, digits)
    assert not first.over
    for party in first.parties:
        assert not digits_in(tmp_path, digits).over, f"{party.name} has not ended"
        end(party, party.directory / "state", 0)
    assert digits_in(tmp_path, digits).over
    arguments = ["setup", str(DIGITS), "--parties", str(tmp_path / "parties"), "--address", ADDRESS]
    arguments += ["--session", str(tmp_path / "session" / "session.toml"), "--owners", str(len(OWNERS))]
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.stderr
    assert "is over: every party has ended it well" in ended.stdout
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["over"] is True
    end(first.parties[2], first.parties[2].directory / "state", 1)
    assert not digits_in(tmp_path, digits).over, "a party that failed goes on"
