"""Sessions of real processes with an owner that was written from the documents alone.

It speaks CURVE over real sockets with our curator, beside our owners, under every rule with owners' answers.
It keeps no transcript; all others must hold, alone and together, with its signed farewell in the curator's.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.transcripts.verification.whole_session import verify_all
from tests.conftest import ROOT
from tests.interop.minimal import formats
from tests.interop.minimal.verifier import verify
from tests.processes.cluster import SEALED, SECURE, Cluster, bodies
from tests.processes.proxy import Proxy

pytestmark = pytest.mark.processes

MINIMAL = Path(__file__).parent / "minimal"
ALLOWED = {"msgpack", "nacl", "numpy", "zmq"}
"""What it may import besides the standard library and itself."""
MAX_LINES = {"shared": 545, "owner": 200, "consumer": 200, "verifier": 480}
"""Lines with text: of each program's own modules, and of those that several programs share."""
OWN = {
    "owner": ("__main__", "commitments"),
    "consumer": ("checks", "consumer"),
    "verifier": ("purchase", "transcript", "verifier"),
}
"""Modules of a program's own; the verifier has the consumer's `checks` besides."""
OURS, OTHER = ("heron", "magpie"), "ostrich"
PRIVATE: dict[str, Any] = {
    "session.allow_nonprivate": False,
    "target": {"mechanism": "filtered-gaussian", "epsilon": 5, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 5, "neighbours": "add-remove-one"},
}
TENDER = SEALED | {"acquisition.rule": "tender", "session.submission": 10}
PATIENT = {"timeouts.enrolment": 90.0, "timeouts.closing": 60.0}
"""Five processes start at a time, on a machine that others use too."""
CHANGES: dict[str, dict[str, Any]] = {
    "sealed": SEALED | SECURE | PRIVATE,
    "ask-all": SECURE | PRIVATE | {"acquisition.rule": "ask-all", "features.map": "cosine"},
    "winner-only": {"acquisition.rule": "winner-only"},
    "published": {"acquisition.rule": "published"},
    "logistic": {"acquisition.rule": "logistic", "acquisition.epsilon": 30, "session.points": 3},
    "sealed-batch": SEALED | SECURE | PRIVATE | {"session.points": 17, "session.batch": 3},
    "ask-all-batch": {"acquisition.rule": "ask-all", "session.points": 17, "session.batch": 3},
    "sealed-committed": SEALED | SECURE | PRIVATE | {"acquisition.commitment_depth": 9},
    "tender": TENDER | SECURE | PRIVATE | {"session.points": 17, "session.batch": 3, "summary": None},
}
"""Session → changes to its file; each session is named after its rule."""


def start_minimal(cluster: Cluster, name: str) -> None:
    """Start the owner of the documents as a process of the cluster's."""
    options = {"session": "session.toml", "name": name, "key": "secret.key", "data": "data.npz"}
    arguments = [word for option, value in options.items() for word in (f"--{option}", value)]
    cluster.run(name, ["-m", "tests.interop.minimal", *arguments], {"PYTHONPATH": str(ROOT)})


def bids_of(cluster: Cluster, owner: str) -> list[Any]:
    """An owner's bids, by the curator's transcript."""
    kind = "bid" if cluster.session.batch == 1 else "batch"
    kind = "submission" if cluster.session.rule.herds else kind
    found = bodies(cluster.records(CURATOR), CURATOR)[owner, CURATOR, kind]
    return [decode_message(Direction.OWNER_TO_CURATOR, body) for body in found]


SLOW = ("winner-only", "published", "ask-all-batch")
"""Sessions whose bids are as in `logistic`: they differ in whom the curator asks; and as in `ask-all` and
`sealed-batch`."""


