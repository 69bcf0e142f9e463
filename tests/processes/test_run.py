"""`hushbid run` from outside: processes that know nothing of each other, and how a run can fail."""

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import psutil
import pytest

from hushbid.cluster.file import open_cluster
from hushbid.protocol.runtime.interrupts import LAUNCHED
from hushbid.protocol.runtime.telemetry.status_file import find_statuses
from hushbid.running.simulate import simulate
from hushbid.transcripts.verification.whole_session import verify_all
from tests.conftest import ROOT
from tests.processes.cluster import Ended
from tests.processes.forked import ForkedProcess, PartyProcess
from tests.unit.hushbid.cluster.test_cluster import DIGITS as DEMONSTRATION
from tests.unit.hushbid.cluster.test_cluster import DIGITS_OWNERS, files_cluster
from tests.unit.hushbid.cluster.test_cluster import ROUNDS as DIGITS
from tests.unit.hushbid.report.test_report_page import BYTES

PARTIES = ("curator", "consumer", *DIGITS_OWNERS)
OWNERS = ("north", "south")
SMALL = ("curator", "consumer", *OWNERS)
"""The parties of `of_two`: where it is not the subject how many they are."""
EXACT = DIGITS.with_name("exact.toml")
LONG = 20_000
"""More rounds than are run while a test looks on."""
PATIENCE = 240.0


