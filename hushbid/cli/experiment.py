"""`hushbid experiment`: figures of the documents, worked out again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protocol.errors import ConfigError
from protocol.runtime.command import verb

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["experiment_app"]

experiment_app = typer.Typer(help="Work out figures of the documents again.", no_args_is_help=True)


@experiment_app.callback()
def _experiment() -> None:
    pass


def _table(*titles: str, **options: Any) -> Table:
    """A table in the style of all verbs."""
    from rich import table
    from rich.box import SIMPLE_HEAD

    return table.Table(*titles, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False, **options)


def _print(table: Table) -> None:
    """Print a table whole: where the terminal is narrower, its lines are broken, and no figure is lost."""
    from rich.console import Console

    console = Console()
    needed = console.measure(table, options=console.options.update(max_width=200)).maximum
    Console(width=max(console.width, needed)).print(table)


def _show_selection(result: Mapping[str, Any]) -> None:
    rows = result["rows"]
    table = _table(
        "p",
        "ε",
        "MMD²",
        "greedy",
        "uniform",
        "accuracy",
        title=f"{rows[0]['dataset']}, {rows[0]['mechanism']}, b = {rows[0]['batch']}, "
        f"s = {rows[0]['seed_weight']:g}, jitter {rows[0]['jitter']:g}, "
        f"mean of {len(rows[0]['mmd2_each'])} seeds",
    )
    for row in rows:
        accuracy = "-" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        figures = (f"{row[name]:.4f}" for name in ("mmd2", "mmd2_greedy", "mmd2_uniform"))
        table.add_row(str(row["points"]), f"{row['epsilon']:g}", *figures, accuracy)
    _print(table)


@experiment_app.command("selection")
@verb(show=_show_selection)
def _selection(
    dataset: Annotated[
        str | None, typer.Argument(help="digits, mnist or insurance; default: digits.", show_default=False)
    ] = None,
    session: Annotated[
        Path | None,
        typer.Option(
            metavar="CLUSTER.toml",
            help="In place of a dataset, a cluster file: its session and its parties' data.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(envvar="HUSHBID_DATA", help="Where the dataset's files lie.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(min=0.0, help="ε of owners and of consumer, each; may be repeated.")
    ] = None,
    points: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Points to buy; may be repeated. Default: 100, or the cluster file's."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    mechanism: Annotated[str, typer.Option(help="Release mechanism.")] = "filtered-gaussian",
    delta: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="δ of each ε; default: 1e-5, or the cluster file's."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="b, points that a round buys; default: p/50.")
    ] = None,
    seed_weight: Annotated[
        float | None, typer.Option(help="s, what a point of the seed set counts for; default: 0.1.")
    ] = None,
    jitter: Annotated[
        float | None, typer.Option(min=0.0, help="N, points' worth of jitter; default: 25, or 50.")
    ] = None,
) -> dict[str, Any]:
    """Say how near privately bought points come to the consumer's, beside greedy and uniform choices.

    With --session on the data of a cluster file's parties, as `simulate` has them: no ledger is charged, and
    what is printed is not private.
    """
    from hushbid.evidence.experiments.selection import selection

    if session is not None and dataset is not None:
        raise ConfigError(
            f"Both a dataset ({dataset}) and a cluster file ({session}) are named.",
            advice="Leave one of them out.",
        )
    rows = selection(
        session or dataset or "digits",
        data,
        epsilons=epsilon or [1.0, 3.0],
        points=points or ([100] if session is None else [None]),
        seeds=range(first_seed, first_seed + seeds),
        mechanism=mechanism,
        delta=delta,
        batch=batch,
        seed_weight=seed_weight,
        jitter=jitter,
        say=_say,
    )
    return {"rows": [row.as_json() for row in rows]}


def _show_screening(result: Mapping[str, Any]) -> None:
    titles = ("ε of entries", "N", "right first", "right chosen", "p", "MMD², all", "chosen", "ratio")
    table = _table(*titles, title=f"MNIST, 2 of 5 owners, {result['rows'][0]['seeds']} seeds")
    for row in result["rows"]:
        figures = (row[name] for name in ("mmd2_full", "mmd2_screened", "ratio"))
        table.add_row(
            f"{row['epsilon']:g}",
            str(row["owner_points"] or "all"),
            f"{row['right_first']} of {row['seeds']}",
            f"{row['right_chosen']} of {row['seeds']}",
            str(row["points"] or "-"),
            *("-" if figure is None else f"{figure:.4f}" for figure in figures),
        )
    _print(table)


@experiment_app.command("screening")
@verb(show=_show_screening)
def _screening(
    data: Annotated[Path, typer.Option(envvar="HUSHBID_DATA", help="Where MNIST lies.")],
    epsilon: Annotated[
        float | None, typer.Option(min=0.0, help="ε of the entries, in place of both.")
    ] = None,
    owner_points: Annotated[
        int | None, typer.Option(min=1, help="With --epsilon: most points of an owner; default: all.")
    ] = None,
    points: Annotated[
        int | None, typer.Option(min=1, help="Buy so many of all and of the chosen owners; default: none.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
) -> dict[str, Any]:
    """Say how often catalogue entries rank the right owner first, and what a screened session loses."""
    from hushbid.evidence.experiments.screening import SETTINGS, screening

    settings = SETTINGS if epsilon is None else [(epsilon, owner_points)]
    drawn = range(first_seed, first_seed + seeds)
    # Rows of a public dataset, dealt out again and again, are not to fill the user's list of ledgers.
    with tempfile.TemporaryDirectory(prefix="hushbid-screening-") as state:
        os.environ["XDG_STATE_HOME"] = state
        rows = screening(data, settings=settings, seeds=drawn, points=points, say=_say)
    return {"rows": [row.as_json() for row in rows]}


def _show_race(result: Mapping[str, Any]) -> None:
    rows = result["rows"]
    table = _table(
        "task",
        "data",
        "R",
        "ε",
        "measure",
        "figure",
        "authors",
        "build s",
        "query ms",
        title=f"RACE, add or remove one record, mean of {len(rows[0]['figure_each'])} seeds",
    )
    for row in rows:
        table.add_row(
            row["task"],
            row["dataset"],
            f"{row['rows']}{' (Corollary 1)' if row['by_corollary'] else ''}",
            "none" if row["epsilon"] is None else f"{row['epsilon']:g}",
            row["measure"],
            f"{row['figure']:.4f}",
            "-" if row["authors"] is None else f"{row['authors']:g}",
            f"{row['build_seconds']:.2f}",
            f"{row['query_milliseconds']:.4f}",
        )
    _print(table)


@experiment_app.command("race")
@verb(show=_show_race)
def _race(
    task: Annotated[
        list[str] | None,
        typer.Argument(help="density, classification, defaults or salaries; all if none is named."),
    ] = None,
    data: Annotated[
        Path, typer.Option(envvar="HUSHBID_DATA", help="Directory of codrna.npz, skin.npz and so on.")
    ] = Path(),
    epsilon: Annotated[list[float] | None, typer.Option(min=0.0, help="ε; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    rows: Annotated[
        int, typer.Option(min=1, help="Rows of a sketch; the task defaults chooses its own.")
    ] = 1000,
) -> dict[str, Any]:
    """Say how well RACE sketches answer at sound ε, beside what the authors' code does."""
    from hushbid.evidence.experiments.race import EPSILONS, TASKS, race

    found = race(
        task or list(TASKS),
        data,
        epsilons=epsilon or EPSILONS,
        seeds=range(first_seed, first_seed + seeds),
        rows=rows,
        say=_say,
    )
    return {"rows": [row.as_json() for row in found]}


