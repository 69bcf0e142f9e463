"""The files of a new session from tables, and the commands that run it, for `hushbid init`."""

from __future__ import annotations

import secrets
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w
from pydantic.dataclasses import dataclass as figures

from hushbid.advice.proposal import median_gamma
from hushbid.cluster.file import CLUSTER_FILE, open_cluster
from hushbid.protocol import limits, ranges
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.section import check_party_name
from hushbid.protocol.config.session import DraftSession
from hushbid.protocol.crypto.commitment import USUAL_DEPTH
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.intervals import within
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.protocol.session.guarantee import weak_epsilon
from hushbid.protocol.utf8_names import resolved
from hushbid.starting.columns import Given, Proposed, given_bounds, given_categories, propose, read_table
from hushbid.starting.commands import Command, quoted
from hushbid.starting.options import InitOptions
from hushbid.tables.frames import ArrowTable, write_table
from hushbid.text_files import check_directory_place, write_new_file

__all__ = ["MOST_NAMES", "Begun", "begin"]

MOST_NAMES: Final = 8
"""Most columns that are named in a line for people."""

FEWEST: Final = 120
"""Least rows of one table that can be dealt out to all parties."""
DEALT: Final = ("north", "south", "west")
"""Owners of a table that is dealt out."""
_FEW_ROWS: Final = 300
"""Rows of a validation set from which `_EPSILON` leaves a visible signal; `_EPSILON_OF_FEW` below."""
_EPSILON: Final = 1.0
_EPSILON_OF_FEW: Final = 3.0
_OUR_NAMES: Final = (CONSUMER, CURATOR, "session", "validation", "test")
"""Names of parties, and of files beside those of owners, which no owner can have."""
_FORMS: Final = {"categories": "A,B,C", "bounds": "LOW:HIGH"}
"""The notation of the options for the values that rows may have."""
_MOST_POINTS: Final = 500
_SEED_POINTS: Final = 150


@dataclass(frozen=True)
class _Party:
    """A party's table, and its path; of an owner elsewhere, neither."""

    table: ArrowTable | None
    path: Path | None


@dataclass(frozen=True)
class _Session:
    """Everything that a new session is made of; with `few_rows`, the validation set needs a larger ε."""

    options: InitOptions
    place: Path
    proposed: Proposed
    gamma: float
    epsilon: float
    few_rows: bool
    points: int
    validation: _Party
    test: _Party | None
    owners: Mapping[str, _Party]
    dealt: bool

    @property
    def labelled(self) -> bool:
        """Whether the validation set has labels, so that the session requires them of every owner."""
        label, rows = self.options.label, self.validation.table
        return label is not None and rows is not None and rows.column(label).null_count < len(rows)

    @property
    def columns(self) -> dict[str, str]:
        named = {"label": self.options.label, "identifier": self.options.identifier}
        return {name: value for name, value in named.items() if value is not None}


@figures(frozen=True, kw_only=True)
class Begun(Figures):
    """A new session.

    Attributes:
        directory: The new directory.
        files: Its files, by their role.
        columns: The kind of each column that rows are compared by.
        left_out: Why each other column was left out.
        read: For each column, what was read off rows.
        points, epsilon, gamma: p, ε of the validation set, and γ.
        said: What a public file reveals of private rows, and what was assumed.
        commands: Commands to paste.
    """

    directory: Path
    files: Mapping[str, Path]
    columns: Mapping[str, str]
    left_out: Mapping[str, str]
    read: Mapping[str, tuple[str, ...]]
    points: int
    epsilon: float
    gamma: float
    said: tuple[str, ...]
    commands: tuple[Command, ...]


def begin(options: InitOptions) -> Begun:
    """Make a directory with everything that a session needs except keys.

    Raises:
        ConfigError: An option is invalid, or the directory already exists or cannot be made.
        DataError: A table cannot be read, or does not fit the others or the description of the columns.
    """
    place = _checked(options)
    made = _session(options, place)
    try:
        files = _FILES[options.where](made)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Begun(
        directory=place,
        files=files,
        columns={each["name"]: each["kind"] for each in made.proposed.columns},
        left_out=made.proposed.left_out,
        read=made.proposed.read,
        points=made.points,
        epsilon=made.epsilon,
        gamma=made.gamma,
        said=tuple(_said(made)),
        commands=tuple(_COMMANDS[options.where](made)),
    )


