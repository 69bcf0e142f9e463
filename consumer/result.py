"""The consumer's result of a session: the JSON of its process, and a part of a run's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hushbid.consumer.columns import column
from hushbid.consumer.events import Delivered
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.own_figures import View
from hushbid.consumer.verdict import Verdict
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import read_attributes
from hushbid.protocol.session.wishes import bill_of

__all__ = ["consumer_result"]


def consumer_result(
    session: SessionFile,
    machine: ConsumerMachine,
    delivered: Sequence[Delivered],
    view: View,
    verdict: Verdict,
    *,
    m: int,
    drawn: bool,
) -> dict[str, Any]:
    """The consumer's figures after the session (docs/results.md).

    Args:
        verdict: The rehearsal's verdict before the session.
        m: |D_v|.
        drawn: Whether the seed set was drawn.
    """
    apart, course = machine.seed_distance, machine.course
    disputes = [
        {"owner": entry.owner, "round": entry.chosen_round, "what": entry.dispute}
        for entry in delivered
        if entry.dispute
    ]
    return {
        "session": session.session.name,
        "p": session.session.points,
        "m": m,
        "seed_set_drawn": drawn,
        "seed_distance": None if apart is None else apart.as_json(),
        **verdict.as_json(),
        "course": None if course is None else course.as_json(),
        "points_delivered": len(delivered),
        "roots": machine.roots,
        "unlabelled": _unlabelled(delivered),
        "disputed": len(disputes),
        "disputes": disputes,
        "faults": [fault.as_json() for fault in machine.faults],
        "bill": bill_of(session, Counter(entry.owner for entry in delivered if not entry.dispute)),
        **view.judgement.as_json(),
        **view.own.as_json(),
        "model": view.model.as_json(),
    }


def _unlabelled(delivered: Sequence[Delivered]) -> int:
    """Number of stored points without a label: none, or one of another type than most owners have."""
    labels, owners = [], []
    for entry in delivered:
        if entry.candidate is not None and not entry.dispute:
            labels.append(read_attributes(entry.candidate.attributes).label)
            owners.append(entry.owner)
    return int((~column(labels, owners)[1]).sum())
