"""docs/python.md: its tables name every key and argument. tests/installed runs its code."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from dataclasses import fields

import pytest

import hushbid
from hushbid.procuring import Procured
from hushbid.protocol import errors
from hushbid.protocol.data.column import Column
from tests.docs.pages import Page, names_in

PAGE = Page("docs/python.md")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.text, flags=re.DOTALL)


def test_from_dataframes_to_a_model_takes_fewer_than_twenty_statements() -> None:
    statements = [each for code in BLOCKS for each in ast.parse(code).body]
    assert len([each for each in statements if not isinstance(each, ast.Import | ast.ImportFrom)]) < 20


def test_every_argument_and_every_key_is_named() -> None:
    tables = {heading: set(names_in(PAGE.section(heading))) for heading in ("`procure`", "Schemas")}
    assert set(inspect.signature(hushbid.procure).parameters) <= tables["`procure`"]
    public = {name for name in vars(Procured) if not name.startswith("_")} | set(Procured.__annotations__)
    assert public - {"schema"} <= tables["`procure`"]
    assert set(Column.model_fields) <= tables["Schemas"]


def test_parties_arguments_events_and_results_are_named() -> None:
    named = set(names_in(PAGE.section("Parties of real sessions")))
    parties = (hushbid.Owner, hushbid.Consumer, hushbid.Curator)
    assert {each.name for party in parties for each in fields(party) if each.init} <= named
    assert {each.name for each in fields(hushbid.Progress)} <= named
    for result in (hushbid.OwnerResult, hushbid.ConsumerResult, hushbid.CuratorResult):
        properties = {name for name, value in inspect.getmembers(result) if isinstance(value, property)}
        assert properties <= named, result


def test_every_name_of_the_package_is_there_but_for_the_rest_of_the_errors() -> None:
    rest = {name for name in errors.__all__ if name not in PAGE.text}
    assert {name for name in hushbid.__all__ if not re.search(rf"\b{name}\b", PAGE.text)} <= rest


def test_the_package_gives_its_api_when_it_is_asked_for() -> None:
    assert "hushbid.procuring" in sys.modules or hushbid.procure is not None
    assert {hushbid.Schema.__name__, hushbid.Column.__name__} == {"Schema", "Column"}
    with pytest.raises(AttributeError, match="attribute procurement"):
        getattr(hushbid, "procure" + "ment")  # so that mypy does not see it either
