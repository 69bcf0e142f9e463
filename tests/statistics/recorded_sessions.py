"""Simulated sessions with everything their parties hold and record, for attacks on redacted records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import FeatureMap, feature_map
from hushbid.protocol.space.grid import Features
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header, RecordedItem
from hushbid.protocol.transcript.redaction import redact
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Bid, SealedCandidate
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import MAP_SEED, names, session_file
from tests.support.transcripts import Transcript, fixed_salts, read_transcript

__all__ = [
    "COLUMNS",
    "DIMENSION",
    "LABELS",
    "NOISE_SEED",
    "OWNERS",
    "ROUNDS",
    "RecordedSession",
    "items_of",
    "read_image",
    "recorded",
    "redacted",
]

OWNERS = names(3)
COLUMNS, DIMENSION, ROUNDS = 5, 8, 6
POINTS, SEED_POINTS, VALIDATION_POINTS = 10, 9, 12
LABELS = ("melanoma", "blue naevus", "keratosis", "dermatitis", "psoriasis", "urticaria", "vitiligo")
NOISE_SEED = 7_203_685_477_580_601
"""With many digits, so that it can be searched for."""
_NOISY: Mapping[str, Any] = {
    "target": {"mechanism": "gaussian", "epsilon": 3.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "gaussian", "epsilon": 3.0, "neighbours": "add-remove-one"},
}


class RecordedSession(NamedTuple):
    """A simulated session.

    Attributes:
        session: Its file, opened.
        images: Every party's transcript.
        owners: Their data.
        validation: D_v.
        seed_set: D_init: the same in all sessions, since an attacker may know it.
        boxes: The sealed boxes of all bids.
        won: φ of the won points, in order: int16 of shape (p, d).
    """

    session: Session
    images: Mapping[str, bytes]
    owners: Mapping[str, Dataset]
    validation: Dataset
    seed_set: Dataset
    boxes: frozenset[bytes]
    won: Features

    def feature_map(self, scratch: Path) -> FeatureMap:
        """The map that hashes points: the consumer's secret, or public."""
        seed: int | bytes = MAP_SEED
        for item in items_of(read_image(scratch, self.images[CONSUMER])):
            secret = item.private.get("map_seed")
            if isinstance(secret, bytes) and secret:
                seed = secret
        return feature_map(
            "paired", seed=seed, dimension=DIMENSION, gamma=1.0, lower=0.0, upper=1.0, columns=COLUMNS
        )


def recorded(
    rule: str,
    *,
    seed: int = 1,
    rounds: int = ROUNDS,
    noisy: bool = False,
    noise_seed: int = NOISE_SEED,
    salts: Callable[[int], bytes] | None = None,
) -> RecordedSession:
    """Simulate a session, and keep everything that its parties have.

    Args:
        seed: Seed of the parties' data.
        rounds: Number of points to win.
        noisy: Whether releases have noise.
        noise_seed: Seed of the noise and of the parties' keys.
        salts: Source of transcripts' salts; None: fixed ones for each party and seed.
    """
    file = session_file(
        owners=OWNERS,
        points=rounds,
        rule=rule,
        dimension=DIMENSION,
        columns=COLUMNS,
        noise_seed=noise_seed,
        **(_NOISY if noisy else {}),
    )
    owners = {name: _data(name, POINTS, (seed, place)) for place, name in enumerate(OWNERS)}
    validation = _data("validation", VALIDATION_POINTS, (seed, 77))
    seed_set = _data("seed-set", SEED_POINTS, (88,))
    session = open_session(file)
    journals: dict[str, MemoryJournal] = {}
    boxes: set[bytes] = set()

    def journal(role: str, party: str) -> MemoryJournal:
        header = Header(role, party, session.identifier.hex(), file.digest(), "test", {}, "simulated")
        journals[party] = MemoryJournal(header, salts=salts or fixed_salts(f"{seed} {party}".encode()))
        return journals[party]

    def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
        if frame.kind == "bid" and receiver == CURATOR:
            message = decode_message(Direction.OWNER_TO_CURATOR, decode_frame(frame.data).body)
            if isinstance(message, Bid) and isinstance(message.candidate, SealedCandidate):
                boxes.add(message.candidate.box)

    outcome = Simulation(
        session, owners=owners, validation=validation, seed_set=seed_set, journal=journal, tap=tap
    ).run()
    assert {finish.code for finish in outcome.finishes.values()} == {ExitCode.DONE}
    won = np.array([win.candidate.features for win in outcome.curator.ledger.wins])
    assert won.shape == (rounds, DIMENSION)
    for journal_of_party in journals.values():
        journal_of_party.close()  # the last records let no frame leave, which would make them durable
    images = {party: journal.image for party, journal in journals.items()}
    return RecordedSession(session, images, owners, validation, seed_set, frozenset(boxes), won)


def _data(name: str, rows: int, seed: Sequence[int]) -> Dataset:
    rng = np.random.default_rng(seed)
    labels = rng.choice(np.array(LABELS), rows)
    identifiers = np.array([f"patient {rng.integers(10**12)} of {name}" for _ in range(rows)])
    return Dataset.from_arrays(name, rng.random((rows, COLUMNS)), labels, identifiers)


def read_image(scratch: Path, image: bytes) -> Transcript:
    """Read a transcript through a file."""
    scratch.write_bytes(image)
    return read_transcript(scratch)


def redacted(scratch: Path, image: bytes) -> bytes:
    """The transcript without its private fields."""
    scratch.write_bytes(image)
    pieces: list[bytes] = []
    redact(scratch, pieces.append)
    return b"".join(pieces)


def items_of(transcript: Transcript) -> Iterator[RecordedItem]:
    """Every event and effect, in order."""
    return (item for record in transcript.records for item in record.items)
