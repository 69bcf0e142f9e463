"""A small session with crashes, and its outcome, to compare with that of a session without them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from hushbid.protocol.config.session import SessionFile, SessionSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.machine import Send
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.wire.codec import decode_frame
from hushbid.protocol.wire.messages import Close, Farewell
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome

__all__ = [
    "PartyStep",
    "SimulatedCourse",
    "Tendering",
    "compared",
    "goes_with",
    "result_of",
    "run",
    "small_session",
]

COLUMNS: Final = 3
DIMENSION: Final = 8
EPSILON: Final = 3.0
EPSILON_CURATOR: Final = 30.0
COMMITMENT_DEPTH: Final = 6
"""ε of a finer release for the curator, where it has one."""
_SIGNED: Final = (Close.model_fields["kind"].default, Farewell.model_fields["kind"].default)
"""Messages with the head of a transcript, which depends on times and salts."""


class PartyStep(NamedTuple):
    """A step of a party: its time in simulated seconds, and the number of frames that left with it."""

    now: float
    frames: int


@dataclass(frozen=True)
class SimulatedCourse:
    """The outcome of a session, and the evidence of its course.

    Attributes:
        result: Everything that crashes must not change, by name: wins, books, settlement, points, exits.
        bodies: All bodies of each numbered frame sent, by sender, receiver and number; there must be one.
            Frames with a transcript's head are left out.
    """

    result: Mapping[str, Any]
    bodies: Mapping[tuple[str, str, int], frozenset[bytes]]
    transcripts: Mapping[str, bytes]
    crashed: tuple[Crash, ...]

    @cached_property
    def steps(self) -> Mapping[str, tuple[PartyStep, ...]]:
        return {party: tuple(_steps(image)) for party, image in self.transcripts.items()}


class Tendering(NamedTuple):
    """How owners submit in a small `tender`, and what limits the choice.

    Attributes:
        messages: Maximum number of messages per submission.
        submission: Points that an owner submits, rounded up to whole messages; None: as many as are bought.
        prices: Price per point of each owner, in roster order; empty: points have no price.
        budget: Maximum total cost; None: no limit.
        caps: Maximum points sold by each owner, in roster order; empty: no limit.
        nested: Whether the curator gets a finer release than the owners; the release must support it.
    """

    messages: int = 3
    submission: int | None = None
    prices: tuple[int, ...] = ()
    budget: int | None = None
    caps: tuple[int, ...] = ()
    nested: bool = False


def goes_with(rule: str, release: str) -> bool:
    """Whether a session can combine this rule with this release of D_v."""
    return not (RULES[rule].herds and "directions" in RELEASES[release].Parameters.model_fields)


def small_session(
    rule: str,
    *,
    release: str,
    rounds: int,
    owners: int,
    batch: int = 1,
    distinct: bool = False,
    tendering: Tendering | None = None,
    commits: bool = False,
) -> Session:
    """A session with few features and simulated noise.

    It settles privately where rule and release guarantee something to the owners and copies of a point are
    bought too. A `tender` buys the points of all rounds in one, by default from submissions of several
    messages, and does not settle privately. With `logistic`, meant for thousands of owners, the ε of asks is
    so large that it protects nobody. With `distinct` a point that several owners hold is bought once. With
    `commits` owners commit to their rows first.

    Raises:
        ConfigError: There is no such rule or release, or the rule is not for as few owners.
    """
    if rule not in RULES:
        raise ConfigError(f"There is no rule named {rule!r}.", advice=f"Choose of: {', '.join(RULES)}.")
    if release not in RELEASES:
        raise ConfigError(
            f"There is no release named {release!r}.", advice=f"Choose of: {', '.join(RELEASES)}."
        )
    names = [f"owner-{number}" for number in range(owners)]
    herds, points = RULES[rule].herds, rounds * batch
    settles = RULES[rule].private and RELEASES[release].private and not (distinct or herds)
    tender = tendering or Tendering()
    submission = tender.submission or points
    values = {
        "session": {
            "name": "faults",
            "points": points,
            "batch": -(-submission // tender.messages) if herds else batch,
            "submission": submission if herds else None,
            "distinct": distinct,
            "min_owners": 1,
            "allow_nonprivate": True,
        },
        "features": {
            "dimension": DIMENSION,
            "gamma": 1.0,
            "columns": COLUMNS,
            **RELEASES[release].small_features,
            **({} if RULES[rule].sealed else {"seed": 1}),
        },
        "target": {
            **_mechanism(release, "substitute-one"),
            **({"epsilon_curator": EPSILON_CURATOR} if herds and tender.nested else {}),
        },
        "summary": _mechanism(release, "add-remove-one"),
        "noise": {"source": "simulated", "seed": 0},
        **({"settlement": {"private": True, "epsilon": EPSILON}} if settles else {}),
        **({"wishes": _wishes(names, tender)} if herds and (tender.prices or tender.caps) else {}),
        "network": {"address": "tcp://127.0.0.1:1", "insecure": True},
        "roster": {"owners": dict.fromkeys(names, "")},
    }
    delta = SessionSection.model_fields["delta"].default
    keys = RULES[rule].small_keys(owners=owners, rounds=rounds, delta=delta)
    if commits:
        keys = {**keys, "commitment_depth": COMMITMENT_DEPTH}
    return open_session(SessionFile.model_validate({**values, "acquisition": {"rule": rule, **keys}}))


def _wishes(names: Iterable[str], tender: Tendering) -> dict[str, Any]:
    named = {
        key: dict(zip(names, values, strict=True))
        for key, values in (("prices", tender.prices), ("caps", tender.caps))
        if values
    }
    return named if tender.budget is None else {**named, "budget": tender.budget}


def _mechanism(release: str, neighbours: str) -> dict[str, Any]:
    mechanism = RELEASES[release]
    if not mechanism.private:
        return {"mechanism": release}
    return {"mechanism": release, "epsilon": EPSILON, "neighbours": neighbours, **mechanism.small_keys}


def run(
    session: Session,
    crashes: Iterable[Crash] = (),
    *,
    noise: Callable[[str], NoiseSource] | None = None,
    away: Callable[[int], Collection[str]] | None = None,
) -> SimulatedCourse:
    """Run a session whose processes die. Owners run out of points towards the end.

    Args:
        noise: Makes the noise source of the named party at each of its starts; None: seeded.
        away: Returns the owners that have no connection during a round.
    """
    rng = np.random.default_rng(0)
    bodies: dict[tuple[str, str, int], set[bytes]] = defaultdict(set)

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        if frame.sequence and frame.kind not in _SIGNED:
            bodies[sender, receiver, frame.sequence].add(decode_frame(frame.data).body)

    def data(name: str, count: int) -> Dataset:
        return Dataset.from_arrays(name, rng.random((count, COLUMNS)))

    names = session.file.owners
    simulation = Simulation(
        session,
        owners={name: data(name, 3 * session.file.session.points // 4) for name in names},
        validation=data("validation", 30),
        seed_set=data("seed-set", 12),
        tap=tap,
        noise=noise,
        network=SteadyNetwork(away),
        crashes=crashes,
    )
    outcome = simulation.run()
    return SimulatedCourse(
        result_of(outcome),
        {frame: frozenset(found) for frame, found in bodies.items()},
        {party: simulation.image(party) for party in (CURATOR, CONSUMER, *names)},
        tuple(simulation.crashed),
    )


def result_of(outcome: SimulationOutcome) -> dict[str, Any]:
    """Everything that crashes must not change, by name: wins, books, settlement, points, exits."""
    curator, consumer = outcome.curator, outcome.consumer
    ledger, stored = curator.ledger, outcome.delivered
    return {
        "wins": [(win.chosen_round, win.owner, win.score, win.bid_round, win.handle) for win in ledger.wins],
        "absences": list(ledger.absences),
        "faults": list(ledger.faults),
        "refusals": list(ledger.refusals),
        "disputes": list(ledger.disputes),
        "rounds": curator.round,
        "points accessed": (ledger.points_accessed, ledger.candidates),
        "settlement": curator.settlement(),
        "delivered points": [_bought(entry) for entry in consumer.delivered],
        "stored points": None if stored is None else [_bought(entry) for entry in stored.delivered],
        "MMD²": None if consumer.mmd2 is None else consumer.mmd2.tobytes(),
        "points handed over": {name: owner.handed_over for name, owner in outcome.owners.items()},
        "ends": {name: finish.code for name, finish in outcome.finishes.items()},
    }


def _bought(entry: Any) -> tuple[Any, ...]:
    point = None if entry.candidate is None else entry.candidate.point.tobytes()
    return entry.owner, entry.chosen_round, entry.dispute, point


def compared(course: SimulatedCourse, base: SimulatedCourse) -> list[str]:
    """The differences from a session without crashes, in words; empty if there are none."""
    different = [name for name, value in base.result.items() if course.result[name] != value]
    wrong = [f"other {', '.join(different)}"] if different else []
    if any(len(found) > 1 for found in course.bodies.values()):
        wrong.append("a frame left twice, with two contents")
    if course.bodies != base.bodies:
        wrong.append("other frames")
    return wrong


def _steps(image: bytes) -> Iterable[PartyStep]:
    for record in TranscriptReader(Path("a transcript in memory"), image):
        yield PartyStep(record.now, sum(effect.kind == Send.KIND for effect in record.effects))
