"""What any curator refuses of any peer."""

from __future__ import annotations

from collections.abc import Callable

from hushbid.protocol.wire.messages import COMMITTED_VERSION, Message, Ready
from tests.simulation.committing import commitment_of
from tests.simulation.harness import FAREWELL, FORGED, CuratorBench

__all__ = ["WRONG", "Attempt", "hellos", "out_of_turn"]

Attempt = tuple[str, Callable[[], Message], dict[str, int]]
"""Who says what, and how the frame differs from the next one that is due."""
WRONG = 77
"""A number that nothing has here: round, part, handle."""


def hellos(bench: CuratorBench, owner: str) -> list[Attempt]:
    """Hellos that are to be refused, and farewells that come before the end."""
    return [
        (owner, lambda: bench.hello(owner, versions=(COMMITTED_VERSION + 1,)), {}),
        (owner, lambda: bench.hello(owner, session=bytes(32)), {}),
        (owner, lambda: bench.hello(owner, name="somebody"), {}),
        (owner, lambda: bench.hello(owner, role="consumer"), {}),
        (owner, lambda: bench.hello(owner, sent=0, received=WRONG), {}),
        (owner, lambda: bench.hello(owner), {"sequence": bench.sent.get(owner, 0) + 1}),
        ("nobody", lambda: bench.hello("nobody"), {}),
        ("nobody", lambda: FAREWELL, {}),
    ]


def out_of_turn(bench: CuratorBench, owner: str, bid: Message) -> list[Attempt]:
    """What an owner says at the wrong time, with a forged signature, or in a frame of a wrong number."""
    return [
        (owner, Ready, {"sequence": 0}),
        (owner, lambda: FAREWELL, {}),
        (owner, lambda: commitment_of(bench, owner), {}),
        (owner, lambda: commitment_of(bench, owner, signature=FORGED), {}),
        (owner, lambda: bid, {"sequence": 0}),
        (owner, lambda: bid, {"sequence": bench.sent.get(owner, 0) + 2}),
        (owner, lambda: bid, {"acknowledged": WRONG}),
    ]
