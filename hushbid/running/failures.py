"""How parties' processes failed, in words, and which of several failures tells most."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.progress import MOST_NAMED, Progress
from hushbid.protocol.names import listed
from hushbid.protocol.session.wishes import turns_of
from hushbid.running.process import PartyFailed, PartyProcess

__all__ = ["TELLING", "account_of", "gone_for_good", "party_failed", "too_few_left"]

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
_GO_ON: Final = (
    "All parties, started again by hand in their directories, go on from here (docs/transcripts.md); "
    "`hushbid run` begins another session."
)
_NAMED: Final = 8
"""Most owners that an error lists."""
_LOOKED_AT: Final = 50
"""Last lines of a log among which an error is looked for."""


def party_failed(failed: Sequence[PartyProcess]) -> tuple[PartyFailed, tuple[str, str]]:
    """The error of the party with the most telling failure, and the lines of its log that repeat it."""
    first = _most_telling(failed)
    what, advice = account_of(first)
    return PartyFailed(first.party.name, what, advice=advice, exit_code=first.exit_code), (what, advice)


def gone_for_good(session: SessionFile, seen: Progress, failed: Collection[str]) -> list[str]:
    """The owners without whom the session cannot go on, if that is sure; nobody starts them again.

    Args:
        seen: The curator's last progress.
        failed: Owners whose processes failed.

    Returns:
        Their names; none where enough others are left, or where the points may all have been offered.
    """
    if seen.phase != "rounds":
        return []
    gone, sure = set(failed), seen.paused or seen.round < seen.rounds
    if session.herds and (len(seen.missing) < MOST_NAMED or not seen.paused):
        gone.intersection_update(seen.missing)  # others may have submitted, and are not needed then
        sure = True
    if not sure:
        return []
    taking = set(session.owners)
    if seen.paused:
        turns = turns_of(session)
        taking = {owner for owner in taking if turns.has(owner, seen.round)}
    return sorted(gone) if len(taking - gone) < session.session.min_owners else []


def too_few_left(gone: Sequence[PartyProcess], session: SessionFile) -> tuple[PartyFailed, tuple[str, str]]:
    """The error of a run whose owners have ended, but for fewer than it needs; and as `party_failed`."""
    first = _most_telling(gone)
    what, advice = account_of(first)
    ends = [f"{first.party.name} ({_code_of(first)})"]
    ends += [f"{each.party.name} ({_end_of(each)})" for each in gone if each is not first]
    left = len(session.owners) - len(gone)
    told = (
        f"{what} The session needs {session.session.min_owners} of {len(session.owners)} owners, and "
        f"{left or 'none'} {'is' if left == 1 else 'are'} left. Ended: {listed(ends, _NAMED, rest='other')}."
    )
    more = f"{advice} {_GO_ON}"
    return PartyFailed(first.party.name, told, advice=more, exit_code=first.exit_code), (what, advice)


def _end_of(process: PartyProcess) -> str:
    code = _code_of(process)
    return code if process.signal is not None else f"{code}: {account_of(process)[0].removesuffix('.')}"


def _code_of(process: PartyProcess) -> str:
    return f"code {process.exit_code.value}" if process.signal is None else process.signal.name


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


def _most_telling(failed: Sequence[PartyProcess]) -> PartyProcess:
    """The process whose failure is most likely the cause of the others'."""

    def rank(process: PartyProcess) -> int:
        # A party that was killed from outside did not fail because of another.
        return -1 if process.signal is not None else TELLING.index(process.exit_code)

    return min(failed, key=rank)
