"""An owner as a process of its own."""

from __future__ import annotations

from hushbid.owner.party import owner_party
from hushbid.owner.result import OwnerResult
from hushbid.protocol.config.party import OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import dataset_digest, load_dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.control import Control
from hushbid.protocol.runtime.ledger.dataset_budget import dataset_budget
from hushbid.protocol.runtime.party import (
    check_durability,
    own_keys,
    party_noise,
    sealing_identity,
    transcript_path,
)
from hushbid.protocol.runtime.taking_part import log_reading, take_part
from hushbid.protocol.runtime.telemetry.metrics import serving_metrics
from hushbid.protocol.runtime.telemetry.vitals import Vitals
from hushbid.protocol.session.session import Session, open_session

__all__ = ["run_owner"]


def run_owner(session_file: SessionFile, file: OwnerFile, control: Control | None = None) -> OwnerResult:
    """Take part in a session as an owner, until it is over.

    Raises:
        HushbidError: As `hushbid.protocol.errors` says.
    """
    session = open_session(session_file)
    check_durability(session, file.durability)
    expected = session_file.roster.owners.get(file.name)
    if expected is None:
        raise ConfigError(
            f"The roster has no owner named {file.name}.",
            advice="Correct `name`, or have the roster corrected.",
        )
    with (
        one_blas_thread(),
        Vitals(file.state, party=file.name, role="owner", session=session_file, control=control) as vitals,
        serving_metrics(file.metrics, vitals),
    ):
        return _take_part(session, file, expected, vitals)


def _take_part(session: Session, file: OwnerFile, expected: str, vitals: Vitals) -> OwnerResult:
    pair = own_keys(session, file, expected=expected, party=file.name)
    dataset = load_dataset(file.data, session.file.reading(file.columns.columns(), sold=True))
    log_reading(dataset, file.data)
    machine, numerics = owner_party(
        session,
        file.name,
        dataset,
        identity=sealing_identity(session, pair, file.name),
        noise=party_noise(session, file.name),
        scratch=file.state.parent,
        memory_limit=file.memory_limit,
        progress=vitals.computed,
    )
    statement = session.privacy()[0]
    budget = dataset_budget(session, file, file.data, dataset, machine.charge, statement, root=numerics.root)
    seconds = take_part(
        session,
        file,
        machine,
        numerics,
        pair=pair,
        budget=budget,
        data=dataset_digest(dataset),
        vitals=vitals,
        ahead=numerics.ahead,
    )
    return OwnerResult(
        session=session.file.session.name,
        owner=file.name,
        points=len(dataset),
        root=numerics.root or None,
        unlabelled=dataset.unlabelled,
        unidentified=dataset.unidentified,
        outside=dataset.changed,
        handed_over=machine.handed_over,
        rounds=machine.rounds,
        wall_seconds=seconds,
        privacy=session.privacy(),
        ledger=budget.path,
        transcript=transcript_path(file.state, file.name),
    )
