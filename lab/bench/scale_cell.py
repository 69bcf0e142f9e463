"""One session of many owners, simulated in a process of its own so that its memory can be measured.

`python -m hushbid.lab.bench.scale_cell` takes a `ScaleCell` as JSON on stdin (`cell_of`) and writes a
`ScaleCost` as JSON on stdout, or prints an error and exits as a verb does.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from hushbid.protocol import ranges
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.faults import faults
from hushbid.protocol.machine.machine import Event
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.platform import peak_memory
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.runtime.party import ensure_done
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation

__all__ = ["ScaleCell", "ScaleCost", "cell_of", "default_batch", "measure", "session_of"]

_SEED: Final = 1
_LEVELS: Final = 256
_VALIDATION_POINTS: Final = 380
_SEED_POINTS: Final = 150
_DELTA: Final = 1e-5
_RELEASE: Final = {"mechanism": "filtered-gaussian", "epsilon": 3.0}


@validated(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class ScaleCell:
    """The session to measure.

    Attributes:
        owners: K.
        points: p, points bought.
        batch: b, points bought per round, 1 for rules that ask; under `tender`, points that an owner submits.
        owner_points: n, points of each owner.
        dimension: d, coordinates of the feature map.
        columns: Columns of a raw point, one byte each.
    """

    rule: str
    owners: ranges.Count
    points: ranges.Count = 100
    batch: ranges.Count = 2
    owner_points: ranges.Count = 100
    dimension: ranges.Count = 140
    columns: ranges.Count = 16

    @property
    def rounds(self) -> int:
        """T = ⌈p/b⌉, and 1 under `tender`."""
        if RULES[self.rule].herds:
            return 1
        return -(-self.points // self.batch)


@dataclass(frozen=True, slots=True)
class ScaleCost:
    """The cost of a session on one core (docs/results.md).

    Attributes:
        seconds: Processor time from the first party's start to the last one's end.
        peak_bytes: Peak resident memory of the process, with all parties and their data.
    """

    seconds: float
    curator_seconds: float
    consumer_seconds: float
    owners_seconds: float
    peak_bytes: int
    received_bytes: int
    sent_bytes: int
    bought: int


def default_batch(rule: str) -> int:
    """The default batch of a cell: 1 for a rule that buys one point at a time, else 2.

    Raises:
        ConfigError: There is no such rule.
    """
    return 2 if RULES.known(rule).candidate_with_bid else 1


def cell_of(text: str) -> ScaleCell:
    """Read a cell from a JSON object with the fields of `ScaleCell`; `batch` is optional.

    Raises:
        ConfigError: The object is malformed, or its rule does not exist.
    """
    try:
        values = json.loads(text)
        if isinstance(values, dict) and isinstance(values.get("rule"), str):
            values.setdefault("batch", default_batch(values["rule"]))
        return TypeAdapter(ScaleCell).validate_python(values)
    except ValidationError as error:
        told = "; ".join(" ".join((*each.place, each.words)) for each in faults(error))
    except (ValueError, RecursionError) as error:
        told = str(error)
    raise ConfigError(
        f"stdin has no cell: {told}.", advice='Give a JSON object such as {"rule": "sealed", "owners": 100}.'
    )


class _Shared(Simulation):
    """Divides a simulation's time among roles, by the wall clock, which is quicker to ask than most steps."""

    spent: dict[str, float]

    def feed(self, party: str, event: Event, now: float) -> None:
        began = time.perf_counter()
        super().feed(party, event, now)
        self._note(party, began)

    def receive(self, party: str, sender: str, data: bytes, now: float) -> None:
        began = time.perf_counter()
        super().receive(party, sender, data, now)
        self._note(party, began)

    def send_out(self, party: str, now: float) -> None:
        began = time.perf_counter()
        super().send_out(party, now)
        self._note(party, began)

    def _note(self, party: str, began: float) -> None:
        role = party if party in (CURATOR, CONSUMER) else "owner"
        self.spent[role] += time.perf_counter() - began


def session_of(cell: ScaleCell, names: list[str]) -> Session:
    """The session of a cell, with simulated filtered Gaussian noise in both releases.

    Raises:
        ConfigError: The rule does not allow such a session.
    """
    rule = RULES.known(cell.rule)
    keys: dict[str, Any] = dict(rule.small_keys(owners=cell.owners, rounds=cell.rounds, delta=_DELTA))
    return open_session(
        SessionFile.model_validate(
            {
                "session": {
                    "name": "scale",
                    "points": cell.points,
                    "submission" if rule.herds else "batch": cell.batch,
                    "delta": _DELTA,
                    "allow_nonprivate": True,
                },
                "features": {
                    "dimension": cell.dimension,
                    "gamma": 6.0 / cell.columns,
                    "columns": cell.columns,
                    "upper": _LEVELS - 1.0,
                    **({} if rule.sealed else {"seed": _SEED}),
                },
                "target": {**_RELEASE, "neighbours": "substitute-one"},
                "summary": {**_RELEASE, "neighbours": "add-remove-one"},
                "acquisition": {"rule": cell.rule, **keys},
                "noise": {"source": "simulated", "seed": _SEED},
                "network": {"address": "tcp://127.0.0.1:*", "insecure": True},
                "roster": {"owners": dict.fromkeys(names, "")},
            }
        )
    )


def measure(cell: ScaleCell) -> ScaleCost:
    """Run the session of a cell in this process, with one BLAS thread.

    Raises:
        HushbidError: The session is impossible or failed.
    """
    keep_one_blas_thread()
    generator = np.random.Generator(np.random.PCG64(_SEED))
    digits = len(str(cell.owners))
    names = [f"owner-{number:0{digits}}" for number in range(cell.owners)]

    def drawn(name: str, rows: int) -> Dataset:
        features = generator.integers(0, _LEVELS, (rows, cell.columns), dtype=np.uint8)
        return Dataset.from_arrays(name, features)

    received = sent = 0

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        nonlocal received, sent
        if receiver == CURATOR:
            received += len(frame.data)
        elif sender == CURATOR:
            sent += len(frame.data)

    session = session_of(cell, names)
    owners = {name: drawn(name, cell.owner_points) for name in names}
    validation, seed_set = drawn("validation", _VALIDATION_POINTS), drawn("seed-set", _SEED_POINTS)
    processor, clock = time.process_time(), time.perf_counter()
    simulation = _Shared(session, owners=owners, validation=validation, seed_set=seed_set, tap=tap)
    # Owners with a public map hash their points here.
    simulation.spent = {CURATOR: 0.0, CONSUMER: 0.0, "owner": time.perf_counter() - clock}
    outcome = simulation.run()
    seconds = time.process_time() - processor
    shares = {role: spent / (time.perf_counter() - clock) for role, spent in simulation.spent.items()}
    for finish in outcome.finishes.values():
        ensure_done(finish)
    return ScaleCost(
        seconds=seconds,
        curator_seconds=seconds * shares[CURATOR],
        consumer_seconds=seconds * shares[CONSUMER],
        owners_seconds=seconds * shares["owner"],
        peak_bytes=peak_memory(),
        received_bytes=received,
        sent_bytes=sent,
        bought=0 if outcome.delivered is None else len(outcome.delivered.delivered),
    )


def main() -> None:
    try:
        cost = measure(cell_of(sys.stdin.read()))
    except HushbidError as error:
        from hushbid.protocol.runtime.command import fail  # This takes memory that a session does not need.

        fail(error, as_json=True)
    json.dump(asdict(cost), sys.stdout)


if __name__ == "__main__":
    main()
