"""`hushbid bench peers`: installed peers run their rounds, and the others are left out visibly."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hushbid.cli.app import main
from hushbid.lab.bench import peer_process
from hushbid.lab.bench.peer_process import PEERS, Peer, PeerAbsent, peer_rounds, pythons
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.extras import missing

TINY = ("--owners=2", "--points=60", "--columns=4", "--rounds=3", "--batch=2", "--repeats=1")
FAKE = Peer("a fake", "fake.py", (), "fake")


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    """No test leaves a process."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "dask" else []) for name in PEERS]
)
def test_a_peer_makes_its_rounds_and_tells_its_version(name: str) -> None:
    peer = PEERS[name]
    absent = [module for module in peer.modules if missing(module)]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed: pip install '{peer.install}'")
    version, cost = peer_rounds(peer, Path(sys.executable), 2, 5, broadcast_bytes=700, reply_bytes=1500)
    assert version[0].isdigit()
    assert cost.rounds == 5
    assert cost.seconds > 0
    assert cost.processor_seconds > 0


def test_peers_that_are_not_installed_have_rows_that_say_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peer_process, "missing", lambda _module: True)
    monkeypatch.setattr(sys, "argv", ["hushbid", "bench", "peers", *TINY, "--json"])
    with pytest.raises(SystemExit) as ending:
        main()
    out, err = capfd.readouterr()
    assert ending.value.code == 0, err
    result = json.loads(out)
    rows = {row["what"]: row for row in result["rows"]}
    assert len(rows) == len(result["rows"]) == 4 + len(PEERS)
    for peer in PEERS.values():
        row = rows[peer.what]
        assert row["note"] == f"not installed: pip install '{peer.install}'"
        assert row["seconds_per_round"] is row["processor_seconds_per_round"] is row["bare_ratio"] is None
    measured = [row for row in result["rows"] if row["note"] is None]
    assert [row["what"].partition(",")[0] for row in measured] == [
        "hushbid", "hushbid", "bare ZeroMQ loop", "bare ZeroMQ loop"
    ]  # fmt: skip
    for row in measured:
        assert row["processor_seconds_per_point"] == row["processor_seconds_per_round"] / 2 > 0
        assert row["seconds_per_round"] > 0
        assert row["reply_bytes"] > 2 * 1024, "the boxes of two points are in a reply"
    [bare] = [row for row in measured if row["what"].endswith("loop, CURVE")]
    assert bare["bare_ratio"] == 1.0


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path for a peer's script."""
    monkeypatch.setattr(peer_process, "_SCRIPTS", tmp_path)
    return tmp_path / FAKE.script


def test_a_peer_that_fails_is_left_out_with_its_last_word(script: Path) -> None:
    script.write_text("import sys\nprint('started')\nsys.exit('it went\\x1b wrong')\n")
    with pytest.raises(PeerAbsent, match=r"^made no rounds: it went\\x1b wrong$"):
        peer_rounds(FAKE, Path(sys.executable), 1, 1, 1, 1)


def test_a_peer_that_hangs_is_ended_with_all_that_it_started(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_process, "PATIENCE", 3.0)
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    script.write_text(
        "import subprocess, sys\nprint('hushbid-bench ready 1', flush=True)\ninput()\n"
        f"subprocess.run({child})\n"
    )
    with pytest.raises(PeerAbsent, match="made no rounds"):
        peer_rounds(FAKE, Path(sys.executable), 1, 1, 1, 1)


def test_only_its_rounds_count_and_with_all_its_processes(script: Path) -> None:
    burn = "t = time.process_time()\nwhile time.process_time() - t < {}: pass\n"
    inner = "import time\ninput()\n" + burn.format(0.2) + "print(flush=True)\ninput()\n"
    script.write_text(
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {inner!r}], stdin=subprocess.PIPE, "
        "stdout=subprocess.PIPE)\n"
        + burn.format(0.5)
        + "print('hushbid-bench ready 7.8', flush=True)\ninput()\n"
        "child.stdin.write(b'\\n'); child.stdin.flush()\n"
        + burn.format(0.1)
        + "child.stdout.readline()\nprint('hushbid-bench done', flush=True)\ninput()\n"
        "child.communicate(b'\\n')\n"
    )
    version, cost = peer_rounds(FAKE, Path(sys.executable), 1, 2, 1, 1)
    assert version == "7.8"
    assert cost.rounds == 2
    assert 0.3 <= cost.processor_seconds < 0.5


def test_another_environment_is_asked_for_what_this_one_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_process, "missing", lambda module: module != "distributed")
    own = Path(sys.executable)
    monkeypatch.setattr(peer_process, "_has", lambda python, modules: "grpc" in modules)
    other = Path("other/python")
    assert pythons(other) == {"grpc": other, "dask": own, "flower": None}
    assert pythons(None) == {"grpc": None, "dask": own, "flower": None}


@pytest.mark.parametrize("there", [True, False])
def test_another_environment_has_a_module_or_not(there: bool) -> None:
    module = "xml.dom" if there else "no_such_module.of_none"
    assert peer_process._has(Path(sys.executable), ["json", module]) == there


def test_a_python_that_does_not_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_process, "missing", lambda _module: True)
    with pytest.raises(ConfigError, match="does not run"):
        pythons(tmp_path / "python")
