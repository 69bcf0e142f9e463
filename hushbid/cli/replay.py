"""`hushbid replay`: a page that replays a recorded session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from hushbid.cli.terminal import Terminal
from hushbid.protocol.runtime.command import verb

if TYPE_CHECKING:
    from hushbid.replay.beside import Beside

__all__ = ["replay_command"]


def _show(result: Mapping[str, Any]) -> None:
    lines = [f"The replay is {result['replay']}"]
    for party, each in result["parties"].items():
        if each["stopped"]:
            lines.append(f"Of {party} it shows {each['records']:,} records: {each['stopped']}")
    lines += [f"Not in it: {sentence}" for sentence in result["not_told"]]
    if beside := result["beside"]:
        lines += [f"{term['name']}: A {term['a']}, B {term['b']}" for term in beside["differing"]]
        found = beside["difference"]
        lines.append("First difference: none." if found is None else f"First difference: {found['words']}")
        lines += [f"Not compared: {sentence}" for sentence in beside["not_compared"]]
    Terminal().print(Text("\n".join(lines)), soft_wrap=True)


@verb(show=_show)
def replay_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Transcripts of one session, one per party; or a state or run directory that contains them.",
            metavar="FILE...",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "--html", help="The page to write; it replaces an older replay of the session."
        ),
    ] = Path("replay.html"),
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another session, or another recording of this one, to play on the same slider: a run or "
            "state directory, or a transcript. May be repeated.",
            metavar="OTHER",
        ),
    ] = None,
    transcripts_only: Annotated[
        bool,
        typer.Option(
            "--transcripts-only",
            help="Leave out the consumer's files that lie beside its transcripts: no row of the validation "
            "set is shown, and no model is trained.",
        ),
    ] = False,
) -> dict[str, Any]:
    """Write a page that replays a session: who sent what to whom, and what each party held at each moment.

    It is one file that loads nothing from anywhere. One party's transcript shows that party's view, redacted
    transcripts show less, and of a damaged one is shown what holds. From a run's directory, or the
    consumer's, it also shows the wanted rows, and trains the model to show its score so far. With --beside
    it plays two sessions, aligned by rounds, and says where they first differ.
    """
    from hushbid.replay.own import ReplayFiles
    from hushbid.replay.writing import write_replay

    given = ReplayFiles.at(files, files=not transcripts_only)
    other = ReplayFiles.at(beside, files=not transcripts_only) if beside else None
    facts, compared = write_replay(given, output, other)
    steps = facts.steps
    return {
        "replay": str(output.resolve()),
        "session": facts.session,
        "rule": facts.rule,
        "rounds": facts.rounds,
        "steps": len(steps.round),
        "messages": sum(count for count, event in zip(steps.count, steps.event, strict=True) if not event),
        "bought": None if facts.chosen is None else len(facts.chosen.round),
        "parties": {
            party: {
                "records": each.records,
                "received": each.received,
                "sent": each.sent,
                "redacted": each.redacted,
                "torn_bytes": each.torn_bytes,
                "stopped": each.stopped,
            }
            for party, each in facts.copies.items()
        },
        "not_told": list(facts.disclaimers),
        "beside": None if compared is None else _compared(compared),
    }


def _compared(beside: Beside) -> dict[str, Any]:
    found = beside.difference
    return {
        "session": beside.other.session,
        "rule": beside.other.rule,
        "rounds": beside.other.rounds,
        "differing": [term._asdict() for term in beside.differing],
        "difference": None
        if found is None
        else {"round": found.round, "message": found.message, "words": found.words},
        "not_compared": list(beside.not_compared),
    }
