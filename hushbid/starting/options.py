"""The options of `hushbid init` and `hushbid again`; a module of its own, so that help imports little."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import typer

from hushbid.protocol import ranges
from hushbid.protocol.runtime.command import by_option, option
from hushbid.protocol.runtime.files.expiry import DAYS_IN_FORCE, Days

__all__ = ["AgainOptions", "InitOptions"]


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """A session to begin: each option's help describes it."""

    table: Path | None = field(
        default=None,
        metadata=by_option(
            Annotated[
                Path | None,
                typer.Argument(
                    help="The validation set: rows like the wanted ones. Without --owner it is dealt out to "
                    "all parties, for a trial session.",
                    metavar="TABLE",
                    show_default=False,
                ),
            ]
        ),
    )
    validation: Path | None = option(
        Path | None, help="The validation set, in place of TABLE.", metavar="FILE"
    )
    owner: list[str] | None = option(
        list[str] | None,
        help="An owner, and its table if that is on this machine. May be repeated.",
        metavar="NAME[=FILE]",
    )
    test: Path | None = option(
        Path | None, help="Held-out labelled rows, to evaluate a model.", metavar="FILE"
    )
    label: str | None = option(str | None, help="The label column, for a model to learn.")
    identifier: str | None = option(str | None, help="The identifier column, which owners' points carry.")
    bounds: list[str] | None = option(
        list[str] | None,
        help="Public bounds of a column, in place of those of the rows. May be repeated.",
        metavar="NAME=LOW:HIGH",
    )
    categories: list[str] | None = option(
        list[str] | None, help="All categories of a column. May be repeated.", metavar="NAME=A,B"
    )
    without: list[str] | None = option(
        list[str] | None, help="A column to leave out. May be repeated.", metavar="NAME"
    )
    where: Literal["one", "several", "compose"] = option(
        Literal["one", "several", "compose"],
        "--for",
        default="one",
        help="One machine, several machines, or docker-compose.",
    )
    points: int | None = option(
        ranges.Points | None, help="p, the number of points to buy; default: by the owners' rows."
    )
    epsilon: float | None = option(
        ranges.Epsilon | None, help="ε of the validation set; default: 1, or 3 if it has few rows."
    )
    name: str = option(str, default="purchase", help="The session's name.")
    output: Path | None = option(Path | None, help="Directory to create; default: the name.", metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class AgainOptions:
    """A finished session to repeat: each option's help describes it."""

    session: Path = field(
        metadata=by_option(
            Annotated[
                Path,
                typer.Argument(help="The previous session's file.", metavar="SESSION"),
            ]
        ),
    )
    config: Path | None = option(
        Path | None, help="The curator's private file; default: curator.toml beside the session file."
    )
    enrolment: float | None = option(
        ranges.Seconds | None, help="timeouts.enrolment of the new session, in seconds; default: unchanged."
    )
    min_owners: int | None = option(
        ranges.OwnerCount | None, help="session.min_owners of the new session; default: unchanged."
    )
    days: int = option(Days, default=DAYS_IN_FORCE, help="Days until the invitations expire.")
