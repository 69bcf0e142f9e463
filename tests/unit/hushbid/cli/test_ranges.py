"""The range of a number in a configuration is stated once, at its type: an option of its name has it too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass
from pkgutil import walk_packages
from typing import Any

import pytest
from pydantic import BaseModel

from hushbid.cli.app import app, evidence_verbs
from hushbid.protocol.runtime.command import built

PACKAGES = ("hushbid.protocol.config", "hushbid.protocol.privacy", "hushbid.cluster", "hushbid.catalogue")
KEYS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
SHOWN = re.compile(r"\[(?:(?P<low>[^<]+)(?P<from><=?))?x(?:(?P<to>[<>]=?)(?P<high>.+))?\]")

Range = dict[str, float]
"""Bounds under their names in JSON Schema."""

WHOSE = {
    "plan delta": "SessionSection",
    "screen delta": "SessionSection",
    "evidence experiment selection delta": "SessionSection",
    "publish delta": "CatalogueEntry",  # 0 is pure ε there
    "publish kme seed": "FeatureSection",
    "publish race seed": "HashSection",
}
"""The model that an option's field is in, where fields of that name have several ranges."""
OTHERS = {
    "plan seed_points": "a file of them may have more than are drawn",
    "publish kme points": "synthetic ones, which may be none",
    "train seed": "of a model that may draw nothing, and then takes any",
    "weigh seed": "as above",
    "value seed": "of orders, which no file has",
    "evidence audit seed": "of noise in many sessions",
    "evidence sweep faults seed": "the others follow it",
    "evidence bench points": "of an owner, or those that a page lists",
    "evidence bench rules columns": "of one byte each, within a small frame",
    "evidence bench points columns": "as above",
    "evidence bench peers columns": "as above",
    "evidence bench replay columns": "as above",
    "evidence bench tender columns": "of one byte each; of one column rows would be alike",
}
"""Options that have a field's name alone: another quantity."""


def models() -> Iterator[type[BaseModel]]:
    """Every table of a configuration, with those of mechanisms, rules and catalogue entries."""
    for package in map(import_module, PACKAGES):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            for each in vars(import_module(found.name)).values():
                if isclass(each) and issubclass(each, BaseModel) and each.__module__ == found.name:
                    yield each


def fields() -> dict[str, dict[str, Range]]:
    """The ranges of all fields that have one, by name and model: what pydantic says of them."""
    found: dict[str, dict[str, Range]] = {}
    for model in models():
        schema = {} if any(map(is_array, model.model_fields.values())) else model.model_json_schema()
        for name, field in schema.get("properties", {}).items():
            for part in (field, *field.get("anyOf", ())):
                if part.get("type") in ("integer", "number") and (own := {*KEYS} & part.keys()):
                    found.setdefault(name, {})[model.__name__] = {key: part[key] for key in own}
    return found


def is_array(field: Any) -> bool:
    """Whether JSON Schema has no words for a field."""
    return "Array" in str(field.annotation) or "ndarray" in str(field.annotation)


def options() -> Iterator[tuple[str, Any]]:
    """Every option of every verb that takes numbers, with the verb's words and its own name."""
    group: Any = built(app)
    top = {verb: group.commands[verb] for verb in group.commands if verb not in evidence_verbs()}
    evidence: Any = top.pop("evidence")
    for verb, command in (
        *top.items(),
        *((f"evidence {each}", evidence.commands[each]) for each in evidence_verbs()),
    ):
        for words, leaf in leaves(verb, command):
            for parameter in leaf.params:
                if re.search(r"\b(int|float)\b", str(parameter.type_descriptor.annotation)):
                    yield f"{words} {parameter.name}", parameter


def leaves(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    if (below := getattr(command, "commands", None)) is None:
        yield words, command
        return
    for name in list(below):
        yield from leaves(f"{words} {name}", below[name])


def shown(parameter: Any) -> Range:
    """What an option's help says of its range: Typer's own words, or ours for floats."""
    if parameter.min is not None or parameter.max is not None:
        own = {"minimum": parameter.min, "maximum": parameter.max}
        return {key: value for key, value in own.items() if value is not None}
    match = SHOWN.search(parameter.metavar or "")
    if match is None:
        return {}
    low, high = match["low"], match["high"]
    if match["to"] in (">", ">="):
        return {"minimum" if match["to"] == ">=" else "exclusiveMinimum": float(high)}
    found = {} if low is None else {"minimum" if match["from"] == "<=" else "exclusiveMinimum": float(low)}
    return found | (
        {} if high is None else {"maximum" if match["to"] == "<=" else "exclusiveMaximum": float(high)}
    )


def as_of_whole_numbers(of: Range) -> Range:
    """A range as Typer has it, to which no whole number is excluded."""
    found = dict(of)
    if "exclusiveMinimum" in found:
        found["minimum"] = found.pop("exclusiveMinimum") + 1
    if "exclusiveMaximum" in found:
        found["maximum"] = found.pop("exclusiveMaximum") - 1
    return found


def entry(table: dict[str, str], option: str) -> str | None:
    """What a table has for an option, or for all verbs below one: "publish delta" is of `publish kme` too."""
    *verb, name = option.split()
    for length in range(len(verb), 0, -1):
        if (found := table.get(" ".join([*verb[:length], name]))) is not None:
            return found
    return None


FIELDS = fields()
OPTIONS = dict(options())
NAMED = [option for option in OPTIONS if option.split()[-1] in FIELDS and entry(OTHERS, option) is None]


@pytest.mark.parametrize("option", NAMED)
def test_an_option_has_the_range_of_the_field_of_its_name(option: str) -> None:
    ranges, whose = FIELDS[option.rsplit(maxsplit=1)[-1]], entry(WHOSE, option)
    wanted = [ranges[whose]] if whose else list(ranges.values())
    assert wanted.count(wanted[0]) == len(wanted), "fields of this name differ: say in WHOSE which it is"
    parameter = OPTIONS[option]
    whole = "int" in str(parameter.type_descriptor.annotation)
    assert shown(parameter) == (as_of_whole_numbers(wanted[0]) if whole else wanted[0])


def test_what_is_walked_is_there() -> None:
    """No list of exceptions outlives what it excepts, and the walk finds what the ranges are for."""
    assert {"points", "batch", "seed_weight", "delta", "gamma", "epsilon", "min_owners"} <= FIELDS.keys()
    assert {"plan points", "plan delta", "publish kme gamma", "again min_owners", "consumer seed_points"} <= {
        *NAMED
    }
    for table in (WHOSE, OTHERS):
        used = [key for key in table if any(entry({key: "it"}, option) for option in OPTIONS)]
        assert used == list(table)
    assert len(NAMED) > 50
