"""How many points an owner submits under `tender`, and what fewer of them cost and save."""

from __future__ import annotations

from typing import Any, Final

from hushbid.plan.setting import PlanSetting
from hushbid.plan.traffic import traffic

__all__ = ["submissions"]

ALIKE: Final = 4
"""Owners that hold alike lose nothing with so many times p/K points each (docs/experiments.md)."""


def submissions(setting: PlanSetting) -> dict[str, Any] | None:
    """What is proposed, why, and the bytes of other numbers; None for a session in rounds.

    Returns:
        ``points`` and ``messages`` of the session; ``proposed``; ``why``; and ``rows``, each of ``points``
        and the bytes that an owner sends (``owner_sent``) and the curator receives (``curator_received``).
    """
    file, p, owners = setting.file, setting.p, len(setting.owner_points)
    if not file.herds:
        return None
    alike = min(p, -(-ALIKE * p // owners))
    rows = []
    for points in sorted({p, -(-p // 2), alike, file.submission} - set(range(-(-p // owners)))):
        wire = traffic(setting.with_session(submission=points, batch=None), None)
        rows.append(
            {
                "points": points,
                "owner_sent": wire.owner_sent,
                "curator_received": wire.curator_received,
            }
        )
    why = f"p, {p:,}, are proposed: what is wanted may lie with one owner, and fewer leave out a part"
    if alike < p:
        why += f"; owners that hold alike lose nothing down to {alike:,}, {ALIKE} times p/K"
    return {
        "points": file.submission,
        "messages": file.messages,
        "proposed": p,
        "why": why,
        "rows": rows,
    }