@pytest.fixture(
    params=[pytest.param(rule, marks=[pytest.mark.slow] if rule in SLOW else []) for rule in CHANGES]
)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Cluster]]:
    rule = request.param
    owners = (*OURS, OTHER, "puffin") if rule == "logistic" else (*OURS, OTHER)
    with Cluster(
        tmp_path, owners, rows=8, changes={"session.points": 10, **PATIENT, **CHANGES[rule]}
    ) as cluster:
        minimal = [name for name in owners if name not in OURS]
        cluster.start_all(but=minimal)
        for name in minimal:
            start_minimal(cluster, name)
        yield rule, cluster


@pytest.mark.timeout(600)
def test_an_owner_of_the_documents_takes_part_under_every_rule(session: tuple[str, Cluster]) -> None:
    rule, cluster = session
    ended = cluster.end(seconds=240)
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0), cluster.log(
        OTHER
    )
    result = ended[CURATOR].json
    assert (result["refusals"], result["absences"], result["faults"]) == ([], {}, [])
    rounds = [1] * 4 if rule == "tender" else list(range(1, cluster.session.rounds + 1))
    assert [bid.round for bid in bids_of(cluster, OTHER)] == rounds
    delivered = ended[CONSUMER].json
    assert delivered["disputes"] == []
    assert delivered["points_delivered"] == cluster.session.file.session.points
    found = verify_all([cluster.transcript_path(name) for name in (CURATOR, CONSUMER, *OURS)])
    assert found["ok"], found
    assert OTHER in found["missing"]
    curators = next(each for each in found["transcripts"] if each["party"] == CURATOR)
    assert {each["party"]: each["signature"] for each in curators["signed_heads"]} == dict.fromkeys(
        cluster.names, "holds"
    )
    if cluster.session.rule.name in formats.WITH_POINTS:
        said = verify([cluster.transcript_path(name) for name in (CURATOR, CONSUMER, *OURS)])
        points = cluster.session.file.session.points
        assert f"{cluster.transcript_path(CURATOR)}: {points} points were bought, and all were due" in said
    if rule in ("sealed", "ask-all"):
        # Its eight points are handed over one a round; from then on it bids without one, in as many bytes.
        assert [bid.exhausted for bid in bids_of(cluster, OTHER)] == [False] * 8 + [True] * 2
        bids = bodies(cluster.records(CURATOR), CURATOR)[OTHER, CURATOR, "bid"]
        assert len(set(map(len, bids))) == 1
    if rule in ("sealed-batch", "ask-all-batch"):
        # Three a round: two batches of points, one with a point of padding, and then padding alone.
        handles = [batch.handles.tolist() for batch in bids_of(cluster, OTHER)]
        assert handles == [[1, 2, 3], [4, 5, 6], [7, 8, 0], *[[0, 0, 0]] * 3]
        batches = bodies(cluster.records(CURATOR), CURATOR)[OTHER, CURATOR, "batch"]
        assert len(set(map(len, batches))) == 1
    if rule == "tender":
        # Ten points are submitted in messages of three. All owners' messages have one length.
        handles = [submission.handles.tolist() for submission in bids_of(cluster, OTHER)]
        assert handles == [[1, 2, 3], [4, 5, 6], [7, 8, 0], [0, 0, 0]]
        came = bodies(cluster.records(CURATOR), CURATOR)
        submissions = [body for owner in (*OURS, OTHER) for body in came[owner, CURATOR, "submission"]]
        assert len(submissions) == 12
        assert len(set(map(len, submissions))) == 1


