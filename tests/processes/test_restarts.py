"""Restarting a party by hand: it goes on, tells how the session ended, or says why it does neither."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hushbid.protocol.errors import ExitCode, Restart
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.telemetry.status_file import SUFFIX
from tests.processes.cluster import Cluster, Ended
from tests.processes.recovery import OWNERS, POINTS, SHORT, check_whole, end_well, recorded_bytes, session

OWNER = OWNERS[0]
UNDER_WAY = 60_000
"""Bytes of the curator's transcript by which the rounds have begun."""


def begin(cluster: Cluster) -> None:
    """Run a session until its rounds are under way."""
    cluster.start_all()
    cluster.until(lambda: recorded_bytes(cluster, CURATOR) > UNDER_WAY, "some rounds")


def stop(cluster: Cluster, name: str, number: signal.Signals) -> None:
    """Tell a party to stop, and return what it says."""
    cluster.signal(name, number)
    ended = cluster.end(name)[name]
    assert ended.code == ExitCode.FAILED
    assert ended.error["what"] == f"Stopped by {number.name}; what was recorded is kept."
    assert "Start it again with the same state directory" in ended.error["advice"]
    charged = f"The session is charged to {name}: no guarantee"
    assert (charged in ended.error["advice"]) == (name != CURATOR)


def start_again(cluster: Cluster, name: str) -> None:
    """Start a party, and wait for its loop: before that, a signal ends its process like any other."""
    before = recorded_bytes(cluster, name)
    cluster.start(name)
    cluster.until(lambda: recorded_bytes(cluster, name) > before, f"{name} to go on")


def kill_all(cluster: Cluster) -> None:
    for name in cluster.names:
        cluster.signal(name, signal.SIGKILL)
    cluster.end()


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sealed session whose parties were all killed; tests work on copies of their files."""
    with session(tmp_path_factory.mktemp("interrupted") / "session", "sealed") as cluster:
        begin(cluster)
        kill_all(cluster)
        yield cluster


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, dict[str, Ended]]]:
    """A sealed session that has ended well, and its parties' output."""
    with session(tmp_path_factory.mktemp("over") / "session", "sealed", SHORT) as cluster:
        cluster.start_all()
        yield cluster, end_well(cluster)


@pytest.fixture
def curator(interrupted: Cluster, tmp_path: Path) -> Path:
    """A copy of the interrupted curator's directory."""
    return copied(interrupted, CURATOR, tmp_path)


def copied(cluster: Cluster, name: str, tmp_path: Path) -> Path:
    return shutil.copytree(cluster.directory(name), tmp_path / name)


def contents(directory: Path) -> dict[str, bytes]:
    """The content of a party's state directory, except its status and lock, which are the last process's."""
    paths, passing = (directory / "state").iterdir(), (SUFFIX, ".lock")
    return {path.name: path.read_bytes() for path in paths if path.suffix not in passing}


def test_a_party_that_is_told_to_stop_goes_on_when_it_is_started_again(tmp_path: Path) -> None:
    with session(tmp_path / "session", "ask-all") as cluster:
        begin(cluster)
        stop(cluster, OWNER, signal.SIGINT)  # the round waits for it, so the session is not over too soon
        for name, number in (
            (CURATOR, signal.SIGINT),
            (CONSUMER, signal.SIGTERM),
            (CURATOR, signal.SIGTERM),
        ):
            stop(cluster, name, number)
            start_again(cluster, name)
        cluster.start(OWNER)
        check_whole(cluster, end_well(cluster))
        # The time of a session is that of all its processes.
        result = cluster.ended(CURATOR).json
        assert result["wall_seconds"] > 0.3
        assert result["rounds_per_second"] == pytest.approx(POINTS / result["wall_seconds"])


@pytest.mark.parametrize("name", [OWNER, CONSUMER])
def test_a_party_that_runs_is_not_started_twice(tmp_path: Path, name: str) -> None:
    with session(tmp_path / "session", "ask-all") as cluster:
        cluster.start(name)
        cluster.until(lambda: recorded_bytes(cluster, name), "its transcript")
        refused = cluster.start_in(cluster.directory(name), name)
        assert refused.code == ExitCode.USAGE
        assert refused.error["what"].endswith(
            f"{name}.transcript: another process records to this transcript."
        )
        assert "This party runs already." in refused.error["advice"]
        assert cluster.running(name)


