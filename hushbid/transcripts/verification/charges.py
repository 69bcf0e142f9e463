"""Compare a transcript's charges with the cost of the session's releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.machine import Charge, ChargedData
from hushbid.protocol.names import CONSUMER, CURATOR, an
from hushbid.protocol.privacy.accounting.costs import Cost, cost_from_record
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.record import Record

__all__ = ["Charges"]

CLOSE: Final = 1e-6
"""Largest relative difference of numbers in a recorded cost: versions may round differently."""
_TARGETS: Final = frozenset({"target", "subspace-target", "nested-target"})
_ANSWERS: Final = frozenset({"bid", "batch", "submission", "blind-bid"})
_WEIGHTS: Final = frozenset({"broadcast", "sealed-broadcast", "round-opening"})


class Charges:
    """Takes the records of a party's transcript, in order.

    Args:
        fault: Called with a record's number and its fault.
    """

    def __init__(self, session: Session, party: str, fault: Callable[[int, str], None]) -> None:
        self._session = session
        self._party = party
        self._fault = fault
        self._costs_of = session.release_costs()
        self._rounds_cost = party == session.weigher and session.summary_filter() is not None
        self._charged: dict[ChargedData, int] = {}
        """Whose data → the last release up to which all are charged."""

    def take(self, record: Record) -> None:
        """Take the charges of a record, before its frames (`left`)."""
        for item in record.items:
            if item.kind == Charge.KIND:
                self._compare(record.number, item.public)

    def left(self, record: int, message: str, number: int) -> None:
        """Take a frame that was sent for the first time; `number` is a broadcast's round."""
        if message in _TARGETS:
            subject, number = ChargedData.CONSUMER, 1
        elif message in _ANSWERS or (message in _WEIGHTS and self._rounds_cost):
            subject, number = ChargedData.OWNERS, max(number, 1)
        else:
            return
        if number > self._charged.get(subject, 0):
            self._charged[subject] = number  # Once is enough.
            self._fault(record, f"{an(message)} left before what it costs was charged")

    def _compare(self, record: int, public: Any) -> None:
        try:
            first, last = int(public["first"]), int(public["last"])
            subject = ChargedData.recorded(public["neighbours"])
            found = tuple(cost_from_record(cost) for cost in public["costs"])
        except (ConfigError, KeyError, TypeError, ValueError):
            self._fault(record, "a charge is unreadable")
            return
        if first <= self._charged.get(subject, 0) + 1:
            self._charged[subject] = max(last, self._charged.get(subject, 0))
        expected = self._expected(subject, first, last)
        if expected is None:
            self._fault(record, f"a charge for releases {first} to {last}, which this party never makes")
        elif not _same(found, expected):
            self._fault(record, f"the charge of release {first} is not what the session says that it costs")

    def _expected(self, subject: ChargedData, first: int, last: int) -> Sequence[Cost] | None:
        session = self._session
        if subject is ChargedData.CONSUMER:
            if self._party != CONSUMER or (first, last) != (1, 1):
                return None
            return session.charged_target.cost(0, neighbours=Neighbours.SUBSTITUTE_ONE)
        if self._party not in (CURATOR, CONSUMER):
            return session.owners_costs() if (first, last) == (1, session.owners_releases) else None
        return self._costs_of(first) if first == last <= session.owners_releases else None


def _same(found: Sequence[Cost], expected: Sequence[Cost]) -> bool:
    return len(found) == len(expected) and all(map(_alike, found, expected))


def _alike(found: Cost, expected: Cost) -> bool:
    if type(found) is not type(expected):
        return False
    ours, theirs = asdict(expected), asdict(found)
    return all(math.isclose(theirs[name], value, rel_tol=CLOSE) for name, value in ours.items())
