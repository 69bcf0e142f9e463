"""The replay as one HTML file: the facts, packed, and the script that plays them.

The page loads nothing: its content security policy forbids it. Texts of others are put into the page as text,
by `hushbid.report.html` here, and in the script by what takes no markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hushbid.protocol import __version__
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.replay.beside import Beside
from hushbid.replay.facts import Copy, Facts, Knowledge
from hushbid.replay.knowledge import about
from hushbid.report.html import Html, bullets, document, element, header, notice, own_file, packed_script

__all__ = ["BROKEN", "FIRST_BYTES", "broken_copies", "live_page_of", "page_of", "sessions_of", "waiting_page"]

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
_SCRIPTS: Final = ("parts.js", "pictures.js", "session.js", "page.js")
"""In this order: each takes what those before it have."""
_SYMBOLS: Final = (
    "K owners offer points, of which the consumer buys p. The validation set has m rows. φ are a point's "
    "features: numbers by which points are compared. g̃ is the released mean of the validation set's features."
)
_LIVE: Final = "A running session"
BROKEN: Final = "A transcript is broken: the page shows its records before that place."
"""The title of what `broken_copies` tells."""


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
    if beside is not None:
        title = f"{facts.name} and {beside.other.name}: replay of hushbid sessions"
        found = beside.difference
        place = None if found is None else {"round": found.round, "message": found.message}
        packed.append(packed_script("beside", _json({"facts": beside.other.as_json(), "difference": place})))
    top = _header(facts) if beside is None else _header_of_two(facts, beside)
    main = [
        "" if beside is None else _compared(beside),
        element("div", id="player"),
        *_knowledge_sections(facts, beside),
    ]
    return _page(title, sessions_of(facts, beside), top, main, _footer(facts, beside), packed)


def live_page_of(facts: Facts) -> str:
    """The page of a session that runs; it asks for newer facts, and for what else is to be told."""
    lead = element("p", _lead(facts, _counted_rounds(facts.planned)), class_="lead")
    top = header(_LIVE, facts.name, lead, _about(facts))
    main = [element("div", id="live"), element("div", id="player"), _knowledge(facts.knowledge)]
    words = f"hushbid {__version__} shows this session from its parties' state directories. {_SYMBOLS}"
    footer = element("footer", element("p", words))
    title = f"{facts.name}: a hushbid session, live"
    packed = [packed_script("facts", _json(facts.as_json()))]
    return _page(title, facts.session, top, main, footer, packed, live=True)


def waiting_page() -> str:
    """The page of a session of which no party has begun; it is loaded anew once one has."""
    top, main = header(_LIVE, "Waiting"), [element("div", id="live")]
    footer = element("footer", element("p", f"Shown by hushbid {__version__}."))
    return _page("Waiting for a hushbid session", "", top, main, footer, [], live=True)


def _page(
    title: str,
    session: str,
    top: Html,
    main: Iterable[Html | str],
    footer: Html,
    packed: Sequence[Html],
    *,
    live: bool = False,
) -> str:
    """A page; without anything packed it has nothing to play."""
    scripts = (*_SCRIPTS[:1], *(("live.js",) if live else ()), *(_SCRIPTS[1:] if packed else ()))
    off = element("noscript", element("p", "This page needs JavaScript, which is off."))
    return document(
        FIRST_BYTES,
        title,
        top,
        element("main", off, *main),
        footer,
        *packed,
        element("script", *(own_file(_PACKAGE, name) for name in scripts)),
        style=own_file(_PACKAGE, "page.css"),
        policy=_LIVE_POLICY if live else _POLICY,
        session=session,
    )


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _header(facts: Facts) -> Html:
    lead = element("p", _lead(facts), class_="lead")
    return header("Replay of a session", facts.name, lead, _about(facts), *_notices(facts))


def _about(facts: Facts) -> Html:
    return element("p", f"{about(facts.rule)} ", element("a", "Who knows what in the end", href="#knowledge"))


def _counted_rounds(count: int) -> str:
    return f"{count:,} round{'s' if count != 1 else ''}"


def _lead(facts: Facts, rounds: str = "") -> str:
    owners = len(facts.parties) - 2
    if not rounds:
        rounds = _counted_rounds(facts.planned)
        if facts.rounds < facts.planned:
            rounds = f"{facts.rounds:,} of {rounds} on record"
    return f"Rule {facts.rule}, {owners:,} owners, {rounds}, {facts.points:,} points wanted."


def _header_of_two(facts: Facts, beside: Beside) -> Html:
    sides = []
    for side, each in (("A", facts), ("B", beside.other)):
        title = element("h2", f"{side}: {each.name}", class_="whose")
        sides.append(element("div", title, element("p", _lead(each), class_="lead"), *_notices(each)))
    names = f"{facts.name} and {beside.other.name}"
    return header("Replay of two recordings, side by side", names, element("div", *sides, class_="two"))


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
    words = "The compared steps do not differ." if found is None else found.named
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
        yield notice(BROKEN, broken, alert=True)
    private = [party for party, each in facts.copies.items() if not each.redacted]
    if private:
        whose = listed(private, _NAMED, rest="party")
        files = " and the consumer's files" if facts.from_files else ""
        yield notice(
            "This page contains private values.",
            [
                f"They are of {whose}, from their own transcripts{files}. Who was asked and chosen, and how "
                "many points there were, depends on their data. Keep the page as private as the "
                "transcripts."
            ],
            alert=False,
        )
    redacted = [party for party, each in facts.copies.items() if each.redacted]
    lines = list(facts.disclaimers)
    if redacted:
        lines.append(
            f"The transcript of {listed(redacted, _NAMED, rest='party')} is a redacted copy. It lacks "
            "sender, receiver, kind and size of messages, and no party's machine can confirm the rest."
        )
    if lines:
        yield notice("What these transcripts do not tell.", lines, alert=False)


def broken_copies(facts: Facts) -> list[str]:
    """Of each transcript that does not hold to its end, why, and how much is shown."""
    return [f"{party}: {told}" for party, each in facts.copies.items() for told in _broken(each)]


def _broken(copy: Copy) -> Iterable[str]:
    shown = f"The page shows its first {copy.records:,} records."
    if copy.stopped is not None:
        yield f"{copy.stopped} {shown}"
    elif copy.torn_bytes:
        yield f"its last record was not written wholly ({copy.torn_bytes:,} bytes). {shown}"


def _knowledge(knowledge: Mapping[str, Knowledge], where: str = "", mark: str = "") -> Html:
    def column(title: str, lines: Iterable[str]) -> Html:
        return element("div", element("h4", title), bullets(lines))

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


def _footer(facts: Facts, beside: Beside | None) -> Html:
    parties = ", ".join(facts.copies)
    if beside is not None:
        parties = f"{parties} (A), and {', '.join(beside.other.copies)} (B)"
    words = f"hushbid {__version__} made this replay from the transcripts of: {parties}. {_SYMBOLS}"
    return element("footer", element("p", words))
