"""docs/transcript-format.md lists what a record can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import get_args

import numpy as np
import pytest

from consumer.events import PurchasesChecked, TargetReleased
from consumer.machine import ConsumerMachine
from curator.events import CandidatesChecked, NoiseDrawn, WeightsComputed
from curator.machine import CuratorMachine
from owner.events import MapOpened, MapRefused, Scored
from owner.machine import OwnerMachine
from protocol.accounting import (
    ApproximateCost,
    BoundedRangeCost,
    Cost,
    DiscreteGaussianCost,
    GaussianCost,
    LaplaceCost,
    ZcdpCost,
    cost_to_record,
)
from protocol.errors import ExitCode, Offence
from protocol.machine import (
    Charge,
    Computation,
    Connected,
    Effect,
    Event,
    Finish,
    HeadSigned,
    Lost,
    Offended,
    Received,
    Restarted,
    Returned,
    Send,
    SetTimer,
    TimerFired,
)
from protocol.messages import Beat
from protocol.names import CURATOR
from protocol.recorded_session import started
from tests.conftest import ROOT
from tests.simulation.harness import candidate_of, names, session_file
from tests.unit.message_cases import CASES

PAGE = (ROOT / "docs" / "transcript-format.md").read_text(encoding="utf-8")
ZEROS = np.zeros(4)
TOTALS = np.zeros(4, dtype=np.int64)
SESSION = session_file(owners=names(2), points=3)
EXAMPLES: tuple[Event | Effect, ...] = (
    started(SESSION),
    Restarted(),
    Connected(),
    Lost(CURATOR),
    Returned(CURATOR),
    TimerFired("round", 1),
    Received(CURATOR, 1, 1, b"", Beat()),
    Offended(CURATOR, 1, 1, Offence.MALFORMED, "what", "advice"),
    Send(CURATOR, 1, 1, "beat", b""),
    SetTimer("round", 1, 1.0),
    Charge("add-remove-one", 1, 1, ()),
    HeadSigned(bytes(32), b""),
    Finish(ExitCode.DONE, "reason", "advice"),
    NoiseDrawn(1, ()),
    WeightsComputed(1, np.zeros(4, dtype=np.int32)),
    CandidatesChecked(None, ()),
    MapOpened(),
    MapRefused("what", "advice"),
    Scored(1, 0, 0, candidate_of(np.zeros(4, dtype=np.int16)), b""),
    TargetReleased(ZEROS, 1, TOTALS, 1, b"", b"", "none", ()),
    PurchasesChecked((), None),
)


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", cell)


def listed() -> dict[str, tuple[list[str], list[str]]]:
    """Public and private fields by kind."""
    (table,) = re.findall(r"^\| kind \| public \| private \| \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    cells = [line.split("|")[1:4] for line in table.splitlines()]
    return {names_in(kind)[0]: (names_in(public), names_in(private)) for kind, public, private in cells}


def recorded(base: type[Event | Effect]) -> Iterator[type[Event | Effect]]:
    """Every event and effect of the source that can be on record."""
    for kind in base.__subclasses__():
        if kind.__module__.partition(".")[0] in ("protocol", "curator", "owner", "consumer"):
            if hasattr(kind, "KIND"):
                yield kind
            yield from recorded(kind)


def test_every_kind_of_event_and_effect_is_listed() -> None:
    kinds = {
        kind.KIND for base in (Event, Effect) for kind in recorded(base) if not issubclass(kind, Computation)
    }
    assert set(listed()) == kinds == {example.KIND for example in EXAMPLES}
    outcomes = {
        kind.KIND for role in (CuratorMachine, OwnerMachine, ConsumerMachine) for kind in role.OUTCOMES
    }
    assert outcomes <= kinds


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.KIND))
def test_the_fields_of_a_kind_are_listed_in_their_order(example: Event | Effect) -> None:
    item = example.item()
    assert listed()[item.kind] == (list(item.public), list(item.private))


def test_the_keys_of_a_frame_are_listed() -> None:
    (table,) = re.findall(r"^\| key \| value \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    keys = [name for line in table.splitlines() for name in names_in(line.split("|")[1])]
    bid = CASES["bid-sealed"].message
    frame = Received("owner-0", 1, 1, b"as it came", bid).item().private["frame"]
    assert isinstance(frame, dict)
    assert keys == list(frame)


def test_the_kinds_of_cost_and_their_numbers_are_listed() -> None:
    (table,) = re.findall(r"^\| kind of cost \| numbers \| \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.M)
    stated = {names_in(cells[1])[0]: names_in(cells[2]) for cells in map(_cells, table.splitlines())}
    examples = (
        GaussianCost(noise_multiplier=1.0, count=1),
        DiscreteGaussianCost(sensitivity=1.0, sigma=1.0, width=1, count=1),
        LaplaceCost(epsilon=1.0, count=1),
        BoundedRangeCost(eta=1.0, count=1),
        ZcdpCost(rho_each=1.0, count=1),
        ApproximateCost(epsilon=1.0, delta=0.1, count=1),
    )
    assert {type(example) for example in examples} == set(get_args(Cost))
    found = [cost_to_record(example) for example in examples]
    assert stated == {
        cost["kind"]: [name for name in cost if name not in ("kind", "count")] for cost in found
    }


def _cells(line: str) -> list[str]:
    return line.split("|")


def test_the_seeds_are_those_that_are_named() -> None:
    assert sorted(f"{section}.seed" for section in started(SESSION).seeds) == sorted(
        re.findall(r"`((?:features|noise)\.seed)`", PAGE)
    )
