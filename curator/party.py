"""A curator, put together: its machine and its numerics."""

from __future__ import annotations

from curator.machine import CONSUMER, CuratorMachine
from curator.numerics import CuratorNumerics
from protocol.session import Session
from protocol.wire import Direction

__all__ = ["curator_party", "direction"]


def curator_party(session: Session) -> tuple[CuratorMachine, CuratorNumerics]:
    """The curator of a session."""
    summary = session.summary()
    machine = CuratorMachine(
        session.file,
        feature_map=session.feature_map,
        rule=session.rule,
        noisy=bool(summary.draws(0) or session.rule.draws()),
        noise_name=session.noise_name(summary),
    )
    return machine, CuratorNumerics(session, session.noise("curator"))


def direction(peer: str) -> Direction:
    """What a peer may say to the curator."""
    return Direction.CONSUMER_TO_CURATOR if peer == CONSUMER else Direction.OWNER_TO_CURATOR