@dataclass
class Seen:
    """What an onlooker saw of one process."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    files: set[str] = field(default_factory=set)


@dataclass
class Run:
    """A started run, whose output goes to files."""

    process: PartyProcess
    said: Path

    def end(self, seconds: float = PATIENCE) -> Ended:
        """Wait until it has ended."""
        code = self.process.wait(seconds)
        out, err = ((self.said / stream).read_text(encoding="utf-8") for stream in ("out", "err"))
        return Ended(code, out, err)


@dataclass(frozen=True)
class Watched(Ended):
    """A run that was watched until it ended."""

    processes: dict[int, Seen]


def start(
    cluster: Path,
    directory: Path,
    *settings: str,
    anew: bool = False,
    rehearsal: bool = False,
    quiet: bool = False,
) -> Run:
    """``hushbid run``, forked with its parties (`ForkedProcess`); `anew`: each is a new Python."""
    arguments = ["run", str(cluster), "--directory", str(directory), "--json"]
    arguments += ([] if rehearsal else ["--no-rehearsal"]) + (["--quiet"] if quiet else [])
    for setting in settings:
        arguments += ["--set", setting]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HUSHBID_")}
    environment["OPERATOR_TOKEN"] = "kept-from-parties"
    said = directory.with_name(f"{directory.name}-said")
    said.mkdir()
    out, err = said / "out", said / "err"
    for path in (out, err):
        path.touch()
    if not anew:
        fork = ForkedProcess("hushbid", arguments, directory=ROOT, environment=environment, out=out, err=err)
        return Run(fork, said)
    with out.open("wb") as to_out, err.open("wb") as to_err:
        command = [sys.executable, "-m", "hushbid", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=to_out, stderr=to_err)
    return Run(process, said)


def look(launcher: psutil.Process, seen: dict[int, Seen], *, files: bool = False) -> None:
    """Note what the parties' processes show now: they are forked from the launcher's child."""
    for child in launcher.children(recursive=True):
        try:
            if Path(child.cwd()).parent.name != "parties":
                continue  # not yet the program that it becomes
            now = Seen(child.cmdline(), child.environ(), child.cwd())
            now.files |= seen.get(child.pid, now).files
            seen[child.pid] = now
            if files:
                seen[child.pid].files |= {file.path for file in child.open_files()}
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue


def watch(run: Run, *, files: bool = False) -> Watched:
    seen: dict[int, Seen] = {}
    started = time.monotonic()
    launcher = psutil.Process(run.process.pid)
    while run.process.poll() is None and time.monotonic() - started < PATIENCE:
        with suppress(psutil.NoSuchProcess):
            look(launcher, seen, files=files)
        time.sleep(0.1)
    ended = run.end(5.0)
    return Watched(ended.code, ended.out, ended.err, seen)


def party_of(seen: Seen) -> str:
    return Path(seen.directory).name


def survivors(processes: Sequence[int]) -> list[int]:
    return [pid for pid in processes if psutil.pid_exists(pid)]


def of_two(place: Path, *, points: int, rows: int = 20, batch: int | None = 1) -> Path:
    """The file of a cluster of two owners with so many rows each, its parties `SMALL`."""
    said = {} if batch is None else {"batch": batch}
    cluster = files_cluster(
        place,
        session={"name": "files", "points": points, "allow_nonprivate": True, **said},
        consumer={"validation": "validation.npz", "seed_set": "seed.npz"},
    )
    generator = np.random.default_rng(1)
    for owner in OWNERS:
        np.savez(place / f"{owner}.npz", features=generator.random((rows, 2)), labels=np.arange(rows) % 2)
    return cluster


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """The demonstration without privacy."""
    return watch(start(EXACT, tmp_path_factory.mktemp("runs") / "exact", "session.points=100"))


@pytest.fixture(scope="module")
def anew(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """A run as people start it."""
    place = tmp_path_factory.mktemp("anew")
    return watch(start(of_two(place, points=100, rows=60, batch=None), place / "runs", anew=True), files=True)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return simulate(open_cluster(EXACT, settings=["session.points=100"])).as_json()


# -- a run that succeeds ---------------------------------------------------------------------------------


def test_every_party_is_a_process_of_its_own(watched: Watched, anew: Watched) -> None:
    for found, parties in ((watched, PARTIES), (anew, SMALL)):
        assert found.code == 0, found.err
        assert sorted(party_of(seen) for seen in found.processes.values()) == sorted(parties)
        assert set(found.json["processes"].values()) == set(found.processes)


def test_no_process_is_left(watched: Watched, anew: Watched) -> None:
    assert survivors([*watched.processes, *anew.processes]) == []


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
    assert "random rows" in watched.err
    kept = Path(watched.json["directory"]) / "result.json"
    assert json.loads(kept.read_text()) == watched.json
    assert kept.stat().st_mode & 0o077 == 0


def test_transcripts_and_delivered_points_lie_where_the_result_says(watched: Watched) -> None:
    assert set(watched.json["transcripts"]) == set(PARTIES)
    assert all(Path(path).is_file() for path in watched.json["transcripts"].values())
    with np.load(watched.json["data"]) as delivered:
        assert len(delivered["features"]) == watched.json["points_delivered"] == 100


def test_a_report_lies_beside_the_result(watched: Watched) -> None:
    assert watched.json["report"] == str(Path(watched.json["directory"]) / "report.html")
    assert "No report" not in watched.err
    page = Path(watched.json["report"]).read_text(encoding="utf-8")
    assert f"{watched.json['mmd2']:.5f}" in page
    assert f"{watched.json['mmd2_uniform']:.5f}" in page


# -- the demonstration: private by default ------------------------------------------------------------------


def test_the_demonstration_is_a_tender_in_which_owners_learn_nothing_of_each_other(tmp_path: Path) -> None:
    found = watch(start(DEMONSTRATION, tmp_path / "runs", "session.points=40", rehearsal=False))
    assert found.code == 0, found.err
    assert Path(found.json["report"]).stat().st_size <= BYTES
    owners, consumer, _ = found.json["privacy"]
    assert (owners["epsilon"], owners["why"]) == (0.0, "")
    assert consumer["epsilon"] == pytest.approx(3.0, rel=1e-6)
    assert consumer["noise"] == "secure"
    assert (found.json["rounds"], found.json["points_delivered"]) == (1, 40)
    assert found.json["points_accessed_curator"] == found.json["disputed"] == 0
    parties = Path(found.json["directory"]) / "parties"
    for name in DIGITS_OWNERS:
        _, entry = (parties / name / "data.npz.ledger").read_text().splitlines()
        assert (json.loads(entry)["epsilon"], json.loads(entry)["costs"]) == (0.0, [])


# -- the same in rounds -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return watch(start(DIGITS, tmp_path_factory.mktemp("runs") / "private", rehearsal=True))


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
    assert "Trust: --details." in private.err


def test_the_demonstration_shows_the_curator_no_point_and_buys_all(private: Watched) -> None:
    assert private.json["points_accessed_curator"] == 0
    assert private.json["points_delivered"] == private.json["p"] == 200
    assert private.json["disputed"] == 0
    # Secret noise: the margin is five times what it is on average (0.021 against 0.065).
    assert private.json["mmd2"] < private.json["mmd2_uniform"]


def test_the_demonstration_reads_the_odometer_and_charges_every_dataset(private: Watched) -> None:
    owners, consumer = private.json["odometer"]
    assert owners["rounds"] == list(range(51))
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
    for party, of in (("curator", owners), ("consumer", consumer)):
        [status] = find_statuses(parties / party)
        assert status.spent is not None
        assert status.spent == {**{name: of[name] for name in status.spent}, "epsilon": of["epsilon"][-1]}


def test_the_demonstration_is_rehearsed_once_before_its_parties_begin(private: Watched) -> None:
    found = private.json["verdict"]
    # It depends on the consumer's data alone: with 66 digits of two kinds its model is right already.
    assert (found["verdict"], found["anyway"]) == ("hopeless", False)
    assert found["why"].startswith("own rows are enough")
    assert found["staged"], "and the choice was rehearsed"
    # On a busy machine it says first how far it is.
    said = [line for line in private.err.splitlines() if not line.startswith("Rehearsing the session: ")]
    assert said[0].startswith("Do not buy: own rows are enough: ")
    place = Path(private.json["directory"]) / "parties" / "consumer"
    assert json.loads((place / "result.json").read_text())["verdict"] == found
    assert json.loads((place / "state" / "verdict.json").read_text())["verdict"] == found
    [line] = [each for each in (place / "log.txt").read_text().splitlines() if "session.rehearsed" in each]
    assert line.endswith("the verdict before the session was hopeless")
    assert "Do not buy: own rows are enough" in (place.parents[1] / "report.html").read_text()


SETTLED = ("session.points=15", "settlement.private=true", "settlement.epsilon=1.0")
SEEDED = ("session.allow_nonprivate=true", "noise.source=simulated", "noise.seed=7")


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Watched, dict[str, Any]]:
    """A run with known noise, and its simulation: it settles privately, and draws its seed set."""
    settings = (*SETTLED, "consumer.seed_points=30", *SEEDED)
    found = watch(start(DIGITS, tmp_path_factory.mktemp("seeded") / "runs", *settings))
    assert found.code == 0, found.err
    return found, simulate(open_cluster(DIGITS, settings=settings)).as_json()


def test_a_private_settlement_is_the_simulation_s_and_may_not_be_told_with_its_noise(
    seeded: tuple[Watched, dict[str, Any]],
) -> None:
    found, wanted = seeded
    for name in ("settlement", "settlement_terms", "odometer", "privacy"):
        assert found.json[name] == wanted[name]
    assert found.json["settlement_terms"]["disclosure"].startswith("not to be disclosed to owners")


def test_a_seed_set_that_the_consumer_draws_is_the_simulation_s_with_its_noise(
    seeded: tuple[Watched, dict[str, Any]],
) -> None:
    found, wanted = seeded
    assert found.json["seed_distance"] == wanted["seed_distance"]
    for name in ("mmd2", "mmd2_greedy"):
        assert found.json[name] == pytest.approx(wanted[name], abs=1e-12)
    consumer = Path(found.json["directory"]) / "parties" / "consumer"
    log = (consumer / "log.txt").read_text(encoding="utf-8")
    assert "seed-set.drawn" in log
    assert json.loads((consumer / "result.json").read_text())["seed_set_drawn"] is True
    assert len(np.load(consumer / "state" / "seed-set.npz")["features"]) == 30


def test_a_private_settlement_is_charged_to_every_owner_s_ledger(tmp_path: Path) -> None:
    found = watch(start(DIGITS, tmp_path / "runs", *SETTLED))
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


def test_arguments_and_environment_name_no_other_party(anew: Watched) -> None:
    assert len(anew.processes) == len(SMALL)
    for seen in anew.processes.values():
        assert "-m" in seen.arguments, "a program of its own"
        text = " ".join([*seen.arguments, *seen.environment.values()])
        assert [name for name in OWNERS if name in text] == []
        assert "kept-from-parties" not in text
        assert {name for name in seen.environment if name.startswith("HUSHBID_")} == {LAUNCHED}


def test_no_process_opens_a_file_of_another_party(anew: Watched) -> None:
    parties = Path(anew.json["directory"]) / "parties"
    for seen in anew.processes.values():
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


# What a party says of its data, tests/processes/test_bad_input.py has for each of these; a run says it for
# the party, whatever it is. So one file of an owner's and one of the consumer's are quick.
BAD_DATA = [
    pytest.param("north", Path.unlink, "north.npz", id="missing", marks=pytest.mark.slow),
    pytest.param("south", garbled, "south.npz", id="garbled", marks=pytest.mark.slow),
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
    assert watched.err.count(named) == 1
    assert not watched.processes, "a process was started"
    assert not (tmp_path / "runs").exists()


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
    # The refusal is not charged, and no other owner is: nothing began.
    assert list(tmp_path.glob("*.ledger")) == []
    assert not (tmp_path / "runs").exists()


def test_a_port_in_use_fails_the_run_with_2(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        watched = watch(start(of_two(tmp_path, points=5), tmp_path / "runs", f"network.address={address}"))
    assert watched.code == 2, watched.err
    assert watched.json["error"]["what"].startswith("curator: ")
    assert not watched.processes


Begun: TypeAlias = tuple[Run, dict[str, int]]
"""A run in its rounds, and the process id of each party."""


@contextmanager
def begun(cluster: Path, directory: Path, *settings: str, quiet: bool = False) -> Iterator[Begun]:
    run = start(cluster, directory, "run.durability=flush", *settings, quiet=quiet)
    seen: dict[int, Seen] = {}
    deadline = time.monotonic() + PATIENCE
    transcript = directory / "files-1/parties/curator/state/curator.transcript"
    try:
        while time.monotonic() < deadline and run.process.poll() is None:
            look(psutil.Process(run.process.pid), seen)
            if len(seen) == len(SMALL) and transcript.exists() and transcript.stat().st_size > 100_000:
                break
            time.sleep(0.05)
        yield run, {party_of(each): pid for pid, each in seen.items()}
    finally:
        run.process.kill()
        run.process.wait(PATIENCE)


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[Begun]:
    with begun(of_two(tmp_path, points=LONG), tmp_path / "runs", quiet=True) as run:
        yield run


@pytest.mark.parametrize("party", ["curator", "consumer"])
def test_a_curator_or_consumer_that_is_killed_ends_the_run_and_is_named(long_run: Begun, party: str) -> None:
    run, parties = long_run
    os.kill(parties[party], signal.SIGKILL)
    ended = run.end()
    assert ended.code == 1, ended.err
    assert ended.json["error"]["what"] == f"{party}: its process was ended by SIGKILL."
    assert all(f"\nCharged to {each}: no" in ended.err for each in ("north", "south", "consumer"))
    assert survivors(list(parties.values())) == []


LOST = [
    pytest.param(signal.SIGKILL, {}, "its process was ended by SIGKILL.", id="killed"),
    pytest.param(
        signal.SIGSTOP,
        {"round": 60.0, "silence": 5.0},
        "it had not ended 5 s after the session, and was stopped.",
        marks=pytest.mark.slow,
        id="hung until the end",
    ),
]


@pytest.mark.parametrize(("number", "limits", "what"), LOST)
def test_an_owner_that_is_lost_in_the_rounds_is_reported_and_the_run_goes_on(
    tmp_path: Path, number: int, limits: dict[str, float], what: str
) -> None:
    settings = [f"timeouts.{name}={value}" for name, value in {"comeback": 0.3, **limits}.items()]
    cluster = of_two(tmp_path, points=500, rows=400)
    with begun(cluster, tmp_path / "runs", *settings) as (run, parties):
        os.kill(parties["north"], number)
        ended = run.end()
    assert ended.code == 0, ended.err
    assert ended.json["failed_parties"] == {"north": what}
    assert ended.json["rounds"] == 500
    assert ended.json["points_delivered"] > 350, "the other owner has more than that"
    assert set(ended.json["absences"]) == {"north"}
    assert set(ended.json["transcripts"]) == set(SMALL) - {"north"}
    assert f"north failed: {what}" in " ".join(ended.err.split())
    assert "north | " in ended.err
    assert survivors(list(parties.values())) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_no_process_and_whole_transcripts(
    long_run: Begun, tmp_path: Path, number: int, code: int
) -> None:
    run, parties = long_run
    run.process.send_signal(number)
    ended = run.end()
    assert (ended.code, ended.json["error"]["exit_code"]) == (code, code)
    assert ("Interrupted." if number == signal.SIGINT else "Ended by SIGTERM.") in ended.err.splitlines()
    said = [f"directory is {tmp_path / 'runs' / 'files-1'}\n", "The session can go on: start every party"]
    said += [f"Charged to {party}: no guarantee" for party in ("north", "south", "consumer")]
    assert [each for each in said if each not in ended.err] == []
    assert len(parties) == len(SMALL)
    assert survivors(list(parties.values())) == []
    transcripts = sorted(tmp_path.glob("runs/files-1/parties/*/state/*.transcript"))
    verified = verify_all(transcripts)
    assert verified["ok"], verified
    assert [each["torn_bytes"] for each in verified["transcripts"]] == [0] * len(SMALL)


def test_a_run_that_is_killed_takes_its_parties_with_it(long_run: Begun, tmp_path: Path) -> None:
    """Otherwise they would go on, charge and buy, with nobody to report to."""
    run, parties = long_run
    run.process.kill()
    assert len(parties) == len(SMALL)
    deadline = time.monotonic() + PATIENCE
    while survivors(list(parties.values())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert survivors(list(parties.values())) == []
    for party in SMALL:
        log = (tmp_path / "runs/files-1/parties" / party / "log.txt").read_text()
        assert "Stopped by SIGTERM; what was recorded is kept." in log
    verified = verify_all(sorted(tmp_path.glob("runs/files-1/parties/*/state/*.transcript")))
    assert verified["ok"], verified
    assert [each["torn_bytes"] for each in verified["transcripts"]] == [0] * len(SMALL)