def test_a_curator_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    with session(tmp_path / "session", "ask-all") as cluster:
        cluster.start(CURATOR)
        cluster.until(lambda: recorded_bytes(cluster, CURATOR), "its transcript")
        refused = cluster.start_in(cluster.directory(CURATOR), CURATOR)
        assert refused.code == ExitCode.CONNECTION
        assert "Address already in use" in refused.error["what"]
        refused = cluster.start_in(cluster.directory(CURATOR), CURATOR, "--listen", "tcp://127.0.0.1:*")
        assert refused.code == ExitCode.USAGE
        assert "another process records to this transcript" in refused.error["what"]
        assert cluster.running(CURATOR)


@pytest.mark.parametrize("name", [CURATOR, OWNER, CONSUMER])
def test_another_session_does_not_go_on_with_the_transcript(
    interrupted: Cluster, tmp_path: Path, name: str
) -> None:
    directory = copied(interrupted, name, tmp_path)
    before = contents(directory)
    text = (directory / "session.toml").read_text(encoding="utf-8")
    (directory / "session.toml").write_text(text.replace(f"points = {POINTS}", f"points = {POINTS - 1}"))
    refused = interrupted.start_in(directory, name)
    assert refused.code == ExitCode.USAGE
    assert refused.error["what"].endswith(
        f"{name}.transcript: the transcript of another session is there already, or of another party."
    )
    assert refused.error["advice"] == (
        "For a new session name another state directory, with `--state` or in the party's file."
    )
    assert contents(directory) == before


def test_a_curator_does_not_go_on_without_its_boxes(interrupted: Cluster, curator: Path) -> None:
    before = contents(curator)
    boxes = curator / "state" / "curator.boxes"
    boxes.unlink()
    refused = interrupted.start_in(curator, CURATOR)
    assert refused.code == ExitCode.USAGE
    assert "curator.boxes: " in refused.error["what"]
    assert "sealed boxes are not there, of which the transcript has the digests" in refused.error["what"]
    assert "Put the file back" in refused.error["advice"]
    assert contents(curator)["curator.transcript"] == before["curator.transcript"]


@pytest.mark.parametrize("name", [CURATOR, OWNER, CONSUMER])
def test_a_damaged_transcript_is_refused_and_left_as_it_is(
    interrupted: Cluster, tmp_path: Path, name: str
) -> None:
    directory = copied(interrupted, name, tmp_path)
    path = directory / "state" / f"{name}.transcript"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    before = contents(directory)
    refused = interrupted.start_in(directory, name)
    assert refused.code == ExitCode.FAILED
    assert refused.error["kind"] == "TranscriptDamaged"
    assert f"{name}.transcript: record " in refused.error["what"]
    assert contents(directory) == before


def test_all_parties_together_go_on_and_what_a_crash_left_of_a_record_is_cut_off(tmp_path: Path) -> None:
    """As after a power cut."""
    with session(tmp_path / "session", "ask-all") as cluster:
        begin(cluster)
        kill_all(cluster)
        for name in cluster.names:
            with cluster.transcript_path(name).open("ab") as file:
                file.write(bytes(range(7)))
        cluster.start_all()
        ended = end_well(cluster)
        for name in cluster.names:
            assert "its last record was cut off by a crash (7 bytes)" in ended[name].err
            assert "goes on after record" in ended[name].err
        check_whole(cluster, ended)


