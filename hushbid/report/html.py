"""HTML of plain values: whatever is not `Html` already is text, and is escaped.

Names, labels and reasons in a transcript are other parties' words. This is the one place where they become
markup.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["FIRST_BYTES", "Html", "data_script", "element", "fragment", "table"]

FIRST_BYTES: Final = b"<!DOCTYPE html>\n<!-- report of a hushbid session -->\n"
"""What a report begins with, and no other page."""
_VOID: Final = frozenset({"br", "meta"})


class Html(str):
    """Text that is markup and not to be escaped again. Only this module, and constants, make it."""

    __slots__ = ()


def fragment(*parts: str | Html) -> Html:
    """The parts one after the other; text among them is escaped."""
    return Html("".join(part if isinstance(part, Html) else html.escape(part) for part in parts))


def element(tag: str, /, *content: str | Html, **attributes: str) -> Html:
    """An element.

    Args:
        tag: Its name, a constant of the caller.
        content: What is in it; text is escaped.
        attributes: Its attributes, escaped; ``class_`` stands for ``class``, and an underscore for a hyphen.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items()
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{fragment(*content)}</{tag}>")


def table(columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[str | Html]]) -> Html:
    """A table.

    Args:
        columns: The title of each, and its class: ``number`` for what is aligned to the right, or ``text``.
            Without any title there is no head.
        rows: The cells of each row, in the order of the columns.
    """
    titles = tuple(columns)
    head = element("tr", *(element("th", title, class_=kind, scope="col") for title, kind in titles))
    body = [
        element(
            "tr", *(element("td", cell, class_=kind) for cell, (_, kind) in zip(row, titles, strict=True))
        )
        for row in rows
    ]
    titled = (element("thead", head),) if any(title for title, _ in titles) else ()
    return element("div", element("table", *titled, element("tbody", *body)), class_="table")


def data_script(identifier: str, value: Mapping[str, Any]) -> Html:
    """A script element that holds JSON for programs. No text in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{html.escape(identifier)}">{text}</script>')
