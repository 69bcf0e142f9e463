"""What the curator of a sealed session holds: no raw point, no label, no D_v, no map.

Everything that a curator has is searched when it has most, before the receipt: its state directory, every
frame to and from it, and its process's memory. The same search finds points and labels with a curator that is
handed them.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.files.box_file import read_boxes
from hushbid.protocol.space.features import SEED_BYTES
from tests.processes.byte_search import those_in
from tests.processes.cluster import SEALED, SECURE, Cluster, Ended, bodies

OWNERS = ("heron", "magpie", "ostrich")
PACER = "ostrich"
"""An owner on the test's side, which keeps a round open until the consumer was stopped."""
ROUNDS = 12
ROWS = 30
COLUMNS = 12
LARGEST = 250
"""Raw values are whole numbers up to it, so that every number type can hold them."""
PAGE = 4096
TYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "<u1", ">f8", ">f4", ">i8", ">i4", ">i2")
_GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "epsilon": 8.0}
CHANGES: dict[str, Any] = {
    "session.points": ROUNDS,
    "features.columns": COLUMNS,
    "features.upper": float(LARGEST),
    "target": _GAUSSIAN | {"neighbours": "substitute-one"},
    "summary": _GAUSSIAN | {"neighbours": "add-remove-one"},
}


@dataclass(frozen=True)
class Session:
    """A finished session, and what its curator held before the receipt."""

    cluster: Cluster
    ended: dict[str, Ended]
    held: Path
    """A copy of the curator's state directory."""
    memory: bytes
    """The writable memory of its process; empty where the system does not show it."""


def furnish(cluster: Cluster) -> dict[str, np.ndarray[Any, Any]]:
    """Give every party distinctive rows and labels; by "party" or "party file"."""
    rng = np.random.default_rng(5)
    rows = {}
    files = {owner: cluster.directory(owner) / "data.npz" for owner in cluster.owners}
    files["consumer validation"] = cluster.directory("consumer") / "validation.npz"
    files["consumer seed"] = cluster.directory("consumer") / "seed.npz"
    for name, path in files.items():
        features = rng.integers(1, LARGEST, (ROWS, COLUMNS))
        np.savez(
            path,
            features=features.astype(np.float64),
            labels=np.array([label(name, row) for row in range(ROWS)]),
            identifiers=np.array([f"{name}#{row:04d}" for row in range(ROWS)]),
        )
        rows[name] = features
    return rows


def label(name: str, row: int) -> str:
    return f"species of {name} {row:03d}"


def memory_of(process: int) -> bytes:
    """The writable memory of a process: heap, stacks and arrays; empty where the system forbids it."""
    found = []
    try:
        with (
            Path(f"/proc/{process}/maps").open(encoding="ascii") as maps,
            Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory,
        ):
            for line in maps:
                span, rights, *_ = line.split()
                if not rights.startswith("rw") or "[v" in line:
                    continue
                start, end = (int(place, 16) for place in span.split("-"))
                memory.seek(start)
                found.append(memory.read(end - start))
    except OSError:
        return b""
    # Pages of nothing are left out: there is nothing in them, and they are most.
    pages = np.frombuffer(b"".join(found), np.uint8).reshape(-1, PAGE)
    return pages[pages.any(axis=1)].tobytes()