def _show_kme(result: Mapping[str, Any]) -> None:
    columns = (
        "setting",
        "ε",
        "distance",
        "seeds",
        "published",
        "limit",
        "met",
        "equal weights",
        "published",
        "projection",
    )
    first = result["rows"][0]
    table = _table(
        *columns,
        "s",
        title=f"RKHS distance, one record substituted, δ = {first['delta']:g}, {first['noise']} noise",
        caption="leak: public points by the seed; random: the authors' own: seeds vary the noise alone",
    )

    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.4f}"

    for row in result["rows"]:
        table.add_row(
            row["setting"],
            f"{row['epsilon']:g}",
            figure(row["distance"]),
            str(len(row["distance_each"])),
            figure(row["published"]),
            figure(row["limit"]),
            {True: "yes", False: "no", None: "-"}[row["met"]],
            figure(row["baseline"]),
            figure(row["published_baseline"]),
            figure(row["projection"]),
            f"{row['wall_seconds']:.1f}",
        )
    _print(table)


@experiment_app.command("kme")
@verb(show=_show_kme)
def _kme(
    data: Annotated[Path, typer.Option(envvar="HUSHBID_DATA", help="Where the mixture's files lie.")],
    setting: Annotated[
        list[str] | None, typer.Option(help="A row, such as 1-2d-leak-977 or 2-5d-1000; may be repeated.")
    ] = None,
    epsilon: Annotated[list[float] | None, typer.Option(min=0.0, help="ε; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 5,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    full: Annotated[
        bool, typer.Option(help="Settings of 10,000 points too; Algorithm 2 with one seed.")
    ] = False,
    simulated: Annotated[bool, typer.Option(help="Simulated noise: faster, and protects nobody.")] = False,
) -> dict[str, Any]:
    """Say how near a dataset's private release as weighted points comes to it, beside published figures."""
    from hushbid.evidence.experiments.kme import kme

    rows = kme(
        data,
        settings=setting or (),
        epsilons=epsilon or [0.01, 0.1, 1.0],
        seeds=range(first_seed, first_seed + seeds),
        full=full,
        simulated=simulated,
        say=_say,
    )
    return {"rows": [row.as_json() for row in rows]}


def _show_regression(result: Mapping[str, Any]) -> None:
    first = result["rows"][0]
    table = _table(
        "method",
        "ε",
        "neighbours",
        "δ",
        "1 - R²",
        "worst seed",
        title=f"{first['dataset']}, {first['points']} points, {first['seeds']} seeds",
    )
    for row in result["rows"]:
        table.add_row(
            row["method"],
            "-" if row["epsilon"] is None else f"{row['epsilon']:g}",
            row["neighbours"] or "-",
            f"{row['delta']:g}",
            *("refused" if row[name] is None else f"{row[name]:.3f}" for name in ("relative_error", "worst")),
        )
    _print(table)


@experiment_app.command("regression")
@verb(show=_show_regression)
def _regression(
    dataset: Annotated[str, typer.Argument(help="linear or airfoil.")] = "linear",
    data: Annotated[
        Path | None, typer.Option(envvar="HUSHBID_DATA", help="Directory of airfoil.npz.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(min=0.0, help="ε of a model; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
) -> dict[str, Any]:
    """Fit a linear model by RACE, beside least squares, AdaSSP and the mean."""
    from hushbid.evidence.experiments.regression import regression

    rows = regression(
        dataset,
        data,
        epsilons=epsilon or [1.0],
        seeds=range(first_seed, first_seed + seeds),
        say=_say,
    )
    return {"rows": [row.as_json() for row in rows]}


def _say(what: str) -> None:
    sys.stderr.write(f"running: {what}\n")
