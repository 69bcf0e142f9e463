"""The interval that a type states, and an option that has it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Le, Lt
from annotated_types import Interval as Both

from hushbid.protocol import ranges
from hushbid.protocol.intervals import Interval, interval_of, within
from hushbid.protocol.runtime.ranged import ranged, without_range

Whole = Annotated[int, Ge(1), Lt(10)]
Part = Annotated[float, Gt(0), Le(1)]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (Whole, "1<=x<10"),
        (Part | None, "0<x<=1"),
        (list[Part] | None, "0<x<=1"),
        (Annotated[int, Both(ge=2, le=256)], "2<=x<=256"),
        (Annotated[float, Gt(0)], "x>0"),
        (Annotated[float, Ge(0)], "x>=0"),
        (Annotated[float, Lt(3)], "x<3"),
        (int | None, "None"),
        (Literal["one"], "None"),
    ],
)
def test_a_type_states_its_interval_within_lists_and_unions_too(kind: Any, shown: str) -> None:
    assert str(interval_of(kind)) == shown


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (-1, "is below 0"),
        (0, "is not above 0"),
        (0.5, None),
        (3, "is not below 3"),
        (4, "is above 3"),
        (math.inf, "is above 3"),
        (10**400, "is above 3"),
    ],
)
def test_what_is_out_of_it_is_told_how(value: float, fault: str | None) -> None:
    assert Interval(gt=0, lt=3).fault(value) == fault
    assert within(Annotated[float, Gt(0), Lt(3)], value) is (fault is None)


def test_no_number_is_infinite_where_nothing_is_the_largest() -> None:
    assert within(Annotated[float, Gt(0)], 1e300)
    assert within(Annotated[int, Gt(0)], 10**400)
    for value in (math.inf, math.nan, 10**400):
        assert not within(Annotated[float, Gt(0)], value)


def test_typer_refuses_whole_numbers_out_of_it_and_help_shows_that_of_floats() -> None:
    option = ranged(Whole | None, "--many", help="How many.")
    assert (option.min, option.max, option.help) == (1, 9, "How many.")
    assert "--many" in (option.default, *option.param_decls), "where Typer looks for an option's first name"
    option = ranged(list[Part] | None)
    assert (option.min, option.max, option.metavar) == (None, None, "<list[float]> [0<x<=1]")
    assert ranged(Part).metavar == "<float range> [0<x<=1]"
    assert ranged(Part, metavar="SHARE").metavar == "SHARE"
    assert ranged(str | None).metavar is None


def test_typer_is_given_types_without_it() -> None:
    kinds: list[tuple[Any, Any]] = [
        (Whole, int),
        (Whole | None, int | None),
        (list[Part] | None, list[float] | None),
        (Literal["one"] | None, Literal["one"] | None),
    ]
    for kind, bare in kinds:
        assert without_range(kind) == bare


@pytest.mark.parametrize(
    ("kind", "most"), [(Annotated[int, Ge(1), Le(2**20)], 2**20), (ranges.ModelSeed, 2**32)]
)
def test_a_fault_tells_all_digits_of_a_bound(kind: Any, most: int) -> None:
    found = interval_of(kind)
    assert found is not None
    assert (found.fault(2**32 + 1) or "").endswith(f" {most}")
