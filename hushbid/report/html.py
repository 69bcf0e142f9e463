"""HTML from plain values: everything that is not yet `Html` is text, and is escaped.

Names, labels and reasons in a transcript are other parties' words. Only here do they become markup, with
unprintable characters as escapes.
"""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import resources
from typing import Final

from hushbid.protocol.printable import printable, printable_lines, printable_source

__all__ = [
    "FIRST_BYTES",
    "SESSION",
    "TABLE_ROWS",
    "Html",
    "bullets",
    "coded",
    "cut_table",
    "data_script",
    "document",
    "element",
    "fragment",
    "header",
    "notice",
    "numbers",
    "own_file",
    "packed_script",
    "plot",
    "section",
    "table",
    "word",
    "words",
]

FIRST_BYTES: Final = b"<!DOCTYPE html>\n<!-- report of a hushbid session -->\n"
"""The first line of a report, and of no other page."""
SESSION: Final = b'<meta name="hushbid-session" content="'
"""The prefix of the session's name in a report's or a replay's title."""
_VOID: Final = frozenset({"br", "img", "meta"})
TABLE_ROWS: Final = 100
"""Most rows of a long table; the others are counted, or summed up."""


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


def document(
    first: bytes, title: str, *body: Html, style: Html, policy: str, session: str | None = None
) -> str:
    """A page that loads nothing.

    Args:
        first: Its first line.
        style: Its style sheet.
        policy: What it may do: a content security policy.
        session: What it names its session after, if it is of one.
    """
    named = [] if session is None else [element("meta", name="hushbid-session", content=session)]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        *named,
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )
    return fragment(
        Html(first.decode()), element("html", head, element("body", *body), lang="en"), Html("\n")
    )


def header(kind: str, title: str, *content: Html) -> Html:
    """The top of a page: what kind of page it is, and its title."""
    return element("header", element("p", kind, class_="kicker"), element("h1", title), *content)


def coded(text: str) -> Html:
    """A text that a terminal shows too: everything between backticks is code."""
    parts = text.split("`")
    return fragment(*(element("code", part) if place % 2 else part for place, part in enumerate(parts)))


def bullets(lines: Iterable[str]) -> Html:
    """A list of such texts."""
    return element("ul", *(element("li", coded(line)) for line in lines))


def words(*titles: str) -> list[tuple[str, str]]:
    """Columns of words for a table."""
    return [(title, "text") for title in titles]


def numbers(*titles: str) -> list[tuple[str, str]]:
    """Columns of numbers for a table."""
    return [(title, "number") for title in titles]


def table(columns: Iterable[tuple[str, str]], rows: Iterable[Iterable[str | Html]]) -> Html:
    """A table.

    Args:
        columns: As from `words` and `numbers`: the title of each, and its class. Without any title there is
            no head.
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


def cut_table(
    columns: Iterable[tuple[str, str]], rows: Sequence[Iterable[str | Html]], total: int | None = None
) -> Iterable[Html]:
    """A table of the first rows, and how many more there are; nothing without rows.

    Args:
        total: How many there are in all, if not as many as are given.
    """
    if not rows:
        return
    yield table(columns, rows[:TABLE_ROWS])
    if (more := (len(rows) if total is None else total) - TABLE_ROWS) > 0:
        yield element("p", f"And {more:,} more.")


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
    kind = "notice alert" if alert else "notice"
    return element("div", element("strong", title), bullets(lines), class_=kind, role="note")


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
