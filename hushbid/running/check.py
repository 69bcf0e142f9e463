"""Checks before a run creates anything: whether one of its parties would refuse its part.

A party that refuses its data or its budget ends a run that by then has a directory, keys and processes. The
operator of a cluster holds every file, so the checks of `preflight` can find all of it beforehand.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hushbid.cluster.file import Cluster
from hushbid.cluster.parties import shares
from hushbid.consumer.verdict import Verdict
from hushbid.plan.verdict import Rehearsing, warn
from hushbid.preflight.data import boxes, budget, data
from hushbid.preflight.subject import Subject
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.party import ConsumerFile, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConnectionFailed, HushbidError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.network.transport import parse_address
from hushbid.protocol.runtime.party import check_durability
from hushbid.protocol.session.session import Session, open_session
from hushbid.running.directory import named_files
from hushbid.running.process import PartyFailed

__all__ = ["check_run"]

_NOWHERE: Final = Path("/nonexistent/hushbid")
"""A placeholder for the parties' directories: they do not exist yet, and nothing is looked up there."""


def check_run(
    cluster: Cluster,
    file: SessionFile,
    rehearsing: Rehearsing,
    say: Callable[[str], object] | None = None,
) -> Verdict:
    """Refuse a run that one of its parties would refuse, or that a rehearsal refuses.

    Nothing is written, and nothing charged. `say` receives a warning if there is nothing to choose from.

    Returns:
        The rehearsal's verdict.

    Raises:
        Hopeless: The session is hopeless, and is not to go on anyway.
        PartyFailed: A party would: its data or its model cannot be used, or its budget is too small; or the
            curator's address is taken.
        ConfigError: The session's sections do not fit together.
    """
    session = open_session(file)
    with _said_by(CURATOR):
        check_durability(session, cluster.file.run.durability)
        _check_free(file.network.address)
    subjects = {name: _subject(cluster, session, name) for name in (CONSUMER, *cluster.owners)}
    for name, subject in subjects.items():
        with _said_by(name):
            data(subject)
            if subject.role == "owner":
                boxes(subject)
            if cluster.partition is None:  # otherwise a ledger begins with the run
                budget(subject, warn=False)  # the party's process reports it
    validation = subjects[CONSUMER].validation
    for name in cluster.owners if cluster.partition is None else ():
        with _said_by(name):
            [sold] = subjects[name].datasets.values()
            cluster.check_labelled({name: sold}, validation)
    owners = {name: [*subjects[name].datasets.values()] for name in cluster.owners}
    warn(session, owners, subjects[CONSUMER].datasets.values(), say)
    return rehearsing.verdict(session, lambda: subjects[CONSUMER].sets)


@contextmanager
def _said_by(party: str) -> Iterator[None]:
    """Raise an error as that of the party whose process would have ended with it."""
    try:
        yield
    except HushbidError as error:
        raise PartyFailed(party, error.what, advice=error.advice, exit_code=error.exit_code) from None


def _subject(cluster: Cluster, session: Session, name: str) -> Subject:
    """A party as `preflight` sees it, with the private file that the run would make."""
    role: Role = "consumer" if name == CONSUMER else "owner"
    values: dict[str, Any] = {"key": _NOWHERE, "state": _NOWHERE, **cluster.private(role)}
    values |= {"name": name} if role == "owner" else {}
    held: dict[Path, Dataset] | None = None
    if cluster.partition is None:
        values |= named_files(cluster)[name]
    else:
        dealt: Mapping[str, Dataset] = shares(cluster.load(), seed_set=not cluster.drawing)[name]
        values |= {what: _NOWHERE / what for what in dealt}
        held = {_NOWHERE / what: dataset for what, dataset in dealt.items()}
    kind = OwnerFile if role == "owner" else ConsumerFile
    subject = Subject(role, name, session, kind.model_validate(values), offline=True, held=held)
    if held is not None and role == "consumer" and cluster.drawing:
        held[subject.data_files[1]] = cluster.load().seed_set
    return subject


def _check_free(address: str) -> None:
    """Refuse an address of this machine at which another program listens."""
    where = parse_address(address)
    if where.is_name or where.is_wildcard:
        return  # the curator reports what is wrong with these
    try:
        family = socket.AF_INET if where.is_ipv4 else socket.AF_INET6
        socket.create_server((where.host, int(where.port)), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConnectionFailed(
                f"{address} is in use by another program.",
                advice="Leave `network.address` out of the cluster file, so that a free port is found; or "
                "end that program.",
            ) from None
