"""A curator, put together: its machine and its numerics."""

from __future__ import annotations

from collections.abc import Callable

from hushbid.curator.machine import CuratorMachine
from hushbid.curator.numerics import BlindCuratorNumerics, CuratorNumerics
from hushbid.protocol.machine.weighing import check_noise
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.session.session import Session

__all__ = ["curator_party"]


def curator_party(
    session: Session, *, noise: NoiseSource, destroy: Callable[[], None] | None = None
) -> tuple[CuratorMachine, CuratorNumerics | BlindCuratorNumerics]:
    """The curator of a session.

    Args:
        noise: Its own source of noise.
        destroy: Destroys the boxes on its disk, if there are any.

    Raises:
        ConfigError: The source does not have the noise that the session needs.
    """
    destroy = destroy or (lambda: None)
    machine = CuratorMachine(session)
    if session.weigher == CONSUMER:
        return machine, BlindCuratorNumerics(session, destroy=destroy)
    check_noise(session, noise)
    return machine, CuratorNumerics(session, noise, destroy=destroy)
