"""Simulated sessions of `blind` and `sealed` over one set of rows, with their curators' records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from hushbid.owner.numerics import BlindOwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.blinding import MASK_BYTES, NOT_SENT, BlindKeys, Mask
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Received
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.grid import Features, exact_scores
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.wire.bids import bids_of
from hushbid.protocol.wire.blind import BlindBid
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import Batch
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file
from tests.statistics.recorded_sessions import items_of, read_image
from tests.support.transcripts import fixed_salts

__all__ = [
    "EARLY",
    "NOTHING",
    "OWNERS",
    "Blind",
    "Sealed",
    "Source",
    "blind",
    "file_of",
    "items_in",
    "played",
    "received",
    "sealed",
    "seed_in",
]

OWNERS = names(4)
ROWS = 250
"""Of each owner."""
BATCH = 4
GAMMA = 0.1
EARLY = 10
"""Points that came by this round are looked at: they are scored in most rounds."""
NOTHING = -1
"""In the place of a masked score that was not sent."""
_PRIVATE: Mapping[str, Any] = {
    "target": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "substitute-one"},
    "summary": {"mechanism": "filtered-gaussian", "epsilon": 1.0, "neighbours": "add-remove-one"},
}

Matrix = npt.NDArray[Any]


class Source(NamedTuple):
    """Rows that owners get.

    Attributes:
        rows: In [0, 1], shape (n, columns), scaled for a kernel with `GAMMA`.
        labels: Their classes, shape (n,).
    """

    rows: Matrix
    labels: Matrix


_DIGITS = load_digits()
source = Source(_DIGITS.data / 16.0, _DIGITS.target)
"""Of all sessions of the process; `hushbid` has no other data to test with (`attacks_on_data`)."""


class _All(BlindOwnerNumerics):
    """The control: sends every score, even those on which nothing can depend."""

    def _masked(self, mask: Mask, weights: Any) -> bytes:
        rows = self._points().rows(np.array(self._sent, dtype=np.intp))
        scores = exact_scores(rows, weights).tolist()
        return b"".join(mask.of(scores, rows))


class _Open(_All):
    """The control: the mask is off; a masked score is the score plus a constant."""

    def _masked(self, mask: Mask, weights: Any) -> bytes:
        return super()._masked(_OpenMask(), weights)  # type: ignore[arg-type]


class _OpenMask:
    def of(self, scores: list[int], features: Features) -> list[bytes]:
        return [(score + 2**80).to_bytes(MASK_BYTES, "big") for score in scores]


KINDS: Mapping[str, type[BlindOwnerNumerics] | None] = {"as built": None, "all scores": _All, "open": _Open}


class Blind(NamedTuple):
    """A session of `blind`.

    Attributes:
        masked: The curator's record: the masked score of each box in each round, whole numbers in an object
            array of shape (n, T); `NOTHING` where none was sent or the box had not come.
        owner: The owner of each box, shape (n,).
        came: The round in which each came, shape (n,).
        rows: The content of each, shape (n, columns).
        features: φ of these, int16 of shape (n, d).
        weights, keys: As a colluding owner has them; weights as broadcast, int32 of shape (T, d).
    """

    masked: Matrix
    owner: Matrix
    came: Matrix
    rows: Matrix
    features: Features
    weights: Matrix
    keys: BlindKeys
    session: Session


class Sealed(NamedTuple):
    """A session of `sealed`: for each point handed to its curator, φ and the row in its box."""

    features: Features
    rows: Matrix


def played(file: SessionFile, owner: Callable[..., Any]) -> tuple[Session, dict[str, bytes], Matrix]:
    """A session of a file, every party's transcript, and the rows of each owner."""
    every = source.rows[np.random.default_rng(3).permutation(len(source.rows))[: ROWS * len(OWNERS) + 160]]
    held = {name: every[ROWS * at : ROWS * (at + 1)] for at, name in enumerate(OWNERS)}
    rest = every[ROWS * len(OWNERS) :]
    session = open_session(file)
    journals: dict[str, MemoryJournal] = {}

    def journal(role: str, party: str) -> MemoryJournal:
        header = Header(role, party, session.identifier.hex(), file.digest(), "test", {}, "simulated")
        journals[party] = MemoryJournal(header, salts=fixed_salts(party.encode()))
        return journals[party]

    outcome = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rows) for name, rows in held.items()},
        validation=Dataset.from_arrays("validation", rest[:100]),
        seed_set=Dataset.from_arrays("seed-set", rest[100:]),
        journal=journal,
        owner=owner,
    ).run()
    assert {finish.code for finish in outcome.finishes.values()} == {ExitCode.DONE}
    for kept in journals.values():
        kept.close()
    return session, {party: kept.image for party, kept in journals.items()}, np.stack(list(held.values()))


