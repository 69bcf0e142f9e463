"""How an owner or the consumer takes part in a session: connection, transcript, driver, in this order."""

from __future__ import annotations

import time

from protocol.config.party import ConsumerFile, OwnerFile
from protocol.participant import Participant
from protocol.runtime.connection import Connection
from protocol.runtime.driver import Driver, Numerics
from protocol.runtime.keys import KeyPair
from protocol.runtime.party import ensure_done, open_journal, spare_collections
from protocol.session import Session
from protocol.wire import Direction

__all__ = ["take_part"]


def take_part(
    session: Session,
    file: OwnerFile | ConsumerFile,
    machine: Participant,
    numerics: Numerics,
    *,
    pair: KeyPair | None,
    direction: Direction,
) -> float:
    """Run a machine against the curator until it is done.

    Args:
        session: The session.
        file: The party's private file.
        machine: Its machine.
        numerics: Carries out the machine's computations.
        pair: Its keys; None in insecure sessions.
        direction: What the curator may say to it.

    Returns:
        How long it took, in seconds.

    Raises:
        HushbidError: It did not end well, as `protocol.errors` says.
    """
    with Connection(session.file, pair) as connection:
        journal = open_journal(
            session, role=machine.ROLE, party=machine.name, state=file.state, durability=file.durability
        )
        spare_collections()
        started = time.monotonic()
        try:
            driver = Driver(
                machine, numerics, journal, session=session.identifier, direction=lambda _peer: direction
            )
            finish = connection.run(driver)
        finally:
            journal.close()
    ensure_done(finish)
    return time.monotonic() - started
