"""Run a plan, that is a session with its faults, and collect the evidence that invariants check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hushbid.evidence.sweep.blind_choice import Opened, opened
from hushbid.evidence.sweep.blind_mutation import blind_mutations
from hushbid.evidence.sweep.blind_on_record import (
    BlindRounds,
    Weighed,
    blind_rounds_on_record,
    weighed_on_record,
)
from hushbid.evidence.sweep.mutation import Mutator
from hushbid.evidence.sweep.network import FaultyNetwork
from hushbid.evidence.sweep.plan import SweepPlan
from hushbid.evidence.sweep.rounds_on_record import Rounds, rounds_on_record
from hushbid.evidence.sweep.small_session import COLUMNS, result_of
from hushbid.evidence.sweep.wires import Wires
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Record
from hushbid.protocol.wire.codec import Frame, decode_frame, encode_frame, encode_message
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, Beat
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome

__all__ = ["TOLD_BY", "Sent", "SessionEvidence", "run_plan"]

TOLD_BY: Final = 16
"""Leading bytes that identify a key on record; some keys are split before they are recorded."""
WHOLE: Final = 64
"""Leading bytes that identify noise: fewer small integers may repeat by chance."""
_DATA, _NETWORK, _OWNERS, _SALTS, _NOISE, _GARBLING = range(10, 16)
"""What a generator is for, mixed into its seed."""
_DIFFERENT: Final = 6
"""Number of distinct points where several owners hold the same ones."""


class Sent(NamedTuple):
    """A frame sent by a party's machine."""

    sender: str
    receiver: str
    kind: str
    sequence: int
    body: bytes


@dataclass(frozen=True)
class SessionEvidence:
    """The evidence of a session that is over.

    Attributes:
        plan: The session and its faults.
        outcome: How the session ended, and its machines.
        sent: The frames sent, in order; for owners that break the protocol, those that their machines meant
            to send.
        drawn: The noise and keys that each party drew over all its starts, by their first bytes.
        happened: Number of faults that occurred, by name.
    """

    plan: SweepPlan
    session: Session
    outcome: SimulationOutcome
    data: Mapping[str, Dataset]
    transcripts: Mapping[str, bytes]
    sent: tuple[Sent, ...]
    drawn: Mapping[str, list[bytes]]
    crashed: tuple[Crash, ...]
    happened: Counter[str] = field(default_factory=Counter)

    @cached_property
    def records(self) -> Mapping[str, tuple[Record, ...]]:
        return {
            party: tuple(TranscriptReader(Path(party), image)) for party, image in self.transcripts.items()
        }

    @cached_property
    def rounds(self) -> Rounds:
        """The rounds according to the curator's records."""
        if not self.session.curator_reads:
            return self.blind_rounds
        return rounds_on_record(self.session, self.records[CURATOR])

    @cached_property
    def blind_rounds(self) -> BlindRounds:
        """The rounds according to a blind curator's records."""
        return blind_rounds_on_record(self.session, self.records[CURATOR])

    @cached_property
    def weighed(self) -> Weighed:
        """The consumer's release according to its records, and its weights where it computes them."""
        return weighed_on_record(self.records[CONSUMER])

    @cached_property
    def opened(self) -> Mapping[int, list[Opened]]:
        """The contents of the boxes of each award accepted by such a consumer, by round."""
        return {award.round: opened(self.session, self.weighed, award) for award in self.weighed.awards}

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """The part of the outcome that faults must not change if nobody waits in vain (`result_of`)."""
        return result_of(self.outcome)

    @cached_property
    def contents(self) -> Mapping[tuple[str, str, int], frozenset[bytes]]:
        """All bodies of each numbered frame sent, by sender, receiver and number."""
        found: dict[tuple[str, str, int], set[bytes]] = defaultdict(set)
        for frame in self.sent:
            if frame.sequence != CONTROL_SEQUENCE:
                found[frame.sender, frame.receiver, frame.sequence].add(frame.body)
        return {frame: frozenset(bodies) for frame, bodies in found.items()}

    @property
    def complete(self) -> bool:
        """Whether the session was completed, according to the curator's exit."""
        finish = self.outcome.finishes.get(CURATOR)
        return finish is not None and finish.code is ExitCode.DONE

    def missing_rounds(self) -> Iterator[str]:
        """A message if a complete session has fewer rounds than its file says."""
        found, wanted = self.outcome.curator.round, self.session.rounds
        if found != wanted:
            yield f"the session is complete after {found} of {wanted} rounds"

    @property
    def byzantine(self) -> frozenset[str]:
        return frozenset(owner for owner, _ in self.plan.byzantine)

    @property
    def honest(self) -> tuple[str, ...]:
        return tuple(party for party in self.transcripts if party not in self.byzantine)

    @property
    def honest_owners(self) -> tuple[str, ...]:
        return tuple(owner for owner in self.plan.owners if owner not in self.byzantine)

    def delivered_that_was_not_owned(self) -> Iterator[str]:
        """Messages for delivered points that an honest owner does not have, or not as often."""
        rows = {
            owner: Counter(row.tobytes() for row in self.data[owner].features) for owner in self.honest_owners
        }
        for entry in self.outcome.consumer.delivered:
            if entry.owner in rows and entry.candidate is not None:
                row = entry.candidate.point.tobytes()
                if not rows[entry.owner][row]:
                    number = entry.chosen_round
                    yield f"{entry.owner} has no such point, or no more, as was delivered of round {number}"
                rows[entry.owner][row] -= 1

    def said(self, sender: str, *kinds: str) -> Iterator[Sent]:
        return (frame for frame in self.sent if frame.sender == sender and frame.kind in kinds)


