"""Every machine keeps the contract of `hushbid.protocol.machine.machine`, whatever peers and network do."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import hushbid.protocol.machine.machine
from hushbid.consumer.party import consumer_machine
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol import limits
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import LocalProtocolError, Offence, RemoteProtocolError
from hushbid.protocol.machine.base import (
    Machine,
    Transition,
    TransitionTable,
    fired,
    happened,
    received,
)
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
from tests.simulation.blind_curator_walks import blind_curator_walk, unlinked_curator_walk
from tests.simulation.blind_walks import blind_consumer_walk, blind_owner_walk, unlinked_consumer_walk
from tests.simulation.harness import names, session_file
from tests.simulation.participant_walks import consumer_walk, owner_walk
from tests.simulation.snapshots import arrays_in, snapshot
from tests.simulation.walks import Edge, Walk, curator_walk, rows_of
from tests.support.handlers import TABLES

WALKS: dict[str, Callable[..., Walk]] = {
    "owner": owner_walk,
    "consumer": consumer_walk,
    "curator": curator_walk,
    "blind owner": blind_owner_walk,
    "blind consumer": blind_consumer_walk,
    "unlinked consumer": unlinked_consumer_walk,
    "blind curator": blind_curator_walk,
    "unlinked curator": unlinked_curator_walk,
}
FEWEST_LIVES, MOST_LIVES = 200, 2000
"""Of a machine, until every row was taken."""
AT_RANDOM = {"curator": 100, "blind curator": 0, "unlinked curator": 0}
"""Lives that look for no row yet, where these are not 50. At random the rarest rows take 2,600."""
FURTHER = {"curator": 32_000, "unlinked consumer": 22_000}
"""Added to the seeds of lives that look for rows, of which these find the rarest soon."""
_AS_WHERE_THE_CURATOR_READS: set[Edge] = {
    # Owners are ready after they were sent the map, so neither a hello nor the maps are the last to come.
    *(
        ("enrolling", trigger, to)
        for trigger in ("received:hello", "received:maps")
        for to in ("weighing", "bidding")
    ),
    # Bidding ends with a bid of the round, whose signature was not checked.
    *(
        ("bidding", trigger, to)
        for trigger in ("lost", "offended", "received:blind-bid", "timer:comeback", "timer:round")
        for to in ("weighing", "delivering")
    ),
    *(("bidding", trigger, "pacing") for trigger in ("received:blind-bid", "timer:round")),
}
NEVER: dict[str, set[Edge]] = {
    "blind curator": {
        *_AS_WHERE_THE_CURATOR_READS,
        # Where owners commit to their rows, the curator cannot link.
        *(
            (phase, "received:commitment", phase)
            for phase in TABLES["blind curator"].phases
            if phase != "done"
        ),
        ("enrolling", "timer:enrolment", "enrolling"),
    },
    # A round is opened after its last one was decided, and so not while that is checked.
    "unlinked curator": {*_AS_WHERE_THE_CURATOR_READS, ("verifying", "bids-checked", "bidding")},
}
"""Rows that a table has because that of another curator has them, and that cannot be taken."""


def make(machine: str) -> Machine:
    *kind, role = machine.split()
    rule = "blind" if kind else "ask-all"
    depth: dict[str, Any] = {"commitment_depth": 4} if kind == ["unlinked"] else {}
    session = open_session(session_file(owners=names(2), points=3, rule=rule, **depth))
    made: Machine
    if role == "owner":
        made = OwnerMachine(session, name="owner-0")
    else:
        made = CuratorMachine(session) if role == "curator" else consumer_machine(session)
    assert made.table is TABLES[machine]
    return made


def peer_of(machine: str) -> str:
    return "owner-0" if machine.endswith("curator") else "curator"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("machine", WALKS)
def test_random_lives_take_every_row_of_the_table_and_no_other(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`walks.Walk` checks each step of each life; another row that no life takes does not belong there."""
    monkeypatch.setattr(limits, "DELIVERY_CHUNK_BYTES", 1)
    taken: set[Edge] = set()
    offences: set[Offence] = set()
    rows = rows_of(TABLES[machine])
    assert rows >= NEVER.get(machine, set())
    rows -= NEVER.get(machine, set())
    due = {Offence.OUT_OF_TURN, Offence.SEQUENCE}
    if machine != "blind owner":  # what its machine passes on is encrypted: its numerics see the shapes
        due |= {Offence.MALFORMED}
    if machine == "curator":
        due |= {Offence.VERSION}
    if machine.endswith("curator"):
        due |= {Offence.CONFIGURATION, Offence.STATE_LOST, Offence.UNKNOWN_PEER}
    for seed in range(MOST_LIVES):
        if seed >= FEWEST_LIVES and taken >= rows and offences >= due:
            break
        if seed < AT_RANDOM.get(machine, 50):
            walk = WALKS[machine](seed)
        else:
            walk = WALKS[machine](seed + FURTHER.get(machine, 0), rows - taken)
        taken |= walk.edges
        offences |= walk.offences
    assert taken == rows
    assert offences >= due


