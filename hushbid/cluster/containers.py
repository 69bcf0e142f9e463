"""`hushbid setup`: prepare a cluster's parties to run apart, each from directories of its own.

For containers: volumes for each party's key, data and state, and one for the session file. The operator
handles every party's key and data, so it is for demonstrations and tests: parties that do not trust one
operator make their own (docs/deploy.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hushbid.cluster.data import ClusterData, spread
from hushbid.cluster.file import Cluster, ConsumerSection, OwnerSection
from hushbid.cluster.parties import (
    Layout,
    Party,
    furnish,
    keep,
    parties_in,
    roster_of,
    shares,
)
from hushbid.protocol import platform
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.config.session import NetworkSection, SessionFile
from hushbid.protocol.errors import ConfigError, ExitCode, HushbidError
from hushbid.protocol.names import CONSUMER, listed
from hushbid.protocol.runtime.keys import KeyPair, new_keypair, read_public, read_secret
from hushbid.protocol.runtime.network.transport import contact_address
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.session.session import open_session

__all__ = ["KEY", "OwnKeys", "SetUp", "check_readable", "set_up"]

KEY: Final = Path("key/secret.key")
"""A party's secret key, below its directory."""
_DATA: Final = Path("data")
_STATE: Final = Path("state")
_PUBLIC: Final = 0o644
_PATIENCE: Final[Mapping[str, float]] = {"enrolment": 300.0, "round": 60.0, "comeback": 60.0}
"""Time limits, in seconds, where the cluster file sets none. Containers start and restart slowly, and a round
waits for a lost owner no longer than the last two limits.
"""
_ON_ITS_OWN_MACHINE: Final = (
    "Have that party run on its own machine, with its own data and ledger (docs/deploy.md). What containers "
    "spend is in the ledger beside the copy, in that party's data volume: to go on there, keep that volume."
)


@dataclass(frozen=True)
class OwnKeys:
    """Keys that parties have made themselves: the directory of ``NAME.pub``, and each secret key's path."""

    public: Path
    secret: Path


@dataclass(frozen=True)
class SetUp:
    """The setup, new or existing: curator, consumer, and owners by name.

    Attributes:
        points_of: Owner → the cluster file's owner whose points it has, all or some.
        new: Whether there was no session before.
        over: Whether every party has ended it well, so that there is nothing more to do.
    """

    session: SessionFile
    parties: tuple[Party, ...]
    points_of: Mapping[str, str]
    new: bool
    over: bool


def set_up(
    cluster: Cluster,
    place: Path,
    session_path: Path,
    *,
    address: str,
    owners: int | None = None,
    own_keys: OwnKeys | None = None,
) -> SetUp:
    """Make what a cluster's parties lack; keep what they have, which may be a session that has begun.

    Each party gets, below its own directory, ``key/secret.key``, ``data/`` with its private file
    ``party.toml`` and its data, and ``state/`` (directories of mode 0700, files of mode 0600). The session
    file comes last: if it exists, everything does.

    Args:
        cluster: The cluster. Files that it names are copied to their parties.
        place: The directory of the parties' directories.
        session_path: The session file.
        address: The curator's address for the others, in place of the cluster file's.
        owners: Spread the owners' points over this many owners, named owner-1, owner-2, …; None: as they are.
            The first has points of the first owner by alphabet, and so on, cyclically.
        own_keys: The parties' own keys; None: they are made here.

    Raises:
        ConfigError: Nobody can connect to `address`, the sections do not fit together, data already have a
            lifetime ledger, another session exists, or the setup cannot be written.
        DataError: A file that the cluster names cannot be used.
        KeyFileError: An existing key cannot be used.
    """
    cluster = cluster.patient(_PATIENCE)
    values = {**cluster.file.network.model_dump(), "address": address}
    network = validated(NetworkSection, values, where="--address")
    contact_address(network.address)
    # Before data are dealt out: that can fail for a number of owners without directories.
    names = cluster.owners if owners is None else tuple(f"owner-{number + 1}" for number in range(owners))
    parties = parties_in(place, names)
    _check_places(place, parties)
    data, points_of, of_owners = _dealt(cluster, owners)
    keys = {} if network.insecure or own_keys else {party.name: _key_of(party) for party in parties}
    public = {name: pair.public.text for name, pair in keys.items()}
    if own_keys is not None:
        public = {party.name: read_public(own_keys.public / f"{party.name}.pub").text for party in parties}
    session = cluster.session_file(roster_of(names, public), network)
    open_session(session)  # what cannot run is not set up
    new = not session_path.exists()
    key = None if network.insecure else KEY if own_keys is None else own_keys.secret
    layout = Layout(own=_DATA, state=_STATE, key=key)
    budgets = {**of_owners, CONSUMER: cluster.file.consumer.budget}
    given = shares(data, seed_set=not cluster.drawing)
    try:
        for party in parties:
            settings = cluster.private(party.role)
            if party.role != "curator":
                settings["budget"] = budgets.get(party.name)
            furnish(
                party, layout, key=keys.get(party.name), share=given.get(party.name, {}), settings=settings
            )
        session_path.parent.mkdir(parents=True, exist_ok=True)
        keep(session_path, session, mode=_PUBLIC)
    except OSError as error:
        raise ConfigError(
            f"{error.filename or place} cannot be written: {error.strerror}.",
            advice="Make room, and see that the directories belong to the user that this runs as.",
        ) from None
    return SetUp(session, parties, points_of, new, over=not new and all(map(_has_ended_well, parties)))


