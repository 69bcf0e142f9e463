"""The directory of one run: a subdirectory for each party, with that party's own files and nothing else."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.file import Cluster
from hushbid.cluster.parties import SESSION_FILE, Layout, Party, furnish, keep, parties_in, roster_of, shares
from hushbid.protocol import platform
from hushbid.protocol.config.session import NetworkSection, SessionFile
from hushbid.protocol.errors import ConfigError, ConnectionFailed
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.keys import KeyPair, new_keypair

__all__ = ["RunDirectory", "named_files", "prepare", "redirect"]

_KEY: Final = Path("secret.key")
_PRIVATE_DIRECTORY: Final = 0o700

_PORTS: Final = (20_000, 32_000)
"""The range in which a free port is looked for: below the ports that operating systems give to outgoing
connections. A party that connects to such a port before the curator listens there can be given that very
port, and so connect to itself.
"""
_PORT_TRIES: Final = 100

_SHARED: Final = {
    "enrolment": 2.0,
    "round": 0.5,
    "silence": 0.25,
    "comeback": 0.5,
    "closing": 0.5,
    "abandon": 2.0,
}
"""Time-out in seconds per owner, if all of them share one machine's processors. Up to a dozen owners the
usual time-outs are longer. With 200 on two cores they are too short: each process takes a second to start,
and an owner that misses the first round is out of the session.
"""


@dataclass(frozen=True)
class RunDirectory:
    """A run that can be started, with the session's public file, and curator, consumer and owners by name."""

    path: Path
    session: SessionFile
    parties: tuple[Party, ...]


def prepare(
    cluster: Cluster, parent: Path, *, check: Callable[[SessionFile], object] | None = None
) -> RunDirectory:
    """Make the next directory ``<session>-<n>`` with everything that each party needs; never an existing one.

    A party's subdirectory (mode 0700) holds a fresh key, the party's private file, a copy of the session
    file, and its share of the dataset. Data files that the cluster file names are left in place. Time-outs
    that the cluster file does not give are as long as this many processes on one machine need.

    Args:
        parent: Where to make it; created if necessary.
        check: Called with the session before anything is made; its errors propagate.

    Raises:
        ConfigError: The session's sections do not fit together, or the directory cannot be made.
        ConnectionFailed: No free port was found.
    """
    names = (CURATOR, CONSUMER, *cluster.owners)
    network = _network(cluster.file.network)
    keys = {} if network.insecure else {name: new_keypair() for name in names}
    public = {name: pair.public.text for name, pair in keys.items()}
    least = {name: len(cluster.owners) * seconds for name, seconds in _SHARED.items()}
    session = cluster.patient(least).session_file(roster_of(cluster.owners, public), network)
    if check is not None:
        check(session)
    try:
        path = _new_directory(parent, session.session.name)
    except OSError as error:
        raise _cannot_write(parent, error) from None
    try:
        return _fill(path, cluster, session, keys)
    except BaseException as error:
        # Nothing has run in it: a partial directory is of no use to anybody.
        shutil.rmtree(path, ignore_errors=True)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from None
        raise


def redirect(prepared: RunDirectory, address: str) -> None:
    """Have owners and consumer connect to another address than the curator's, such as a relay's.

    The run has not been started. It is the same session: its digest leaves addresses out.

    Raises:
        ConfigError: A party's copy of the session file cannot be written.
    """
    network = prepared.session.network.model_copy(update={"address": address})
    session = prepared.session.model_copy(update={"network": network})
    for party in prepared.parties:
        if party.role == "curator":
            continue
        path = party.directory / SESSION_FILE
        try:
            path.unlink()
            keep(path, session, mode=platform.PRIVATE)
        except OSError as error:
            raise _cannot_write(path, error) from None


def _fill(path: Path, cluster: Cluster, session: SessionFile, keys: Mapping[str, KeyPair]) -> RunDirectory:
    # One level down, where a party's name cannot collide with a file of the run.
    parties = parties_in(path / "parties", cluster.owners)
    layout = Layout(own=Path(), state=Path("state"), key=_KEY if keys else None)
    dealt = {} if cluster.partition is None else shares(cluster.load(), seed_set=not cluster.drawing)
    named = named_files(cluster) if cluster.partition is None else {}
    for party in parties:
        settings = cluster.private(party.role) | named.get(party.name, {})
        furnish(party, layout, key=keys.get(party.name), share=dealt.get(party.name, {}), settings=settings)
        keep(party.directory / SESSION_FILE, session, mode=platform.PRIVATE)
    return RunDirectory(path, session, parties)


def named_files(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The entries of each private file about data that the cluster file names."""
    own = ("data", "columns", "ledger", "budget")
    files = {
        name: {key: getattr(owner, key) for key in own} for name, owner in sorted(cluster.file.owners.items())
    }
    places = ("validation", "seed_set", "test", "columns", "ledger", "budget")
    return {**files, CONSUMER: {name: getattr(cluster.file.consumer, name) for name in places}}


def _network(section: NetworkSection) -> NetworkSection:
    """The network section with a port, if it leaves the choice to us."""
    host, _, port = section.address.removeprefix("tcp://").rpartition(":")
    if port != "*":
        return section
    return section.model_copy(update={"address": f"tcp://{host}:{_free_port(host)}"})


def _free_port(host: str) -> int:
    """A port that is free now. Another program may take it before the curator does: that fails clearly."""
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    for _ in range(_PORT_TRIES):
        port = _PORTS[0] + secrets.randbelow(_PORTS[1] - _PORTS[0])
        with socket.socket(family, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
            probe.bind((name, port))
            return port
    raise ConnectionFailed(
        f"No free port was found at {host}.",
        advice="Use an address of this machine in the cluster file's [network], with a port that is free.",
    )


def _new_directory(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = parent.resolve() / f"{name}-{number}"
        try:
            path.mkdir(mode=_PRIVATE_DIRECTORY)
        except FileExistsError:
            number += 1
        else:
            return path


def _cannot_write(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"The run directory cannot be made in {path}: {error.strerror}.",
        advice="Make room, or name another place with --output.",
    )