@pytest.mark.slow
@pytest.mark.parametrize("machine", WALKS)
def test_many_more_lives_break_nothing(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELIVERY_CHUNK_BYTES", 1)
    for seed in range(10_000, 22_000):
        assert WALKS[machine](seed).edges <= rows_of(TABLES[machine]) - NEVER.get(machine, set())


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
    {row.trigger for table in TABLES.values() for row in table.rows}
    | {f"received:{cls.model_fields['kind'].default}" for cls in all_messages()}
)


@pytest.mark.parametrize("machine", TABLES)
def test_what_is_not_in_the_table_is_a_typed_error_and_changes_nothing(machine: str) -> None:
    table = TABLES[machine]
    allowed = {(row.phase, row.trigger) for row in table.rows}
    tried = 0
    for phase in table.phases:
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


@pytest.mark.parametrize("machine", TABLES)
def test_an_illegal_transition_tells_the_story_that_led_to_it(machine: str) -> None:
    made = make(machine)
    made.step(Started(), 0.0)
    first = made.table.phases[0]
    with pytest.raises(LocalProtocolError, match=f"Before: {first} -started-> {first}"):
        made.step(Unlisted("nonsense"), 1.0)


@pytest.mark.parametrize("machine", TABLES)
def test_a_timer_that_was_set_anew_fires_into_nothing(machine: str) -> None:
    made = make(machine)
    made.step(Started(), 0.0)
    made.step(Started(), 0.0)
    (name,) = made._attempts
    before = snapshot(made)
    assert made.step(TimerFired(name, 1), 5.0) == ()
    assert made.step(TimerFired("never-set", 1), 5.0) == ()
    assert snapshot(made) == before


@pytest.mark.parametrize("machine", TABLES)
def test_the_table_has_handlers_and_names_phases_that_there_are(machine: str) -> None:
    table = TABLES[machine]
    for row in table.rows:
        assert callable(row.handler)
        assert {row.phase, *row.to} <= set(table.phases)
    phases = {row.phase for row in table.rows}
    assert set(table.phases) - phases == {"done"}


SHARED = {
    getattr(hushbid.protocol.machine.machine, name) for name in hushbid.protocol.machine.machine.__all__
} - {Event}
"""Among others, the events that every machine may be given."""


def stands_for(table: TransitionTable[Any], trigger: str) -> set[type]:
    """The messages or events that a row of this trigger handles."""
    if trigger.startswith("received:"):
        messages = (Received("p", 0, 0, b"", cls.model_construct()) for cls in all_messages())
        return {type(event.message) for event in messages if event.trigger == trigger}
    given = {cls for cls in SHARED if isinstance(cls, type) and issubclass(cls, Event)}
    return {cls for cls in (*given, *table.outcomes) if trigger == cls.KIND}


def wrongly_typed(table: TransitionTable[Any]) -> set[str]:
    """Handlers whose types differ from what their rows handle."""
    rows: dict[Callable[..., None], set[str]] = {}
    for row in table.rows:
        rows.setdefault(row.handler, set()).add(row.trigger)
    return {handler.__name__ for handler, triggers in rows.items() if not is_typed(table, handler, triggers)}


