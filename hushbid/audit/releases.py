"""Suites for one broadcast: the consumer's release of D_v, of which one record is another.

The neighbours are as far apart as any: one record takes the place of another with φ(x) = -φ(y), so that Σφ
changes by 2·‖φ‖, and a scaled coordinate sum by 2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hushbid.audit.attack import Points, ReleaseAttack, Stated, public_map, stated_by
from hushbid.audit.points import points_at, points_at_angle, seed_set
from hushbid.audit.settings import DELTA, release_table, session_of
from protocol.releases import Neighbours
from protocol.session import Session

__all__ = ["filtered_gaussian", "gaussian", "halved_gaussian", "mwem_printed", "mwem_sound", "null"]

DIMENSION: Final = 4
SIGMA: Final = 2.0
"""2·‖φ‖/σ = 1, a Gaussian mechanism with μ = 1."""
STEPS: Final = 2
"""T of MWEM, each step with ε = 1: what its printed noise gives away shows in few steps (and not in 1656)."""
OTHERS: Final = 9
"""Records of D_v that stay."""

_NEIGHBOURS: Final = Neighbours.SUBSTITUTE_ONE
_SEED_SET: Final = 200


def gaussian() -> ReleaseAttack:
    """`gaussian`, one broadcast."""
    return _attack(_session("gaussian", sigma=SIGMA))


def halved_gaussian() -> ReleaseAttack:
    """`gaussian` with half the noise of its statement: as if one point could move Σφ by 1, and not by 2."""
    sound = gaussian()
    return replace(sound, session=_session("gaussian", sigma=SIGMA / 2.0))


def filtered_gaussian() -> ReleaseAttack:
    """`filtered-gaussian`, one broadcast."""
    return _attack(_session("filtered-gaussian", epsilon=1.0))


def null() -> ReleaseAttack:
    """`gaussian` on one dataset in the place of both: nothing can be told, and ε = 0 is stated."""
    sound = gaussian()
    return replace(
        sound,
        stated=Stated(0.0, 0.0, sound.stated.neighbours),
        validation=(sound.validation[0], sound.validation[0]),
    )


def mwem_printed() -> ReleaseAttack:
    """MWEM with the noise that is printed, at the ε that the paper counts for a step, T times.

    That is the first bound of DPDS Theorem 7, and for few steps the least of what the paper could claim.
    """
    printed = _mwem("published")
    return replace(printed, stated=Stated(STEPS * 1.0, 0.0, printed.stated.neighbours))


def mwem_sound() -> ReleaseAttack:
    """MWEM with sound noise."""
    return _mwem("sound")


def _mwem(calibration: str) -> ReleaseAttack:
    """Two records: one of scaled features (+1, -1), and one of (+1, +1) or (-1, -1).

    The sums are (2, 0) or (0, -2): the selection is drawn to either coordinate, and the measured sum changes.
    """
    session = _session("mwem", calibration=calibration, step_epsilon=1.0, steps=STEPS, eta=0.05)
    kept, first, second = (
        points_at(public_map(session), np.array([angles]))
        for angles in ((0.0, math.pi), (0.0, 0.0), (math.pi, math.pi))
    )
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(np.concatenate([kept, first]), np.concatenate([kept, second])),
        seed_set=_seed_set(session),
    )


def _session(mechanism: str, **keys: Any) -> Session:
    return session_of(
        owners=["watcher"],
        points=1,
        dimension=DIMENSION,
        delta=DELTA,
        target=release_table(mechanism, _NEIGHBOURS, **keys),
    )


def _attack(session: Session) -> ReleaseAttack:
    """D_v of `OTHERS` records that cancel out nearly, and one at angle 0, or at π on all circles."""
    others = seed_set(public_map(session), _SEED_SET + OTHERS)[_SEED_SET:]
    first, second = (points_at_angle(public_map(session), angle) for angle in (0.0, math.pi))
    return ReleaseAttack(
        stated=stated_by(session.privacy()[1]),
        session=session,
        validation=(np.concatenate([others, first]), np.concatenate([others, second])),
        seed_set=_seed_set(session),
    )


def _seed_set(session: Session) -> Points:
    return seed_set(public_map(session), _SEED_SET)
