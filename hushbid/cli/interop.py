"""`hushbid interop`: what another implementation of a party is tested by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hushbid.protocol.runtime.command import say, verb

__all__ = ["interop_app"]

interop_app = typer.Typer(help="Test another implementation against this one.", no_args_is_help=True)


@interop_app.callback()
def _interop() -> None:
    pass


@interop_app.command("curator")
@verb(show=lambda told: say(f"All {told['frames']} frames are as recorded."))
def _curator(
    golden: Annotated[
        Path,
        typer.Argument(
            help="A golden session: a directory below docs/vectors/sessions.", metavar="DIRECTORY"
        ),
    ],
    listen: Annotated[
        str | None, typer.Option(help="tcp://HOST:PORT; else the address of its session file.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long the owner may take to answer.")] = 60.0,
) -> dict[str, Any]:
    """Play a golden session to an owner under test, and name the first byte of its answers that is another.

    Exit code 0: all answers are as recorded; 1: one is another; 3: none came; 4: this is no golden session.
    """
    from hushbid.interop.exchange import read_exchange
    from hushbid.interop.mock_curator import play

    frames = play(read_exchange(golden), listen=listen, seconds=seconds, say=say)
    return {"frames": frames}


def _show(told: Mapping[str, Any]) -> None:
    for what, files in told.items():
        say(f"{len(files)} files {what}.")


@interop_app.command("vectors")
@verb(show=_show)
def _vectors(
    place: Annotated[Path, typer.Argument(help="Where the vectors lie, or are to.", metavar="DIRECTORY")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing: compare those that are there with what is computed."),
    ] = False,
) -> dict[str, Any]:
    """Write the vectors: an example of everything that another implementation computes.

    With --check, exit code 1 names the first vector that is not what this version computes.
    """
    from hushbid.interop.vectors import check_vectors, write_vectors

    if check:
        return {"checked": check_vectors(place)}
    return {"written": write_vectors(place)}
