"""The payments for numbers with standard errors, and the sentences about them."""

from __future__ import annotations

import json
import math

import pytest

from hushbid.protocol.privacy.payment import PaidStatement, Price

VALUES = {"north": 6.0, "south": 2.0, "east": 1.9, "west": -3.0}


def stated(
    signal: bool | None = True, price: Price | None = None, error: float | None = 1.0
) -> PaidStatement:
    errors = dict.fromkeys(VALUES, error)
    return PaidStatement.of("points", VALUES, errors, signal=signal, price=price or Price())


def test_what_is_below_two_standard_errors_is_not_paid() -> None:
    statement = stated()
    assert {owner: line.paid for owner, line in statement.owners.items()} == {
        "north": 6.0,
        "south": 2.0,
        "east": 0.0,
        "west": 0.0,
    }
    assert {owner: line.value for owner, line in statement.owners.items()} == VALUES
    assert statement.sum == 8.0
    assert [line.share for line in statement.owners.values()] == [0.75, 0.25, 0.0, 0.0]
    assert {line.amount for line in statement.owners.values()} == {None}
    assert statement.sentence() == "Paid: points, if two standard errors or more."


def test_without_a_signal_nobody_is_paid_whatever_the_numbers() -> None:
    statement = stated(signal=False, price=Price(total=100.0))
    assert statement.sum == 0.0
    assert {(line.paid, line.share, line.amount) for line in statement.owners.values()} == {(0.0, None, 0.0)}
    assert statement.sentence().startswith("Nobody is paid: the released target lies where noise")


def test_without_a_known_noise_nobody_can_say() -> None:
    statement = stated(signal=None, error=None)
    assert statement.sum is None
    assert {(line.paid, line.share, line.amount) for line in statement.owners.values()} == {
        (None, None, None)
    }
    assert "cannot be determined" in statement.sentence()
    assert statement.owners["north"].figures() == "–"


def test_where_no_number_is_large_enough_that_is_said() -> None:
    statement = stated(error=10.0)
    assert statement.sum == 0.0
    assert statement.sentence() == "Nobody is paid: no owner's number comes to two standard errors."


def test_without_noise_all_that_is_gained_is_paid() -> None:
    statement = stated(error=0.0)
    assert [line.paid for line in statement.owners.values()] == [6.0, 2.0, 1.9, 0.0]


@pytest.mark.parametrize(
    ("price", "amounts"),
    [(Price(unit=10.0), [60.0, 20.0, 0.0, 0.0]), (Price(total=100.0), [75.0, 25.0, 0.0, 0.0])],
    ids=["for a unit", "in all"],
)
def test_the_amount_is_by_the_price(price: Price, amounts: list[float]) -> None:
    statement = stated(price=price)
    assert [line.amount for line in statement.owners.values()] == amounts
    assert statement.owners["north"].figures() == f"6 ± 1, 75.0% of all: {amounts[0]:.2f}"


def test_there_is_one_price() -> None:
    with pytest.raises(ValueError, match="one of them alone"):
        Price(unit=1.0, total=1.0)


def test_json_has_what_it_was_made_from() -> None:
    statement = stated(price=Price(unit=10.0))
    assert PaidStatement.from_json(json.loads(json.dumps(statement.as_json()))) == statement
    lost = PaidStatement.of("points", {"a": math.inf}, {"a": math.nan}, signal=True, price=Price())
    json.dumps(lost.as_json(), allow_nan=False)
