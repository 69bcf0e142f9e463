"""Computing while a party waits changes no byte that it sends or records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from hushbid.consumer.party import consumer_party
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.unlinking import PairKey, Places
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.session.session import Session
from hushbid.simulation.simulator import Crash
from tests.simulation.test_unlinked_faults import BATCH, LIAR, OWNERS, POINTS, simulation

SIZES = (30, 4, 30)
ROUNDS = POINTS // BATCH


@pytest.fixture(autouse=True)
def _unlinked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "unlinked", True)


class _Works:
    """Numerics that work ahead after each computation, or never do, with notes of the remaining work."""

    def __init__(self, numerics: Any, name: str, left: Counter[str], *, ahead: bool) -> None:
        self._numerics, self._name, self._left, self._ahead = numerics, name, left, ahead
        self.restore = numerics.restore

    def perform(self, effect: Computation) -> Event | None:
        found: list[int] = []
        with pytest.MonkeyPatch.context() as patched:
            for of, name in ((Places, "ties"), (PairKey, "places")):
                patched.setattr(of, name, _noting(getattr(of, name), found))
            outcome = self._numerics.perform(effect)
        self._left[self._name] += sum(found)
        if self._ahead:
            self._numerics.ahead()
            self._numerics.ahead()  # it may be called at any time
        return outcome  # type: ignore[no-any-return]


def _noting(method: Any, found: list[int]) -> Any:
    def noted(self: Any, *given: Any) -> Any:
        found.append(len(given[0]) if len(given) == 1 else 1)
        return method(self, *given)

    return noted


def played(*, ahead: bool, crashes: Sequence[Crash] = ()) -> tuple[dict[str, bytes], Counter[str]]:
    """The parties' transcripts, and how many places and ties each had to draw for an answer."""
    left: Counter[str] = Counter()

    def owner(session: Any, name: str, *given: Any, **more: Any) -> Any:
        machine, numerics = owner_party(session, name, *given, **more)
        return machine, _Works(numerics, name, left, ahead=ahead)

    def consumer(*given: Any, **more: Any) -> Any:
        machine, numerics = consumer_party(*given, **more)
        return machine, _Works(numerics, CONSUMER, left, ahead=ahead)

    market = simulation(SIZES, owner=owner, consumer=consumer, crashes=crashes, salts=bytes)
    market.run()
    assert len(market.crashed) == len(crashes)
    return {party: market.image(party) for party in market.parties}, left


@pytest.mark.parametrize(
    "crashes", [(), (Crash(LIAR, 6, 0), Crash(CONSUMER, 9, 1)), (Crash(LIAR, 4, -1), Crash(CONSUMER, 12, 0))]
)
def test_transcripts_are_the_same_to_the_byte(crashes: Sequence[Crash]) -> None:
    quick, left = played(ahead=True, crashes=crashes)
    slow, all_of_it = played(ahead=False, crashes=crashes)
    assert quick == slow
    assert all(0 < left[party] < all_of_it[party] for party in (*OWNERS, CONSUMER))


def test_an_owner_is_left_with_the_points_of_the_new_boxes() -> None:
    _, left = played(ahead=True)
    assert left[OWNERS[0]] <= BATCH * ROUNDS
