"""`hushbid run` refuses what a party would refuse before anything is made, and reports charges."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from hushbid.cluster.file import open_cluster
from hushbid.cluster.parties import PARTY_FILE
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import OwnerFile
from hushbid.protocol.data import load_dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.ledger.dataset_budget import dataset_budget
from hushbid.protocol.runtime.telemetry.status_file import status_path
from hushbid.protocol.runtime.telemetry.vitals import Vitals
from hushbid.protocol.session.session import open_session
from hushbid.running import launcher
from hushbid.running.directory import RunDirectory, prepare
from hushbid.running.launcher import PartyFailed, charged_lines, run
from tests.conftest import ROOT

RELEASE = {"mechanism": "filtered-gaussian", "epsilon": 2.0}


def cluster_file(place: Path, change: Callable[[dict[str, Any]], object] = lambda table: None) -> Path:
    """A private session of two owners with a file each."""
    generator = np.random.default_rng(0)
    for name in ("north", "south", "validation", "seed"):
        labels = np.array([("long" * 20 if name == "north" else "short")] * 20)
        np.savez(place / f"{name}.npz", features=generator.random((20, 2)), labels=labels)
    np.savez(place / "bare.npz", features=generator.random((20, 2)))
    table: dict[str, Any] = {
        "session": {"name": "files", "points": 5},
        "features": {"gamma": 1.0, "columns": 2, "dimension": 8},
        "target": RELEASE | {"neighbours": "substitute-one"},
        "summary": RELEASE | {"neighbours": "add-remove-one"},
        "acquisition": {"rule": "sealed"},
        "owners": {"north": {"data": "north.npz"}, "south": {"data": "south.npz"}},
        "consumer": {"validation": "validation.npz", "seed_set": "seed.npz"},
    }
    change(table)
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def put(place: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(table: dict[str, Any]) -> None:
        *sections, key = place.split(".")
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value

    return change


REFUSED = [
    pytest.param(put("consumer.model", "oracle"), "consumer", "'oracle'", id="model"),
    pytest.param(put("features.columns", 3), "consumer", "2 feature columns", id="columns"),
    pytest.param(put("features.upper", 0.5), "consumer", "bounds", id="bounds"),
    pytest.param(put("consumer.seed_set", "validation.npz"), "consumer", "are in", id="seed set"),
    pytest.param(put("consumer.test", "gone.npz"), "consumer", "gone.npz", id="test points"),
    pytest.param(put("owners.south.data", "gone.npz"), "south", "gone.npz", id="missing file"),
    pytest.param(put("acquisition.box_bytes", 64), "north", "box", id="box"),
    pytest.param(
        put("owners.south.budget", {"epsilon": 1.5}), "south", "over its budget of ε = 1.5", id="budget"
    ),
    pytest.param(
        put("consumer.budget", {"epsilon": 1.5}), "consumer", "over its budget of ε = 1.5", id="its budget"
    ),
    pytest.param(put("session.labels", "integer"), "north", "its labels are text", id="labels"),
    pytest.param(put("owners.south.data", "bare.npz"), "south", "has no labels, and the val", id="no labels"),
    pytest.param(put("run.durability", "flush"), "curator", "secure noise", id="durability"),
]


@pytest.mark.parametrize(("change", "party", "says"), REFUSED)
def test_what_a_party_would_refuse_is_refused_before_anything_is_made(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], party: str, says: str
) -> None:
    cluster = open_cluster(cluster_file(tmp_path, change))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(PartyFailed, match=says) as refusal:
        run(cluster, directory=tmp_path / "runs")
    assert refusal.value.party == party
    assert str(refusal.value).startswith(f"{party}: ")
    assert sorted(tmp_path.iterdir()) == before, "neither a directory, nor a key, nor a ledger"


def test_a_session_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    cluster = open_cluster(cluster_file(tmp_path, put("target", RELEASE | {"neighbours": "neither"})))
    with pytest.raises(ConfigError):
        run(cluster, directory=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_dataset_that_is_dealt_out_is_checked_too(tmp_path: Path) -> None:
    digits = ROOT / "configs" / "digits" / "cluster.toml"
    with pytest.raises(PartyFailed, match="bounds"):
        run(open_cluster(digits, settings=["features.upper=3.0"]), directory=tmp_path / "runs")
    assert list(tmp_path.iterdir()) == []


def test_a_seed_set_that_is_yet_to_be_drawn_is_no_hindrance(tmp_path: Path) -> None:
    digits = ROOT / "configs" / "digits" / "cluster.toml"
    with pytest.raises(PartyFailed, match="box"):  # the last that is checked
        run(
            open_cluster(digits, settings=["consumer.seed_points=9", "acquisition.box_bytes=64"]),
            directory=tmp_path / "runs",
        )


def test_an_address_that_is_taken_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PartyFailed, match="in use") as refusal:
            run(
                open_cluster(cluster_file(tmp_path, put("network.address", address))),
                directory=tmp_path / "runs",
            )
    assert (refusal.value.party, refusal.value.exit_code) == ("curator", 2)
    assert not (tmp_path / "runs").exists()


# -- what was charged ------------------------------------------------------------------------------------


def charge(prepared: RunDirectory, name: str) -> None:
    """Charge an owner's ledger, as its process does at the first broadcast."""
    (party,) = (each for each in prepared.parties if each.name == name)
    file = load_toml(OwnerFile, party.directory / PARTY_FILE).resolved(party.directory)
    session = open_session(prepared.session)
    spent = OwnerMachine(session, name=name).charge
    dataset = load_dataset(file.data, file.columns.columns())
    dataset_budget(session, file, file.data, dataset, spent, session.privacy()[0]).charge("ab" * 32)


