"""`hushbid init`: the files of a new session, made from tables, and the commands to paste."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from hushbid.protocol.names import listed
from hushbid.protocol.runtime.command import JsonResult, takes, tell, verb
from hushbid.starting.options import InitOptions

if TYPE_CHECKING:
    from hushbid.starting.beginning import Begun

__all__ = ["init_command"]

_WIDTH: Final = 100


def _show(made: Begun) -> None:
    from hushbid.starting.beginning import MOST_NAMES

    tell(f"{made.directory}")
    for name, path in made.files.items():
        tell(f"  {name:<14} {path.relative_to(made.directory)}")
    tell("")
    columns = listed([f"{name} ({kind})" for name, kind in made.columns.items()], MOST_NAMES)
    for line in (
        f"Rows are compared by {columns}.",
        f"{made.points} points are to be bought, with ε = {made.epsilon:g} for the validation set.",
        *made.said,
    ):
        tell(textwrap.fill(line, _WIDTH, subsequent_indent="  ", break_long_words=False))
    tell("\nPaste:")
    for each in made.commands:
        where = "" if each.where == "here" else each.where
        tell(f"{where}$ {each.command}{f'    # {each.what}' if each.what else ''}")


@takes(InitOptions)
@verb(show=_show)
def init_command(options: InitOptions) -> JsonResult:
    """Create a session from tables: columns, session file and party files, and the commands to paste."""
    from hushbid.starting.beginning import begin

    return begin(options)
