"""`hushbid setup`: a cluster's parties made ready to run apart, each from directories that are its own.

For containers: a volume each for a party's key, its data and its state, and one for the session file. Whoever
runs this has had every party's key and data in hand, so it is for demonstrations and tests: parties that do
not trust one operator make their own (docs/deploy.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushbid.cluster import Cluster, ConsumerSection, OwnerSection
from hushbid.cluster_data import ClusterData, spread
from hushbid.party_files import (
    Layout,
    Party,
    furnish,
    keep,
    parties_in,
    roster_of,
    shares,
)
from protocol.config.party import BudgetSection
from protocol.config.session import SessionFile
from protocol.errors import ConfigError
from protocol.names import CONSUMER, CURATOR
from protocol.runtime.keys import KeyPair, new_keypair, read_public, read_secret
from protocol.session import open_session

__all__ = ["KEY", "OwnKeys", "SetUp", "set_up"]

KEY: Final = Path("key/secret.key")
"""A party's secret key, below its directory."""
_DATA: Final = Path("data")
_STATE: Final = Path("state")
_PUBLIC: Final = 0o644


@dataclass(frozen=True)
class OwnKeys:
    """Keys that the parties have made themselves.

    Attributes:
        public: A directory of ``NAME.pub`` for each party.
        secret: Where a party finds its secret key; absolute.
    """

    public: Path
    secret: Path


@dataclass(frozen=True)
class SetUp:
    """What was set up, now or before.

    Attributes:
        session: The session's public file.
        parties: Curator, consumer, owners by name.
        new: Whether there was no session before.
    """

    session: SessionFile
    parties: tuple[Party, ...]
    new: bool


def set_up(
    cluster: Cluster,
    place: Path,
    session_path: Path,
    *,
    address: str,
    owners: int | None = None,
    own_keys: OwnKeys | None = None,
) -> SetUp:
    """Make what a cluster's parties lack; leave what they have, which may be a session that has begun.

    A party gets, below its own directory, ``key/secret.key``, ``data/`` with its private file ``party.toml``
    and its data, and ``state/`` (directories of mode 0700, files of mode 0600). The session file comes last:
    where it is, everything is.

    Args:
        cluster: The cluster. Files that it names are copied to the party whose they are.
        place: The directory of the parties' directories.
        session_path: The session file.
        address: Where the curator is for the others, in place of what the cluster file says.
        owners: Spread the owners' points over this many owners, named owner-1, owner-2, …; None: as they are.
        own_keys: The parties' own keys; None: they are made here.

    Raises:
        ConfigError: The sections do not go together, another session is there, or it cannot be written.
        DataError: A file that the cluster names cannot be used.
        KeyFileError: A key that is there cannot be used.
    """
    data, budgets = _dealt(cluster, owners)
    names = tuple(data.owners)
    parties = parties_in(place, names)
    network = cluster.file.network.model_copy(update={"address": address})
    keys = {} if network.insecure or own_keys else {party.name: _key_of(party) for party in parties}
    public = {name: pair.public.text for name, pair in keys.items()}
    if own_keys is not None:
        public = {party.name: read_public(own_keys.public / f"{party.name}.pub").text for party in parties}
    session = cluster.session_file(roster_of(names, public), network)
    open_session(session)  # what cannot run is not set up
    new = not session_path.exists()
    key = None if network.insecure else KEY if own_keys is None else own_keys.secret
    layout = Layout(own=_DATA, state=_STATE, key=key)
    given = shares(data)
    try:
        for party in parties:
            settings = _settings(cluster, party, budgets)
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
    return SetUp(session, parties, new)


def _key_of(party: Party) -> KeyPair:
    path = party.directory / KEY
    return read_secret(path) if path.exists() else new_keypair()


def _dealt(cluster: Cluster, owners: int | None) -> tuple[ClusterData, Mapping[str, BudgetSection | None]]:
    """Every party's data, and the budgets of those that have one."""
    file = cluster.file
    sections: list[tuple[str, OwnerSection | ConsumerSection]] = [
        (CONSUMER, file.consumer),
        *file.owners.items(),
    ]
    for name, section in sections:
        if section.ledger is not None:
            raise ConfigError(
                f"{cluster.where} names a lifetime ledger for {name}, which a copy of its data would escape.",
                advice="Have that party run on its own machine, with its own data and ledger.",
            )
    data = cluster.load()
    budgets = {name: section.budget for name, section in file.owners.items()}
    if owners is None:
        return data, budgets
    # An owner that gets a part of another's points is bound by that one's budget.
    of = [budgets.get(name) for name in data.owners]
    dealt = spread(data, owners, None, seed=file.consumer.seed).owners.values()
    names = [f"owner-{number}" for number in range(1, owners + 1)]
    return (
        replace(data, owners=dict(zip(names, dealt, strict=True))),
        {name: of[number % len(of)] for number, name in enumerate(names)},
    )


def _settings(cluster: Cluster, party: Party, budgets: Mapping[str, BudgetSection | None]) -> dict[str, Any]:
    """What a private file says besides where things lie."""
    settings: dict[str, Any] = {"durability": cluster.file.run.durability}
    if party.name == CURATOR:
        return settings
    if party.name == CONSUMER:
        chosen = {"model": cluster.model, "seed": cluster.file.consumer.seed}
        return settings | chosen | {"budget": cluster.file.consumer.budget}
    return settings | {"budget": budgets.get(party.name)}
