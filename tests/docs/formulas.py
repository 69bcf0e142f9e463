"""The bytes that a formula of docs/wire.md stands for: its section "Notation", as a program."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import numpy as np

from hushbid.protocol.wire.arrays import Array, pack_array
from tests.docs.pages import Page

Value = bytes | int | str | Array
_CALL: Final = re.compile(r"(\w+)\((.*)\)", re.S)
_WHOLE: Final = {"u8": (1, False), "u32": (4, False), "u64": (8, False), "i64": (8, True)}
"""Bytes of an integer, and whether it has a sign."""


def formulas(page: Page, section: str) -> dict[str, str]:
    """The formulas of a section by the name that they define."""
    blocks = re.findall(r"^```text\n(.*?)^```", page.section(section), re.M | re.S)
    lines = (line.partition(" = ") for block in blocks for line in block.splitlines())
    return {name: formula for name, _, formula in lines}


def stated(page: Page, section: str, thing: str, /, **given: Value) -> bytes:
    """The bytes of the page's formula for a name, given the values of its other names."""
    return value_of(formulas(page, section)[thing], given)


def value_of(formula: str, given: dict[str, Value]) -> bytes:
    """The bytes of a formula: those of its terms, joined."""
    return b"".join(_term(term, given) for term in _split(formula, ","))


def _split(formula: str, by: str) -> list[str]:
    """The parts of a formula between signs outside brackets."""
    parts, depth = [""], 0
    for sign in formula:
        depth += (sign == "(") - (sign == ")")
        if sign == by and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _term(term: str, given: dict[str, Value]) -> bytes:
    if text := re.fullmatch(r'"(.+)"', term):
        return text[1].encode() + b"\0"
    if term in ("name8", "name32"):
        name = str(given["name"]).encode()
        return len(name).to_bytes(int(term[4:]) // 8, "big") + name
    if term == "phi":
        return np.asarray(given["phi"]).astype("<i2").tobytes()
    if call := _CALL.fullmatch(term):
        return _called(call[1], call[2], given)
    value = given[term]
    assert isinstance(value, bytes), f"{term} is no bytes"
    return value


def _called(function: str, inside: str, given: dict[str, Value]) -> bytes:
    if function in _WHOLE:
        length, signed = _WHOLE[function]
        value = int(inside) if inside.isdecimal() else given[inside]
        assert isinstance(value, int), f"{inside} is no integer"
        return value.to_bytes(length, "big", signed=signed)
    if function == "array":
        return pack_array(np.asarray(given[inside]))
    if function == "SHA256":
        return hashlib.sha256(value_of(inside, given)).digest()
    assert function == "BLAKE2b", f"the page does not define {function}"
    how, data = _split(inside, ";")
    size, *key = _split(how, ",")
    keyed = value_of(key[0], given) if key else b""
    return hashlib.blake2b(value_of(data, given), key=keyed, digest_size=int(size)).digest()
