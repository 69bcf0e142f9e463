"""The replay as one HTML file: the facts, packed, and the script that plays them.

The page loads nothing: its content security policy forbids it. Texts of others are put into the page as text,
by `hushbid.report.html` here, and in the script by what takes no markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hushbid.protocol import __version__
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.replay.beside import Beside
from hushbid.replay.facts import Copy, Facts, Knowledge
from hushbid.replay.knowledge import ABOUT
from hushbid.report.html import Html, element, fragment, notice, own_file, packed_script

__all__ = ["FIRST_BYTES", "broken_copies", "live_page_of", "page_of", "sessions_of", "waiting_page"]

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
_SCRIPTS: Final = ("session.js", "page.js")
"""In this order, after parts.js: each takes what those before it have."""
_MAKER: Final = f" by hushbid {__version__}"
_SYMBOLS: Final = (
    " K owners offer points, p of which are bought; the validation set has m rows. φ are a point's features: "
    "numbers by which points are compared. g̃ is the mean of the validation set's features, as released."
)
_LIVE: Final = element("div", id="live")
"""Where the script of a live page writes what parties do, and what is left out."""


def sessions_of(facts: Facts, beside: Beside | None = None) -> str:
    """What a page names its session, or its two sessions, after: no page of one begins as one of two."""
    return facts.session if beside is None else f"beside {facts.session} {beside.other.session}"


def page_of(facts: Facts, beside: Beside | None = None) -> str:
    """The page of a session's facts.

    Args:
        beside: Another session, to be played on the same slider.
    """
    packed = [packed_script("facts", _json(facts.as_json()))]
    title = f"{facts.name}: replay of a hushbid session"
    parties = ", ".join(facts.copies)
    lead = [*_header(facts, "Replay of a session", _rounds_of(facts)), *_notices(facts)]
    if beside is not None:
        title = f"{facts.name} and {beside.other.name}: replay of hushbid sessions"
        found = beside.difference
        place = None if found is None else {"round": found.round, "message": found.message}
        packed.append(packed_script("beside", _json({"facts": beside.other.as_json(), "difference": place})))
        parties = f"{parties} (A), and {', '.join(beside.other.copies)} (B)"
        lead = _header_of_two(facts, beside)
    compared = [] if beside is None else [_compared(beside)]
    main = [*compared, element("div", id="player"), *_knowledge_sections(facts, beside)]
    maker = f"Made{_MAKER} from the transcripts of: {parties}.{_SYMBOLS}"
    return _page(title, lead, main, maker, packed, named=sessions_of(facts, beside))


def live_page_of(facts: Facts) -> str:
    """The page of a session that runs; it asks for newer facts, and for what else is to be told."""
    lead = _header(facts, "A session, as it runs", _counted_rounds(facts.planned))
    main = [_LIVE, element("div", id="player"), _knowledge(facts.knowledge)]
    title = f"{facts.name}: a hushbid session, live"
    maker = f"Shown{_MAKER} from its parties' state directories.{_SYMBOLS}"
    packed = [packed_script("facts", _json(facts.as_json()))]
    return _page(title, lead, main, maker, packed, named=facts.session, live=True)


def waiting_page() -> str:
    """The page of a session of which no party has begun; it is loaded anew once one has."""
    lead = [element("p", "A session, as it runs", class_="kicker"), element("h1", "Waiting")]
    return _page("Waiting for a hushbid session", lead, [_LIVE], f"Shown{_MAKER}.", [], live=True)


def _page(
    title: str,
    lead: Iterable[Html],
    main: Iterable[Html],
    maker: str,
    packed: Sequence[Html],
    *,
    named: str = "",
    live: bool = False,
) -> str:
    """A page of these parts; without packed facts it has nothing to play."""
    scripts = ["parts.js", *(["live.js"] if live else []), *(_SCRIPTS if packed else ())]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        *([element("meta", name="hushbid-session", content=named)] if named else []),
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
        element("footer", element("p", maker)),
        *packed,
        element("script", *(own_file(_PACKAGE, name) for name in scripts)),
    )
    return fragment(Html(FIRST_BYTES.decode()), element("html", head, body, lang="en"), Html("\n"))


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _header(facts: Facts, kicker: str, rounds: str) -> list[Html]:
    return [
        element("p", kicker, class_="kicker"),
        element("h1", facts.name),
        element("p", _lead(facts, rounds), class_="lead"),
        element("p", f"{ABOUT[facts.rule]} ", element("a", "Who knows what in the end", href="#knowledge")),
    ]


def _counted_rounds(count: int) -> str:
    return f"{count:,} round{'s' if count != 1 else ''}"


def _rounds_of(facts: Facts) -> str:
    rounds = _counted_rounds(facts.planned)
    return f"{facts.rounds:,} of {rounds} on record" if facts.rounds < facts.planned else rounds


def _lead(facts: Facts, rounds: str) -> str:
    owners = len(facts.parties) - 2
    return f"Rule {facts.rule}, {owners:,} owners, {rounds}, {facts.points:,} points wanted."


def _header_of_two(facts: Facts, beside: Beside) -> list[Html]:
    sides = []
    for side, each in (("A", facts), ("B", beside.other)):
        title = element("h2", f"{side}: {each.name}", class_="whose")
        lead = element("p", _lead(each, _rounds_of(each)), class_="lead")
        sides.append(element("div", title, lead, *_notices(each)))
    return [
        element("p", "Replay of two recordings, side by side", class_="kicker"),
        element("h1", f"{facts.name} and {beside.other.name}"),
        element("div", *sides, class_="two"),
    ]


def _compared(beside: Beside) -> Html:
    parts = []
    if beside.differing:
        heads = (element("th", title, scope="col") for title in ("", "A", "B"))
        rows = (
            element("tr", element("th", term.name, scope="row"), element("td", term.a), element("td", term.b))
            for term in beside.differing
        )
        parts.append(
            element(
                "table",
                element("thead", element("tr", *heads)),
                element("tbody", *rows),
                class_="compared",
            )
        )
    if beside.alike:
        alike = "; ".join(f"{term.name} {term.a}" for term in beside.alike)
        parts.append(element("p", f"The same in both: {alike}.", class_="help"))
    found = beside.difference
    words = "No step of one differs from the other's, by what was compared." if found is None else found.named
    parts.append(element("p", element("strong", "First difference. "), words, id="first-difference"))
    if beside.not_compared:
        parts.append(notice("Not compared.", beside.not_compared, alert=False))
    return element("section", element("h2", "What differs"), *parts, id="compared")


def _knowledge_sections(facts: Facts, beside: Beside | None) -> Iterable[Html]:
    if beside is None or beside.other.rule == facts.rule:
        yield _knowledge(facts.knowledge)
        return
    yield _knowledge(facts.knowledge, f" in A, under {facts.rule}")
    yield _knowledge(beside.other.knowledge, f" in B, under {beside.other.rule}", "-b")


def _notices(facts: Facts) -> Iterable[Html]:
    if broken := broken_copies(facts):
        yield notice("A transcript does not hold to its end: what follows is not shown.", broken, alert=True)
    private = [party for party, each in facts.copies.items() if not each.redacted]
    if private:
        yield notice(
            "Private values are in this page.",
            [
                f"They are of {listed(private, _NAMED, rest='party')}, from their own transcripts. Who was "
                "asked and chosen, and how many points there were, follows from their data. Keep the page as "
                "private as the transcripts."
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


def _knowledge(knowledge: Mapping[str, Knowledge], where: str = "", mark: str = "") -> Html:
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
    return element("section", element("h2", f"Who knows what{where}"), *parts, id=f"knowledge{mark}")
