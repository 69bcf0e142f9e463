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

__all__ = ["FIRST_BYTES", "broken_copies", "live_page_of", "page_of", "waiting_page"]

FIRST_BYTES: Final = b"<!DOCTYPE html>\n<!-- replay of a hushbid session -->\n"
"""The first line of a replay, and of no other page."""
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
_LIVE_POLICY: Final = f"{_POLICY}; connect-src 'self'"
"""Of a page that asks the server that it is from, and nobody else, for what is new."""
_NAMED: Final = 12
_PACKAGE: Final = "hushbid.replay"
_MAKER: Final = f" by hushbid {__version__}"
_SYMBOLS: Final = (
    " K is the number of owners, p that of points that are bought, m that of the validation set's rows; φ are"
    " a point's features, and g̃ is the released mean of the validation set's."
)
_LIVE: Final = element("div", id="live")
"""Where the script of a live page writes what parties do, and what is left out."""


def page_of(facts: Facts) -> str:
    """The page of a session's facts."""
    lead = [*_header(facts, "Replay of a session", _rounds_of(facts)), *_notices(facts)]
    main = [element("div", id="player"), _knowledge(facts.knowledge)]
    title = f"{facts.name}: replay of a hushbid session"
    return _page(
        title, facts, lead, main, f"Made{_MAKER} from the transcripts of: {', '.join(facts.copies)}."
    )


def live_page_of(facts: Facts) -> str:
    """The page of a session that runs; it asks for newer facts, and for what else is to be told."""
    lead = _header(facts, "A session, as it runs", _counted_rounds(facts.planned))
    main = [_LIVE, element("div", id="player"), _knowledge(facts.knowledge)]
    title = f"{facts.name}: a hushbid session, live"
    return _page(title, facts, lead, main, f"Shown{_MAKER} from its parties' state directories.", live=True)


def waiting_page() -> str:
    """The page of a session of which no party has begun; it is loaded anew once one has."""
    lead = [element("p", "A session, as it runs", class_="kicker"), element("h1", "Waiting")]
    return _page("Waiting for a hushbid session", None, lead, [_LIVE], f"Shown{_MAKER}.", live=True)


def _page(
    title: str,
    facts: Facts | None,
    lead: Iterable[Html],
    main: Iterable[Html],
    maker: str,
    *,
    live: bool = False,
) -> str:
    named: list[Html] = []
    scripts = ["parts.js", *(["live.js"] if live else [])]
    packed: list[Html] = []
    if facts is not None:
        text = json.dumps(facts.as_json(), allow_nan=False, separators=(",", ":"))
        named.append(element("meta", name="hushbid-session", content=facts.session))
        packed.append(packed_script("facts", text.encode()))
        scripts.append("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        *named,
        element("meta", http_equiv="Content-Security-Policy", content=_LIVE_POLICY if live else _POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", own_file(_PACKAGE, "page.css")),
    )
    body = element(
        "body",
        element("header", *lead),
        element(
            "main",
            element("noscript", element("p", "This page plays a session with JavaScript, which is off.")),
            *main,
        ),
        element("footer", element("p", maker, *([] if facts is None else [_SYMBOLS]))),
        *packed,
        element("script", *(own_file(_PACKAGE, name) for name in scripts)),
    )
    return fragment(Html(FIRST_BYTES.decode()), element("html", head, body, lang="en"), Html("\n"))


def _header(facts: Facts, kicker: str, rounds: str) -> list[Html]:
    owners = len(facts.parties) - 2
    lead = f"Rule {facts.rule}, {owners:,} owners, {rounds}, {facts.points:,} points wanted."
    return [
        element("p", kicker, class_="kicker"),
        element("h1", facts.name),
        element("p", lead, class_="lead"),
    ]


def _counted_rounds(count: int) -> str:
    return f"{count:,} round{'s' if count != 1 else ''}"


def _rounds_of(facts: Facts) -> str:
    rounds = _counted_rounds(facts.planned)
    return f"{facts.rounds:,} of {rounds} on record" if facts.rounds < facts.planned else rounds


def _notices(facts: Facts) -> Iterable[Html]:
    if broken := broken_copies(facts):
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


def broken_copies(facts: Facts) -> list[str]:
    """Of each transcript that does not hold to its end, why, and how much is shown."""
    return [f"{party}: {told}" for party, each in facts.copies.items() for told in _broken(each)]


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
