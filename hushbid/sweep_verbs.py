"""`hushbid sweep`: many small sessions, in each of which other things go wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushbid.progress import job_progress
from protocol.errors import ConfigError, ExitCode
from protocol.runtime.command import run_verb

if TYPE_CHECKING:
    from hushbid.faults.sweep import Setting

__all__ = ["sweep_app"]

sweep_app = typer.Typer(
    help="Let things go wrong in many small sessions, and see that each comes to the same.",
    no_args_is_help=True,
)


@sweep_app.callback()
def _sweep() -> None:
    pass


@sweep_app.command("crashes")
def _crashes(
    rules: Annotated[
        list[str] | None, typer.Option("--rule", help="An acquisition rule, may be repeated; default: all.")
    ] = None,
    release: Annotated[str, typer.Option(help="The release of target and summary.")] = "filtered-gaussian",
    rounds: Annotated[int, typer.Option(min=2, help="Rounds of a session.")] = 20,
    owners: Annotated[
        int, typer.Option(min=1, help="Owners of a session; with logistic at least three.")
    ] = 2,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Two crashes in a session, any two: minutes to hours.")
    ] = False,
    same_step: Annotated[
        bool, typer.Option("--same-step", help="Two parties crash at steps that they take at the same time.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="One session with these crashes, may be repeated. LEFT: how many of the step's frames had "
            "left; -1: the step was not durable.",
            metavar="PARTY:STEP:LEFT[,...]",
        ),
    ] = None,
    share: Annotated[
        str, typer.Option(help="Every N-th session, from the I-th on, counted from 0.", metavar="I/N")
    ] = "0/1",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Crash parties at every step of a session, in simulation: it has to come to the same as without.

    By default one party crashes in a session, and there is a session for every party, every step, and every
    moment of it: before it is durable, before its first frame leaves, and after each frame. Ends with 1 if a
    session came to another result, sent other frames, or left a transcript that does not replay; with --only,
    also if a crash that was asked for never came.
    """
    ended_well = True

    def body() -> dict[str, Any]:
        nonlocal ended_well
        from hushbid.faults.crashes import Which, every, read_crashes
        from hushbid.faults.sweep import sweep, uncrashed

        if pairs + same_step + bool(only) > 1:
            raise ConfigError("--pairs, --same-step and --only are three sweeps.", advice="Give one of them.")
        which = Which.PAIRS if pairs else Which.SAME_STEP if same_step else Which.SINGLE
        part = _share(share)
        results = []
        with job_progress("sweeping", "session" if len(only or ()) == 1 else "sessions") as progress:
            for setting in _settings(rules, release, rounds, owners):
                given = [read_crashes(text) for text in only or ()]
                plan = given or every(uncrashed(setting)[1], which)[part]
                done = sweep(
                    setting, plan, all_come=bool(given), jobs=jobs or os.cpu_count() or 1, progress=progress
                )
                results.append(done)
        ended_well = not any(result.failures for result in results)
        return {
            "crashes": "only" if only else which.value,
            "share": share,
            "rules": [result.as_json() for result in results],
            "ok": ended_well,
        }

    try:
        run_verb(body, as_json=as_json, show=_show)
    except SystemExit as ended:
        if ended.code == ExitCode.DONE and not ended_well:
            sys.exit(ExitCode.FAILED)
        raise


def _settings(rules: list[str] | None, release: str, rounds: int, owners: int) -> Iterator[Setting]:
    from hushbid.faults.session import FEWEST_FOR_LOGISTIC
    from hushbid.faults.sweep import Setting
    from protocol.acquisition import RULES, Logistic

    for rule in dict.fromkeys(rules or RULES):
        fewest = FEWEST_FOR_LOGISTIC if rule == Logistic.name else 1
        yield Setting(rule, release, rounds, max(owners, fewest))


def _share(text: str) -> slice:
    """Which of a plan's sessions `I/N` stands for."""
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise ConfigError(f"--share {text}: no share.", advice="Give I/N with 0 <= I < N, such as 0/8.")
    return slice(int(index), None, int(count))


def _show(result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("rule")
    for column in ("sessions", "crashes that came", "failed"):
        table.add_column(column, justify="right")
    lines = []
    for swept in result["rules"]:
        counts = (swept["sessions"], swept["crashes"], len(swept["failures"]))
        table.add_row(swept["rule"], *map(str, counts))
        again = "hushbid sweep crashes " + " ".join(
            f"--{name} {swept[name]}" for name in ("rule", "release", "rounds", "owners")
        )
        for failure in swept["failures"]:
            lines += [failure["what"], f'  {again} --only "{failure["only"]}"']
    console = Console()
    console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
