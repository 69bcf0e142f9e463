"""The files of every party of a cluster: its key, its private file, its share of the data, a state.

`hushbid run` makes them anew for each run. `hushbid setup` makes missing ones, and replaces nothing: a party
may have begun its session with them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import tomli_w
from pydantic import BaseModel

from hushbid.cluster.data import ClusterData
from hushbid.protocol import platform
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import FILE_OF
from hushbid.protocol.config.session import RosterSection
from hushbid.protocol.data import DataColumns, Dataset, dataset_digest, load_dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.files.durable import in_place_of
from hushbid.protocol.runtime.keys import KeyPair, write_secret

__all__ = [
    "PARTY_FILE",
    "SESSION_FILE",
    "Layout",
    "Party",
    "Share",
    "furnish",
    "keep",
    "parties_in",
    "roster_of",
    "shares",
    "write_share",
]

Share: TypeAlias = Mapping[str, Dataset]
"""A party's data by the keys that its private file names them by."""

SESSION_FILE: Final = "session.toml"
PARTY_FILE: Final = "party.toml"
_PRIVATE_DIRECTORY: Final = 0o700


@dataclass(frozen=True)
class Party:
    """One party of a cluster, and its own directory."""

    name: str
    role: Role
    directory: Path


@dataclass(frozen=True)
class Layout:
    """Paths of a party's files, below its directory.

    Attributes:
        own: The directory of its private file and its data.
        key: Its secret key; absolute if it keeps one of its own; None in an insecure session.
    """

    own: Path
    state: Path
    key: Path | None


def parties_in(place: Path, owners: tuple[str, ...]) -> tuple[Party, ...]:
    """Curator, consumer and owners in this order, each with a directory of its name below `place`."""
    roles: dict[str, Role] = {CURATOR: "curator", CONSUMER: "consumer"}
    roles |= dict.fromkeys(owners, "owner")
    return tuple(Party(name, role, place / name) for name, role in roles.items())


def roster_of(owners: tuple[str, ...], public: Mapping[str, str]) -> RosterSection:
    """The roster of public keys by party; empty keys for an insecure session, in which nobody has one."""
    return RosterSection(
        curator=public.get(CURATOR, ""),
        consumer=public.get(CONSUMER, ""),
        owners={name: public.get(name, "") for name in owners},
    )


def shares(data: ClusterData, *, seed_set: bool = True) -> dict[str, Share]:
    """Party → its part of a cluster's data; without `seed_set` the consumer draws its own."""
    given: dict[str, Share] = {name: {"data": dataset} for name, dataset in data.owners.items()}
    test = {} if data.test is None else {"test": data.test}
    seeds = {"seed_set": data.seed_set} if seed_set else {}
    given[CONSUMER] = {"validation": data.validation, **seeds, **test}
    return given


def furnish(
    party: Party, layout: Layout, *, key: KeyPair | None, share: Share, settings: Mapping[str, Any]
) -> None:
    """Write a party's own files: directories of mode 0700, files of mode 0600. Existing ones stay.

    Args:
        key: Its secret key; None if it has none, or keeps its own. A key already there is this one.
        share: Its data, which are written.
        settings: Further keys of its private file.

    Raises:
        ConfigError: A file exists with other content.
        OSError: It cannot be written.
    """
    own, state = party.directory / layout.own, party.directory / layout.state
    for place in (party.directory, own, state):
        _make_private(place)
    if key is not None and layout.key is not None:
        secret = party.directory / layout.key
        _make_private(secret.parent)
        if not secret.exists():
            write_secret(secret, key)
    # A party need not know its directory's path: its file's paths are relative to the file.
    data = {what: path.relative_to(own) for what, path in write_share(share, own).items()}
    values: dict[str, Any] = {**settings, **data}
    values |= {name: _seen_from(layout.own, getattr(layout, name)) for name in ("key", "state")}
    if party.role == "owner":
        values["name"] = party.name
    keep(own / PARTY_FILE, FILE_OF[party.role].model_validate(values), mode=platform.PRIVATE)


def write_share(share: Share, directory: Path) -> dict[str, Path]:
    """Write a party's data into a directory, as ``data.npz`` or ``validation.npz`` and so on (mode 0600).

    Returns:
        Key of the private file → path.

    Raises:
        ConfigError: Other data already exist.
        OSError: A file cannot be written.
    """
    written = {}
    for what, dataset in share.items():
        path = directory / f"{what.replace('_', '-')}.npz"
        if not path.exists():
            with in_place_of(path) as file:
                np.savez(file, **_arrays(dataset))
        elif dataset_digest(load_dataset(path, DataColumns())) != dataset_digest(dataset):
            raise _another(path)
        written[what] = path
    return written


def keep(path: Path, model: BaseModel, *, mode: int) -> None:
    """Write a model as TOML, whole or not at all, unless it already exists.

    Raises:
        ConfigError: The file exists with other content.
        OSError: It cannot be written.
    """
    if not path.exists():
        text = tomli_w.dumps(model.model_dump(mode="json", exclude_none=True))
        with in_place_of(path, mode) as file:  # with its mode whatever the umask: all read a public one
            file.write(text.encode())
    elif load_toml(type(model), path) != model:
        raise _another(path)


def _make_private(place: Path) -> None:
    place.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    if stat.S_IMODE(place.stat().st_mode) != _PRIVATE_DIRECTORY:
        place.chmod(_PRIVATE_DIRECTORY)


def _seen_from(place: Path, path: Path | None) -> Path | None:
    return path if path is None or path.is_absolute() else Path(os.path.relpath(path, place))


def _arrays(dataset: Dataset) -> dict[str, Any]:
    names = ("features", "labels", "labelled", "identifiers")
    arrays = {name: getattr(dataset, name) for name in names}
    return {name: array for name, array in arrays.items() if array is not None}


def _another(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} is there already, of a session with other settings or data, and was left as it is.",
        advice="Give the earlier settings to go on with that session. For a new one start from empty "
        "directories (`docker-compose down --volumes` empties those of containers, deliveries and lifetime "
        "ledgers included; docs/deploy.md says how to keep keys, data and ledgers).",
    )
