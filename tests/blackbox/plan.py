"""The faults of a black-box session, all drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hushbid.protocol.names import CONSUMER, CURATOR
from tests.processes.recovery import OWNERS

__all__ = ["IN_CONTAINERS", "PRELOADED", "RULES", "Fault", "Kind", "Plan", "plan_of"]

RULES: Final = ("sealed", "blind", "tender")
FIRST, LAST = 0.2, 3.0
"""Seconds after the first round, within which faults begin."""


class Kind(Enum):
    """A kind of fault, by its effect on a running process or its connection."""

    KILL = "its process is killed"
    TERM = "it is told to stop"
    PAUSE = "its process is stopped for a while"
    CUT = "its connection is cut, in the middle of a frame"
    GARBLE = "a byte on its line is inserted, changed or taken out"
    STALL = "its line carries nothing for a while"
    FILES = "it may open no more files for a while"
    MEMORY = "it gets no more memory"
    ROOM = "its files may not grow"
    DISK = "some writes to its state fail, with EIO or ENOSPC"
    CLOCK = "its clock jumps, ahead or back, and later returns"
    TWIN = "it is started a second time, in the same directory"
    FLOOD = "strangers connect to the curator and talk nonsense"
    RESTORED = "it is killed, and goes on from an older copy of its state"


IN_CONTAINERS: Final = (
    Kind.KILL,
    Kind.TERM,
    Kind.PAUSE,
    Kind.CUT,
    Kind.STALL,
    Kind.MEMORY,
    Kind.TWIN,
    Kind.FLOOD,
    Kind.RESTORED,
)
"""Those that an engine makes: for others something has to reach into the process, or into its line."""
PRELOADED: Final = frozenset({Kind.DISK, Kind.CLOCK})
"""Those for which a library is loaded before the C library."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        after: Seconds after the first round.
        lasts: Duration in seconds, if it passes.
        draw: A further random number: a place, a byte, a number of calls.
    """

    kind: Kind
    party: str
    after: float
    lasts: float
    draw: int


@dataclass(frozen=True)
class Plan:
    """A session: its rule, and its faults in order."""

    seed: int
    rule: str
    faults: tuple[Fault, ...]

    @property
    def mild(self) -> bool:
        """Whether every party has to end well: true unless a party resumes from an older copy."""
        return all(fault.kind is not Kind.RESTORED for fault in self.faults)


def plan_of(
    seed: int,
    *,
    rules: Sequence[str] = RULES,
    kinds: Collection[Kind] = tuple(Kind),
    owners: Sequence[str] = OWNERS,
) -> Plan:
    """The session of a seed: two to six faults of these kinds."""
    draw = random.Random(f"black box {seed}")
    rule, parties = rules[seed % len(rules)], (CURATOR, CONSUMER, *owners)
    usual = [kind for kind in Kind if kind in kinds and kind is not Kind.RESTORED]
    faults = []
    for _ in range(draw.randint(2, 6)):
        kind, party = draw.choice(usual), draw.choice(parties)
        if kind is Kind.FLOOD:
            party = CURATOR
        if kind in (Kind.CUT, Kind.GARBLE, Kind.STALL) and party == CURATOR:
            party = draw.choice(parties[1:])  # the lines are the others'
        faults.append(
            Fault(kind, party, draw.uniform(FIRST, LAST), draw.uniform(0.2, 1.5), draw.getrandbits(32))
        )
    if draw.random() < 0.15:
        owner = draw.choice(owners)
        faults = [fault for fault in faults if fault.party != owner]
        faults.append(Fault(Kind.RESTORED, owner, LAST, 0.0, 0))
    return Plan(seed, rule, tuple(sorted(faults, key=lambda fault: fault.after)))
