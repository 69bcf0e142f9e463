"""A verifier written from the documents recomputes sessions, and finds a forger's changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.wire.codec import decode_message, encode_message, said_to
from hushbid.protocol.wire.messages import Delivery
from hushbid.simulation.simulator import Simulation
from hushbid.transcripts.verification.whole_session import verify_all
from tests.conftest import ROOT
from tests.interop.minimal.transcript import Wrong
from tests.interop.minimal.verifier import verify
from tests.simulation.harness import names, session_file
from tests.support.forgeries import header_of, recorded, rewritten, session_of, with_frame, written
from tests.support.transcripts import fixed_salts

GOLDEN = ROOT / "tests" / "golden" / "transcripts"
OWNERS = names(3)


@pytest.mark.parametrize("name", ["session-2", "tender"])
def test_golden_sessions_hold(name: str) -> None:
    paths = sorted((GOLDEN / name).glob("*.transcript"))
    said = verify(paths)
    assert "3 points were bought, and all were due" in "\n".join(said)
    ours = {each["path"]: each["head"] for each in verify_all(paths)["transcripts"]}
    for path, head in ours.items():
        assert any(line.startswith(path) and line.endswith(head) for line in said)


def images_of(session: Session, seed: int) -> dict[str, bytes]:
    """Transcripts of a session whose owners hold the same points, some of them twice."""
    rng = np.random.default_rng(seed)
    shared = rng.integers(0, 3, (8, 3)) / 2.0
    journals: dict[str, MemoryJournal] = {}

    def journal(role: str, party: str) -> MemoryJournal:
        salts = fixed_salts(party.encode())
        journals[party] = MemoryJournal(header_of(session, role, party), salts=salts)
        return journals[party]

    def points(name: str, count: int) -> Dataset:
        return Dataset.from_arrays(name, shared[rng.integers(0, len(shared), count)])

    Simulation(
        session,
        owners={name: points(name, 7) for name in session.file.owners},
        validation=Dataset.from_arrays("v", rng.random((6, 3))),
        seed_set=Dataset.from_arrays("s", rng.random((4, 3))),
        journal=journal,
    ).run()
    for each in journals.values():
        each.close()
    return {party: each.image for party, each in journals.items()}


PRICES: dict[str, Any] = {"prices": dict(zip(OWNERS, (1.0, 2.5, 1.25), strict=True))}
SESSIONS: Mapping[str, Mapping[str, Any]] = {
    "sealed": {"rule": "sealed", "batch": 1, "jitter": 50.0, "distinct": True},
    "sealed-batch": {"rule": "sealed", "batch": 2, "jitter": 25.0, "distinct": True},
    "with-copies": {"rule": "sealed", "batch": 2, "jitter": 0.0, "distinct": False},
    "ask-all": {"rule": "ask-all", "batch": 3, "distinct": True},
    "prices": {"rule": "sealed", "batch": 2, "distinct": False, "wishes": PRICES},
    "tender": {"rule": "tender", "batch": 3, "submission": 6, "distinct": True},
    "tender-with-copies": {"rule": "tender", "batch": 3, "submission": 6, "distinct": False},
    "tender-with-prices": {
        "rule": "tender", "batch": 3, "submission": 6, "distinct": True, "wishes": PRICES | {"budget": 8.0},
    },
    "tender-with-caps": {
        "rule": "tender", "batch": 3, "submission": 6, "distinct": True,
        "wishes": PRICES | {"caps": {OWNERS[0]: 1, OWNERS[2]: 2}, "budget": 9.5},
    },
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SESSIONS)
def test_what_was_bought_is_recomputed(name: str, seed: int, tmp_path: Path) -> None:
    """Ties, copies, padding, prices, a budget and caps."""
    session = open_session(session_file(owners=OWNERS, points=5, columns=3, dimension=8, **SESSIONS[name]))
    images = images_of(session, seed)
    said = verify(written(images, tmp_path))
    assert any(line.endswith("points were bought, and all were due") for line in said), said
    assert sum("agree" in line for line in said) == len(OWNERS) + 1


def other_byte(image: bytes, _place: Path) -> bytes:
    return image[:-40] + bytes([image[-40] ^ 1]) + image[-39:]


def changed_delivery(change: Callable[[Delivery], Delivery]) -> Callable[[bytes, Path], bytes]:
    """The curator rewrites what it delivered, and signs anew."""

    def body(frame: dict[str, Any]) -> bytes:
        message = decode_message(said_to(CONSUMER)(CURATOR), frame["body"])
        assert isinstance(message, Delivery)
        return encode_message(change(message))

    def change_record(record: Record) -> Record:
        return with_frame(record, lambda kind, frame: frame["message"] == "delivery", body=body)

    def forged(image: bytes, place: Path) -> bytes:
        return rewritten(image, place, change_record, session=session_of("sealed"))

    return forged


def turned_round(delivery: Delivery) -> Delivery:
    return delivery.model_copy(update={"purchases": delivery.purchases[::-1]})


def one_less(delivery: Delivery) -> Delivery:
    return delivery.model_copy(update={"purchases": delivery.purchases[:-1]})


def another_score(image: bytes, place: Path) -> bytes:
    """The best owner's first bid has another score than its point: the owner should have been absent."""

    def body(frame: dict[str, Any]) -> bytes:
        message: Any = decode_message(said_to(CURATOR)(frame["peer"]), frame["body"])
        return encode_message(message.model_copy(update={"score": message.score + 1}))

    def change(record: Record) -> Record:
        return with_frame(record, lambda kind, frame: frame["message"] == "bid", body=body)

    return rewritten(image, place, change, session=session_of("sealed"))


def unsigned_head(image: bytes, place: Path) -> bytes:
    """Records are changed by a forger without the party's key."""

    def change(record: Record) -> Record | None:
        return record if record.number != 3 else None

    return rewritten(image, place, change)


@pytest.mark.parametrize(
    ("forge", "what"),
    [
        (other_byte, "does not hold"),
        (changed_delivery(turned_round), "purchase 0 is "),
        (changed_delivery(one_less), "and None was due|None, and .* was due"),
        (another_score, "was due"),
        (unsigned_head, "after|another head was signed"),
    ],
    ids=["byte", "order", "one-less", "score", "head"],
)
def test_what_a_curator_rewrote_is_found(
    forge: Callable[[bytes, Path], bytes], what: str, tmp_path: Path
) -> None:
    image = forge(recorded("sealed")[CURATOR], tmp_path)
    with pytest.raises(Wrong, match=what):
        verify(written({CURATOR: image}, tmp_path))


def test_a_frame_that_its_sender_has_not_sent_is_found(tmp_path: Path) -> None:
    """An owner's file has another bid than the curator's."""
    images = dict(recorded("sealed"))
    images[OWNERS[0]] = another_score(images[OWNERS[0]], tmp_path)
    with pytest.raises(Wrong, match=r"has not sent these bytes|has signed another head"):
        verify(written(images, tmp_path))
