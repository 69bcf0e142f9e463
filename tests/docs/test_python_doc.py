"""docs/python.md: its code runs, and prints what it says; its tables name every key and argument."""

from __future__ import annotations

import ast
import inspect
import re
import sys

import pytest

import hushbid
from hushbid.procuring import Procured
from protocol.data.schema import Column
from tests.docs.pages import Page, names_in

PAGE = Page("docs/python.md")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.text, flags=re.DOTALL)


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What every block of code of the page prints, one after the other in one namespace."""
    found, names = [], {"__name__": "page"}
    for code in BLOCKS:
        exec(compile(code, PAGE.path, "exec"), names)
        found.append(capsys.readouterr().out)
    return found


def test_the_page_s_code_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    said = re.findall(r"```text\n(.*?)```", PAGE.text, flags=re.DOTALL)
    assert [" ".join(each.split()) for each in said] == [" ".join(each.split()) for each in printed(capsys)]


def test_from_dataframes_to_a_model_takes_fewer_than_twenty_statements() -> None:
    statements = [each for code in BLOCKS for each in ast.parse(code).body]
    assert len([each for each in statements if not isinstance(each, ast.Import | ast.ImportFrom)]) < 20


def test_every_argument_and_every_key_is_named() -> None:
    tables = {heading: set(names_in(PAGE.section(heading))) for heading in ("`procure`", "Schemas")}
    assert set(inspect.signature(hushbid.procure).parameters) <= tables["`procure`"]
    public = {name for name in vars(Procured) if not name.startswith("_")} | set(Procured.__annotations__)
    assert public - {"schema"} <= tables["`procure`"]
    assert set(Column.model_fields) <= tables["Schemas"]


def test_the_package_gives_its_api_when_it_is_asked_for() -> None:
    assert "hushbid.procuring" in sys.modules or hushbid.procure is not None
    assert {hushbid.Schema.__name__, hushbid.Column.__name__} == {"Schema", "Column"}
    with pytest.raises(AttributeError, match="no attribute 'procurement'"):
        _ = hushbid.procurement
