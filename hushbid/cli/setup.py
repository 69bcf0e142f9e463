"""`hushbid setup`: the files that containers of a cluster's parties need, made before they start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import typer

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import tell, verb
from hushbid.protocol.runtime.ranged import ranged

__all__ = ["setup_command"]


class _SetUp(TypedDict):
    """A session that is set up: each party's directory, and whose points an owner has."""

    session: str
    identifier: str
    new: bool
    over: bool
    session_file: str
    parties: dict[str, str]
    points_of: dict[str, str]


def _show(made: _SetUp) -> None:
    was = "is set up" if made["new"] else "was there already, and goes on"
    if made["over"]:
        was = "is over: every party has ended it well, and says again what came of it"
    tell(f"Session {made['session']} {was}: {', '.join(made['parties'])}.\nIts file: {made['session_file']}")
    if made["over"]:
        tell("Nothing is bought again. For another session set another session.nonce and new states.")
    for owner, whose in made["points_of"].items():
        if owner != whose:
            tell(f"{owner} has points of {whose}.")


@verb(show=_show)
def setup_command(
    cluster: Annotated[Path, typer.Argument(help="The cluster file.", metavar="CLUSTER.toml")],
    parties: Annotated[Path, typer.Option(help="Directory for the parties' directories.")],
    session: Annotated[Path, typer.Option(help="The session file to write.", envvar="HUSHBID_SESSION")],
    address: Annotated[
        str, typer.Option(help="The curator's address for the other parties: tcp://HOST:PORT.")
    ],
    owners: Annotated[
        int | None,
        ranged(
            ranges.OwnerCount,
            help="Number of owners to spread the points over: owner-1, owner-2, …; default: as in the "
            "cluster file.",
            envvar="HUSHBID_OWNERS",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the cluster file's dataset.")] = None,
    public_keys: Annotated[
        Path | None,
        typer.Option(
            help="Directory with every party's NAME.pub, if the parties have made their own keys.",
            envvar="HUSHBID_PUBLIC_KEYS",
        ),
    ] = None,
    secret_key: Annotated[
        Path | None,
        typer.Option(
            help="With --public-keys: the path where each party finds its own key; absolute.",
            envvar="HUSHBID_SECRET_KEY",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Override a key of the cluster file, as in session.points=200.",
            metavar="SECTION.KEY=VALUE",
            envvar="HUSHBID_SET",
        ),
    ] = None,
) -> _SetUp:
    """Create any missing keys, private files and data of the parties, and the session file.

    Existing files stay: a second run continues the same session.
    """
    from hushbid.cluster.containers import OwnKeys, check_readable, set_up
    from hushbid.cluster.file import open_cluster

    own_keys = None
    if public_keys is not None and secret_key is not None and secret_key.is_absolute():
        own_keys = OwnKeys(public_keys, secret_key)
    elif public_keys is not None or secret_key is not None:
        raise ConfigError(
            "The parties' own keys need --public-keys and an absolute --secret-key.",
            advice="Give both, or neither.",
        )
    for path in filter(None, (cluster, data)):
        check_readable(path)
    made = set_up(
        open_cluster(cluster, data=data, settings=settings or ()),
        parties,
        session,
        address=address,
        owners=owners,
        own_keys=own_keys,
    )
    return {
        "session": made.session.session.name,
        "identifier": made.session.digest()[:16].hex(),
        "new": made.new,
        "over": made.over,
        "session_file": str(session),
        "parties": {party.name: str(party.directory) for party in made.parties},
        "points_of": dict(made.points_of),
    }