def test_a_curator_that_lost_records_is_found_out(tmp_path: Path) -> None:
    """It cannot know what it has forgotten; parties that heard it do."""
    with session(tmp_path / "session", "ask-all") as cluster:
        begin(cluster)
        cluster.signal(CURATOR, signal.SIGKILL)
        cluster.end(CURATOR)
        with cluster.transcript_path(CURATOR).open("r+b") as file:
            file.truncate(UNDER_WAY // 2)
        cluster.start(CURATOR)
        for ended in cluster.end(*OWNERS).values():
            assert ended.code == ExitCode.CONNECTION
            assert "(state-lost)" in ended.error["what"]
            assert "The curator was started again without its transcript." in ended.error["advice"]


@pytest.mark.parametrize("name", [CURATOR, OWNER, CONSUMER])
def test_a_session_that_is_over_is_told_of_again(over: tuple[Cluster, dict[str, Ended]], name: str) -> None:
    """Without any of the others, and with the same figures."""
    cluster, ended = over
    before = contents(cluster.directory(name))
    again = cluster.start_in(cluster.directory(name), name)
    assert again.code == ExitCode.DONE, again.err
    assert again.json == ended[name].json
    assert "the session was over for this party" in again.err
    assert contents(cluster.directory(name)) == before
    kept = ("delivered.npz", "result.json", "settings.json") if name == CONSUMER else ()
    assert set(before) == {f"{name}.transcript", *kept}


def test_who_came_too_early_or_was_killed_before_its_first_byte_takes_part(tmp_path: Path) -> None:
    with session(tmp_path / "session", "sealed", SHORT) as cluster:
        for name in cluster.names:
            cluster.transcript_path(name).parent.mkdir()
            cluster.transcript_path(name).touch()
        cluster.change(OWNER, {"timeouts.enrolment": 1.0})
        cluster.start(OWNER)
        early = cluster.end(OWNER)[OWNER]
        assert early.code == ExitCode.TIMEOUT
        assert "never answered" in early.error["what"]
        cluster.start_all()
        check_whole(cluster, end_well(cluster))


def test_a_state_directory_begun_before_the_charge_pays_for_no_second_run(tmp_path: Path) -> None:
    with session(tmp_path / "session", "sealed", SHORT) as cluster:
        parties = (CONSUMER, OWNER)
        states = [cluster.directory(name) / "state" for name in parties]
        cluster.start(*parties)
        cluster.until(lambda: all(recorded_bytes(cluster, name) for name in parties), "two beginnings")
        for name in parties:
            cluster.signal(name, signal.SIGKILL)
        cluster.end()
        for state in states:
            state.rename(state.with_name("second"))
        cluster.start_all()
        check_whole(cluster, end_well(cluster))
        for name, state in zip(parties, states, strict=True):
            state.rename(state.with_name("first"))
            state.with_name("second").rename(state)
            refused = cluster.start_in(cluster.directory(name), name)
            assert refused.code == ExitCode.USAGE
            assert "this session has been run before with these data" in refused.error["what"]


def test_one_start_with_a_wrong_state_directory_costs_nobody_the_session(tmp_path: Path) -> None:
    with session(tmp_path / "session", "sealed") as cluster:
        begin(cluster)
        cluster.signal(CURATOR, signal.SIGKILL)
        cluster.end(CURATOR)
        state = cluster.directory(CURATOR) / "state"
        state.rename(state.with_name("right"))
        cluster.start(CURATOR)
        refused = cluster.end(*OWNERS)
        assert {ended.code for ended in refused.values()} == {ExitCode.CONNECTION}
        assert ExitCode.CONNECTION.restart is Restart.AGAIN
        cluster.signal(CURATOR, signal.SIGKILL)
        cluster.end(CURATOR)
        shutil.rmtree(state)
        state.with_name("right").rename(state)
        for name in (CURATOR, *OWNERS):
            cluster.start(name)
        check_whole(cluster, end_well(cluster))


@pytest.mark.parametrize("name", [OWNER, CONSUMER])
def test_a_session_that_was_charged_is_not_run_anew_from_an_empty_transcript(
    over: tuple[Cluster, dict[str, Ended]], tmp_path: Path, name: str
) -> None:
    cluster, _ = over
    directory = copied(cluster, name, tmp_path)
    (transcript,) = (directory / "state").glob("*.transcript")
    whole = transcript.read_bytes()
    header = 16 + int.from_bytes(whole[12:16], "little") + 32
    for left in (b"", whole[:header]):
        transcript.write_bytes(left)
        ended = cluster.start_in(directory, name)
        assert ended.code == ExitCode.USAGE
        assert "this session has been run before with these data" in ended.error["what"]


def test_a_party_does_not_go_on_with_other_data(interrupted: Cluster, tmp_path: Path) -> None:
    directory = copied(interrupted, OWNER, tmp_path)
    with np.load(directory / "data.npz") as held:
        data = dict(held)
    for name in ("features", "labels"):
        other = {**data, name: data[name][::-1]}
        np.savez(directory / "data.npz", **other)
        ended = interrupted.start_in(directory, OWNER)
        assert ended.code == ExitCode.USAGE
        assert ended.error["what"] == "The data are not those that the session was begun with."


def test_a_party_does_not_go_on_with_other_timeouts_and_says_which(
    interrupted: Cluster, curator: Path
) -> None:
    file = curator / "session.toml"
    text = file.read_text(encoding="utf-8")
    assert "round = 120.0" in text
    file.write_text(text.replace("round = 120.0", "round = 121.0"), encoding="utf-8")
    before = contents(curator)
    ended = interrupted.start_in(curator, CURATOR)
    assert ended.code == ExitCode.USAGE
    assert "other timeouts" in ended.error["what"]
    assert "round = 120.0" in ended.error["advice"]
    assert contents(curator) == before
