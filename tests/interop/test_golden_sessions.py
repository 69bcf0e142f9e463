"""A curator plays golden sessions to owners under test; for wrong ones it names the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from hushbid.interop.exchange import GOLDEN as SESSIONS
from hushbid.interop.exchange import OWNER, read_exchange
from hushbid.interop.mock_curator import difference, play
from hushbid.protocol.errors import ExitCode, VectorMismatch
from hushbid.protocol.names import CURATOR
from hushbid.running.fork_server import party_environment
from tests.conftest import ROOT
from tests.processes.cluster import free_port
from tests.processes.forked import ForkedProcess, PartyProcess

pytestmark = pytest.mark.processes

GOLDEN = ROOT / "docs" / "vectors" / "sessions"
MINIMAL = (
    "import sys, tests.interop.minimal.__main__ as m, tests.interop.minimal.formats as f\n"
    "import tests.interop.minimal.line as n\n"
)
RUN = "\nsys.exit(m.main())"
BROKEN = {
    "counts-from-0": (
        "ask-all",
        "old = m.Owner._bid\n"
        "def bid(self, *given):\n"
        "    said = old(self, *given)\n"
        "    return {**said, 'handle': said['handle'] - 1}\n"
        "m.Owner._bid = bid",
        "frame 2, a bid, field handle, byte 104: due was 01",
    ),
    "ties-by-row": (
        "winner-only",
        "m.sorted = lambda rows, key: sorted(rows, key=lambda row: (key(row)[0], row))",
        "frame 5, a bid, field handle, byte 104: due was 02",
    ),
    "rounds-up": (
        "ask-all",
        "old = m.FeatureMap.hash\nm.FeatureMap.hash = lambda self, points: old(self, points) + 1",
        "frame 2, a bid, field score",
    ),
    "map-for-attributes": (
        "ask-all",
        "old = m.Owner._candidate\n"
        "m.Owner._candidate = lambda self, row: {**old(self, row), 'attributes': b'\\x82'}",
        "frame 2, a bid, field candidate, byte ",
    ),
    "pads-with-ones": (
        "sealed",
        "old = f.content_of\nf.content_of = lambda *given: old(*given)[:-1] + b'\\1'",
        "field box: byte 127 of its content is 01, and 00 was due",
    ),
    "signs-another-round": (
        "sealed",
        "old = f.candidate_statement\n"
        "f.candidate_statement = lambda session, owner, turn, *rest: old(session, owner, turn + 1, *rest)",
        "field signature: it is not the owner's over what it hands over",
    ),
    "pads-a-batch-with-ones": (
        "sealed-batch",
        "old = f.content_of\nf.content_of = lambda *given: old(*given)[:-1] + b'\\1'",
        "field boxes: of point 1: byte 127 of its content is 01, and 00 was due",
    ),
    "digests-without-numbers": (
        "sealed-batch",
        "old = f.batched_digest\nf.batched_digest = lambda handle, *rest: old(0, *rest)",
        "field digests: of point 1: it is not that of its number, its box and its features",
    ),
    "signs-the-first-digest": (
        "sealed-batch",
        "old = f.batch_statement\n"
        "f.batch_statement = lambda session, owner, turn, digests: old(session, owner, turn, digests[:32])",
        "field signature: it is not the owner's over the digests",
    ),
    "padding-with-boxes": (
        "sealed-batch",
        "old = m.Owner._box\n"
        "m.Owner._box = lambda self, row, *_: bytes(reversed(old(self, 0))) if row == 5 else old(self, row)",
        "frame 4, a batch, field candidates, byte ",
    ),
    "a-shorter-batch-at-the-end": (
        "ask-all-batch",
        "old = m.Owner._candidates\n"
        "def candidates(self, turn, handles, rows):\n"
        "    return old(self, turn, handles[:2], rows[:2])\n"
        "m.Owner._candidates = candidates",
        "frame 2, a batch, field candidates, byte ",
    ),
    "aims-at-all-of-the-embedding": (
        "tender",
        "old = m.aimed\nm.aimed = lambda mechanism, *rest: old('exact', *rest)",
        "frame 3, a submission, field scores, byte ",
    ),
    "chooses-by-score": (
        "tender",
        "def chosen(values, aim, features):\n"
        "    return sorted(range(len(values)), key=lambda row: -int(values[row] @ aim))\n"
        "m.chosen = chosen",
        "frame 3, a submission, field scores, byte ",
    ),
    "begins-again-with-each-message": (
        "tender",
        "import numpy as np\n"
        "old = m.chosen\n"
        "def chosen(values, aim, features):\n"
        "    first = list(old(values, aim, features))[:3]\n"
        "    left = np.setdiff1d(range(len(values)), first)\n"
        "    return first + left[list(old(values[left], aim, features[left]))].tolist()\n"
        "m.chosen = chosen",
        "frame 4, a submission, field scores, byte ",
    ),
    "the-later-of-two-that-are-equal": (
        "tender",
        "old = m.chosen\nm.chosen = lambda *given: ({1: 3, 3: 1}.get(row, row) for row in old(*given))",
        "frame 3, a submission, field boxes: of point 1: byte ",
    ),
    "numbers-boxes-from-0": (
        "tender",
        "old = f.numbered_box\n"
        "f.numbered_box = lambda content, number, *keys: old(content, number - 1, *keys)",
        "frame 3, a submission, field boxes: of point 1: A sealed box does not open with our key.",
    ),
    "boxes-without-numbers": (
        "tender",
        "old = m.Owner._box\nm.Owner._box = lambda self, row, *rest: old(self, row)",
        "frame 3, a submission, field boxes: of point 1: A sealed box does not open with our key.",
    ),
    "repeats-the-last-node": (
        "tender",
        "old = f.tree\n"
        "def tree(nodes):\n"
        "    return old([*nodes, nodes[-1]] if len(nodes) == 3 else nodes)\n"
        "f.tree = tree",
        "field signature: it is not the owner's over the root of the digests' tree",
    ),
    "signs-without-the-depth": (
        "tender",
        "old = f.tree\nf.tree = lambda nodes: (len(nodes), old(nodes)[1])",
        "field signature: it is not the owner's over the root of the digests' tree",
    ),
    "signs-all-digests": (
        "tender",
        "f.submission_statement = f.batch_statement",
        "field signature: it is not the owner's over the root of the digests' tree",
    ),
    "other-defaults": (
        "ask-all",
        "f.DEFAULTS['session']['delta'] = 1e-6",
        "frame 1, a hello, field session, byte 5: due was ",
    ),
    "does-not-acknowledge": (
        "winner-only",
        "old = n.Line._say\n"
        "def say(self, sequence, message):\n"
        "    self._received, had = 0, self._received\n"
        "    old(self, sequence, message)\n"
        "    self._received = had\n"
        "n.Line._say = say",
        "frame 2, a bid, field acknowledged, byte 36: due was 01",
    ),
}
"""What is wrong with an owner → golden session, the fault as Python, and what the curator says of it."""

SLOW = ("ask-all", "ask-all-batch", "sealed-batch")
"""Sessions whose frames differ from those of `sealed` and `tender` only in how points are handed over."""
OF_THE_LINE = ("other-defaults", "does-not-acknowledge")
"""Faults that are played over a network."""


def furnished(rule: str, place: Path) -> str:
    """A golden session's files for an owner, at a free port; returns the address."""
    address = f"tcp://127.0.0.1:{free_port()}"
    values = tomllib.loads((GOLDEN / rule / "session.toml").read_text(encoding="utf-8"))
    values["network"]["address"] = address
    (place / "session.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    key = place / "owner.key"
    key.write_text((GOLDEN / rule / f"{OWNER}.key.txt").read_text())
    key.chmod(0o600)
    text = (GOLDEN / rule / "data.csv").read_text(encoding="utf-8")
    (place / "data.csv").write_text(text, encoding="utf-8")
    rows = [line.split(",", 4) for line in text.splitlines()[1:]]
    np.savez(
        place / "data.npz",
        features=np.array([[float(value) for value in row[:3]] for row in rows]),
        labels=np.array([row[3] for row in rows]),
        identifiers=np.array([row[4].strip('"') for row in rows]),
    )
    return address


def minimal(place: Path, fault: str = "") -> list[str]:
    """The command of the documents' owner, with a fault."""
    given = {"session": "session.toml", "key": "owner.key", "data": "data.npz"}
    files = [word for name, value in given.items() for word in (f"--{name}", str(place / value))]
    return ["-c", MINIMAL + fault + RUN, "--name", OWNER, *files]


def ours(place: Path) -> list[str]:
    """The command of our owner."""
    config = {
        "name": OWNER, "key": "owner.key", "state": "state", "data": "data.csv",
        "columns": {"features": ["first", "second", "third"], "label": "label", "identifier": "identifier"},
    }  # fmt: skip
    (place / "owner.toml").write_text(tomli_w.dumps(config), encoding="utf-8")
    return ["-m", "owner", "--session", str(place / "session.toml"), "--config", str(place / "owner.toml")]


def forked(place: Path, module: str, *arguments: str) -> ForkedProcess:
    """A module of ours as a process, with its output in files at `place`."""
    out, err = (place / f"{module}.{stream}" for stream in ("out", "err"))
    for path in (out, err):
        path.touch()
    environment = party_environment(os.environ) | {"PYTHONPATH": str(ROOT)}
    return ForkedProcess(module, arguments, directory=place, environment=environment, out=out, err=err)


def curator_process(place: Path, session: Path, *arguments: str) -> ForkedProcess:
    return forked(place, "hushbid", "interop", "curator", str(session), *arguments)


def started(place: Path, command: list[str]) -> PartyProcess:
    """An owner: the documents' is a Python of its own, which loads nothing of ours."""
    if command[0] == "-m":
        return forked(place, *command[1:])
    environment = party_environment(os.environ) | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-P", *command], stderr=subprocess.DEVNULL, env=environment)


def played(rule: str, address: str, command: list[str], place: Path) -> tuple[int, int, str]:
    """Exit codes of the curator and of the owner, and the curator's output."""
    curator = curator_process(place, GOLDEN / rule, "--listen", address)
    owner = started(place, command)
    try:
        curator_code = curator.wait(240)
        if curator_code:
            owner.kill()  # nobody ends the session
        owner_code = owner.wait(240)
    finally:
        for process in (curator, owner):
            process.kill()
            process.wait(60)
    return curator_code, owner_code, (place / "hushbid.err").read_text()


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        pytest.param(
            command,
            name,
            marks=[pytest.mark.slow] if name in SLOW else [],
            id=f"{command.__name__}-{name}",
        )
        for command in (minimal, ours)
        for name in SESSIONS
        if (command, name) != (minimal, "blind")
    ],
)
def test_an_owner_answers_as_recorded(
    rule: str, command: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    address = furnished(rule, tmp_path)
    curator, owner, said = played(rule, address, command(tmp_path), tmp_path)
    assert (curator, owner) == (0, 0), said
    steps = json.loads((GOLDEN / rule / "exchange.json").read_text())["steps"]
    count = sum(step["from"] == "owner" for step in steps)
    assert said.splitlines()[-1] == f"All {count} frames are as recorded."


def first_difference(golden: str, fault: str, place: Path, fresh: pytest.MonkeyPatch) -> str:
    """The finding about the first wrong answer of the documents' owner, played without a network."""
    for name in [name for name in sys.modules if name.startswith("tests.interop.minimal")]:
        fresh.delitem(sys.modules, name)  # what the fault changes is thrown away with the test
    m, f = (import_module(f"tests.interop.minimal.{name}") for name in ("__main__", "formats"))
    exec(fault, {"m": m, "f": f})
    furnished(golden, place)
    session = f.Session.read(place / "session.toml")
    owner = m.Owner(session, OWNER, f.key_of_file(place / "owner.key"), place / "data.npz")
    exchange = read_exchange(GOLDEN / golden)
    said: deque[bytes] = deque()
    told = number = 0
    for step in exchange.steps:
        frame = f.Frame.read(step.data)
        if step.sender == CURATOR:
            if frame.sequence:
                told = frame.sequence
                said.append(f.packed(owner.answer(f.message_of(frame.body))))
            continue
        number += 1
        if frame.sequence:  # the hello has none
            data = f.Frame(session.identifier, frame.sequence, told, said.popleft()).data
            found = difference(exchange.session, step, data, number, told)
            if found is not None:
                return str(found)
    assert not said
    return ""


@pytest.mark.parametrize("rule", [rule for rule in SESSIONS if rule != "blind"])
def test_without_a_fault_there_is_no_difference(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_difference(rule, "", tmp_path, monkeypatch) == ""


@pytest.mark.parametrize("fault", [fault for fault in BROKEN if fault not in OF_THE_LINE])
def test_of_a_wrong_answer_the_first_byte_is_named(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, code, expected = BROKEN[fault]
    assert expected in first_difference(rule, code, tmp_path, monkeypatch)


@pytest.mark.parametrize("fault", OF_THE_LINE)
def test_of_a_broken_owner_the_first_byte_is_named(fault: str, tmp_path: Path) -> None:
    rule, code, expected = BROKEN[fault]
    address = furnished(rule, tmp_path)
    environment = party_environment(os.environ) | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-P", *minimal(tmp_path, code)], env=environment) as owner:
        try:
            with pytest.raises(VectorMismatch) as caught:
                play(read_exchange(GOLDEN / rule), listen=address, seconds=60.0, say=lambda _line: None)
        finally:
            owner.kill()
    assert expected in caught.value.what
    assert caught.value.exit_code is ExitCode.FAILED


def test_who_does_not_come_is_waited_for_no_longer_than_was_said(tmp_path: Path) -> None:
    address = furnished("ask-all", tmp_path)
    curator = curator_process(tmp_path, GOLDEN / "ask-all", "--listen", address, "--seconds", "0.2", "--json")
    assert curator.wait(240) == 3
    assert json.loads((tmp_path / "hushbid.out").read_text())["error"]["kind"] == "TimedOut"


def test_a_directory_without_a_golden_session_is_refused(tmp_path: Path) -> None:
    assert curator_process(tmp_path, tmp_path).wait(240) == 4
    assert "no golden session" in (tmp_path / "hushbid.err").read_text()