@pytest.mark.parametrize(
    ("files", "finished", "told"),
    [
        (("delivered.npz", "result.json"), True, "The purchase is there"),
        (("delivered.npz",), True, "What was delivered is there"),
        (("delivered.npz",), False, None),  # it was killed, and `hushbid results` would refuse
        ((), True, None),
    ],
)
def test_a_run_that_does_not_end_well_says_where_the_purchase_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], finished: bool, told: str | None
) -> None:
    def cut_short(prepared: RunDirectory, *_: object) -> None:
        state = prepared.path / "parties" / CONSUMER / "state"
        state.mkdir(exist_ok=True)
        for name in (f"{CONSUMER}.transcript", *files):
            (state / name).touch()
        vitals = Vitals(state, party=CONSUMER, role="consumer", session=prepared.session)
        replace(vitals.status, finished=finished).write(status_path(state, CONSUMER))
        raise KeyboardInterrupt

    monkeypatch.setattr(launcher, "run_parties", cut_short)
    with pytest.raises(KeyboardInterrupt) as ended:
        run(open_cluster(cluster_file(tmp_path)), directory=tmp_path / "my runs")
    place = tmp_path / "my runs" / "files-1"
    assert ended.value.__notes__ == [
        f"The run's directory is {place}",
        *([] if told is None else [f"{told}: `hushbid results '{place}'` opens it."]),
        "Nothing was charged to consumer, north, south.",
    ]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, ConfigError("It failed.", advice="")])
def test_a_run_that_does_not_end_well_says_what_was_charged_and_what_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: Any
) -> None:
    cluster = open_cluster(cluster_file(tmp_path))

    def cut_short(prepared: RunDirectory, *_: object) -> None:
        charge(prepared, "north")
        raise ending

    monkeypatch.setattr(launcher, "run_parties", cut_short)
    with pytest.raises(BaseException) as ended:  # noqa: PT011 - whatever ends it
        run(cluster, directory=tmp_path / "runs")
    ledger = tmp_path / "north.npz.ledger"
    assert ended.value.__notes__ == [
        f"The run's directory is {tmp_path / 'runs' / 'files-1'}",
        f"Charged to north: ε = 2 at δ = 1e-05 (add-remove-one), in {ledger}",
        "Nothing was charged to consumer, south.",
    ]


def test_what_another_session_was_charged_is_not_this_one_s(tmp_path: Path) -> None:
    charge(prepare(open_cluster(cluster_file(tmp_path)), tmp_path / "runs"), "north")
    another = prepare(open_cluster(cluster_file(tmp_path, put("session.nonce", "b"))), tmp_path / "runs")
    assert charged_lines(another) == ["Nothing was charged to consumer, north, south."]
