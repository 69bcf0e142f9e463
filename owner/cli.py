"""``python -m owner`` and ``hushbid owner``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from owner.process import run_owner
from protocol.config.loading import load_toml
from protocol.config.party import OwnerFile
from protocol.config.session import SessionFile
from protocol.runtime.command import run_verb, set_up_logging
from protocol.session import privacy_lines

__all__ = ["command"]


def command(
    session: Annotated[Path, typer.Option(help="The session file.", envvar="HUSHBID_SESSION")],
    config: Annotated[Path, typer.Option(help="The owner's private file.", envvar="HUSHBID_CONFIG")],
    data: Annotated[
        Path | None, typer.Option(help="The points, in place of the file's.", envvar="HUSHBID_DATA")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Take part in a session as an owner, on this machine."""

    def body() -> dict[str, Any]:
        session_file = load_toml(SessionFile, session)
        file = load_toml(OwnerFile, config).resolved(config.parent)
        if data is not None:
            file = file.model_copy(update={"data": data})
        set_up_logging(file.name)
        return run_owner(session_file, file)

    run_verb(body, as_json=as_json, show=_show)


def _show(result: Mapping[str, Any]) -> None:
    lines = [
        f"{result['owner']}: {result['handed_over']} of {result['points']} points were handed over in "
        f"{result['rounds']} rounds.",
        *privacy_lines(result["privacy"]),
        f"Transcript: {result['transcript']}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
