"""`hushbid again`: a new session of the same parties after one has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushbid.protocol.runtime.command import JsonResult, show_figures, takes, tell, verb
from hushbid.starting.options import AgainOptions

if TYPE_CHECKING:
    from hushbid.starting.again import BegunAgain

__all__ = ["again_command"]


def _show(made: BegunAgain) -> None:
    if made.outcome == "complete":
        tell("The session is complete: this begins another, and everybody is charged anew.\n")
    show_figures(
        {
            "session of before": made.outcome,
            "session file": made.session_file,
            "curator's file": made.config_file,
            **{f"invitation of {party}": path for party, path in made.invitations.items()},
            "expires": made.expires,
            **{f"charged to {whose}": _epsilon(epsilon) for whose, epsilon in made.charges.items()},
        }
    )
    tell("\nEverybody is charged for it anew. Send the invitations; then each pastes its own:")
    for each in made.commands:
        tell(f"{each.where}$ {each.command}")


def _epsilon(epsilon: float | None) -> str:
    return "nothing is guaranteed" if epsilon is None else f"ε = {epsilon:.4g}"


@takes(AgainOptions)
@verb(show=_show)
def again_command(options: AgainOptions) -> JsonResult:
    """Restart an abandoned session, or repeat a complete one, with the same parties. Old files stay."""
    from hushbid.starting.again import begin_again

    return begin_again(options)
