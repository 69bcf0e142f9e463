"""`hushbid sweep`: inject faults into many small sessions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from hushbid.cli.progress import job_progress
from hushbid.protocol import platform, ranges
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.runtime.command import verb
from hushbid.protocol.runtime.ranged import ranged

__all__ = ["sweep_app"]

_Rules: TypeAlias = Annotated[
    list[str] | None, typer.Option("--rule", help="Acquisition rule; may be repeated. Default: all.")
]
_Share: TypeAlias = Annotated[
    str,
    typer.Option(help="Run every N-th session only, starting at the I-th, counted from 0.", metavar="I/N"),
]
_Jobs: TypeAlias = Annotated[
    int | None, ranged(ranges.Count, help="Number of processes; default: one per core.")
]

sweep_app = typer.Typer(
    help="Inject faults into many small sessions and check the outcomes.",
    no_args_is_help=True,
)


@sweep_app.callback()
def _sweep() -> None:
    pass


def _ends(result: Mapping[str, Any]) -> ExitCode:
    return ExitCode.DONE if result["ok"] else ExitCode.FAILED


def _print(titles: Sequence[str], rows: Iterable[Sequence[object]], lines: Iterable[str]) -> None:
    """Print a table with one text column and number columns, then the lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from hushbid.cli.terminal import Terminal

    table = Table(titles[0], box=SIMPLE_HEAD)
    for title in titles[1:]:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*map(str, row))
    console = Terminal()
    console.print(table)
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _show_crashes(result: Mapping[str, Any]) -> None:
    rows, lines = [], []
    for swept in result["rules"]:
        rows.append((swept["rule"], swept["sessions"], swept["crashes"], len(swept["failures"])))
        again = "hushbid sweep crashes " + " ".join(
            f"--{name} {swept[name]}" for name in ("rule", "release", "rounds", "owners")
        )
        for failure in swept["failures"]:
            lines += [failure["what"], f'  {again} --only "{failure["only"]}"']
    _print(("rule", "sessions", "crashes that came", "failed"), rows, lines)


def _show_faults(result: Mapping[str, Any]) -> None:
    failures = result["failures"]
    lines = [f"{result['sessions']} sessions in {result['seconds']:.0f} s, {len(failures)} failed"]
    again = "".join(f" --rule {rule}" for rule in result["rule"])
    for failure in failures:
        lines += ["", f"hushbid sweep faults --seed {failure['seed']} --sessions 1{again}"]
        lines += [f"  {name}: {what}" for name, told in failure["broken"].items() for what in told]
        lines += ["  what went wrong:", *(f"    {line}" for line in failure["plan"])]
        lines += ["  enough to break it:", *(f"    {line}" for line in failure["smallest"])]
    _print(("what happened", "times"), result["happened"].items(), lines)


