"""Every machine keeps the contract of `hushbid.protocol.machine.machine`, whatever peers and network do."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import hushbid.protocol.machine.machine
from hushbid.consumer.blind import BlindConsumer
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.unlinked import UnlinkedConsumer
from hushbid.curator.blind import BlindCurator
from hushbid.curator.machine import CuratorMachine
from hushbid.curator.unlinked import UnlinkedCurator
from hushbid.owner.blind import BlindOwner
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol import limits
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import Machine, Transition
from hushbid.protocol.machine.machine import (
    Connected,
    Event,
    Lost,
    Offended,
    Received,
    Returned,
    SetTimer,
    Started,
    TimerFired,
)
from hushbid.protocol.session.session import open_session
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import Ask, Bid, Message
from tests.simulation.blind_walks import blind_consumer_walk, blind_owner_walk, unlinked_consumer_walk
from tests.simulation.harness import names, session_file
from tests.simulation.participant_walks import consumer_walk, owner_walk
from tests.simulation.snapshots import arrays_in, snapshot
from tests.simulation.walks import Edge, Walk, curator_walk, rows_of

WALKS: dict[type[Machine], Callable[[int], Walk]] = {
    OwnerMachine: owner_walk,
    ConsumerMachine: consumer_walk,
    CuratorMachine: curator_walk,
    BlindOwner: blind_owner_walk,
    BlindConsumer: blind_consumer_walk,
    UnlinkedConsumer: unlinked_consumer_walk,
}
MACHINES: list[type[Machine]] = [*WALKS, BlindCurator, UnlinkedCurator]
FEWEST_LIVES, MOST_LIVES = 400, 2000
"""Of a machine, until every row was taken. The rarest rows of a curator are looked for in its later lives: at
random they take 2,600."""


def make(machine: type[Machine], rule: str = "ask-all") -> Machine:
    if machine.__name__.startswith(("Blind", "Unlinked")):
        rule = "blind"
    session = open_session(session_file(owners=names(2), points=3, rule=rule))
    if issubclass(machine, OwnerMachine):
        return machine(session, name="owner-0")
    if issubclass(machine, CuratorMachine | ConsumerMachine):
        return machine(session)
    raise TypeError(machine)


def peer_of(machine: type[Machine]) -> str:
    return "owner-0" if issubclass(machine, CuratorMachine) else "curator"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", WALKS)
def test_random_lives_take_every_row_of_the_table_and_no_other(
    machine: type[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`walks.Walk` checks each step of each life; a row that no life takes has no place in the table."""
    monkeypatch.setattr(limits, "DELIVERY_CHUNK_BYTES", 1)
    taken: set[Edge] = set()
    offences: set[Offence] = set()
    rows = rows_of(machine)
    for seed in range(MOST_LIVES):
        if seed >= FEWEST_LIVES and taken >= rows:
            break
        aimed = machine is CuratorMachine and seed >= FEWEST_LIVES // 2
        walk = curator_walk(seed, rows - taken) if aimed else WALKS[machine](seed)
        taken |= walk.edges
        offences |= walk.offences
    assert taken == rows
    assert {Offence.OUT_OF_TURN, Offence.SEQUENCE} <= offences
    # What a blind owner's machine passes on is encrypted: its numerics see the shapes.
    assert machine is BlindOwner or Offence.MALFORMED in offences
    if machine is CuratorMachine:
        assert {Offence.VERSION, Offence.CONFIGURATION, Offence.STATE_LOST, Offence.UNKNOWN_PEER} <= offences


