"""The replay as one HTML file: the facts, packed, and the script that plays them.

The page loads nothing: its content security policy forbids it. Texts of others are put into the page as text,
by `hushbid.report.html` here, and in the script by what takes no markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from hushbid.protocol import __version__
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.replay.facts import Copy, Facts, Knowledge
from hushbid.report.html import Html, element, fragment, notice, own_file, packed_script

__all__ = ["FIRST_BYTES", "page_of"]

FIRST_BYTES: Final = b"<!DOCTYPE html>\n<!-- replay of a hushbid session -->\n"
"""The first line of a replay, and of no other page."""
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
_NAMED: Final = 12
_PACKAGE: Final = "hushbid.replay"
_SCRIPTS: Final = ("parts.js", "session.js", "page.js")
"""In this order: each takes what those before it have."""


def page_of(facts: Facts) -> str:
    """The page of a session's facts."""
    text = json.dumps(facts.as_json(), allow_nan=False, separators=(",", ":"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="hushbid-session", content=facts.session),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{facts.name}: replay of a hushbid session"),
        element("style", own_file(_PACKAGE, "page.css")),
    )
    body = element(
        "body",
        _header(facts),
        element(
            "main",
            element("noscript", element("p", "This page plays a session with JavaScript, which is off.")),
            element("div", id="player"),
            _knowledge(facts.knowledge),
        ),
        _footer(facts),
        packed_script("facts", text.encode()),
        element("script", *(own_file(_PACKAGE, name) for name in _SCRIPTS)),
    )
    return fragment(Html(FIRST_BYTES.decode()), element("html", head, body, lang="en"), Html("\n"))


def _header(facts: Facts) -> Html:
    owners = len(facts.parties) - 2
    rounds = f"{facts.planned:,} round{'s' if facts.planned != 1 else ''}"
    if facts.rounds < facts.planned:
        rounds = f"{facts.rounds:,} of {rounds} on record"
    return element(
        "header",
        element("p", "Replay of a session", class_="kicker"),
        element("h1", facts.name),
        element(
            "p",
            f"Rule {facts.rule}, {owners:,} owners, {rounds}, {facts.points:,} points wanted.",
            class_="lead",
        ),
        *_notices(facts),
    )


def _notices(facts: Facts) -> Iterable[Html]:
    broken = [f"{party}: {told}" for party, each in facts.copies.items() for told in _broken(each)]
    if broken:
        yield notice("A transcript does not hold to its end: what follows is not shown.", broken, alert=True)
    private = [party for party, each in facts.copies.items() if not each.redacted]
    if private:
        yield notice(
            "Private values are in this page.",
            [
                f"They are of {listed(private, _NAMED, rest='party')}, by their own transcripts: "
                "who was asked and chosen, sizes and counts depend on data. Keep it as private as they are."
            ],
            alert=False,
        )
    redacted = [party for party, each in facts.copies.items() if each.redacted]
    lines = list(facts.disclaimers)
    if redacted:
        lines.append(
            f"Of {listed(redacted, _NAMED, rest='party')} a redacted copy is here: sender, receiver, kind "
            "and size of messages are not in this copy, and no machine vouches for the rest."
        )
    if lines:
        yield notice("What these transcripts do not tell.", lines, alert=False)


def _broken(copy: Copy) -> Iterable[str]:
    shown = f"Shown are its first {copy.records:,} records."
    if copy.stopped is not None:
        yield f"{copy.stopped} {shown}"
    elif copy.torn_bytes:
        yield f"its last record was not written wholly ({copy.torn_bytes:,} bytes). {shown}"


def _knowledge(knowledge: Mapping[str, Knowledge]) -> Html:
    def column(title: str, lines: Iterable[str]) -> Html:
        return element("div", element("h4", title), element("ul", *(element("li", line) for line in lines)))

    titles = {CURATOR: "The curator", CONSUMER: "The consumer", "owner": "An owner"}
    parts = [
        element(
            "div",
            element("h3", title),
            element(
                "div",
                column("knows at the end", knowledge[role].knows),
                column("does not know", knowledge[role].hidden),
                class_="beside",
            ),
            class_="role",
        )
        for role, title in titles.items()
    ]
    return element("section", element("h2", "Who knows what"), *parts, id="knowledge")


def _footer(facts: Facts) -> Html:
    parties = ", ".join(facts.copies)
    return element(
        "footer",
        element(
            "p",
            f"Made by hushbid {__version__} from the transcripts of: {parties}. K is the number of owners, p "
            "that of points that are bought, m that of the validation set's rows; φ are a point's features, "
            "and g̃ is the released mean of the validation set's.",
        ),
    )