@sweep_app.command("crashes")
@verb(show=_show_crashes, ends=_ends)
def _crashes(
    rules: _Rules = None,
    release: Annotated[str, typer.Option(help="Release of target and summary.")] = "filtered-gaussian",
    rounds: Annotated[int, typer.Option(min=2, help="Rounds of a session.")] = 20,
    owners: Annotated[
        int, ranged(ranges.Count, help="Owners of a session; at least three with logistic.")
    ] = 2,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Try every pair of crashes; takes minutes to hours.")
    ] = False,
    same_step: Annotated[
        bool, typer.Option("--same-step", help="Crash two parties at simultaneous steps.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run one session with these crashes; may be repeated. LEFT: how many of the step's frames "
            "had left; -1: the step was not durable.",
            metavar="PARTY:STEP:LEFT[,...]",
        ),
    ] = None,
    share: _Share = "0/1",
    jobs: _Jobs = None,
) -> dict[str, Any]:
    """Crash parties at every step of a simulated session, and require the same result as without crashes.

    By default one party crashes per session. There is a session for every party, every step, and every moment
    of the step: before it is durable, before its first frame leaves, and after each frame. The exit code is 1
    if a session had another result, sent other frames, or left a transcript that does not replay; with --only
    also if a requested crash never happened.
    """
    from hushbid.evidence.sweep.crash_sweep import CrashSetting, sweep, uncrashed
    from hushbid.evidence.sweep.crashes import Which, every, read_crashes
    from hushbid.protocol.privacy.acquisition import RULES

    if pairs + same_step + bool(only) > 1:
        raise ConfigError("--pairs, --same-step and --only are three sweeps.", advice="Give one of them.")
    which = Which.PAIRS if pairs else Which.SAME_STEP if same_step else Which.SINGLE
    part = _share(share)
    results = []
    settings = []
    for rule in dict.fromkeys(rules or RULES):
        fewest = RULES[rule].fewest_owners if rule in RULES else 1
        settings.append(CrashSetting(rule, release, rounds, max(owners, fewest)))
        uncrashed(settings[-1])  # Refuse what cannot be swept before starting.
    with job_progress("sweeping", "session" if len(only or ()) == 1 else "sessions") as progress:
        for setting in settings:
            given = [read_crashes(text) for text in only or ()]
            plan = given or every(uncrashed(setting)[1], which)[part]
            done = sweep(
                setting, plan, all_come=bool(given), jobs=jobs or platform.cores(), progress=progress
            )
            results.append(done)
    return {
        "crashes": "only" if only else which.value,
        "share": share,
        "rules": [result.as_json() for result in results],
        "ok": not any(result.failures for result in results),
    }


@sweep_app.command("faults")
@verb(show=_show_faults, ends=_ends)
def _faults(
    rules: _Rules = None,
    seed: Annotated[int, ranged(ranges.Seed, help="Seed of the first session; the others follow.")] = 0,
    sessions: Annotated[
        int | None,
        ranged(ranges.Count, help="Number of sessions; default: 200, or as many as --minutes allows."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Start no new session after this time.")
    ] = None,
    share: _Share = "0/1",
    transcripts: Annotated[
        Path | None,
        typer.Option(help="New directory for the transcripts of the --seed session.", metavar="DIR"),
    ] = None,
    jobs: _Jobs = None,
) -> dict[str, Any]:
    """Inject every kind of fault into short simulated sessions, and check the invariants.

    A seed determines the session and its faults: frames that are late, duplicated, held up or lost with
    their connection; one-way and two-way partitions; crashes; owners that break the protocol. After a time
    the faults stop, and the session must end. The same seed reproduces the session to the last byte. The
    exit code is 1 if an invariant was violated (docs/faults.md); the seeds and their faults are printed.
    """
    from hushbid.evidence.sweep.fault_sweep import seeds_of, sweep_faults, write_transcripts
    from hushbid.protocol.privacy.acquisition import RULES

    chosen = tuple(dict.fromkeys(rules or ()))
    for rule in chosen:
        if rule not in RULES:
            raise ConfigError(f"There is no rule named {rule!r}.", advice=f"Choose of: {', '.join(RULES)}.")
    if transcripts is not None:
        write_transcripts(seed, chosen, transcripts)
    most = 200 if sessions is None and minutes is None else sessions
    begun = time.monotonic()
    with job_progress("sweeping", "sessions") as progress:
        result = sweep_faults(
            seeds_of(seed, most, _share(share)),
            rules=chosen,
            jobs=1 if most == 1 else jobs or platform.cores(),
            seconds=None if minutes is None else 60 * minutes,
            progress=lambda done: progress("faults", done, most or done),
        )
    return {
        "seed": seed,
        "share": share,
        "rule": list(chosen),
        "seconds": time.monotonic() - begun,
        **result.as_json(),
        "ok": not result.failures,
    }


def _share(text: str) -> slice:
    """The sessions of a plan that `I/N` selects."""
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise ConfigError(f"--share {text}: not a share.", advice="Give I/N with 0 <= I < N, such as 0/8.")
    return slice(int(index), None, int(count))