def run(place: Path, changes: Mapping[str, Any]) -> Session:
    # The others are forked; into a forked curator's memory would come what was in the memory before.
    with Cluster(place, OWNERS, rows=ROWS, changes={**CHANGES, **changes}, anew=[CURATOR]) as cluster:
        furnish(cluster)
        pacer = cluster.puppet(PACER)
        pacer.hold_bids_from(ROUNDS // 2)
        cluster.start("curator", "consumer", *(name for name in OWNERS if name != PACER))
        cluster.until(lambda: pacer.held, "the middle of the session")
        cluster.signal("consumer", signal.SIGSTOP)
        pacer.let_go()
        key = ("curator", "consumer", "delivery")
        cluster.until(lambda: key in bodies(cluster.records("curator"), "curator"), "the delivery")
        held = place / "held"
        # The curator lives, and a status that it writes has another name for a moment.
        state = cluster.directory("curator") / "state"
        shutil.copytree(state, held, ignore=shutil.ignore_patterns(".*.status.new"))
        memory = memory_of(cluster.processes["curator"].pid)
        cluster.signal("consumer", signal.SIGCONT)
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(ended, 0)
        return Session(cluster, ended, held, memory)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return run(tmp_path_factory.mktemp("sealed"), SEALED | SECURE)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The control: the same parties, with a rule by which the curator is handed points."""
    return run(tmp_path_factory.mktemp("opened"), SECURE)


def state_of(directory: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def frames_of(session: Session) -> bytes:
    """Every message to and from the curator, as its peers' transcripts have them, boxes included."""
    found = []
    for name in ("consumer", "heron", "magpie"):
        for (_, _, _), sent in sorted(bodies(session.cluster.records(name), name).items()):
            found += sent
    return b"\0".join(found)


def after_the_end(session: Session) -> bytes:
    return state_of(session.cluster.directory("curator") / "state")


PLACES: dict[str, Callable[[Session], bytes]] = {
    "its state before the receipt": lambda session: state_of(session.held),
    "its state after the end": after_the_end,
    "its frames": frames_of,
    "its log and result": lambda session: (
        session.ended["curator"].out.encode() + session.ended["curator"].err.encode()
    ),
}


def rows_and_labels(session: Session) -> dict[str, list[bytes]]:
    """What must not be found, by kind."""
    cluster = session.cluster
    wanted: dict[str, list[bytes]] = {"rows": [], "labels": []}
    sources = {owner: cluster.dataset(owner) for owner in cluster.owners}
    sources["consumer validation"] = cluster.dataset("consumer", "validation.npz")
    sources["consumer seed"] = cluster.dataset("consumer", "seed.npz")
    for name, dataset in sources.items():
        for row, point in enumerate(dataset.features):
            wanted["rows"] += [point.astype(kind).tobytes() for kind in TYPES]
            wanted["rows"] += [(point / LARGEST).astype(kind).tobytes() for kind in ("<f8", "<f4")]
            wanted["labels"] += [label(name, row).encode(), f"{name}#{row:04d}".encode()]
    return wanted


def count(kept: bytes, wanted: dict[str, list[bytes]]) -> dict[str, int]:
    """How many of these occur, by kind."""
    # What begins with zeros is as certain without them, and then differs more from memory that is empty.
    texts = {text.lstrip(b"\0") for each in wanted.values() for text in each}
    there = those_in(kept, texts)
    return {what: sum(text.lstrip(b"\0") in there for text in each) for what, each in wanted.items()}


def secrets_of_the_map(session: Session) -> dict[str, list[bytes]]:
    """The seed that the consumer drew, and the digest of its map."""
    (released,) = [
        item
        for record in session.cluster.records("consumer")
        for item in record.items
        if item.kind == "target-released"
    ]
    seed = released.private["map_seed"]
    assert isinstance(seed, bytes)
    assert len(seed) == SEED_BYTES
    return {"seed": [seed], "digest": [session.cluster.session.space.map(seed).digest]}


@pytest.mark.parametrize("place", PLACES)
def test_a_sealed_curator_holds_no_row_label_or_map(sealed: Session, place: str) -> None:
    kept = PLACES[place](sealed)
    assert len(kept) > 100
    assert count(kept, rows_and_labels(sealed)) == {"rows": 0, "labels": 0}
    assert count(kept, secrets_of_the_map(sealed)) == {"seed": 0, "digest": 0}


@pytest.mark.parametrize("place", ["its state before the receipt", "its frames"])
def test_the_same_search_finds_what_another_curator_is_handed(opened: Session, place: str) -> None:
    kept = PLACES[place](opened)
    found = count(kept, rows_and_labels(opened))
    assert found["rows"] >= 2 * ROUNDS
    assert found["labels"] >= 2 * 2 * ROUNDS


def test_the_memory_of_a_sealed_curator_holds_none_of_them(sealed: Session, opened: Session) -> None:
    if not sealed.memory:
        pytest.skip("this system shows no process another's memory")

    # There a point is of the type that its owner's file has. Memory is large: less is looked for.
    def wanted(session: Session) -> dict[str, list[bytes]]:
        datasets = [session.cluster.dataset(owner) for owner in ("heron", "magpie")]
        datasets.append(session.cluster.dataset("consumer", "validation.npz"))
        rows = [row.tobytes() for dataset in datasets for row in dataset.features]
        return {"rows": rows, "labels": [label("", 0).partition("  ")[0].encode()]}

    found = count(opened.memory, wanted(opened))
    assert found["rows"] >= 2 * ROUNDS, "the control"
    assert found["labels"] == 1, "the control"
    assert count(sealed.memory, wanted(sealed)) == {"rows": 0, "labels": 0}
    assert count(sealed.memory, secrets_of_the_map(sealed)) == {"seed": 0, "digest": 0}


def test_the_search_finds_the_map_where_it_is_known(sealed: Session) -> None:
    # The consumer drew it, so its own transcript has it; and owners have opened it.
    kept = sealed.cluster.transcript_path("consumer").read_bytes()
    assert count(kept, secrets_of_the_map(sealed))["seed"] == 1


def test_the_consumer_bought_what_the_owners_sealed(sealed: Session) -> None:
    result = sealed.ended["consumer"].json
    assert result["points_delivered"] == ROUNDS
    assert result["disputed"] == 0
    assert sealed.ended["curator"].json["points_accessed"] == 0
    with np.load(sealed.cluster.directory("consumer") / "state" / "delivered.npz") as delivered:
        labels = {str(text) for text in delivered["labels"]}
    assert labels <= {label(owner, row) for owner in OWNERS for row in range(ROWS)}
    assert len(labels) == ROUNDS


def test_boxes_are_kept_until_the_receipt_and_gone_after_it(sealed: Session) -> None:
    boxes = read_boxes(sealed.held / "curator.boxes")
    assert len(boxes) == ROUNDS * len(OWNERS)
    assert len(set(boxes)) == len(boxes)
    assert len({len(box) for box in boxes}) == 1
    state = sealed.cluster.directory("curator") / "state"
    assert not (state / "curator.boxes").exists()
    kept = after_the_end(sealed)
    # A transcript has the digests of boxes, and the delivery of those that were bought.
    assert sum(box in kept for box in boxes) == ROUNDS


def test_what_a_curator_keeps_of_boxes_is_for_its_user_only(sealed: Session) -> None:
    assert os.stat(sealed.held / "curator.boxes").st_mode & 0o077 == 0
