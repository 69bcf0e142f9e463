"""Invitations: what the invited party reads in its file."""

from __future__ import annotations

import tomllib
from typing import Any

import tomli_w

from hushbid.protocol.data.schema import Schema
from hushbid.starting.invitations import with_dates

COLUMNS: list[dict[str, Any]] = [
    {"name": "day", "kind": "date", "lower": "1999-12-31", "upper": "2020-03-01", "missing": "2020-02-29"},
    {"name": 'the "date"', "kind": "datetime", "lower": "2000-01-01", "upper": "2000-01-02"},
    {"name": "age", "kind": "integer", "lower": 18, "upper": 99},
]


def test_bounds_of_dates_stand_beside_their_numbers_and_change_no_value() -> None:
    columns = Schema.of(COLUMNS).columns
    values = {"configuration": {"columns": [each.model_dump(exclude_none=True) for each in columns]}}
    text = with_dates(tomli_w.dumps(values), columns)
    assert tomllib.loads(text) == tomllib.loads(tomli_w.dumps(values))
    assert 'kind = "date"  # lower 1999-12-31, upper 2020-03-01, missing 2020-02-29' in text
    assert 'kind = "datetime"  # lower 2000-01-01T00:00:00.000000' in text
    assert text.count("#") == 2