def run_plan(plan: SweepPlan, *, faults: bool = True) -> SessionEvidence:
    """Run a session.

    Args:
        faults: Whether to inject the plan's faults; if not, the network is a `SteadyNetwork`.

    Raises:
        HushbidError: A party's process would have ended with a bug.
    """
    session = plan.session
    sent: list[Sent] = []
    drawn: dict[str, list[bytes]] = defaultdict(list)
    starts: Counter[str] = Counter()

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        sent.append(Sent(sender, receiver, frame.kind, frame.sequence, decode_frame(frame.data).body))

    def noise(party: str) -> SimulatedNoise:
        if plan.mild:
            return SimulatedNoise(plan.seed, party)
        starts[party] += 1
        return _FreshNoise(int(_generator(plan, _NOISE).integers(2**62)) + starts[party], party, drawn[party])

    wires = Wires(
        plan.faults,
        latency=plan.latency,
        healed=plan.healed,
        rng=_generator(plan, _NETWORK),
        garbling=_generator(plan, _GARBLING),
    )
    owners, validation, seed_set = _data(plan)
    simulation = Simulation(
        session,
        owners=owners,
        validation=validation,
        seed_set=seed_set,
        tap=tap,
        network=_network(plan, session, wires) if faults else SteadyNetwork(),
        noise=noise,
        crashes=plan.crashes if faults else (),
        salts=_generator(plan, _SALTS).bytes,
    )
    outcome = simulation.run(until=plan.limit)
    return SessionEvidence(
        plan,
        session,
        outcome,
        owners,
        {party: simulation.image(party) for party in (CURATOR, CONSUMER, *plan.owners)},
        tuple(sent),
        drawn,
        tuple(simulation.crashed),
        +wires.happened,
    )


class _FreshNoise(SimulatedNoise):
    """A source of noise that differs at each start, like the operating system's, and notes what it gave."""

    protects = True

    def __init__(self, seed: int, party: str, drawn: list[bytes]) -> None:
        super().__init__(seed, party)
        self._drawn = drawn

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        noise = super().draw(request)
        if noise.any():  # A release that costs nothing has no noise.
            self._drawn.append(noise.tobytes()[:WHOLE])
        return noise

    def random_bytes(self, count: int) -> bytes:
        keys = super().random_bytes(count)
        self._drawn.append(keys[:TOLD_BY])
        return keys


def _generator(plan: SweepPlan, *place: int) -> np.random.Generator:
    return np.random.default_rng([plan.seed, *place])


def _network(plan: SweepPlan, session: Session, wires: Wires) -> FaultyNetwork:
    mutators = {
        owner: Mutator(
            _generator(plan, _OWNERS, plan.owners.index(owner)),
            rate,
            None if session.curator_reads else blind_mutations(session, owner),
        )
        for owner, rate in plan.byzantine
    }
    beat = encode_frame(Frame(session.identifier, CONTROL_SEQUENCE, 0, encode_message(Beat())))
    return FaultyNetwork(wires, timeouts=session.file.timeouts, beat=beat, mutators=mutators)


def _data(plan: SweepPlan) -> tuple[Mapping[str, Dataset], Dataset, Dataset]:
    rng = _generator(plan, _DATA)

    def points(name: str, count: int) -> Dataset:
        return Dataset.from_arrays(name, rng.random((count, COLUMNS)))

    sizes = dict(zip(plan.owners, plan.rows, strict=True))
    owners = {owner: points(owner, rows) for owner, rows in sizes.items()}
    others = points("validation", 30), points("seed-set", 12)
    if plan.distinct:
        few = rng.random((_DIFFERENT, COLUMNS))
        owners = {
            owner: Dataset.from_arrays(owner, few[rng.integers(_DIFFERENT, size=rows)])
            for owner, rows in sizes.items()
        }
    return owners, *others
