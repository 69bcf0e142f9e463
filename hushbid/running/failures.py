"""How parties' processes failed, in words, and which of several failures tells most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hushbid.protocol.errors import ExitCode
from hushbid.running.process import PartyFailed, PartyProcess

__all__ = ["TELLING", "account_of", "most_telling", "party_failed"]

TELLING: Final = (
    ExitCode.BUG,
    ExitCode.SHORTAGE,
    ExitCode.USAGE,
    ExitCode.CONNECTION,
    ExitCode.TIMEOUT,
    ExitCode.FAILED,
    ExitCode.DONE,
)
"""Exit codes, the most telling first: the later ones often follow from others' failures."""
_ERROR: Final = "hushbid: "
"""How a party's error begins in its log (`hushbid.protocol.runtime.ending.fail`)."""
_MORE: Final = " " * len(_ERROR)
"""How its further lines begin."""
_LOOKED_AT: Final = 50
"""Last lines of a log among which an error is looked for."""


def most_telling(failed: Sequence[PartyProcess]) -> PartyProcess:
    """The process whose failure is most likely the cause of the others'."""

    def rank(process: PartyProcess) -> int:
        # A party that was killed from outside did not fail because of another.
        return -1 if process.signal is not None else TELLING.index(process.exit_code)

    return min(failed, key=rank)


def party_failed(failed: Sequence[PartyProcess]) -> tuple[PartyFailed, tuple[str, str]]:
    """The error of the party with the most telling failure, and the lines of its log that repeat it."""
    first = most_telling(failed)
    what, advice = account_of(first)
    return PartyFailed(first.party.name, what, advice=advice, exit_code=first.exit_code), (what, advice)


def account_of(process: PartyProcess) -> tuple[str, str]:
    """What happened to a failed process, and what to do next.

    A party prints its error as its result. Where a full disk did not take that, its log may have the error.
    """
    if process.signal is not None:
        advice = "If nobody did that, check whether the machine ran out of memory."
        return f"its process was ended by {process.signal.name}.", advice
    said = (process.result() or {}).get("error", {})
    what, advice = said.get("what", ""), said.get("advice")
    if not what:
        what, advice = _logged(process.log_tail(_LOOKED_AT))
    if not what:
        what = f"its process ended with code {process.exit_code.value} and did not say why."
    return what, advice or f"See {process.party.directory}."


def _logged(lines: Sequence[str]) -> tuple[str, str]:
    """The last error of a log and its advice; empty if it has none."""
    starts = [number for number, line in enumerate(lines) if line.startswith(_ERROR)]
    if not starts:
        return "", ""
    more: list[str] = []
    for line in lines[starts[-1] + 1 :]:
        if not line.startswith(_MORE):
            break
        more.append(line.removeprefix(_MORE))
    return lines[starts[-1]].removeprefix(_ERROR), " ".join(more)