def _has_ended_well(party: Party) -> bool:
    try:
        status = Status.read(status_path(party.directory / _STATE, party.name))
    except HushbidError:
        return False
    return status.finished and status.exit_code == ExitCode.DONE


def _check_places(place: Path, parties: tuple[Party, ...]) -> None:
    """Refuse parties that have no directory and cannot be given one, before anything is written."""
    missing = [party.name for party in parties if not party.directory.exists()]
    if missing and place.exists() and not os.access(place, os.W_OK):
        raise ConfigError(
            f"{place} has no directory for {listed(missing, 5)}, and none can be made there.",
            advice="docker-compose.yml has ten owners: set HUSHBID_OWNERS (`--owners`) to a number from "
            "1 to 10.",
        )


def check_readable(path: Path) -> None:
    """Refuse a path if this user cannot read it, or cannot enter a directory above it; a missing one passes.

    Raises:
        ConfigError: States which of them, and who the user is.
    """
    for place in (*reversed(path.absolute().parents), path):
        if os.path.exists(place) and not os.access(place, os.X_OK if place.is_dir() else os.R_OK):
            raise ConfigError(
                f"{place} cannot be read by {platform.user()}, the user that runs this.",
                advice="Give that user access, on the machine of the file: `chmod -R o+rX`, or `chown`.",
            )


def _key_of(party: Party) -> KeyPair:
    path = party.directory / KEY
    return read_secret(path) if path.exists() else new_keypair()


def _dealt(
    cluster: Cluster, owners: int | None
) -> tuple[ClusterData, Mapping[str, str], Mapping[str, BudgetSection | None]]:
    """Every party's data; and for each owner, whose points it has, and its budget."""
    _refuse_ledgers(cluster)
    data = cluster.load()
    budgets = {name: section.budget for name, section in cluster.file.owners.items()}
    if owners is None:
        return data, {name: name for name in data.owners}, budgets
    # An owner that gets a part of another's points is bound by that one's budget.
    old = list(data.owners)
    parts = spread(data, owners, None, seed=cluster.file.consumer.seed).owners.values()
    points_of = {f"owner-{number + 1}": old[number % len(old)] for number in range(owners)}
    spread_out = replace(data, owners=dict(zip(points_of, parts, strict=True)))
    return spread_out, points_of, {name: budgets.get(whose) for name, whose in points_of.items()}


def _refuse_ledgers(cluster: Cluster) -> None:
    """Refuse data that have been charged: a copy of them would begin with nothing spent.

    The ledger is not copied either: there would then be two, and each would allow the whole budget.
    """
    consumer = cluster.file.consumer
    sections: list[tuple[str, OwnerSection | ConsumerSection, tuple[Path | None, ...]]] = [
        (CONSUMER, consumer, (consumer.validation, consumer.seed_set, consumer.test)),
        *((name, owner, (owner.data,)) for name, owner in cluster.file.owners.items()),
    ]
    for name, section, paths in sections:
        if section.ledger is not None:
            raise ConfigError(
                f"{cluster.where} names a lifetime ledger for {name}; a copy of its data would escape it.",
                advice=_ON_ITS_OWN_MACHINE,
            )
        for path in filter(None, paths):
            check_readable(path)
            ledger = path.with_name(f"{path.name}.ledger")
            if os.path.lexists(ledger):
                raise ConfigError(
                    f"{ledger} records what was spent on {name}'s data; a copy of them would escape it.",
                    advice=_ON_ITS_OWN_MACHINE,
                )