def imported(path: Path) -> set[str]:
    """The modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module))
    return found


def test_the_parties_of_the_documents_have_nothing_of_the_project() -> None:
    files = sorted(MINIMAL.glob("*.py"))
    modules = {name for path in files for name in imported(path)}
    own = {name for name in modules if name.startswith("tests.interop.minimal")}
    top = {name.partition(".")[0] for name in modules - own}
    assert top - sys.stdlib_module_names <= ALLOWED
    assert not {"importlib", "runpy", "subprocess"} & top, "nothing is imported behind the imports' back"
    programs = {module: name for name, modules in OWN.items() for module in modules}
    lines = Counter(
        programs.get(path.stem, "shared")
        for path in files
        for line in path.read_text().splitlines()
        if line.strip()
    )
    assert all(lines[name] < most for name, most in MAX_LINES.items()), lines


@pytest.mark.parametrize("module", ["__main__", "consumer", "verifier"])
def test_nothing_of_the_project_is_loaded_when_it_runs(module: str) -> None:
    code = (
        f"import sys, tests.interop.minimal.{module}; "
        "print(*sorted(n.partition('.')[0] for n in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"protocol", "owner", "curator", "consumer", "hushbid", "pydantic"} & set(ran.stdout.split())


def test_it_is_refused_by_name_where_the_curator_is_blind(tmp_path: Path) -> None:
    changes = SEALED | SECURE | {"acquisition.rule": "blind"}
    with Cluster(tmp_path, (*OURS, OTHER), changes=changes, anew=("curator",)) as cluster:
        cluster.start("curator")
        start_minimal(cluster, OTHER)
        cluster.until(lambda: not cluster.running(OTHER), "the refusal")
        ended = cluster.ended(OTHER)
    assert ended.code == 2
    assert "refused (version): No common version: with the rule blind the curator speaks 5" in ended.err


def test_it_connects_anew_where_a_frame_was_taken_out_on_the_line(tmp_path: Path) -> None:
    changes = SEALED | SECURE | PATIENT | {"session.points": 6, "timeouts.round": 3.0}
    seen: list[int] = []

    def without_a_broadcast(data: bytes, inward: bool) -> bytes | None:
        if inward or len(data) < 150:
            return None
        seen.append(len(data))
        return b"" if len(seen) == 5 else None

    with Cluster(tmp_path, (OURS[0], OTHER), rows=8, changes=changes) as cluster:
        proxy = Proxy(cluster.port)
        try:
            cluster.change(OTHER, {"network.address": f"tcp://127.0.0.1:{proxy.port}"})
            proxy.garble = without_a_broadcast
            cluster.start_all(but=[OTHER])
            start_minimal(cluster, OTHER)
            ended = cluster.end(seconds=240)
        finally:
            proxy.close()
        assert f"{OTHER} is here again" in cluster.log(CURATOR)
    assert proxy.garble is None, "there was such a frame"
    assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
    assert ended[CURATOR].json["refusals"] == []


TOO_LONG = (
    "import sys, tests.interop.minimal.__main__ as m, tests.interop.minimal.line as n\n"
    "old = n.Line._say\n"
    "def say(self, sequence, message):\n"
    "    if sequence == 3 and not self._held:\n"
    "        self._socket.send(bytes(10**6))\n"
    "    old(self, sequence, message)\n"
    "n.Line._say = say\n"
    "sys.exit(m.main())"
)
"""The owner of the documents; before its second bid it sends a frame that is longer than the session's."""


def test_who_sends_a_frame_that_is_too_long_is_cut_welcomed_again_and_done_in_the_end(tmp_path: Path) -> None:
    changes = SEALED | SECURE | PATIENT | {"session.points": 6, "timeouts.comeback": 60.0}
    with Cluster(tmp_path, (OURS[0], OTHER), rows=8, changes=changes) as cluster:
        cluster.start_all(but=[OTHER])
        options = {"session": "session.toml", "name": OTHER, "key": "secret.key", "data": "data.npz"}
        arguments = [word for option, value in options.items() for word in (f"--{option}", value)]
        cluster.run(OTHER, ["-c", TOO_LONG, *arguments], {"PYTHONPATH": str(ROOT)})
        ended = cluster.end(seconds=240)
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
        result, log = ended[CURATOR].json, cluster.log(CURATOR)
    assert (result["refusals"], result["absences"], result["points_delivered"]) == ([], {}, 6)
    assert f"a connection of {OTHER} was cut: framing; the peer may connect again" in log
    assert f"{OTHER} is here again" in log
