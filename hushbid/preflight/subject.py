"""The subject of checks: a party with its session and its own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from hushbid.consumer.process import consumer_seed_set, drawn_path
from hushbid.consumer.role import ConsumerRole
from hushbid.consumer.verdict import Rehearsal
from hushbid.plan.rehearsal import looked_at
from hushbid.plan.verdict import Sets
from hushbid.preflight.options import PartyOptions
from hushbid.protocol.config.key_request import Role
from hushbid.protocol.config.loading import load_toml, read_toml
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.identity import PublicIdentity
from hushbid.protocol.data import Dataset, load_dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.runtime.files.signed_files import check_begun_or_in_force, read_session
from hushbid.protocol.runtime.given_tables import path_of
from hushbid.protocol.runtime.keys import KeyPair
from hushbid.protocol.runtime.network.transport import listen_address
from hushbid.protocol.runtime.party import check_durability, own_keys, transcript_path
from hushbid.protocol.session.session import Session, open_session

__all__ = ["NotChecked", "PartyFile", "Subject", "Warned", "open_subject"]

PartyFile: TypeAlias = CuratorFile | OwnerFile | ConsumerFile


class NotChecked(NamedTuple):
    """A check that was not made, and why."""

    why: str


class Warned(NamedTuple):
    """A warning: the party can take part, but should know, or change, something."""

    said: str
    fix: str


@dataclass(frozen=True)
class Subject:
    """A party that is about to take part, by its role and its name on the roster.

    Attributes:
        offline: Whether to make no network requests.
        rehearse: Whether the consumer rehearses the session.
        anyway: Whether a hopeless session would go on.
        held: Its data by their files, if these are not to be read; else None.
    """

    role: Role
    name: str
    session: Session
    file: PartyFile
    offline: bool
    rehearse: bool = True
    anyway: bool = False
    held: Mapping[Path, Dataset] | None = None

    @property
    def expected(self) -> str:
        """The public key that the roster gives to the party."""
        roster = self.session.file.roster
        return {CURATOR: roster.curator, CONSUMER: roster.consumer, **roster.owners}[self.name]

    @property
    def transcript(self) -> Path:
        return transcript_path(self.file.state, self.name)

    @property
    def listen(self) -> str:
        assert isinstance(self.file, CuratorFile), "asked of the curator alone"
        return self.file.listen or listen_address(self.session.file.network.address)

    @cached_property
    def pair(self) -> KeyPair | None:
        """Its keys; None in an insecure session.

        Raises:
            HushbidError: They cannot be used.
        """
        return own_keys(self.session, self.file, expected=self.expected, party=self.name)

    @cached_property
    def curator(self) -> PublicIdentity | None:
        """The curator's key; None in an insecure session."""
        insecure = self.session.file.network.insecure
        return None if insecure else PublicIdentity(self.session.file.roster.curator)

    @cached_property
    def datasets(self) -> Mapping[Path, Dataset]:
        """Its data by their files; a seed set not yet drawn is listed under its future file.

        Raises:
            ConfigError: No seed set can be drawn.
            DataError: One of them cannot be read.
        """
        assert not isinstance(self.file, CuratorFile), "a curator has no data"
        if self.held is not None:
            return self.held
        columns = self.session.file.reading(self.file.columns.columns(), sold=self.role == "owner")
        read: dict[Path, Dataset] = {}
        for path in self.data_files:
            if isinstance(self.file, ConsumerFile) and self.drawn and path == drawn_path(self.file):
                validation = read[self.file.validation]
                read[path] = consumer_seed_set(self.session, self.file, validation, when_missing="draw")
            else:
                wanted = isinstance(self.file, ConsumerFile) and path == self.file.validation
                public = isinstance(self.file, ConsumerFile) and path == self.file.seed_set and not wanted
                as_is = replace(columns, outside="refuse") if public else columns
                read[path] = load_dataset(path, as_is.with_gaps() if wanted else as_is)
        return read

    @property
    def validation(self) -> Dataset:
        assert isinstance(self.file, ConsumerFile), "asked of the consumer alone"
        return self.datasets[self.file.validation]

    @property
    def seed_set(self) -> Dataset:
        """The consumer's D_init: D_v itself, if both are one file."""
        assert isinstance(self.file, ConsumerFile), "asked of the consumer alone"
        return self.datasets[self.file.seed_set or drawn_path(self.file)]

    @property
    def sets(self) -> Sets:
        assert isinstance(self.file, ConsumerFile), "asked of the consumer alone"
        return Sets(self.validation, self.seed_set, self.drawn, self.file.model)

    @cached_property
    def looked(self) -> Rehearsal:
        """What the kernel tells the consumer about its sets."""
        rows, seeds = (each.features.astype(np.float64) for each in (self.validation, self.seed_set))
        return looked_at(self.session, rows, seeds, drawn=self.drawn)

    @property
    def drawn(self) -> bool:
        """Whether its seed set is drawn; until the session begins, a similar one is looked at."""
        return isinstance(self.file, ConsumerFile) and self.file.seed_points is not None

    @property
    def data_files(self) -> tuple[Path, ...]:
        """The files of its data, first those that its budget is for."""
        if isinstance(self.file, OwnerFile):
            return (self.file.data,)
        if isinstance(self.file, ConsumerFile):
            test = () if self.file.test is None else (self.file.test,)
            return (self.file.validation, self.file.seed_set or drawn_path(self.file), *test)
        return ()


