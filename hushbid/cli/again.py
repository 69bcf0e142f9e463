"""`hushbid again`: another session of the parties of one that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.protocol.runtime.command import Record, show_figures, takes, tell, verb
from hushbid.starting.options import AgainOptions

if TYPE_CHECKING:
    from hushbid.starting.again import BegunAgain

__all__ = ["again_command"]


def _show(made: BegunAgain) -> None:
    show_figures(
        {
            "session of before": made.outcome,
            "session file": made.session_file,
            "curator's file": made.config_file,
            **{f"invitation of {party}": path for party, path in made.invitations.items()},
            "expires": made.expires,
        }
    )
    tell("\nEverybody is charged for it anew. Send the invitations; then each pastes its own:")
    for each in made.commands:
        tell(f"{each.where}$ {each.command}")


@takes(AgainOptions)
@verb(show=_show)
def again_command(options: AgainOptions) -> Record:
    """Begin a session again that was given up: new nonce, invitations and states. Files of before stay."""
    from hushbid.starting.again import begin_again

    return begin_again(options)