def _checked(options: InitOptions) -> Path:
    """The directory to make; everything that can be refused before a table is read."""
    check_party_name(options.name, "a session's name", where="--name: ")
    for name in (each.partition("=")[0] for each in options.owner or ()):
        check_party_name(name, "an owner's name", where="--owner: ")
        if name in _OUR_NAMES:
            raise ConfigError(
                f"An owner cannot be named {name}: the session has a party or a file of that name.",
                advice="Give it another name.",
            )
    if options.epsilon is not None and not within(ranges.Epsilon, options.epsilon):
        raise ConfigError(f"--epsilon is {options.epsilon:g}.", advice="Give a positive number, such as 1.")
    if (options.points or 0) > limits.MAX_HERDED:
        raise ConfigError(
            f"--points is {options.points:,}, and the session is a tender, which chooses "
            f"{limits.MAX_HERDED:,} at most.",
            advice="Buy fewer points, in several sessions; or have `hushbid advise` propose one in rounds.",
        )
    if (options.table is None) is (options.validation is None):
        raise ConfigError(
            "Which table has the wanted rows?",
            advice="Name it: `hushbid init TABLE`, or with --validation.",
        )
    place = Path(options.output or options.name).absolute()
    if place.exists():
        raise ConfigError(f"{place} is there already.", advice="Name another directory with --output.")
    check_directory_place(place)
    return place