def open_subject(options: PartyOptions) -> Subject:
    """The party that files and options describe. Its role is that of its own file.

    Raises:
        HushbidError: They cannot be read, form no session, or belong to nobody on its roster.
    """
    role = _role(options)
    file: PartyFile
    if role == "owner":
        session_file, file = options.files()
        name = file.name
        if name not in session_file.roster.owners:
            raise ConfigError(
                f"The roster has no owner named {name}.",
                advice="Correct `name`, or have the roster corrected.",
            )
    elif role == CONSUMER:
        session_file, file = _consumer(options).files()
        name = CONSUMER
    else:
        session_file, file = _curator_files(options)
        name = CURATOR
    session = open_session(session_file)
    check_durability(session, file.durability, listen=file.listen if isinstance(file, CuratorFile) else None)
    return Subject(role, name, session, file, options.offline, options.rehearsal, options.anyway)


def _consumer(options: PartyOptions) -> ConsumerRole:
    """The consumer that would be started with these options."""
    return ConsumerRole(
        options.config,
        session=options.session,
        invitation=options.invitation,
        validation=options.validation,
        seed_set=options.seed_set,
        seed_points=options.seed_points,
        test=options.test,
        features=options.features,
        label=options.label,
        budget_epsilon=options.budget_epsilon,
        key=options.key,
        state=options.state,
        ledger=options.ledger,
        outside=options.outside,
    )


def _curator_files(options: PartyOptions) -> tuple[SessionFile, CuratorFile]:
    assert options.config is not None, "otherwise the role is another"
    invitation = path_of(options.invitation)
    given = read_session(path_of(options.session), invitation)
    if given.invited not in (None, CURATOR):
        raise ConfigError(
            f"{options.invitation} is for {given.invited}, and {options.config} is the file of a curator.",
            advice="Give those of one party.",
        )
    config = Path(options.config)
    file = load_toml(CuratorFile, config).resolved(config.parent)
    file = file.with_options(key=path_of(options.key), state=path_of(options.state), listen=options.listen)
    check_begun_or_in_force(given, invitation, transcript_path(file.state, CURATOR))
    return given.file, file


def _role(options: PartyOptions) -> Role:
    """The role of the given private file; without one, the invited party's."""
    if options.config is None:
        invitation = path_of(options.invitation)
        invited = None if invitation is None or options.session else read_session(None, invitation).invited
        return "consumer" if invited == CONSUMER else "owner"
    keys = read_toml(Path(options.config)).keys()
    if {"validation", "seed_set", "seed_points"} & keys:
        return "consumer"
    return "owner" if "data" in keys or "name" in keys else "curator"
