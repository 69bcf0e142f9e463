"""What each role gets to know under a rule, and what it does not: docs/privacy.md, section 1, in sentences.

`TABLE` has the cells of that section's table, without markup; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hushbid.protocol.privacy.acquisition import RULES, AcquisitionRule
from hushbid.replay.facts import Knowledge

__all__ = ["MEANINGS", "TABLE", "about", "knowledge_of"]

_RULES: Final = ("sealed", "tender", "blind", "ask-all", "winner-only", "published", "logistic")
_MASKED: Final = "curator, masked; consumer, of what it buys"


def _row(*cells: str) -> Mapping[str, str]:
    return dict(zip(_RULES, cells, strict=True))


TABLE: Final[Mapping[str, Mapping[str, str]]] = {
    "raw": _row("0", "0", "0", "K·p", "p", "p to K·p", "about p·r0"),
    "features": _row("K·p", "K·p", "0", "K·p", "p", "p to K·p", "about p·r0"),
    "map": _row(*["owners, consumer"] * 3, *["all"] * 4),
    "target": _row("g̃, m", "g̃, m", "m", "g̃, m", "g̃, m", "g̃, m", "g̃, m"),
    "bids": _row("curator", "curator", _MASKED, "curator", "curator", "curator", "curator"),
    "asked": _row("nothing", "nothing", "nothing", "nothing", "who wins", "its rank", "its rank, bounded"),
}
"""Row → rule → cell. K is the number of owners, p that of the points that are bought."""

_ROUNDS: Final = (
    "In every round the curator tells, with the session's noise, what the points bought so far still lack. "
    "Each owner scores its points by that and bids the best,"
)
_ABOUT: Final[Mapping[str, str]] = _row(
    f"{_ROUNDS} in boxes that only the consumer opens. The curator sees their features, and buys the best.",
    "The consumer tells once, with the session's noise, what its validation set is like on average. Each "
    "owner submits the points that together come closest, in boxes that only the consumer opens. The "
    "curator sees their features, and chooses among all.",
    "In every round the consumer tells, with the session's noise, what the points bought so far still lack. "
    "Each owner scores its points by that and bids the best, in boxes that only the consumer opens. The "
    "curator sees neither features nor scores: it chooses by masked ones.",
    f"{_ROUNDS} in the clear. The curator sees them all, and buys the best.",
    f"{_ROUNDS} by their scores. The curator asks for the best point alone, and so owners learn who wins.",
    f"{_ROUNDS} by their scores. The curator asks as in the paper's auction, and so owners learn ranks.",
    f"{_ROUNDS} by their scores. The curator asks owners at random, by their ranks.",
)
"""How points are bought under each rule, for who has never seen it."""

MEANINGS: Final[Mapping[str, str]] = {
    "hello": "says who it is, and how far it got",
    "welcome": "accepts the hello",
    "refused": "refuses to go on with this peer",
    "target": "releases the mean embedding of the validation set, with noise if the session has any",
    "subspace-target": "releases the mean embedding of the validation set, in a subspace",
    "nested-target": "releases the mean embedding of the validation set twice: a finer one for the curator",
    "maps": "sends the secret feature map, sealed to each owner",
    "secret-map": "passes on the consumer's feature map, sealed to this owner",
    "commitment": "commits to the rows that it can sell, before it sees anything",
    "roots": "tells what owners committed to",
    "ready": "has hashed its points and can bid",
    "broadcast": "sends the round's weight, by which owners score their points",
    "call": "calls for submissions: what owners choose by",
    "sealed-broadcast": "sends the round's weight, which the curator cannot read",
    "round-opening": "sends the round's weight, which the curator cannot read, and which places are taken",
    "bid": "bids its best point",
    "batch": "bids its best points",
    "submission": "submits its own choice of points",
    "blind-bid": "bids boxes with masked scores",
    "next": "has that part of the submission and asks for the next",
    "ask": "asks for the point behind a bid",
    "offer": "hands the point over that was asked for",
    "choice": "tells the places that were chosen",
    "picks": "tells the numbers of the boxes behind these places",
    "picked": "hands these boxes over",
    "award": "hands the chosen boxes over",
    "delivery": "delivers chosen points",
    "receipt": "has checked the points and has them durably",
    "account": "tells what owners are to be paid by",
    "close": "closes the session, in the same words to everybody",
    "farewell": "has heard that the session is over, and leaves",
    "not in this copy": "a message whose sender or receiver, kind and size were taken out",
    "lost": "the connection was lost",
    "returned": "the connection came back",
    "restarted": "the process was started again, and went on from its transcript",
    "refused peer": "broke the protocol and was refused",
    "absent": "did not take part in the round",
    "fault": "handed over points that did not match",
    "dispute": "the consumer disputes points",
    "time": "a time ran out",
    "finish": "the party ended",
}
"""What a message does, or what happened, after its sender's or the party's name."""


def about(name: str) -> str:
    """How points are bought under a rule, also under one of another package."""
    rule = RULES[name]
    if (like := _like(rule)) is not None:
        return _ABOUT[like]
    return (
        f"{_ROUNDS} by their scores. The curator asks for points as the rule {name} says; an owner learns "
        f"{rule.learns}."
    )


def knowledge_of(name: str) -> Mapping[str, Knowledge]:
    """What curator, owner and consumer know at the end of a session with a rule, also of another package."""
    rule = RULES[name]
    like = _like(rule)
    cells = {row: by_rule[like or "winner-only"] for row, by_rule in TABLE.items()}
    if like is None:  # each owner is asked for a point a round at most
        cells |= {"raw": "at most K·p", "features": "at most K·p", "asked": rule.learns}
    return {"curator": _curator(rule, cells), "owner": _owner(rule, cells), "consumer": _consumer(rule)}


def _like(rule: type[AcquisitionRule]) -> str | None:
    """The rule of the table that a rule is, or whose properties it has; None: it asks in its own way."""
    if rule.name in _RULES:
        return rule.name
    if rule.herds:
        return "tender"
    if rule.sealed:
        return "blind" if rule.blind else "sealed"
    return "ask-all" if rule.candidate_with_bid else None


def _curator(rule: type[AcquisitionRule], cells: Mapping[str, str]) -> Knowledge:
    knows = ["Who takes part, and who is absent in which round."]
    released = "g̃, the released mean of the validation set's features, and " if "g̃" in cells["target"] else ""
    knows.append(f"Of the consumer: {released}m, the number of the validation set's rows.")
    hidden = ["The rows of the validation set: they never leave the consumer."]
    if cells["raw"] == "0":
        hidden.append(
            "Any raw point: they travel in boxes that only the consumer can open. Curator and consumer "
            "together could open all of them, chosen or not."
        )
    else:
        knows.append(f"Raw points with their labels: {cells['raw']} of them, chosen or not.")
    if cells["features"] == "0":
        hidden.append("φ of any point, and every round's weight.")
    elif cells["map"] == "all":
        knows.append(f"φ of points: {cells['features']} of them.")
    else:
        knows.append(f"φ of {cells['features']} points: distances between points can be read from them.")
    if cells["map"] == "all":
        knows.append("The feature map, with which φ leads back to the point.")
    else:
        hidden.append("The feature map. Who has it, as owners and consumer have, can read points from φ.")
    if rule.herds:
        knows.append("The number and order of what each owner submitted.")
    else:
        masked = "masked" in cells["bids"]
        knows.append("Masked scores of bids." if masked else "Every bid's score and number.")
    knows.append("Whose points were chosen.")
    hidden.append("Points that their owners did not hand over.")
    return Knowledge(knows=tuple(knows), hidden=tuple(hidden))


def _owner(rule: type[AcquisitionRule], cells: Mapping[str, str]) -> Knowledge:
    seen = "one call" if rule.herds else "every round's weight"
    knows = [
        "Its own rows, and which of them it handed over.",
        f"By {seen}: the released summary of the validation set"
        + ("." if rule.herds else " less that of what was bought so far."),
    ]
    hidden = ["Other owners' rows and bids, and what they sold."]
    if cells["asked"] == "nothing":
        hidden.append("Which of its points were chosen: nobody tells it.")
    else:
        knows.append(f"By being asked: {cells['asked']}.")
    hidden.append("The rows of the validation set.")
    return Knowledge(knows=tuple(knows), hidden=tuple(hidden))


def _consumer(rule: type[AcquisitionRule]) -> Knowledge:
    knows = [
        "Its validation set and its seed set.",
        "The chosen points with their labels, and which owner each is from"
        + ("." if rule.herds else ", and when it was bid and chosen."),
    ]
    if rule.blind:
        knows.append("Every round's weight, which it works out, and the scores of what it buys.")
        hidden = ["Bids that were not chosen."]
    elif rule.herds:
        hidden = ["What owners submitted, but for the points that were chosen."]
    else:
        hidden = ["Broadcasts and bids."]
    hidden.append("Points that were not chosen: they are not passed on.")
    return Knowledge(knows=tuple(knows), hidden=tuple(hidden))