@pytest.mark.slow
@pytest.mark.parametrize("machine", WALKS)
def test_many_more_lives_break_nothing(machine: type[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELIVERY_CHUNK_BYTES", 1)
    for seed in range(10_000, 22_000):
        assert WALKS[machine](seed).edges <= rows_of(machine)


# -- what the table does not allow -------------------------------------------------------------------


class Unlisted(Event):
    """An event that only has a kind."""

    def __init__(self, kind: str) -> None:
        self.KIND = kind  # type: ignore[misc]


def all_messages(base: type[Message] = Message) -> list[type[Message]]:
    return [cls for sub in base.__subclasses__() for cls in (sub, *all_messages(sub))]


def event_for(trigger: str, peer: str) -> Event:
    head, _, rest = trigger.partition(":")
    if head == "received":
        cls = next(cls for cls in all_messages() if cls.model_fields["kind"].default == rest)
        control = rest in ("hello", "welcome", "refused")
        return Received(peer, 0 if control else 1, 0, b"", cls.model_construct(kind=rest))
    if head == "timer":
        return TimerFired(rest, 1)
    plain: dict[str, Event] = {
        "started": Started(),
        "connected": Connected(),
        "lost": Lost(peer),
        "returned": Returned(peer),
        "offended": Offended(peer, 1, 0, Offence.MALFORMED, "what", "advice"),
    }
    return plain.get(head) or Unlisted(head)


ALL_TRIGGERS = sorted(
    {row.trigger for machine in MACHINES for row in machine.TRANSITIONS}
    | {f"received:{cls.model_fields['kind'].default}" for cls in all_messages()}
)


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_not_in_the_table_is_a_typed_error_and_changes_nothing(machine: type[Machine]) -> None:
    allowed = {(row.phase, row.trigger) for row in machine.TRANSITIONS}
    tried = 0
    for phase in machine.PHASES:
        for trigger in ALL_TRIGGERS:
            if (phase, trigger) in allowed:
                continue
            made, peer = make(machine), peer_of(machine)
            made.links[peer] = Link()
            made.phase = phase
            event = event_for(trigger, peer)
            if isinstance(event, TimerFired):
                made._attempts[event.name] = event.attempt
            # A target in a subspace stands in the tables as a target, a batch as a bid.
            if (phase, event.trigger) in allowed:
                continue
            assert event.trigger in (trigger, "received:target", "received:bid")
            before = snapshot(made)
            if isinstance(event, Received):
                with pytest.raises(RemoteProtocolError, match="no place here") as caught:
                    made.step(event, 1.0)
                assert caught.value.offence is Offence.OUT_OF_TURN
            else:
                with pytest.raises(LocalProtocolError, match=f"cannot happen in {phase}"):
                    made.step(event, 1.0)
            assert snapshot(made) == before
            tried += 1
    assert tried > 50


@pytest.mark.parametrize("machine", MACHINES)
def test_an_illegal_transition_tells_the_story_that_led_to_it(machine: type[Machine]) -> None:
    made = make(machine)
    made.step(Started(), 0.0)
    first = made.PHASES[0]
    with pytest.raises(LocalProtocolError, match=f"Before: {first} -started-> {first}"):
        made.step(Unlisted("nonsense"), 1.0)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_timer_that_was_set_anew_fires_into_nothing(machine: type[Machine]) -> None:
    made = make(machine)
    made.step(Started(), 0.0)
    made.step(Started(), 0.0)
    (name,) = made._attempts
    before = snapshot(made)
    assert made.step(TimerFired(name, 1), 5.0) == ()
    assert made.step(TimerFired("never-set", 1), 5.0) == ()
    assert snapshot(made) == before


@pytest.mark.parametrize("machine", MACHINES)
def test_the_table_names_handlers_and_phases_that_there_are(machine: type[Machine]) -> None:
    for row in machine.TRANSITIONS:
        assert callable(getattr(machine, row.handler))
        assert {row.phase, *row.to} <= set(machine.PHASES)
    phases = {row.phase for row in machine.TRANSITIONS}
    assert set(machine.PHASES) - phases == {"done"}


SHARED = {
    getattr(hushbid.protocol.machine.machine, name) for name in hushbid.protocol.machine.machine.__all__
} - {Event}
"""Among others, the events that every machine may be given."""


def stands_for(machine: type[Machine], trigger: str) -> set[type]:
    """What a row of that trigger is taken for: messages, or events that the machine may be given."""
    if trigger.startswith("received:"):
        messages = (Received("p", 0, 0, b"", cls.model_construct()) for cls in all_messages())
        return {type(event.message) for event in messages if event.trigger == trigger}
    given = {cls for cls in SHARED if isinstance(cls, type) and issubclass(cls, Event)}
    return {cls for cls in (*given, *machine.OUTCOMES) if trigger == cls.KIND}


def wrongly_typed(machine: type[Machine]) -> set[str]:
    """Handlers that do not take just what the rows that name them stand for."""
    rows: dict[str, set[str]] = {}
    for row in machine.TRANSITIONS:
        rows.setdefault(row.handler, set()).add(row.trigger)
    return {name for name, triggers in rows.items() if not is_typed(machine, name, triggers)}


def is_typed(machine: type[Machine], name: str, triggers: set[str]) -> bool:
    handler = getattr(machine, name)
    hints = get_type_hints(handler)
    taken = [hints.get(argument) for argument in list(signature(handler).parameters)[1:]]
    if all(trigger.startswith("timer:") for trigger in triggers):
        return taken == []
    received = all(trigger.startswith("received:") for trigger in triggers)
    if received and (len(taken) != 2 or taken.pop(0) is not str):
        return False
    due: set[Any] = set().union(*(stands_for(machine, trigger) for trigger in triggers))
    said = [get_args(hint) or (hint,) for hint in taken]
    # A class stands for those below it: a target in a subspace is a target.
    return len(said) == 1 and {*said[0]} <= due and all(issubclass(cls, said[0]) for cls in due)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_handler_takes_what_its_rows_stand_for(machine: type[Machine]) -> None:
    assert wrongly_typed(machine) == set()


def test_a_handler_of_another_type_than_its_row_is_found() -> None:
    class Mistyped(Machine):
        PHASES = ("a",)
        TRANSITIONS = (
            Transition("a", "started", "_on_started", ("a",)),
            Transition("a", "lost", "_on_lost", ("a",)),
            Transition("a", "timer:pause", "_on_pause", ("a",)),
            Transition("a", "received:bid", "_on_bid", ("a",)),
            Transition("a", "received:ask", "_on_ask", ("a",)),
        )

        def _on_started(self, event: Event) -> None: ...

        def _on_lost(self, event: Lost) -> None: ...

        def _on_pause(self, event: TimerFired) -> None: ...

        def _on_bid(self, owner: str, bid: Bid) -> None: ...

        def _on_ask(self, ask: Ask) -> None: ...

    assert wrongly_typed(Mistyped) == {"_on_started", "_on_pause", "_on_bid", "_on_ask"}, (
        "a batch is a bid, too"
    )


def test_a_table_with_two_rows_for_one_trigger_is_refused() -> None:
    row = Transition("a", "started", "_on_started", ("a",))
    with pytest.raises(TypeError, match="two transitions"):
        type("Twice", (Machine,), {"TRANSITIONS": (row, row), "PHASES": ("a",)})


def test_a_handler_that_ends_in_a_phase_its_row_does_not_name_is_caught() -> None:
    class Astray(Machine):
        PHASES = ("a", "b")
        TRANSITIONS = (Transition("a", "started", "_on_started", ("a",)),)

        def _on_started(self, event: Event) -> None:
            self.phase = "b"

    with pytest.raises(LocalProtocolError, match="_on_started went from a to b"):
        Astray().step(Started(), 0.0)


def test_a_step_that_fails_leaves_no_effect_to_the_next_one() -> None:
    class Hasty(Machine):
        PHASES = ("a",)
        TRANSITIONS = (
            Transition("a", "lost", "_on_lost", ("a",)),
            Transition("a", "started", "_on_started", ("a",)),
        )

        def _on_lost(self, event: Lost) -> None:
            self._set_timer("comeback", 1.0)
            raise LocalProtocolError("the handler is the bug")

        def _on_started(self, event: Event) -> None:
            self._set_timer("pause", 1.0)

    machine = Hasty()
    with pytest.raises(LocalProtocolError, match="the handler is the bug"):
        machine.step(Lost("owner-0"), 0.0)
    assert machine.step(Started(), 2.0) == (SetTimer("pause", 1, 3.0),)


def test_invariants_are_checked_after_every_step() -> None:
    class Broken(Machine):
        PHASES = ("a",)
        TRANSITIONS = (Transition("a", "started", "_on_started", ("a",)),)

        def _on_started(self, event: Event) -> None:
            pass

        def check(self) -> None:
            raise LocalProtocolError("what must hold does not")

    with pytest.raises(LocalProtocolError, match="what must hold does not"):
        Broken().step(Started(), 0.0)


# -- arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "summary"),
    [
        ("ask-all", {"mechanism": "exact"}),
        ("winner-only", {"mechanism": "exact"}),
        ("published", {"mechanism": "gaussian", "sigma": 20.0}),
        ("sealed", {"mechanism": "exact"}),
        ("sealed", {"mechanism": "gaussian", "epsilon": 1.0}),
        (
            "ask-all",
            {"mechanism": "mwem", "step_epsilon": 1.0, "calibration": "sound", "steps": 3, "eta": 0.05},
        ),
    ],
)
def test_arrays_that_enter_a_machine_are_read_only(
    rule: str, summary: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hushbid.simulation.simulator import Simulation

    seen: dict[str, int] = {}
    original = Machine.step

    def step(self: Machine, event: Event, now: float) -> object:
        for array in arrays_in(event):
            assert not array.flags.writeable, f"{event.trigger} lets the sender change what it sent"
            seen[event.trigger] = seen.get(event.trigger, 0) + 1
        return original(self, event, now)

    monkeypatch.setattr(Machine, "step", step)
    noisy = summary["mechanism"] != "exact"
    target = summary | {"neighbours": "substitute-one"} if noisy else None
    if noisy:
        summary = summary | {"neighbours": "add-remove-one"}
    session = open_session(
        session_file(
            owners=names(3), points=8, rule=rule, summary=summary, target=target, dimension=8, columns=3
        )
    )
    rng = np.random.default_rng(0)
    Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rng.random((2, 3))) for name in names(3)},
        validation=Dataset.from_arrays("v", rng.random((5, 3))),
        seed_set=Dataset.from_arrays("s", rng.random((4, 3))),
    ).run()
    events = {"weights-computed", "scored", "target-released", "purchases-checked"}
    if rule != "sealed":
        events.add("candidates-checked")
    if noisy:
        events.add("noise-drawn")
    assert events <= set(seen)
