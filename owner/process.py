"""An owner as a process of its own."""

from __future__ import annotations

import time
from typing import Any

from owner.party import owner_party
from protocol.config.party import OwnerFile
from protocol.config.session import SessionFile
from protocol.data import DataColumns, load_dataset
from protocol.errors import ConfigError
from protocol.runtime.connection import Connection
from protocol.runtime.driver import Driver
from protocol.runtime.party import ensure_done, one_blas_thread, open_journal, own_keys, spare_collections
from protocol.session import open_session
from protocol.wire import Direction

__all__ = ["run_owner"]


def run_owner(session_file: SessionFile, file: OwnerFile) -> dict[str, Any]:
    """Take part in a session as an owner, until it is over.

    Returns:
        The owner's result: what it handed over, and where its transcript lies.

    Raises:
        HushbidError: As `protocol.errors` says.
    """
    one_blas_thread()
    session = open_session(session_file)
    expected = session_file.roster.owners.get(file.name)
    if expected is None:
        raise ConfigError(
            f"The roster has no owner named {file.name}.",
            advice="Correct `name`, or have the roster corrected.",
        )
    pair = own_keys(session, file, expected=expected, party=file.name)
    columns = DataColumns(
        features=tuple(file.columns.features) if file.columns.features is not None else None,
        label=file.columns.label,
        identifier=file.columns.identifier,
    )
    dataset = load_dataset(file.data, columns)
    machine, numerics = owner_party(
        session, file.name, dataset, scratch=file.state.parent, memory_limit=file.memory_limit
    )
    with Connection(session_file, pair) as connection:
        journal = open_journal(
            session, role="owner", party=file.name, state=file.state, durability=file.durability
        )
        spare_collections()
        started = time.monotonic()
        try:
            driver = Driver(
                machine,
                numerics,
                journal,
                session=session.identifier,
                direction=lambda _peer: Direction.CURATOR_TO_OWNER,
            )
            finish = connection.run(driver)
        finally:
            journal.close()
    ensure_done(finish)
    return {
        "role": "owner",
        "session": session_file.session.name,
        "owner": file.name,
        "points": len(dataset),
        "handed_over": machine.handed_over,
        "rounds": machine.round,
        "wall_seconds": time.monotonic() - started,
        "transcript": str(file.state / f"{file.name}.transcript"),
    }
