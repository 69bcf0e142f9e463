"""Recompute what a replay takes from the record (features, releases, bids) from the party's own data.

Floating-point results are recorded, since another BLAS may round differently. This module recomputes and
compares them: broadcast weights within one grid unit, a released target within `CLOSE`, and features, bids,
boxes, signatures and verdicts exactly. Noise and keys come from the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.events import (
    AccountMade,
    ChoicePlaced,
    PurchasesChecked,
    RoundOpened,
    TargetReleased,
    WeightSealed,
)
from hushbid.consumer.numerics import ConsumerNumerics
from hushbid.consumer.party import consumer_party
from hushbid.consumer.process import consumer_seed_set
from hushbid.consumer.seed_distance import SeedDistance
from hushbid.curator.events import BidsChecked, CandidatesChecked
from hushbid.curator.numerics import BlindCuratorNumerics
from hushbid.curator.party import curator_party
from hushbid.owner.events import BlindScored, Scored
from hushbid.owner.party import owner_party
from hushbid.protocol import limits
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.crypto.sealing import DIGEST_BYTES, NONCE_BYTES
from hushbid.protocol.data import load_dataset
from hushbid.protocol.errors import DataError, ReplayDivergence
from hushbid.protocol.machine.machine import Computation, Event, HeadSigned
from hushbid.protocol.machine.weighing import NoiseDrawn, WeightsComputed
from hushbid.protocol.names import CONSUMER, an
from hushbid.protocol.privacy.noise import RecordedNoise
from hushbid.protocol.runtime.driver import Numerics
from hushbid.protocol.runtime.party import own_keys, sealing_identity
from hushbid.protocol.session.account import account_content
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header, RecordedItem
from hushbid.protocol.wire.messages import Candidate

__all__ = ["CLOSE", "Recomputation", "recomputation"]

CLOSE: Final = 1e-9
"""Largest relative difference between two float64 sums in different orders."""
GRID_UNITS: Final = 1
"""Largest difference between two grid results rounded from close values."""


class Recomputation:
    """Compares every recorded outcome with the result of the party's numerics now.

    Args:
        numerics: The party's numerics, with recorded noise.
        boxes_gone: Whether the transcript is a curator's of sealed points: it has only digests of their
            boxes, so no signature can be checked again.
    """

    def __init__(self, numerics: Numerics, *, boxes_gone: bool) -> None:
        self.numerics = numerics
        self._boxes_gone = boxes_gone
        self.compared: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        """Outcomes that could not be recomputed, by kind."""
        self.largest: dict[str, float] = {}
        """The largest differences found, by quantity: in grid units, or relative."""

    def __call__(self, effect: Computation, outcome: Event | None) -> None:
        """Redo one computation.

        Raises:
            ReplayDivergence: The result differs from the record.
        """
        if isinstance(outcome, CandidatesChecked) and self._boxes_gone:
            self.skipped[outcome.KIND] += 1
            return
        if isinstance(outcome, HeadSigned):
            return  # Heads belong to the chain, which the replay itself compares.
        if outcome is None:
            # Computations that only change the party's own state are repeated; nothing is written.
            self.numerics.restore(effect, None)
            return
        again = self.numerics.perform(effect)
        if type(again) is not type(outcome):
            raise _differs(outcome, "kind of outcome")
        self._compare(outcome, again)
        self.compared[outcome.KIND] += 1

    def _compare(self, recorded: Event, again: Any) -> None:
        if isinstance(recorded, WeightsComputed):
            self._on_grid("weights", recorded.weights, again.weights, recorded)
        elif isinstance(recorded, CandidatesChecked):
            self._exactly("signed", recorded.signed, again.signed, recorded)
            if recorded.features is not None:
                self._on_grid("features", recorded.features, again.features, recorded, units=0)
        elif isinstance(recorded, Scored):
            self._compare_bids(recorded, again)
        elif isinstance(recorded, TargetReleased):
            self._compare_targets(recorded, again)
        elif isinstance(recorded, PurchasesChecked):
            self._compare_purchases(recorded, again)
        elif isinstance(recorded, NoiseDrawn):
            self._exactly("rounds", len(recorded.rounds), len(again.rounds), recorded)
        elif isinstance(recorded, AccountMade):
            self._compare_accounts(recorded, again)
        elif isinstance(recorded, BlindScored | WeightSealed | RoundOpened | ChoicePlaced | BidsChecked):
            for each in fields(recorded):
                old, new = getattr(recorded, each.name), getattr(again, each.name)
                self._exactly(each.name, _comparable(old), _comparable(new), recorded)

    def _compare_purchases(self, recorded: PurchasesChecked, again: Any) -> None:
        for old, new in zip(recorded.delivered, again.delivered, strict=True):
            self._exactly("dispute", old.dispute, new.dispute, recorded)
            self._compare_points(recorded, old.candidate, new.candidate)
        if recorded.mmd2 is not None:
            self._closely("mmd2", recorded.mmd2, again.mmd2, recorded)
        if recorded.seed_distance is not None:  # Older records do not have it.
            self._compare_seed_distances(recorded, recorded.seed_distance, again.seed_distance)

    def _compare_points(self, recorded: Event, old: Candidate | None, new: Candidate | None) -> None:
        if old is None or new is None:
            self._exactly("point", old is None, new is None, recorded)
            return
        self._exactly("point", _comparable(old.point), _comparable(new.point), recorded)
        self._on_grid("features", old.features, new.features, recorded, units=0)

    def _compare_accounts(self, recorded: AccountMade, again: AccountMade) -> None:
        old, new = recorded.account, again.account
        for name in ("settlement", "errors", "gains", "gain_errors"):
            self._closely(name, getattr(old, name), getattr(new, name), recorded)
        for name in ("sold", "void", "signal"):
            self._exactly(name, _comparable(getattr(old, name)), _comparable(getattr(new, name)), recorded)
        if account_content(old) == account_content(new):  # Else the rounded numbers under it differ.
            self._exactly("signature", old.signature, new.signature, recorded)

    def _compare_seed_distances(self, recorded: Event, old: SeedDistance, new: SeedDistance) -> None:
        if not np.allclose(astuple(old), astuple(new), rtol=0.0, atol=CLOSE):
            assert isinstance(self.numerics, ConsumerNumerics), "nobody else has a seed set"
            new = self.numerics.seed_distance(most=limits.MAX_POINTS)  # Earlier versions compared all rows.
        self._closely("seed_distance", np.array(astuple(old)), np.array(astuple(new)), recorded)

    def _compare_bids(self, recorded: Scored, again: Scored) -> None:
        self._on_grid("features", recorded.handed.features, again.handed.features, recorded, units=0)
        self._exactly("rows", recorded.rows, again.rows, recorded)
        self._exactly("scores", recorded.scores, again.scores, recorded)
        for name, value in recorded.handed:
            self._exactly(name, _comparable(value), _comparable(getattr(again.handed, name)), recorded)

    def _compare_targets(self, recorded: TargetReleased, again: TargetReleased) -> None:
        self._closely("embedding", recorded.embedding, again.embedding, recorded)
        if recorded.finer is not None:
            self._closely("finer", recorded.finer, again.finer, recorded)
        self._exactly("finer", recorded.finer is None, again.finer is None, recorded)
        self._on_grid("seed_total", recorded.seed_total, again.seed_total, recorded, units=0)
        if recorded.basis is not None and again.basis is not None:
            self._on_grid("basis", recorded.basis, again.basis, recorded)
        self._exactly("basis", recorded.basis is None, again.basis is None, recorded)
        for name in ("size", "seed_size", "map_seed", "maps", "noise_name"):
            self._exactly(name, getattr(recorded, name), getattr(again, name), recorded)

    def _on_grid(
        self, name: str, old: npt.NDArray[Any], new: npt.NDArray[Any], event: Event, units: int = GRID_UNITS
    ) -> None:
        if old.shape != new.shape:
            raise _differs(event, name)
        found = int(np.abs(old.astype(np.int64) - new.astype(np.int64)).max(initial=0))
        self.largest[name] = max(self.largest.get(name, 0.0), float(found))
        if found > units:
            raise _differs(event, name)

    def _closely(self, name: str, old: npt.NDArray[Any], new: npt.NDArray[Any] | None, event: Event) -> None:
        if new is None or old.shape != new.shape:
            raise _differs(event, name)
        scale = max(1.0, float(np.abs(old).max(initial=0.0)))
        found = float(np.abs(old - new).max(initial=0.0)) / scale
        self.largest[name] = max(self.largest.get(name, 0.0), found)
        if not found <= CLOSE:
            raise _differs(event, name)

    def _exactly(self, name: str, old: object, new: object, event: Event) -> None:
        if old != new:
            raise _differs(event, name)


def recomputation(path: Path, config: Path) -> Callable[[Session, Header], Recomputation]:
    """A function that makes a `Recomputation` from session and header, using the party's own file.

    It raises ConfigError, DataError or KeyFileError if the party's files cannot be used.
    """

    def make(session: Session, header: Header) -> Recomputation:
        noise = RecordedNoise(_noise(path), keys=_keys(path), protects=session.noise_protects)
        if header.role == "curator":
            load_toml(CuratorFile, config)
            if not session.curator_reads:
                return Recomputation(_blind_curator(session), boxes_gone=False)
            _, numerics = curator_party(session, noise=noise)
            return Recomputation(numerics, boxes_gone=session.rule.sealed)
        if header.role == "consumer":
            return Recomputation(_consumer(session, config, noise), boxes_gone=False)
        return Recomputation(_owner(session, header.party, config, noise), boxes_gone=False)

    return make


def _blind_curator(session: Session) -> Numerics:
    """A blind curator's numerics, which check signatures. Bytes that begin with its SHA-256 replace a box."""
    return BlindCuratorNumerics(session, destroy=lambda: None, digest=lambda box: box[:DIGEST_BYTES])


