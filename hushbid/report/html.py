"""HTML from plain values: everything that is not yet `Html` is text, and is escaped.

Names, labels and reasons in a transcript are other parties' words. Only here do they become markup, with
unprintable characters as escapes.
"""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping
from importlib import resources
from typing import Final

from hushbid.protocol.printable import printable, printable_lines, printable_source

__all__ = [
    "FIRST_BYTES",
    "SESSION",
    "Html",
    "data_script",
    "element",
    "fragment",
    "notice",
    "own_file",
    "packed_script",
    "plot",
    "section",
    "table",
    "word",
]

FIRST_BYTES: Final = b"<!DOCTYPE html>\n<!-- report of a hushbid session -->\n"
"""The first line of a report, and of no other page."""
SESSION: Final = b'<meta name="hushbid-session" content="'
"""The prefix of the session's name in a report's or a replay's title."""
_VOID: Final = frozenset({"br", "img", "meta"})


class Html(str):
    """Text that is markup and must not be escaped again. Only this module, and constants, make it."""

    __slots__ = ()


def word(text: str) -> str:
    """Others' text, such as a name or a label, as one line of markup: for attributes, and for plots."""
    return html.escape(printable(text))


def fragment(*parts: str | Html) -> Html:
    """The parts one after the other; text among them is escaped."""
    return Html(
        "".join(part if isinstance(part, Html) else html.escape(printable_lines(part)) for part in parts)
    )


def element(tag: str, /, *content: str | Html, **attributes: str) -> Html:
    """An element. Text in it and its attributes are escaped; its tag is a constant of the caller.

    ``class_`` stands for ``class``, and an underscore for a hyphen.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{word(value)}"' for key, value in attributes.items()
    )
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{fragment(*content)}</{tag}>")


def table(columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[str | Html]]) -> Html:
    """A table.

    Args:
        columns: The title of each, and its class: ``number`` for right-aligned columns, or ``text``. Without
            any title there is no head.
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


def plot(name: str, plots: Collection[str], *caption: str | Html, kind: str = "plot") -> Iterable[Html]:
    """The place of a plot, if there is one of that name, with a caption for blind readers, too."""
    if name in plots:
        about = {"role": "img", "aria_labelledby": f"about-{name}"}
        box = element("div", class_=kind, id=f"plot-{name}", **about)
        yield element("figure", box, element("figcaption", *caption, id=f"about-{name}"))


def section(title: str, parts: Iterable[Html], *lead: str | Html) -> Iterable[Html]:
    """A section, unless it is empty."""
    content = tuple(parts)
    if content:
        yield element("section", element("h2", title), element("p", *lead) if lead else "", *content)


def notice(title: str, lines: Iterable[str], *, alert: bool) -> Html:
    """A box for a warning that must not be overlooked."""
    items = [element("li", line) for line in lines]
    return element(
        "div",
        element("strong", title),
        element("ul", *items),
        class_="notice alert" if alert else "notice",
        role="note",
    )


def data_script(identifier: str, value: Mapping[str, object]) -> Html:
    """A script element that holds JSON for programs. No text in it can end the element."""
    text = printable_source(json.dumps(value, allow_nan=False, separators=(",", ":")))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{word(identifier)}">{text}</script>')


def packed_script(identifier: str, data: bytes) -> Html:
    """A script element that holds bytes for programs, compressed: the same bytes give the same element."""
    packed = Html(b64encode(gzip.compress(data, mtime=0)).decode())
    return element("script", packed, type="application/gzip", id=identifier)


def own_file(package: str, name: str) -> Html:
    """A style sheet or script of ours, from a package."""
    return Html((resources.files(package) / name).read_text(encoding="utf-8"))
