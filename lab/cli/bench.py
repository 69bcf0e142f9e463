"""`hushbid bench`: speed relative to a limit measured in the same run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import say, verb
from hushbid.protocol.runtime.ranged import ranged

__all__ = ["bench_app"]

LONGEST_DELAY: Final = 1.0
"""Longest one-way delay of a measured network, in seconds: a session's time-outs allow no more."""

_Owners: TypeAlias = Annotated[int, typer.Option(min=1, max=64, help="Number of owners.")]
_Points: TypeAlias = Annotated[int, ranged(ranges.Count, help="Points per owner.")]
_Bytes: TypeAlias = Annotated[int, typer.Option(min=1, max=900, help="Columns of a point, one byte each.")]

bench_app = typer.Typer(help="Measure speed on this machine.", no_args_is_help=True)


@bench_app.callback()
def _bench() -> None:
    pass


def _print(
    title: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    below: str | None = None,
) -> None:
    """Print a table with a title, text columns, then number columns, and a line below."""
    from rich.table import Table

    from hushbid.cli.terminal import Terminal

    table = Table(*titles, title=title)
    for name in numbers:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console = Terminal()
    console.print(table)
    if below is not None:
        console.print(below)


def _show_rounds(result: Mapping[str, Any]) -> None:
    rows = (
        ("bare scatter-gather", f"{result['bare_rounds_per_second']:.0f}", "1"),
        ("session, flush", f"{result['flush_rounds_per_second']:.0f}", f"{result['ratio']:.3f}"),
        ("session, fsync", f"{result['fsync_rounds_per_second']:.0f}", f"{result['ratio_fsync']:.3f}"),
    )
    _print(f"{result['owners']} owners", ("rounds per second", "", "ratio to bare"), rows)


@bench_app.command("rounds")
@verb(show=_show_rounds)
def _rounds(
    owners: _Owners = 4,
    points: _Points = 10_000,
    columns: Annotated[int, ranged(ranges.Columns, help="Columns of a point.")] = 784,
    rounds: Annotated[int, ranged(ranges.Count, help="Number of timed rounds.")] = 1000,
) -> dict[str, Any]:
    """Compare a session's rounds per second with those of a bare scatter-gather of the same frames."""
    from hushbid.lab.bench.rounds import bench_rounds

    return bench_rounds(owners=owners, points=points, columns=columns, rounds=rounds, say=_say)


def _show_rules(result: Mapping[str, Any]) -> None:
    settings = (
        ("ask-all, exact, flush", "ask_all", 1.0),
        ("sealed, exact, flush", "sealed", result["sealed_ratio"]),
        ("sealed, filtered-gaussian, secure noise, fsync", "private", result["private_ratio"]),
    )
    rows = (
        (name, f"{result[f'{setting}_rounds_per_second']:.0f}", f"{ratio:.2f}")
        for name, setting, ratio in settings
    )
    _print(f"{result['owners']} owners", ("rounds per second", "", "ratio to ask-all"), rows)


@bench_app.command("rules")
@verb(show=_show_rules)
def _rules(
    owners: _Owners = 5,
    points: _Points = 11_000,
    columns: _Bytes = 784,
    rounds: Annotated[int, ranged(ranges.Count, help="Rounds of a session.")] = 1000,
    repeats: Annotated[int, ranged(ranges.Count, help="Sessions per setting.")] = 3,
) -> dict[str, Any]:
    """Compare sealed sessions, with and without privacy, with `ask-all` without noise."""
    from hushbid.cli.progress import job_progress
    from hushbid.lab.bench.rules import bench_rules

    with job_progress("measuring", "rounds") as progress:
        return bench_rules(
            owners=owners,
            points=points,
            columns=columns,
            rounds=rounds,
            repeats=repeats,
            say=_say,
            progress=lambda done, total: progress("all sessions", done, total),
        )


def _show_points(result: Mapping[str, Any]) -> None:
    title = f"{result['owners']} owners, {result['rounds']} rounds of {result['batch']} points"
    if result["delay"]:
        title += f", {result['delay']:g} s each way"
    ratio = "–" if result["ratio"] is None else f"{result['ratio']:.2f}"
    blind = f"{result['blind_ratio']:.2f} of that"
    names = {"": ("private session", ratio), "blind_": ("blind curator", blind), "sealed_": ("exact", "")}
    bare = result["bare_rounds_per_second"], result["bare_processor_seconds_per_round"]
    rows = [("bare loop, rounds", f"{bare[0]:.0f}", "1", _milliseconds(bare[1]))]
    for where, figures in (("", result), (", other", result["against"])):
        for prefix, (name, beside) in names.items() if figures else ():
            rate = f"{figures[f'{prefix}points_per_second']:.0f}"
            spent = _milliseconds(figures[f"{prefix}processor_seconds_per_point"])
            rows.append((f"{name}{where}, points", rate, "" if where else beside, spent))
    rounds, whole = f"{result['session_seconds']:.2f} s", f"{result['whole_seconds']:.2f} s"
    said = f"The rounds took {rounds}; from the start of processes to the last points it was {whole}."
    if result["against"]:
        told = [result["against"]["processor_seconds_per_point"], result["processor_seconds_per_point"]]
        said += f"\nA private point takes {told[1] / told[0]:.2f} of the other checkout's processor time."
    _print(title, ("", "a second", "ratio to bare", "processor, ms each"), rows, below=said)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}"