def _owner(session: Session, name: str, config: Path, noise: RecordedNoise) -> Numerics:
    file = load_toml(OwnerFile, config).resolved(config.parent)
    if file.name != name:
        raise DataError(
            f"{config} is {file.name}'s, and the transcript is {name}'s.", advice="Give the party's own file."
        )
    pair = own_keys(session, file, expected=session.file.roster.owners[name], party=name)
    _, numerics = owner_party(
        session,
        name,
        load_dataset(file.data, session.file.reading(file.columns.columns(), sold=True)),
        identity=sealing_identity(session, pair, name),
        noise=noise,
        scratch=config.parent,
        memory_limit=file.memory_limit,
    )
    return numerics


def _consumer(session: Session, config: Path, noise: RecordedNoise) -> Numerics:
    file = load_toml(ConsumerFile, config).resolved(config.parent)
    pair = own_keys(session, file, expected=session.file.roster.consumer, party=CONSUMER)
    validation = load_dataset(file.validation, session.file.reading(file.columns.columns()).with_gaps())
    _, numerics = consumer_party(
        session,
        identity=sealing_identity(session, pair, CONSUMER),
        noise=noise,
        validation=validation,
        seed_set=consumer_seed_set(session, file, validation, when_missing="refuse"),
        store=lambda _purchases: None,
        weighing=noise,
    )
    return numerics


