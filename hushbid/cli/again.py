"""`hushbid again`: another session of the parties of one that is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hushbid.protocol.runtime.command import show_figures, takes, tell, verb
from hushbid.starting.options import AgainOptions

__all__ = ["again_command"]


def _show(made: Mapping[str, Any]) -> None:
    show_figures(
        {
            "session of before": made["outcome"],
            "session file": made["session_file"],
            "curator's file": made["config_file"],
            **{f"invitation of {party}": path for party, path in made["invitations"].items()},
            "expires": made["expires"],
        }
    )
    tell("\nEverybody is charged for it anew. Send the invitations; then each pastes its own:")
    for each in made["commands"]:
        tell(f"{each['where']}$ {each['command']}")


@takes(AgainOptions)
@verb(show=_show)
def again_command(options: AgainOptions) -> dict[str, Any]:
    """Begin a session again that was given up: new nonce, invitations and states. Files of before stay."""
    from hushbid.starting.again import begin_again

    return begin_again(options)