@bench_app.command("points")
@verb(show=_show_points)
def _points(
    owners: _Owners = 5,
    points: _Points = 11_000,
    columns: _Bytes = 784,
    bought: Annotated[int, ranged(ranges.Points, help="Points to buy.")] = 1000,
    batch: Annotated[int, ranged(ranges.PointsOfRound, help="Points bought per round.")] = 20,
    repeats: Annotated[int, ranged(ranges.Count, help="Number of sessions.")] = 5,
    delay: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=LONGEST_DELAY,
            metavar="SECONDS",
            help="One-way network delay between the curator and the others. The bare loop has none.",
        ),
    ] = 0.0,
    against: Annotated[
        Path | None,
        typer.Option(metavar="PYTHON", help="Python of another checkout; its sessions alternate with these."),
    ] = None,
) -> dict[str, Any]:
    """Compare a private session's points per second with a bare loop's rounds.

    Processor time counts all parties during the rounds; the smallest over all sessions is reported. `exact`
    uses neither noise nor fsync. With --delay the parties are far apart, and there is no comparison with the
    bare loop.
    """
    from hushbid.lab.bench.points import bench_points

    if bought % batch:
        raise ConfigError(
            f"{bought} points cannot be bought in rounds of {batch}.",
            advice="Give a number of points that the batch divides.",
        )
    if against is not None and delay:
        raise ConfigError(
            "Sessions of another checkout have no delay.", advice="Leave out --delay, or --against."
        )
    return bench_points(
        owners=owners,
        points=points,
        columns=columns,
        bought=bought,
        batch=batch,
        repeats=repeats,
        delay=delay,
        against=against,
        say=_say,
    )


_PEERS: Final = (
    "| a round of {owners} owners | processor, ms | to the bare loop | wall, ms | rounds a second "
    "| processor, ms a point |",
    "|---|---|---|---|---|---|",
)


