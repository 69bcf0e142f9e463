"""`hushbid run` from outside: seven processes that know nothing of each other, and how a run can fail."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import psutil
import pytest

from hushbid.cluster import open_cluster
from hushbid.simulation import simulate
from tests.conftest import ROOT
from tests.unit.test_cluster import DIGITS, DIGITS_OWNERS, files_cluster

PARTIES = ("curator", "consumer", *DIGITS_OWNERS)
EXACT = DIGITS.with_name("exact.toml")
LONG = "session.points=20000"
"""More rounds than are run while a test looks on."""
PATIENCE = 60.0


@dataclass
class Seen:
    """What an onlooker saw of one process."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    files: set[str] = field(default_factory=set)


@dataclass
class Watched:
    """A run that was watched until it ended."""

    code: int
    out: str
    err: str
    seconds: float
    processes: dict[int, Seen]

    @property
    def json(self) -> dict[str, Any]:
        assert len(self.out.splitlines()) == 1, self.out
        found: dict[str, Any] = json.loads(self.out)
        return found


def start(cluster: Path, directory: Path, *settings: str) -> subprocess.Popen[str]:
    arguments = [
        sys.executable,
        "-m",
        "hushbid",
        "run",
        str(cluster),
        "--directory",
        str(directory),
        "--json",
    ]
    for setting in settings:
        arguments += ["--set", setting]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HUSHBID_")}
    with interruptible():
        return subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=environment | {"OPERATOR_TOKEN": "kept-from-parties"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def interruptible() -> Iterator[None]:
    """Shells start background jobs with SIGINT ignored, and children inherit that: these tests' too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def look(launcher: psutil.Process, seen: dict[int, Seen]) -> None:
    """Note what the launcher's children show of themselves now."""
    for child in launcher.children(recursive=True):
        try:
            arguments = child.cmdline()
            if "-m" not in arguments or arguments == launcher.cmdline():
                continue  # not yet the program that it becomes
            known = seen.setdefault(child.pid, Seen(arguments, child.environ(), child.cwd()))
            known.files |= {file.path for file in child.open_files()}
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue


def watch(process: subprocess.Popen[str]) -> Watched:
    seen: dict[int, Seen] = {}
    started = time.monotonic()
    launcher = psutil.Process(process.pid)
    while process.poll() is None and time.monotonic() - started < PATIENCE:
        look(launcher, seen)
        time.sleep(0.05)
    seconds = time.monotonic() - started
    out, err = process.communicate(timeout=5)
    return Watched(process.returncode, out, err, seconds, seen)


def party_of(seen: Seen) -> str:
    return Path(seen.directory).name


def survivors(processes: Sequence[int]) -> list[int]:
    return [pid for pid in processes if psutil.pid_exists(pid)]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return watch(start(EXACT, tmp_path_factory.mktemp("runs"), "session.points=300"))


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return simulate(open_cluster(EXACT, settings=["session.points=300"])).as_json()


# -- a run that succeeds ---------------------------------------------------------------------------------


def test_every_party_is_a_process_of_its_own(watched: Watched) -> None:
    assert watched.code == 0, watched.err
    assert sorted(party_of(seen) for seen in watched.processes.values()) == sorted(PARTIES)
    assert set(watched.json["processes"].values()) == set(watched.processes)
    assert watched.seconds < 60


def test_no_process_is_left(watched: Watched) -> None:
    assert survivors(list(watched.processes)) == []


def test_the_session_is_authenticated(watched: Watched) -> None:
    session = tomllib.loads((Path(watched.json["directory"]) / "parties/curator/session.toml").read_text())
    assert not session["network"]["insecure"]
    keys = [
        session["roster"]["curator"],
        session["roster"]["consumer"],
        *session["roster"]["owners"].values(),
    ]
    assert len(set(keys)) == 7
    assert all(len(key) == 40 for key in keys)


def test_the_result_is_that_of_the_simulation(watched: Watched, simulated: dict[str, Any]) -> None:
    own = {"wall_seconds", "rounds_per_second", "transcripts", "data", "directory", "processes", "report"}
    assert {name: value for name, value in watched.json.items() if name not in own} == {
        name: value for name, value in simulated.items() if name not in own
    }


def test_an_exact_run_is_as_good_as_greedy_and_better_than_uniform(watched: Watched) -> None:
    assert watched.json["mmd2"] == watched.json["mmd2_greedy"] < watched.json["mmd2_uniform"] / 2
    assert watched.json["accuracy"] > 0.9


def test_the_tables_are_on_stderr_and_the_result_in_the_directory(watched: Watched) -> None:
    assert "greedy" in watched.err
    assert json.loads((Path(watched.json["directory"]) / "result.json").read_text()) == watched.json


def test_transcripts_and_delivered_points_lie_where_the_result_says(watched: Watched) -> None:
    assert set(watched.json["transcripts"]) == set(PARTIES)
    assert all(Path(path).is_file() for path in watched.json["transcripts"].values())
    with np.load(watched.json["data"]) as delivered:
        assert len(delivered["features"]) == watched.json["points_delivered"] == 300


def test_a_report_lies_beside_the_result(watched: Watched) -> None:
    assert watched.json["report"] == str(Path(watched.json["directory"]) / "report.html")
    assert "No report" not in watched.err
    page = Path(watched.json["report"]).read_text(encoding="utf-8")
    assert f"{watched.json['mmd2']:.5f}" in page
    assert f"{watched.json['mmd2_uniform']:.5f}" in page


# -- the demonstration: private by default ------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return watch(start(DIGITS, tmp_path_factory.mktemp("runs")))


def test_the_demonstration_guarantees_what_its_file_asks_for(private: Watched) -> None:
    assert private.code == 0, private.err
    owners, consumer, trust = private.json["privacy"]
    for statement, neighbours in ((owners, "add-remove-one"), (consumer, "substitute-one")):
        assert statement["epsilon"] == pytest.approx(3.0, rel=1e-6)
        assert statement["epsilon"] <= 3.0
        assert (statement["delta"], statement["neighbours"]) == (1e-5, neighbours)
        assert (statement["noise"], statement["why"]) == ("secure", "")
    assert trust["epsilon"] is None
    assert "NO PRIVACY" not in private.err
    assert "Owners trust the curator and the consumer" in private.err


def test_the_demonstration_shows_the_curator_no_point_and_buys_all(private: Watched) -> None:
    assert private.json["points_accessed_curator"] == 0
    assert private.json["points_delivered"] == private.json["p"] == 200
    assert private.json["disputed"] == 0
    # Secret noise: the margin is five times what it is on average (0.021 against 0.065).
    assert private.json["mmd2"] < private.json["mmd2_uniform"]


def test_the_demonstration_reads_the_odometer_and_charges_every_dataset(private: Watched) -> None:
    owners, consumer = private.json["odometer"]
    assert owners["rounds"] == list(range(201))
    assert owners["epsilon"][:2] == [0.0, 0.0], "the first broadcast is of the public seed set alone"
    assert owners["epsilon"] == sorted(owners["epsilon"])
    assert owners["epsilon"][-1] == pytest.approx(3.0, rel=1e-6)
    assert consumer["epsilon"] == [pytest.approx(3.0, rel=1e-6)]
    parties = Path(private.json["directory"]) / "parties"
    ledgers = [*(parties / name / "data.npz.ledger" for name in DIGITS_OWNERS)]
    for ledger in (*ledgers, parties / "consumer" / "validation.npz.ledger"):
        header, entry = (json.loads(line) for line in ledger.read_text().splitlines())
        assert header["format"] == "hushbid-lifetime-ledger"
        assert entry["epsilon"] == pytest.approx(3.0, rel=1e-6)
    assert not (parties / "curator/state/curator.boxes").exists()


SETTLED = ("session.points=40", "settlement.private=true", "settlement.epsilon=1.0")
SEEDED = ("session.allow_nonprivate=true", "noise.source=simulated", "noise.seed=7")


def test_a_private_settlement_is_the_simulation_s_and_may_not_be_told_with_its_noise(tmp_path: Path) -> None:
    found = watch(start(DIGITS, tmp_path, *SETTLED, *SEEDED))
    assert found.code == 0, found.err
    wanted = simulate(open_cluster(DIGITS, settings=[*SETTLED, *SEEDED])).as_json()
    for name in ("settlement", "settlement_terms", "odometer", "privacy"):
        assert found.json[name] == wanted[name]
    assert found.json["settlement_terms"]["disclosure"].startswith("not to be disclosed to owners")


def test_a_private_settlement_is_charged_to_every_owner_s_ledger(tmp_path: Path) -> None:
    found = watch(start(DIGITS, tmp_path, *SETTLED))
    assert found.code == 0, found.err
    terms, (owners, *_) = found.json["settlement_terms"], found.json["privacy"]
    assert terms["disclosure"] == "private: owners may be told it, and be paid by it"
    assert 3.0 < owners["epsilon"] <= 4.0
    assert found.json["odometer"][0]["settled"] == owners["epsilon"]
    parties = Path(found.json["directory"]) / "parties"
    for name in DIGITS_OWNERS:
        _, entry = (
            json.loads(line) for line in (parties / name / "data.npz.ledger").read_text().splitlines()
        )
        assert entry["epsilon"] == owners["epsilon"]
    curator = json.loads((parties / "curator" / "result.json").read_text())
    assert curator["settlement"] == found.json["settlement"]
    for name in DIGITS_OWNERS:
        told = json.loads((parties / name / "result.json").read_text())
        assert not {"settlement", "settlement_terms"} & told.keys()


# -- isolation, seen from outside ------------------------------------------------------------------------


def test_arguments_and_environment_name_no_other_party(watched: Watched) -> None:
    for seen in watched.processes.values():
        text = " ".join([*seen.arguments, *seen.environment.values()])
        assert [name for name in DIGITS_OWNERS if name in text] == []
        assert "kept-from-parties" not in text
        assert not any(name.startswith("HUSHBID_") for name in seen.environment)


def test_no_process_opens_a_file_of_another_party(watched: Watched) -> None:
    parties = Path(watched.json["directory"]) / "parties"
    for seen in watched.processes.values():
        of_parties = {Path(file) for file in seen.files if Path(file).is_relative_to(parties)}
        assert of_parties, "the onlooker saw nothing of it"
        assert all(file.is_relative_to(parties / party_of(seen)) for file in of_parties)


def test_an_owner_s_transcript_holds_no_point_of_another(watched: Watched) -> None:
    parties = Path(watched.json["directory"]) / "parties"
    rows = {
        name: {row.tobytes() for row in np.load(parties / name / "data.npz")["features"]}
        for name in DIGITS_OWNERS
    }
    transcripts = {name: Path(path).read_bytes() for name, path in watched.json["transcripts"].items()}
    for name in DIGITS_OWNERS:
        others = set().union(*(rows[other] for other in DIGITS_OWNERS if other != name)) - rows[name]
        assert not any(row in transcripts[name] for row in others)
        # The control: what was handed over is found in this way, with its owner and with the curator.
        assert any(row in transcripts[name] for row in rows[name])
        assert any(row in transcripts["curator"] for row in rows[name])


# -- runs that fail --------------------------------------------------------------------------------------


def damaged(place: Path, name: str, damage: Callable[[Path], None]) -> Path:
    cluster = files_cluster(place)
    damage(place / f"{name}.npz")
    return cluster


def with_nan(path: Path) -> None:
    features = np.full((20, 2), 0.5)
    features[7, 1] = np.nan
    np.savez(path, features=features)


def garbled(path: Path) -> None:
    path.write_bytes(b"no archive")


BAD_DATA = [
    pytest.param("north", Path.unlink, "north.npz", id="missing"),
    pytest.param("south", garbled, "south.npz", id="garbled"),
    pytest.param("north", with_nan, "row 7, feature column 1", id="NaN"),
    pytest.param("validation", Path.unlink, "validation.npz", id="the consumer's"),
]


@pytest.mark.parametrize(("file", "damage", "named"), BAD_DATA)
def test_a_bad_data_file_fails_the_run_with_4_and_its_party_s_name(
    tmp_path: Path, file: str, damage: Callable[[Path], None], named: str
) -> None:
    watched = watch(start(damaged(tmp_path, file, damage), tmp_path / "runs"))
    party = "consumer" if file == "validation" else file
    assert watched.code == 4, watched.err
    assert watched.json["error"]["exit_code"] == 4
    assert watched.json["error"]["what"].startswith(f"{party}: ")
    assert named in watched.json["error"]["what"]
    assert watched.err.count(named) == 1, "the run and its party said the same"
    assert f"The run's directory is {tmp_path / 'runs'}" in watched.err
    assert watched.seconds < 40, "the others were waited for"
    assert survivors(list(watched.processes)) == []


@pytest.mark.parametrize("party", ["north", "consumer"])
def test_a_dataset_whose_budget_is_too_small_stays_out_and_releases_nothing(
    tmp_path: Path, party: str
) -> None:
    release = {"mechanism": "filtered-gaussian", "epsilon": 2.0}
    owners: dict[str, Any] = {"south": {"data": "south.npz"}, "north": {"data": "north.npz"}}
    consumer: dict[str, Any] = {"validation": "validation.npz", "seed_set": "seed.npz"}
    (consumer if party == "consumer" else owners[party]).update(
        budget={"epsilon": 1.5, "delta": 1e-5}, ledger="spent.ledger"
    )
    cluster = files_cluster(
        tmp_path,
        session={"name": "files", "points": 5},
        features={"gamma": 1.0, "columns": 2, "dimension": 8},
        target=release | {"neighbours": "substitute-one"},
        summary=release | {"neighbours": "add-remove-one"},
        acquisition={"rule": "sealed"},
        owners=owners,
        consumer=consumer,
    )
    watched = watch(start(cluster, tmp_path / "runs"))
    assert watched.code == 1, watched.err
    what = watched.json["error"]["what"]
    assert what.startswith(f"{party}: ")
    assert "over its budget of ε = 1.5" in what
    # The refusal is not charged, and no other owner is: the session did not begin.
    assert len((tmp_path / "spent.ledger").read_text().splitlines()) == 1
    assert len((tmp_path / "south.npz.ledger").read_text().splitlines()) == 1


def test_a_port_in_use_fails_the_run_with_2(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        watched = watch(start(EXACT, tmp_path, f"network.address={address}"))
    assert watched.code == 2, watched.err
    assert watched.json["error"]["what"].startswith("curator: ")
    assert survivors(list(watched.processes)) == []


Begun: TypeAlias = tuple[subprocess.Popen[str], dict[str, int]]
"""A run in its rounds, and the process id of each party."""


@contextmanager
def begun(directory: Path, *settings: str) -> Iterator[Begun]:
    process = start(EXACT, directory, "run.durability=flush", *settings)
    seen: dict[int, Seen] = {}
    deadline = time.monotonic() + PATIENCE
    transcript = directory / "digits-exact-1/parties/curator/state/curator.transcript"
    try:
        while time.monotonic() < deadline and process.poll() is None:
            look(psutil.Process(process.pid), seen)
            if len(seen) == 7 and transcript.exists() and transcript.stat().st_size > 100_000:
                break
            time.sleep(0.05)
        yield process, {party_of(each): pid for pid, each in seen.items()}
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[Begun]:
    with begun(tmp_path, LONG, "dataset.owner_points=20") as run:
        yield run


@pytest.mark.parametrize("party", ["curator", "consumer"])
def test_a_curator_or_consumer_that_is_killed_ends_the_run_and_is_named(long_run: Begun, party: str) -> None:
    process, parties = long_run
    os.kill(parties[party], signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert json.loads(out)["error"]["what"] == f"{party}: its process was ended by SIGKILL."
    assert survivors(list(parties.values())) == []


LOST = [
    pytest.param(signal.SIGKILL, "its process was ended by SIGKILL.", id="killed"),
    pytest.param(
        signal.SIGSTOP,
        "it had not ended 5 s after the session, and was stopped.",
        marks=pytest.mark.slow,
        id="hung until the end",
    ),
]


@pytest.mark.parametrize(("number", "what"), LOST)
def test_an_owner_that_is_lost_in_the_rounds_is_reported_and_the_run_goes_on(
    tmp_path: Path, number: int, what: str
) -> None:
    limits = {"round": 1.0, "silence": 1.0, "abandon": 5.0, "comeback": 0.3}
    settings = ("session.points=900", *(f"timeouts.{name}={value}" for name, value in limits.items()))
    with begun(tmp_path, *settings) as (process, parties):
        os.kill(parties["digits-56"], number)
        out, err = process.communicate(timeout=50)
    assert process.returncode == 0, err
    result = json.loads(out)
    assert result["failed_parties"] == {"digits-56": what}
    assert result["rounds"] == 900
    assert result["points_delivered"] > 500, "the other owners have more than that"
    assert set(result["absences"]) == {"digits-56"}
    assert set(result["transcripts"]) == set(PARTIES) - {"digits-56"}
    assert f"digits-56 failed: {what}" in " ".join(err.split())
    assert "digits-56 | " in err
    assert survivors(list(parties.values())) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_no_process_and_whole_transcripts(
    long_run: Begun, tmp_path: Path, number: int, code: int
) -> None:
    process, parties = long_run
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert f"The run's directory is {tmp_path / 'digits-exact-1'}\n" in err
    assert len(parties) == 7
    assert survivors(list(parties.values())) == []
    transcripts = sorted(map(str, tmp_path.glob("digits-exact-1/parties/*/state/*.transcript")))
    verified = subprocess.run(
        [sys.executable, "-m", "hushbid", "transcript", "verify", *transcripts, "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout
    assert [each["torn_bytes"] for each in json.loads(verified.stdout)["transcripts"]] == [0] * 7
