"""docs/transcript-format.md has what a record can hold; its tables have an example of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from hushbid.consumer.machine import ConsumerMachine
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.machine.machine import Computation, Effect, Event, Received
from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.transcript.session_file import started
from tests.docs.pages import Page, names_in
from tests.docs.tables.protocol import COSTS, EXAMPLES, SESSION
from tests.support.message_cases import CASES

PAGE = Page("docs/transcript-format.md")


def recorded(base: type[Event | Effect]) -> Iterator[type[Event | Effect]]:
    """Every event and effect of the source that can be on record."""
    for kind in base.__subclasses__():
        if kind.__module__.startswith("hushbid."):
            if hasattr(kind, "KIND"):
                yield kind
            yield from recorded(kind)


def test_every_kind_of_event_and_effect_has_an_example() -> None:
    kinds = {
        kind.KIND for base in (Event, Effect) for kind in recorded(base) if not issubclass(kind, Computation)
    }
    assert kinds == {example.KIND for example in EXAMPLES}
    outcomes = {
        kind.KIND for role in (CuratorMachine, OwnerMachine, ConsumerMachine) for kind in role.OUTCOMES
    }
    assert outcomes <= kinds


def test_every_kind_of_cost_has_an_example() -> None:
    assert {type(example) for example in COSTS} == set(get_args(Cost))


def test_the_keys_of_a_frame_are_listed() -> None:
    keys = PAGE.first_names("Events and effects")[len(EXAMPLES) :]
    frame = Received("owner-0", 1, 1, b"as it came", CASES["bid-sealed"].message).item().private["frame"]
    assert isinstance(frame, dict)
    assert keys == list(frame)


def test_the_seeds_are_those_that_are_named() -> None:
    named = [name for name in names_in(PAGE.text) if name.endswith(".seed")]
    assert sorted(f"{section}.seed" for section in started(SESSION).seeds) == sorted(named)
