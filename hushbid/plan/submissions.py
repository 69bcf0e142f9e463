"""The number of points that an owner submits under `tender`, and the costs and savings of fewer."""

from __future__ import annotations

from typing import Final

from pydantic.dataclasses import dataclass as figures

from hushbid.plan.setting import PlanSetting
from hushbid.plan.traffic import traffic
from hushbid.protocol.figures import Figures

__all__ = ["Submissions", "Submitted", "submissions"]

ALIKE: Final = 4
"""Owners that hold similar points lose nothing at this many times p/K points each (docs/experiments.md)."""


@figures(frozen=True, slots=True)
class Submitted(Figures):
    """A number of points, and the resulting bytes that an owner sends and the curator receives."""

    points: int
    owner_sent: int
    curator_received: int


@figures(frozen=True, slots=True, kw_only=True)
class Submissions(Figures):
    """What each owner submits.

    Attributes:
        points, messages: Of the session.
        proposed, why: The proposed number of points, and the reason.
        rows: Other numbers of points, the smallest first.
    """

    points: int
    messages: int
    proposed: int
    why: str
    rows: tuple[Submitted, ...]


def submissions(setting: PlanSetting) -> Submissions | None:
    """Submitted and proposed numbers, and the bytes of other numbers; None for a session in rounds."""
    file, p, owners = setting.file, setting.p, len(setting.owner_points)
    if not file.herds:
        return None
    alike = min(p, -(-ALIKE * p // owners))
    rows = []
    for points in sorted({p, -(-p // 2), alike, file.submission} - set(range(-(-p // owners)))):
        wire = traffic(setting.with_session(submission=points, batch=None), None)
        rows.append(Submitted(points, wire.owner_sent, wire.curator_received))
    why = f"p, {p:,}, are proposed: what is wanted may lie with one owner, and fewer leave out a part"
    if alike < p:
        why += f"; owners that hold alike lose nothing down to {alike:,}, {ALIKE} times p/K"
    return Submissions(points=file.submission, messages=file.messages, proposed=p, why=why, rows=tuple(rows))
