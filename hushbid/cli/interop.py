"""`hushbid interop`: conformance tests for other implementations of a party."""

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
        str | None, typer.Option(help="tcp://HOST:PORT; default: the address in its session file.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Time limit for the owner's answers.")] = 60.0,
) -> dict[str, Any]:
    """Play a golden session to an owner under test, and report the first byte of its answers that differs.

    Exit code 0: all answers are as recorded; 1: one differs; 3: none came; 4: this is no golden session.
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
    place: Annotated[Path, typer.Argument(help="Directory of the vectors.", metavar="DIRECTORY")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing: compare the existing vectors with the computed ones."),
    ] = False,
) -> dict[str, Any]:
    """Write the test vectors: an example of everything that another implementation computes.

    With --check, exit code 1 names the first vector that differs from what this version computes.
    """
    from hushbid.interop.vectors import check_vectors, write_vectors

    if check:
        return {"checked": check_vectors(place)}
    return {"written": write_vectors(place)}
