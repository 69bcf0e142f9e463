"""The consumer's result of a session: the JSON of its process, and a part of a run's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hushbid.consumer.columns import column
from hushbid.consumer.events import Delivered
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.own_figures import View
from hushbid.consumer.verdict import Verdict
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, read_attributes, shared_rows
from hushbid.protocol.session.session import MOST_SHARED
from hushbid.protocol.session.wishes import bill_of

__all__ = ["consumer_result", "missing_said", "test_shared", "test_shared_said"]


def consumer_result(
    session: SessionFile,
    machine: ConsumerMachine,
    delivered: Sequence[Delivered],
    view: View,
    verdict: Verdict,
    *,
    validation: Dataset,
    test: Dataset | None,
    drawn: bool,
) -> dict[str, Any]:
    """The consumer's figures after the session (docs/results.md).

    Args:
        verdict: The rehearsal's verdict before the session.
        validation: D_v.
        test: Held-out rows, if there are any.
        drawn: Whether the seed set was drawn.
    """
    apart, course = machine.seed_distance, machine.course
    without = _without(delivered)
    disputes = [
        {"owner": entry.owner, "round": entry.chosen_round, "what": entry.dispute}
        for entry in delivered
        if entry.dispute
    ]
    return {
        "session": session.session.name,
        "p": session.session.points,
        "m": len(validation),
        "seed_set_drawn": drawn,
        "test_shared": test_shared(validation, test),
        "seed_distance": None if apart is None else apart.as_json(),
        **verdict.as_json(),
        "course": None if course is None else course.as_json(),
        "points_delivered": len(delivered),
        "roots": machine.roots,
        "unlabelled": without["label"],
        "unidentified": without["identifier"],
        "unweighted": 0 if view.matching is not None else without["stored"],
        "disputed": len(disputes),
        "disputes": disputes,
        "faults": [fault.as_json() for fault in machine.faults],
        "bill": bill_of(session, Counter(entry.owner for entry in delivered if not entry.dispute)),
        **view.judgement.as_json(),
        **view.own.as_json(),
        "model": view.model.as_json(),
    }


def test_shared(validation: Dataset, test: Dataset | None) -> float | None:
    """The share of the different test rows that D_v has too; None: there is no test set."""
    if test is None:
        return None
    shared, different = shared_rows(test.features, validation.features)
    return shared / max(1, different)


def test_shared_said(share: float | None) -> str:
    """What is wrong with test rows of which so many are in D_v too; empty if nothing is."""
    if share is None or share <= MOST_SHARED:
        return ""
    some = "All" if share == 1.0 else "Many"
    return (
        f"{some} test rows are rows of the validation set, too: what they judge looks better than it is, as "
        "points were chosen to be like them."
    )


def missing_said(result: Mapping[str, Any]) -> str:
    """Which of the delivered points lack something, as the end of a list; empty if none, or all alike.

    Nobody's points need a label or an identifier: that all lack it is how the session is.

    Args:
        result: A consumer's, or a run's.
    """
    count = result["points_delivered"]
    some = {name: result.get(f"un{name}", 0) for name in ("labelled", "identified")}
    words = {"labelled": "a label", "identified": "an identifier"}
    return "".join(f", {n} without {words[name]}" for name, n in some.items() if 0 < n < count)


def _without(delivered: Sequence[Delivered]) -> dict[str, int]:
    """Number of stored points without a label, without an identifier, and of all that are stored.

    A label or an identifier of another type than most owners have is none.
    """
    held, owners = [], []
    for entry in delivered:
        if entry.candidate is not None and not entry.dispute:
            held.append(read_attributes(entry.candidate.attributes))
            owners.append(entry.owner)
    found = {
        name: int((~column([getattr(each, name) for each in held], owners)[1]).sum())
        for name in ("label", "identifier")
    }
    return found | {"stored": len(held)}