def file_of(rule: str, rounds: int, dimension: int, *, private: bool = True, **more: Any) -> SessionFile:
    """The file of a session of these rows; releases are exact unless they are private."""
    file = session_file(
        owners=OWNERS,
        points=BATCH * rounds,
        batch=BATCH,
        rule=rule,
        dimension=dimension,
        columns=source.rows.shape[1],
        seed_weight=0.1,
        **(_PRIVATE if private else {}),
        **more,
    )
    return file.model_copy(update={"features": file.features.model_copy(update={"gamma": GAMMA})})


def items_in(image: bytes) -> Any:
    """The items of a transcript."""
    with TemporaryDirectory() as scratch:
        return list(items_of(read_image(Path(scratch) / "one.transcript", image)))


def seed_in(image: bytes) -> bytes:
    """The map's seed in the consumer's transcript."""
    (seed,) = [item.private["map_seed"] for item in items_in(image) if item.kind == "target-released"]
    return bytes(seed)


def received(image: bytes, kind: type[Any]) -> list[tuple[str, Any]]:
    """Owners' messages in the curator's transcript, with their senders."""
    found = []
    for item in items_in(image):
        frame: Any = item.private.get("frame", {})
        if item.kind == Received.KIND and frame["message"] == kind.model_fields["kind"].default:
            found.append((frame["peer"], decode_message(Direction.OWNER_TO_CURATOR, frame["body"])))
    return found


@cache
def blind(kind: str = "as built", *, rounds: int = 50, dimension: int = 400) -> Blind:
    """A session, with owners of a kind of `KINDS`."""

    def owner(*given: Any, **more: Any) -> Any:
        machine, numerics = owner_party(*given, **more)
        broken = KINDS[kind]
        if broken is not None:
            numerics.__class__ = broken
        return machine, numerics

    session, images, held = played(file_of("blind", rounds, dimension), owner)
    count = BATCH * rounds
    masked = np.full((len(OWNERS) * count, rounds), NOTHING, dtype=object)
    for name, bid in received(images[CURATOR], BlindBid):
        first = OWNERS.index(name) * count
        scores = [bid.scores[at : at + MASK_BYTES] for at in range(0, len(bid.scores), MASK_BYTES)]
        for at, score in enumerate(scores):
            if score != NOT_SENT:
                masked[first + at, bid.round - 1] = int.from_bytes(score, "big")
    rows, weights = [], {}
    for place, name in enumerate(OWNERS):
        for item in items_in(images[name]):
            if item.kind == "blind-scored":
                rows += [held[place][row] for row in item.private["rows"]]
                weights[item.public["round"]] = item.private["weights"]
    seed = seed_in(images[CONSUMER])
    points = np.stack(rows)
    return Blind(
        masked,
        np.repeat(np.arange(len(OWNERS)), count),
        np.tile(np.repeat(np.arange(1, rounds + 1), BATCH), len(OWNERS)),
        points,
        session.space.map(seed).hash(points),
        np.array([weights[number] for number in sorted(weights)]),
        BlindKeys(seed, session.identifier),
        session,
    )


@cache
def sealed(*, rounds: int = 50, dimension: int = 400) -> Sealed:
    """The same under `sealed`, with the same rows."""
    session, images, held = played(file_of("sealed", rounds, dimension), owner_party)
    seed = seed_in(images[CONSUMER])
    features = np.array(
        [
            bid.candidate.features  # type: ignore[union-attr]
            for _, batch in received(images[CURATOR], Batch)
            for bid in bids_of(batch)
            if batch.round <= EARLY
        ]
    )
    every = held.reshape(-1, held.shape[-1])
    index = {
        row.tobytes(): each for row, each in zip(session.space.map(seed).hash(every), every, strict=True)
    }
    return Sealed(features, np.stack([index[row.tobytes()] for row in features]))