def _show_peers(result: Mapping[str, Any]) -> None:
    """Print the table in the Markdown form of docs/scale.md."""
    for batch in dict.fromkeys(row["batch"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["batch"] == batch]
        down, up = rows[0]["broadcast_bytes"], rows[0]["reply_bytes"]
        typer.echo(f"b = {batch}: {down:,} bytes to each owner, {up:,} back\n")
        for line in _PEERS:
            typer.echo(line.format(owners=result["owners"]))
        for row in rows:
            typer.echo(f"| {' | '.join(_peer_cells(row))} |")
        typer.echo("")


def _peer_cells(row: Mapping[str, Any]) -> list[str]:
    what = row["what"] if row["version"] is None else f"{row['what']} ({row['version']})"
    if row["note"] is not None:
        return [what, row["note"], "", "", "", ""]
    return [
        what,
        f"{1e3 * row['processor_seconds_per_round']:.2f}",
        f"{row['bare_ratio']:.1f} ×",
        f"{1e3 * row['seconds_per_round']:.2f}",
        f"{1 / row['seconds_per_round']:,.0f}",
        f"{1e3 * row['processor_seconds_per_point']:.2f}",
    ]


@bench_app.command("peers")
@verb(show=_show_peers)
def _peers(
    owners: _Owners = 5,
    points: _Points = 11_000,
    columns: _Bytes = 784,
    rounds: Annotated[int, ranged(ranges.Count, help="Rounds per measurement.")] = 100,
    batches: Annotated[
        list[int] | None,
        ranged(
            ranges.PointsOfRound, "--batch", help="Points bought per round; may be repeated. [default: 1, 20]"
        ),
    ] = None,
    repeats: Annotated[int, ranged(ranges.Count, help="Measurements of each; the smallest counts.")] = 3,
    python: Annotated[
        Path | None,
        typer.Option(
            "--peer-python",
            metavar="PYTHON",
            help="Python of another environment, for libraries missing here such as Flower.",
        ),
    ] = None,
) -> dict[str, Any]:
    """Compare a session's round with the same bytes sent by ZeroMQ alone, gRPC, Dask and Flower.

    Libraries that are not installed are skipped, and their rows say so. The first rounds do not count.
    """
    from hushbid.lab.bench.peers import bench_peers

    return bench_peers(
        owners=owners,
        points=points,
        columns=columns,
        rounds=rounds,
        batches=list(dict.fromkeys(batches or (1, 20))),
        repeats=repeats,
        python=python,
        say=_say,
    )


def _show_replay(result: Mapping[str, Any]) -> None:
    from hushbid.lab.bench.rules import SETTINGS

    forms = {
        "recorded_rounds_per_second": ".0f",
        "replay_rounds_per_second": ".0f",
        "ratio_to_recorded": ".1f",
        "reading_rounds_per_second": ".0f",
    }
    rows = (
        (setting, *(f"{result[setting][name]:{form}}" for name, form in forms.items()))
        for setting in SETTINGS
    )
    titles = ("rounds per second", "recorded", "replayed", "ratio", "read alone")
    _print(f"{result['owners']} owners, {result['rounds']} rounds", titles, rows)


@bench_app.command("replay")
@verb(show=_show_replay)
def _replay(
    owners: _Owners = 5,
    points: _Points = 11_000,
    columns: _Bytes = 784,
    rounds: Annotated[int, ranged(ranges.Count, help="Rounds of a session.")] = 1000,
    repeats: Annotated[int, ranged(ranges.Count, help="Replays per transcript.")] = 3,
) -> dict[str, Any]:
    """Compare a curator's replay with its recorded session, and with reading the file alone."""
    from hushbid.lab.bench.replay import bench_replay

    return bench_replay(
        owners=owners, points=points, columns=columns, rounds=rounds, repeats=repeats, say=_say
    )


def _show_owners(result: Mapping[str, Any]) -> None:
    rows = (
        ("from the start of processes to the end", f"{result['whole_seconds']:.0f} s"),
        ("of these, the rounds", f"{result['rounds_seconds']:.0f} s"),
        ("processor time of all", f"{result['processor_seconds']:.0f} s"),
        ("most memory of all", f"{result['memory_bytes'] / 1e9:.2f} GB"),
        ("frames to the curator", f"{result['received_bytes'] / 1e6:.1f} MB"),
        ("frames from it", f"{result['sent_bytes'] / 1e6:.1f} MB"),
        ("transcripts", f"{result['transcript_bytes'] / 1e6:.1f} MB"),
        ("rounds that owners missed", str(result["absent"])),
    )
    title = f"{result['owners']} owners, each a process; {result['rounds']} rounds, {result['bought']} points"
    _print(title, ("", ""), rows, below=f"The run's directory is {result['directory']}")


@bench_app.command("owners")
@verb(show=_show_owners)
def _owners(
    owners: Annotated[int, typer.Option(min=1, max=1000, help="Number of owners, each a process.")] = 200,
    blind: Annotated[bool, typer.Option("--blind", help="Use the rule `blind` instead of `sealed`.")] = False,
    directory: Annotated[
        Path, typer.Option("--output", help="Directory in which to create the parties' data and the run.")
    ] = Path("runs"),
) -> dict[str, Any]:
    """Run a session of many owners on this machine, one process each, with CURVE and transcripts."""
    from hushbid.cli.progress import session_progress
    from hushbid.cli.run import end_on_signals
    from hushbid.lab.bench.owners import bench_owners

    end_on_signals()
    with session_progress() as follow:
        return bench_owners(
            owners=owners, setting="blind" if blind else "private", place=directory, say=_say, follow=follow
        )


def _show_scale(result: Mapping[str, Any]) -> None:
    from rich.table import Table

    from hushbid.cli.terminal import Terminal
    from hushbid.lab.bench.scale import SIZES

    _print(
        f"{result['rule']}, measured",
        _SIZES,
        ((*_sizes(row), *_costs(row, row["owners_seconds"])) for row in result["measured"]),
        numbers=("curator, s", "owners, s", "memory, MB", "received, MB"),
    )
    found = result["exponents"]
    fits = Table("cost", "term", "of", "each", title="fitted")
    for cost, fit in result["fits"].items():
        for name, term in fit["terms"].items():
            if term["each"]:
                fits.add_row(cost, name.replace("_", " "), term["of"], f"{term['each']:.3g}")
        fits.add_row(cost, "largest error", "", f"{fit['worst']:.0%}", end_section=True)
    Terminal().print(fits)
    named = [size for size in SIZES if size in found["curator_seconds"]]
    _print(
        "powers",
        ("grows with the power of",),
        (
            (cost.replace("_", " "), *(f"{powers[size]:.2f}" for size in named))
            for cost, powers in found.items()
        ),
        numbers=[SIZES[size] for size in named],
    )
    _print(
        "extended by the fits",
        _SIZES,
        ((*_sizes(row), *_costs(row, row["owner_seconds"])) for row in result["beyond"]),
        numbers=("curator, s", "an owner, s", "memory of one process, MB", "received, MB"),
    )


_SIZES: Final = ("K", "n", "p", "b", "d")


def _sizes(row: Mapping[str, Any]) -> list[str]:
    return [f"{row[name]:,}" for name in ("owners", "owner_points", "points", "batch", "dimension")]


def _costs(row: Mapping[str, Any], owners: float) -> list[str]:
    megabytes = [f"{row[name] / 1e6:,.0f}" for name in ("peak_bytes", "received_bytes")]
    return [f"{row['curator_seconds']:,.1f}", f"{owners:,.3g}", *megabytes]


@bench_app.command("scale")
@verb(show=_show_scale)
def _scale(
    rule: Annotated[str, typer.Option(help="Acquisition rule.")] = "sealed",
    owners: Annotated[
        int,
        typer.Option(
            min=8, max=2500, help="K of the base session; other sessions change one size at a time."
        ),
    ] = 200,
) -> dict[str, Any]:
    """Measure the cost of simulated sessions over K, n, p, b and d; fit and extrapolate it."""
    from hushbid.lab.bench.scale import bench_scale

    return bench_scale(rule=rule, owners=owners, say=_say)


def _show_tender(result: Mapping[str, Any]) -> None:
    names = {"sealed": "sealed", "tender": "tender", "tender_few": "tender, 4·p/K"}
    _print(
        f"K = {result['owners']:,}, p = {result['bought']:,}, simulated",
        ("rule",),
        (
            (
                said,
                f"{result[name]['batch']:,}",
                f"{result[name]['seconds']:,.1f}",
                f"{result[name]['peak_bytes'] / 1e6:,.0f}",
                f"{(result[name]['received_bytes'] + result[name]['sent_bytes']) / 1e6:,.1f}",
            )
            for name, said in names.items()
        ),
        below=f"A tender takes {result['processor_ratio']:.2f} of the time and {result['bytes_ratio']:.2f} "
        f"of the bytes. With {result['far_owners']} owners and {result['delay']:g} s each way it is "
        f"{result['call_to_delivery_seconds']:.2f} s from the call to the delivery; an owner's tender has "
        f"{result['tender_bytes'] / 1e6:,.2f} MB.",
        numbers=("b", "processor, s", "memory, MB", "frames, MB"),
    )


def _show_records(result: Mapping[str, Any]) -> None:
    costs = ("session", "verify", "report", "curator", "owner")
    rows = [
        (
            row["rule"],
            f"{row['points']:,}",
            f"{row['transcript_bytes'] / 1e6:,.1f}",
            *(f"{row[f'{cost}_seconds']:.2f}" for cost in costs),
        )
        for row in result["rows"]
    ]
    for rule, powers in result["powers"].items():
        grown = [f"p^{powers[name]:.2f}" for name in ("transcript_bytes", *(f"{c}_seconds" for c in costs))]
        rows.append((rule, "grows by", *grown))
    _print(
        f"Transcripts of {result['owners']} owners, d = {result['dimension']}; processor seconds",
        ("rule",),
        rows,
        numbers=("p", "MB", "session", "verify", "report", "curator resumes", "owner resumes"),
    )


@bench_app.command("records")
@verb(show=_show_records)
def _records(
    rule: Annotated[
        list[str] | None, typer.Option(help="The acquisition rule; default: sealed and tender.")
    ] = None,
    points: Annotated[
        list[int] | None,
        typer.Option(help="p of a session; may be repeated; default: 1,000, 4,000 and 10,000."),
    ] = None,
) -> dict[str, Any]:
    """Measure what transcripts cost to verify, to report and to resume, by the points of a session."""
    from hushbid.lab.bench.records import RULES, bench_records

    return bench_records(rules=rule or RULES, points=points or (1_000, 4_000, 10_000), say=_say)


@bench_app.command("tender")
@verb(show=_show_tender)
def _tender(
    owners: Annotated[int, typer.Option(min=2, max=10_000, help="K of the simulated sessions.")] = 1000,
    bought: Annotated[int, typer.Option(min=50, max=2000, help="Points to buy.")] = 200,
    delay: Annotated[
        float, typer.Option(min=0.0, max=LONGEST_DELAY, metavar="SECONDS", help="One-way network delay.")
    ] = 0.05,
    columns: Annotated[
        int, typer.Option(min=2, max=100_000, help="Bytes of a point of the distant owners.")
    ] = 64,
) -> dict[str, Any]:
    """Compare a tender with fifty rounds of `sealed`; then time a tender between distant parties."""
    from hushbid.lab.bench.tender import bench_tender

    return bench_tender(owners=owners, bought=bought, delay=delay, columns=columns, say=_say)


def _say(what: str) -> None:
    say(f"measuring: {what}")