def _recorded(path: Path) -> Iterator[RecordedItem]:
    with TranscriptReader(path) as records:
        for record in records:
            yield from record.items


def _noise(path: Path) -> Iterator[npt.NDArray[Any]]:
    """All noise of a transcript, in the order in which it was drawn."""
    for item in _recorded(path):
        if item.kind == NoiseDrawn.KIND:
            for release, rule in item.private["rounds"]:  # type: ignore[union-attr,misc]
                yield from (*release, *rule)  # type: ignore[misc]
        elif item.kind == TargetReleased.KIND:
            yield from item.private["noise"]  # type: ignore[misc]


def _keys(path: Path) -> Iterator[bytes]:
    for item in _recorded(path):
        held: Any = item.private
        if item.kind in (Scored.KIND, BlindScored.KIND) and held["ephemeral"]:
            yield held["ephemeral"]
        elif item.kind == TargetReleased.KIND and held["map_seed"]:
            yield held["map_seed"]
            boxes, length = held["maps"], limits.MAP_BOX_BYTES
            # A box begins with its nonce; the consumer draws all nonces together.
            yield b"".join(boxes[at : at + NONCE_BYTES] for at in range(0, len(boxes), length))


def _comparable(value: Any) -> Any:
    return value.tobytes() if isinstance(value, np.ndarray) else value


def _differs(event: Event, name: str) -> ReplayDivergence:
    return ReplayDivergence(
        f"Recomputed from the party's data, {an(event.KIND)} has another {name} than was recorded.",
        advice="Give the data and the party's file that the session was run with.",
        expected=f"the recorded {name}",
        actual=f"another {name}",
    )