def _session(options: InitOptions, place: Path) -> _Session:
    given = Given(
        options.label,
        options.identifier,
        options.without or (),
        given_bounds(options.bounds or ()),
        given_categories(options.categories or ()),
    )
    path = options.table or options.validation
    assert path is not None, "one of them is there"
    wanted, owners = read_table(path, given), _owners(options, given)
    dealt = not owners and options.where != "several"
    test = None if options.test is None else _Party(read_table(options.test, given), resolved(options.test))
    validation = _Party(wanted, resolved(path))
    proposed = propose(_named([validation, *owners.values(), *([] if test is None else [test])]), given)
    if dealt:
        validation, dealt_test, owners = _deal(wanted, path, place)
        test = test or dealt_test
    assert validation.table is not None, "it was read"
    schema, rows = proposed.schema, validation.table
    gamma = median_gamma(
        Dataset.from_arrays(path.name, schema.encode(rows, name=path.name)), schema.lower, schema.upper
    )
    offered = sum(len(each.table) for each in owners.values() if each.table is not None)
    points = options.points or max(1, min(_MOST_POINTS, offered // 4 if offered else _MOST_POINTS))
    few = options.epsilon is None and len(rows) < _FEW_ROWS
    epsilon = options.epsilon or (_EPSILON_OF_FEW if few else _EPSILON)
    return _Session(options, place, proposed, gamma, epsilon, few, points, validation, test, owners, dealt)


def _named(parties: Iterable[_Party]) -> dict[str, ArrowTable]:
    """The local tables by their files' names, in order; by the path if two files have one name."""
    tables = {each.path: each.table for each in parties if each.path is not None and each.table is not None}
    names = Counter(path.name for path in tables)
    return {path.name if names[path.name] == 1 else str(path): table for path, table in tables.items()}


def _owners(options: InitOptions, given: Given) -> dict[str, _Party]:
    found: dict[str, _Party] = {}
    for text in options.owner or ():
        name, equals, file = text.partition("=")
        if name in found:
            raise ConfigError(f"--owner {name} is given twice.", advice="Give each owner its own name.")
        if not equals and options.where != "several":
            raise ConfigError(
                f"--owner {name} has no table.",
                advice=f"Give one, --owner {name}=FILE; only with --for several is it on another machine.",
            )
        found[name] = (
            _Party(read_table(Path(file), given), resolved(Path(file))) if equals else _Party(None, None)
        )
    return found


def _deal(table: ArrowTable, path: Path, place: Path) -> tuple[_Party, _Party, dict[str, _Party]]:
    """One table for all parties: a tenth is wanted, a fifth judges, and owners share the rest evenly."""
    if len(table) < FEWEST:
        raise DataError(
            f"{path.name} has {len(table)} rows, too few to be dealt out to all parties: {FEWEST} at least.",
            advice="Name owners' tables with --owner NAME=FILE.",
        )
    order = np.random.default_rng(0).permutation(len(table))
    wanted, judged = min(300, len(table) // 10), min(2_000, len(table) // 5)
    ends = np.cumsum([wanted, judged])
    parts = [order[: ends[0]], order[ends[0] : ends[1]], *np.array_split(order[ends[1] :], len(DEALT))]
    names = ["validation", "test", *DEALT]
    parties = {
        name: _Party(table.take(np.sort(part)), place / "data" / f"{name}.parquet")
        for name, part in zip(names, parts, strict=True)
    }
    return parties.pop("validation"), parties.pop("test"), parties


# -- files -----------------------------------------------------------------------------------------------


_LABELS: Final = """\
labels = "any"  # every point that is offered has a label; "optional" takes points without one, too
"""


def _sections(made: _Session, *, nonce: bool) -> str:
    rows = len(made.validation.table) if made.validation.table is not None else 0
    few = f"  # its {rows} rows are few: with ε = {_EPSILON:g} noise would hide them" if made.few_rows else ""
    said = (
        f'nonce = "{secrets.token_hex(8)}"  # a session is run once: another nonce makes it another\n'
        if nonce
        else ""
    )
    labels = _LABELS if made.labelled else ""
    return f"""\
[session]
name = "{made.options.name}"
points = {made.points}  # p, the most points that are bought
delta = 1e-5  # the δ of every ε below
{labels}{said}
[features]  # no seed: the consumer draws the map, and the curator never has it
map = "paired"
dimension = 140
gamma = {made.gamma}  # by the median distance of rows of the validation set, to a power of two

{made.proposed.toml()}
[target]  # how the consumer releases the mean embedding of its validation set, once
mechanism = "filtered-gaussian"
epsilon = {made.epsilon}{few}
neighbours = "substitute-one"

[acquisition]
rule = "tender"  # one round: owners submit a choice, and see nothing of each other
commitment_depth = {USUAL_DEPTH}  # owners commit to their rows before they see anything

[noise]
source = "secure"
"""


def _one(made: _Session) -> dict[str, Path]:
    """A cluster file, for one machine."""
    return _cluster(made, copied=made.dealt, head="hushbid run")


def _compose(made: _Session) -> dict[str, Path]:
    """The same, with the tables beside it, as containers see no other directory."""
    return _cluster(made, copied=True, head="docker-compose up")


def _cluster(made: _Session, *, copied: bool, head: str) -> dict[str, Path]:
    parties: dict[str, _Party] = {"validation": made.validation, **made.owners}
    if made.test is not None:
        parties["test"] = made.test
    data = made.place / "data"
    made.place.mkdir(mode=0o700, parents=True)
    places: dict[str, Path] = {}
    for name, party in parties.items():
        assert party.table is not None, "only --for several has owners elsewhere"
        assert party.path is not None, "likewise"
        places[name] = data / f"{name}.parquet" if copied else party.path
        if copied:
            data.mkdir(mode=0o700, exist_ok=True)
            write_table(party.table, places[name])
    named = {name: str(path.relative_to(made.place) if copied else path) for name, path in places.items()}
    own = {"columns": made.columns} if made.columns else {}
    consumer: dict[str, Any] = {"validation": named["validation"], "seed_points": _SEED_POINTS}
    consumer |= {"test": named["test"]} if made.test is not None else {}
    consumer |= {"columns": {"label": made.options.label}} if made.options.label else {}
    owners = {name: {"data": named[name], **own} for name in made.owners}
    tables = {"consumer": consumer, "owners": owners, "run": {"directory": "runs"}}
    path = made.place / CLUSTER_FILE
    text = f"# A session as `hushbid init` made it, for `{head}`. Every key: docs/configuration.md.\n\n"
    write_new_file(path, f"{text}{_sections(made, nonce=False)}\n{tomli_w.dumps(tables)}")
    open_cluster(path).load()  # report now what cannot be run
    copies = {f"data/{name}": place for name, place in places.items()} if copied else {}
    return {"cluster": path, **copies}


def _several(made: _Session) -> dict[str, Path]:
    """The public session file, and a private file for each party."""
    made.place.mkdir(mode=0o700, parents=True)
    files = {"session": made.place / "session.toml"}
    roster = {"roster": {"curator": "", "consumer": "", "owners": dict.fromkeys(made.owners, "")}}
    network = (
        '[network]\naddress = "tcp://curator.example.org:5790"  # where the others reach the curator\n\n'
    )
    times = "[timeouts]\nenrolment = 3600.0  # seconds in which owners and consumer come\nround = 30.0\n\n"
    head = (
        "# A session as `hushbid init` made it: the public file, which whoever runs the curator keeps.\n"
        "# The address is still to be filled in, and `hushbid keys approve` fills in the roster.\n\n"
    )
    write_new_file(
        files["session"], f"{head}{_sections(made, nonce=True)}\n{times}{network}{tomli_w.dumps(roster)}"
    )
    load_toml(DraftSession, files["session"])
    consumer: dict[str, Any] = {
        "key": f"{CONSUMER}.key",
        "state": f"{CONSUMER}-state",
        "validation": str(made.validation.path),
        "seed_points": _SEED_POINTS,
        **({} if made.test is None else {"test": str(made.test.path)}),
        **({"columns": {"label": made.options.label}} if made.options.label else {}),
    }
    privates: dict[str, tuple[type, dict[str, Any]]] = {
        CURATOR: (CuratorFile, {"key": f"{CURATOR}.key", "state": f"{CURATOR}-state"}),
        CONSUMER: (ConsumerFile, consumer),
    }
    for name, party in made.owners.items():
        values = {
            "name": name,
            "key": f"{name}.key",
            "state": f"{name}-state",
            "data": str(party.path or f"{name}.csv"),
            # Its rows were not examined: those beyond the bounds are clipped, and its own preflight says so.
            "columns": {**made.columns, **({} if party.path else {"outside": "clip"})},
        }
        privates[name] = (OwnerFile, values)
    for name, (kind, values) in privates.items():
        files[name] = made.place / f"{name}.toml"
        write_new_file(
            files[name],
            f"# The private file of {name}, as `hushbid init` made it.\n\n{tomli_w.dumps(values)}",
        )
        load_toml(kind, files[name])
    return files


_FILES: Final = {"one": _one, "several": _several, "compose": _compose}


# -- what people read ------------------------------------------------------------------------------------


def _option(option: str, name: str) -> str:
    return f"`--{option} {shlex.quote(f'{name}={_FORMS[option]}')}`"


def _warnings(made: _Session) -> list[str]:
    """Reasons why a session misses wanted rows, or owners lose rows, each with its remedy."""
    found = [
        f"WARNING: {name} is left out: {made.proposed.left_out[name]}, so that owners' rows with another are "
        f"as good. If that value is what is wanted, say what owners may have: {_option(option, name)}."
        for name, option in made.proposed.constant.items()
    ]
    elsewhere = not made.owners or any(party.table is None for party in made.owners.values())
    read = {
        option: names
        for option in _FORMS
        if (names := [name for name, what in made.proposed.read.items() if option in what])
    }
    if elsewhere and read:
        which = " and ".join(f"{option} of {listed(names, MOST_NAMES)}" for option, names in read.items())
        cures = listed([_option(option, name) for option in read for name in read[option]], MOST_NAMES)
        found.append(
            f"WARNING: Owners' tables elsewhere are not known: {which} are those of the rows here alone. "
            "Rows of another category do not fit, and are refused or lost; numbers beyond the bounds are "
            f"clipped. Before anything is sent, say what all may have: {cures}."
        )
    if warning := weak_epsilon(made.epsilon, "the validation set"):
        found.append(warning)
    return found


def _said(made: _Session) -> list[str]:
    said = _warnings(made)
    read = [
        f"{each} of {listed(names, MOST_NAMES)}"
        for each in ("bounds", "categories", "gaps")
        if (names := [name for name, what in made.proposed.read.items() if each in what])
    ]
    if read:
        said.append(
            "Read off rows of the tables given, to round numbers, and written into a file that every party "
            f"gets: {'; '.join(read)}. No ε covers that. Where it must not be told, say it yourself with "
            "--bounds and --categories."
        )
    said.append(
        "γ follows from the validation set: it tells the median distance of its rows, to a factor of 1.4."
    )
    said += [
        f"{name} is left out: {why}."
        for name, why in made.proposed.left_out.items()
        if name not in made.proposed.constant
    ]
    if made.dealt:
        said.append(
            "The table was dealt out to all parties, to try a session: owners have alike, so that a choice "
            "can hardly be better than chance. Name owners' tables with --owner NAME=FILE."
        )
    if made.options.label is None:
        said.append("Without --label no model is judged: a purchase is compared by its columns alone.")
    elif made.test is None:
        said.append("Without --test a model is judged by cross-validation on own rows alone.")
    if made.options.where == "compose" and not made.dealt:
        said.append(f"The tables were copied to {made.place / 'data'}, as containers see no other directory.")
    if made.options.where == "several":
        said.append(
            "session.toml and curator.toml go to whoever runs the curator, in a directory "
            f"{made.place.name}; every other party gets the private file of its name, and keeps it where it "
            "pastes its commands."
        )
    return said


def _commands_of_one(made: _Session) -> list[Command]:
    cluster, run = quoted(made.place / CLUSTER_FILE), quoted(made.place / "runs" / f"{made.options.name}-1")
    return [
        Command(
            "here", f"hushbid run {cluster}", "rehearse the session, then run it: every party is a process"
        ),
        Command("here", f"hushbid results {run}", "the purchase: evaluated, weighed, trained on, exported"),
    ]


def _commands_of_compose(made: _Session) -> list[Command]:
    place = quoted(made.place)
    owners = len(made.owners)
    variables = (
        f'HUSHBID_CLUSTER=/data/cluster.toml HUSHBID_DATA="$(realpath {place})" HUSHBID_OWNERS={owners}'
    )
    return [
        Command("checkout", f"chmod -R o+rX {place}", "user 10001 of the containers reads the tables"),
        Command(
            "checkout", f"{variables} docker-compose up --build", "the session, a container for each party"
        ),
        Command(
            "checkout",
            f'docker cp "$({variables} docker-compose ps -aq consumer)":/party/state/. state',
            "take out what was bought",
        ),
    ]


def _commands_of_several(made: _Session) -> list[Command]:
    session, place = quoted(made.place / "session.toml"), made.place
    found = [
        Command(
            CURATOR,
            f"hushbid keys new {CURATOR} --output {quoted(place)}",
            f"in {place}; put its address into session.toml first",
        )
    ]
    for name in (CONSUMER, *(made.owners or ("NAME",))):
        role = CONSUMER if name == CONSUMER else "owner"
        found += [
            Command(name, f"hushbid keys new {name}", "beside its private file, which it gets from you"),
            Command(name, f"hushbid keys request {name} --role {role}", "send the request to the curator"),
        ]
    found += [
        Command(
            CURATOR,
            f"hushbid keys request {CURATOR} --role curator --key {quoted(place / 'curator.key')}",
            "",
        ),
        Command(
            CURATOR,
            f"hushbid keys approve *.request --session {session}",
            "it asks for each; compare the fingerprint by telephone. Without a terminal, say "
            "--fingerprint NAME=FINGERPRINT for each",
        ),
        Command(CURATOR, f"hushbid invite --session {session} --consumer", "send it to the consumer"),
    ]
    for name in made.owners or ("NAME",):
        found.append(
            Command(CURATOR, f"hushbid invite --session {session} --owner {name}", f"send it to {name}")
        )
    found.append(
        Command(CURATOR, f"hushbid curator --session {session} --config {quoted(place / 'curator.toml')}", "")
    )
    for name in made.owners or ("NAME",):
        found.append(Command(name, f"hushbid owner --invitation {name}.invitation --config {name}.toml", ""))
    found += [
        Command(CONSUMER, "hushbid consumer --invitation consumer.invitation --config consumer.toml", ""),
        Command(CONSUMER, f"hushbid results {CONSUMER}-state", "what was bought"),
    ]
    return found


_COMMANDS: Final = {
    "one": _commands_of_one,
    "several": _commands_of_several,
    "compose": _commands_of_compose,
}
