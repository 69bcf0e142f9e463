"""What a party's process visibly holds of the others', during a session and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from zmq.utils import z85

from tests.processes.cluster import Cluster, Ended, bodies
from tests.support.transcripts import record_spans

PROCESSES = ("curator", "consumer", "heron", "magpie")
OWNERS = ("heron", "magpie")
PACER = "ostrich"
"""An owner on the test's side, which keeps a round open while the others are looked at."""
ROUNDS = 20


@dataclass(frozen=True)
class Seen:
    """What the system shows of a process in mid-session."""

    arguments: str
    environment: str
    directory: Path
    files: frozenset[Path]
    ports: frozenset[int]
    """Ports of the other ends of its connections."""


@dataclass(frozen=True)
class Session:
    cluster: Cluster
    seen: dict[str, Seen]
    ended: dict[str, Ended]


def look(process: psutil.Process) -> Seen:
    opened = {file.path for file in process.open_files()} | {each.path for each in process.memory_maps()}
    return Seen(
        arguments=" ".join(process.cmdline()),
        environment=" ".join(f"{name}={value}" for name, value in process.environ().items()),
        directory=Path(process.cwd()),
        files=frozenset(Path(path) for path in opened),
        ports=frozenset(each.raddr.port for each in process.net_connections() if each.raddr),
    )


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with Cluster(tmp_path_factory.mktemp("isolation"), anew=PROCESSES) as cluster:
        pacer = cluster.puppet(PACER)
        pacer.hold_bids_from(ROUNDS // 2)
        cluster.start(*PROCESSES)
        cluster.until(lambda: pacer.held, "the middle of the session")
        seen = {name: look(psutil.Process(cluster.processes[name].pid)) for name in PROCESSES}
        pacer.let_go()
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(PROCESSES, 0)
        yield Session(cluster, seen, ended)


def others(session: Session, name: str) -> list[str]:
    return [other for other in session.cluster.names if other != name]


@pytest.mark.parametrize("name", PROCESSES)
def test_it_opens_no_file_of_another_party(session: Session, name: str) -> None:
    seen = session.seen[name]
    own = session.cluster.directory(name)
    of_parties = {file for file in seen.files if file.is_relative_to(session.cluster.place / "parties")}
    assert session.cluster.transcript_path(name) in of_parties, "the onlooker saw its files"
    assert all(file.is_relative_to(own) for file in of_parties)
    assert seen.directory == own


@pytest.mark.parametrize("name", PROCESSES)
def test_arguments_and_environment_name_no_other_party(session: Session, name: str) -> None:
    # A party's own role may be named, and "owner" alone names nobody.
    seen = session.seen[name]
    told = seen.arguments + seen.environment.replace(str(session.cluster.place), "")
    assert [other for other in others(session, name) if other in told] == []


@pytest.mark.parametrize("name", ["consumer", *OWNERS])
def test_it_is_connected_to_the_curator_alone(session: Session, name: str) -> None:
    assert session.seen[name].ports == {session.cluster.port}


@pytest.mark.parametrize("name", OWNERS)
def test_an_owners_transcript_and_log_hold_nothing_of_the_other_owners(session: Session, name: str) -> None:
    cluster = session.cluster
    transcript, log = cluster.transcript_path(name).read_bytes(), cluster.log(name).encode()
    kept = transcript + log
    # The session file, which all share and whose roster names all, is in the first record.
    _, first_ends = next(record_spans(transcript))
    exchanged = bodies(cluster.records("curator"), "curator")
    feature_map = cluster.session.public_map
    assert feature_map is not None
    for other in cluster.owners:
        data = cluster.dataset(other)
        features = feature_map.hash(data.features)
        found = {
            "rows": sum(row.tobytes() in kept for row in data.features),
            "features": sum(row.tobytes() in kept for row in features),
            "identifiers": sum(f"{other}-{row:04d}".encode() in kept for row in range(len(data))),
            "bids": sum(body in kept for body in exchanged[other, "curator", "bid"]),
            "name": other.encode() in transcript[first_ends:] + log,
        }
        # The control: what it handed over itself is found in this way.
        mine = ROUNDS if other == name else 0
        assert found == dict.fromkeys(("rows", "features", "identifiers", "bids"), mine) | {"name": mine > 0}


def test_the_curator_and_the_consumer_keep_what_was_handed_to_them_and_no_more(session: Session) -> None:
    cluster = session.cluster
    transcripts = {name: cluster.transcript_path(name).read_bytes() for name in ("curator", "consumer")}
    points = [row.tobytes() for owner in cluster.owners for row in cluster.dataset(owner).features]
    held = {name: sum(point in kept for point in points) for name, kept in transcripts.items()}
    assert held == {"curator": ROUNDS * len(cluster.owners), "consumer": ROUNDS}
    assert session.ended["curator"].json["points_accessed"] == ROUNDS * len(cluster.owners)
    validation = cluster.dataset("consumer", "validation.npz").features
    assert not any(row.tobytes() in transcripts["curator"] for row in validation)


@pytest.mark.parametrize("name", PROCESSES)
def test_secret_keys_are_in_key_files_only(session: Session, name: str) -> None:
    cluster = session.cluster
    ended, seen = session.ended[name], session.seen[name]
    told = [ended.out, ended.err, seen.arguments, seen.environment]
    kept = "".join(told).encode() + b"".join(
        path.read_bytes()
        for path in cluster.directory(name).rglob("*")
        if path.is_file() and path.name != "secret.key"
    )
    assert cluster.keys[name].public.text.encode() in kept, "the session file was looked through"
    for pair in cluster.keys.values():
        assert pair.secret.encode() not in kept
        assert pair.seed not in kept
        assert pair.curve_secret not in kept
        assert z85.decode(pair.curve_secret) not in kept


@pytest.mark.parametrize("name", PROCESSES)
def test_what_a_party_keeps_is_for_its_user_only(session: Session, name: str) -> None:
    state = session.cluster.directory(name) / "state"
    assert state.stat().st_mode & 0o077 == 0
    assert [path.name for path in state.iterdir() if path.stat().st_mode & 0o077] == []