def is_typed(table: TransitionTable[Any], handler: Callable[..., None], triggers: set[str]) -> bool:
    hints = get_type_hints(handler)
    taken = [hints.get(argument) for argument in list(signature(handler).parameters)[1:]]
    if all(trigger.startswith("timer:") for trigger in triggers):
        return taken == []
    of_messages = all(trigger.startswith("received:") for trigger in triggers)
    if of_messages and (len(taken) != 2 or taken.pop(0) is not str):
        return False
    due: set[Any] = set().union(*(stands_for(table, trigger) for trigger in triggers))
    said = [get_args(hint) or (hint,) for hint in taken]
    # A class stands for those below it: a target in a subspace is a target.
    return len(said) == 1 and {*said[0]} <= due and all(issubclass(cls, said[0]) for cls in due)


@pytest.mark.parametrize("machine", TABLES)
def test_a_handler_takes_what_its_rows_stand_for(machine: str) -> None:
    assert wrongly_typed(TABLES[machine]) == set()


def test_a_handler_of_another_type_than_its_row_is_found() -> None:
    """The type checker misses one case: a row for bids that also takes batches."""

    def on_started(machine: Machine, event: Event) -> None: ...

    def on_lost(machine: Machine, event: Lost) -> None: ...

    def on_pause(machine: Machine, event: TimerFired) -> None: ...

    def on_bid(machine: Machine, owner: str, bid: Bid) -> None: ...

    def on_ask(machine: Machine, ask: Ask) -> None: ...

    table: TransitionTable[Machine] = TransitionTable(
        phases=("a",),
        rows=(
            *happened("a", Started, on_started),
            *happened("a", Lost, on_lost),
            *fired("a", "pause", on_pause),  # type: ignore[arg-type]
            *received("a", Bid, on_bid),
            *received("a", Ask, on_ask),  # type: ignore[arg-type]
        ),
    )
    assert wrongly_typed(table) == {"on_started", "on_pause", "on_bid", "on_ask"}


def ignore(machine: Machine, event: Event) -> None:
    """Do nothing."""


def table_of(*rows: Transition[Any], phases: tuple[str, ...] = ("a",)) -> TransitionTable[Any]:
    return TransitionTable(phases=phases, rows=rows)


def test_a_table_with_two_rows_for_one_trigger_is_refused() -> None:
    (row,) = happened("a", Started, ignore)
    with pytest.raises(TypeError, match="two transitions"):
        table_of(row, row)


def test_a_handler_that_ends_in_a_phase_its_row_does_not_name_is_caught() -> None:
    def astray(machine: Machine, event: Started) -> None:
        machine.phase = "b"

    machine = Machine(table_of(*happened("a", Started, astray), phases=("a", "b")))
    with pytest.raises(LocalProtocolError, match="astray went from a to b"):
        machine.step(Started(), 0.0)


def test_a_step_that_fails_leaves_no_effect_to_the_next_one() -> None:
    def on_lost(machine: Machine, event: Lost) -> None:
        machine.set_timer("comeback", 1.0)
        raise LocalProtocolError("the handler is the bug")

    def on_started(machine: Machine, event: Started) -> None:
        machine.set_timer("pause", 1.0)

    machine = Machine(table_of(*happened("a", Lost, on_lost), *happened("a", Started, on_started)))
    with pytest.raises(LocalProtocolError, match="the handler is the bug"):
        machine.step(Lost("owner-0"), 0.0)
    assert machine.step(Started(), 2.0) == (SetTimer("pause", 1, 3.0),)


def test_invariants_are_checked_after_every_step() -> None:
    class Broken(Machine):
        def check(self) -> None:
            raise LocalProtocolError("what must hold does not")

    with pytest.raises(LocalProtocolError, match="what must hold does not"):
        Broken(table_of(*happened("a", Started, ignore))).step(Started(), 0.0)


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
