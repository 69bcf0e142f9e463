"""Suites for rules that ask: what an owner learns from being asked, or not asked, for its point.

The watcher's points are equal probes, enough to bid one in every round: each round reveals something about a
probe's rank. The victim's points are worse than a probe; x, the extra record of D', is better and shifts the
rank by exactly one.
"""

from __future__ import annotations

import math
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from hushbid.evidence.audit.attack import SessionAttack, SessionData, Stated, View, stated_by
from hushbid.evidence.audit.broken import choosing_targets
from hushbid.evidence.audit.points import points_at_angle, seed_set
from hushbid.evidence.audit.settings import SESSION_DELTA, SESSION_EPSILON, release_table, session_of
from hushbid.protocol.privacy.acquisition import Logistic
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.features import FeatureMap

__all__ = ["logistic", "published_auction", "winner_only"]

DIMENSION: Final = 8
SEED_SET: Final = 400
CLAIMED: Final = 0.5
"""ε_auc of the printed auction."""
EPSILON: Final = 1.0
"""ε of all asks together, under `logistic`."""
ROUNDS: Final = 2
OWNERS: Final = 8
"""K under `logistic`, large enough that the rule is not refused."""
LARGE_SIGMA: Final = 100.0
"""σ of releases that reveal next to nothing, so that only asks matter."""
STRENGTH: Final = 200.0
"""Length of the target: the noise of a weight is a thousandth of it."""

_NEIGHBOURS: Final = Neighbours.ADD_REMOVE_ONE
_FIRST, _X, _PROBE, _LAST = 0.0, math.pi / 4.0, math.pi / 2.0, math.pi
"""Angles from the target's; a smaller one means a better point."""


def winner_only() -> SessionAttack:
    """`winner-only`, as if it cost only the releases: whether a probe wins reveals x."""
    summary = release_table("gaussian", _NEIGHBOURS, epsilon=SESSION_EPSILON)
    sound = _session(summary, rule="ask-all")
    return _attack(_session(summary, rule="winner-only"), stated=stated_by(sound.privacy()[0]))


def published_auction() -> SessionAttack:
    """One round of the `published` auction, at its claimed ε_auc: only asks matter, as the release is public.

    A probe is the best bid with D, and always asked for. With D' its rank is 2: not asked with 1 -
    exp(-ε_auc).
    """
    session = _session(None, rule="published", points=1, epsilon=CLAIMED, tau=2)
    return _attack(session, stated=Stated(CLAIMED, 0.0, _NEIGHBOURS.value))


def logistic() -> SessionAttack:
    """`logistic`, with as many better owners as give a probe the rank whose coin is fair."""
    session = _session(
        release_table("gaussian", _NEIGHBOURS, sigma=LARGE_SIGMA),
        rule="logistic",
        others=OWNERS - 2,
        epsilon=EPSILON,
    )
    fair = round(cast(Logistic, session.rule).middle)
    return _attack(session, stated=stated_by(session.privacy()[0]), better=fair - 1)


def _session(
    summary: dict[str, Any] | None, *, rule: str, points: int = ROUNDS, others: int = 0, **parameters: Any
) -> Session:
    return session_of(
        owners=("victim", "watcher", *_names(others)),
        points=points,
        dimension=DIMENSION,
        delta=SESSION_DELTA,
        summary=summary,
        rule=rule,
        **parameters,
    )


def _names(others: int) -> tuple[str, ...]:
    return tuple(f"other-{number:02}" for number in range(others))


def _attack(session: Session, *, stated: Stated, better: int = 0) -> SessionAttack:
    """The attack in which `better` of the other owners win all rounds, and the rest have bad points."""
    rounds = session.rounds
    others = [owner for owner in session.file.owners if owner.startswith("other")]

    def data(feature_map: FeatureMap) -> SessionData:
        first, x, probe, last = (
            points_at_angle(feature_map, *[angle] * (rounds + 1)) for angle in (_FIRST, _X, _PROBE, _LAST)
        )
        constant = {owner: first if place < better else last for place, owner in enumerate(others)}
        constant["watcher"] = probe
        return SessionData.one_more(
            constant, last, x[:1], validation=first, seed_set=seed_set(feature_map, SEED_SET)
        )

    target = STRENGTH * np.repeat([math.sqrt(2.0 / DIMENSION), 0.0], DIMENSION // 2)

    def asks(view: View) -> npt.NDArray[np.float64]:
        return np.array([[float(number in view.asked)] for number in range(1, rounds + 1)])

    return SessionAttack(
        stated=stated,
        session=session,
        data=data,
        read=asks,
        curator=choosing_targets([target] * rounds),
    )
