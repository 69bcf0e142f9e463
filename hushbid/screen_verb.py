"""`hushbid screen`: rank owners by their catalogue entries before a session, and write its owner list."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from owner.role import BudgetOption, FeaturesOption, LedgerOption, LiftOption, stated_budget
from protocol.errors import ConfigError
from protocol.runtime.command import run_verb

if TYPE_CHECKING:
    from hushbid.catalogue.screening import Consumer
    from protocol.config.party import ConsumerFile

__all__ = ["screen_command"]

_SEARCHES: Final = {"all": "all choices were tried", "greedy": "owners were added one by one"}
UNACCOUNTED: Final = (
    "WARNING: --unaccounted ranks by the exact validation set. The owners that are chosen, and all that is "
    "printed here, tell of it what no release paid for and no ledger has.\n"
)


def screen_command(
    catalogue: Annotated[
        list[Path], typer.Argument(help="Entries, and directories of entries.", metavar="ENTRIES...")
    ],
    session: Annotated[
        Path | None,
        typer.Option(
            help="The session file: its map, target and roster; the roster may be incomplete.",
            envvar="HUSHBID_SESSION",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The consumer's private file.", envvar="HUSHBID_CONFIG")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="D_v, in place of the file's.", envvar="HUSHBID_VALIDATION")
    ] = None,
    seed_set: Annotated[
        Path | None, typer.Option(help="D_init, in place of the file's.", envvar="HUSHBID_SEED_SET")
    ] = None,
    features: FeaturesOption = None,
    epsilon: Annotated[
        float | None, typer.Option(help="ε of the release of D_v; default: the session's target.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The δ that goes with --epsilon.")] = 1e-5,
    target_file: Annotated[
        Path | None,
        typer.Option(
            help="Where the release of D_v is kept, and used again if it is there; default: the private "
            "file's, or beside D_v.",
            envvar="HUSHBID_TARGET_FILE",
        ),
    ] = None,
    ledger: LedgerOption = None,
    budget_epsilon: BudgetOption = None,
    lift_budget: LiftOption = False,
    best: Annotated[int, typer.Option(help="How many owners to choose.", min=1)] = 2,
    unaccounted: Annotated[
        bool, typer.Option("--unaccounted", help="Rank by the exact D_v. What comes of it is not private.")
    ] = False,
    allow_simulated: Annotated[
        bool, typer.Option("--allow-simulated", help="Compare entries whose noise protects nobody too.")
    ] = False,
    write_session: Annotated[
        Path | None,
        typer.Option(help="Write the session file here, with the chosen owners alone.", metavar="FILE"),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a page with a plot here.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Rank owners by their catalogue entries, by a release of one's own validation set."""

    def body() -> dict[str, Any]:
        from hushbid.catalogue.page import screening_page
        from hushbid.catalogue.screening import Screening, screen
        from hushbid.catalogue.screening import write_session as write
        from hushbid.roster import RosterFile
        from hushbid.text_files import check_new_file, write_new_file

        if write_session is not None and session is None:
            raise ConfigError(
                "There is no session to write the owners of.",
                advice="Give the session file with `--session`.",
            )
        for file in (plot, write_session):  # before anything is charged
            if file is not None and (session is None or file.resolve() != session.resolve()):
                check_new_file(file)
        if unaccounted:
            sys.stderr.write(UNACCOUNTED)
        what = Screening(
            catalogue=catalogue,
            session=None if session is None else RosterFile(session),
            epsilon=epsilon,
            delta=delta,
            best=best,
            unaccounted=unaccounted,
            allow_simulated=allow_simulated,
        )
        consumer = _consumer(
            config,
            validation,
            seed_set,
            features,
            target_file,
            ledger,
            budget_epsilon,
            lift_budget=lift_budget,
        )
        result = screen(what, consumer)
        if plot is not None:
            write_new_file(plot, screening_page(result))
        if write_session is not None and what.session is not None:
            write(what.session, result.chosen, write_session)
        return {
            **result.as_json(),
            "session": None if write_session is None else str(write_session),
            "plot": None if plot is None else str(plot),
        }

    run_verb(body, as_json=as_json, show=_show)


def _consumer(
    config: Path | None,
    validation: Path | None,
    seed_set: Path | None,
    features: str | None,
    target_file: Path | None,
    ledger: Path | None,
    budget_epsilon: float | None,
    *,
    lift_budget: bool,
) -> Consumer:
    """What is the consumer's own, of its private file and of options, which go before it."""
    from consumer.process import drawn_path
    from hushbid.catalogue.screening import Consumer
    from protocol.config.loading import load_toml
    from protocol.config.party import ConsumerFile
    from protocol.data import DataColumns, load_dataset

    file = None if config is None else load_toml(ConsumerFile, config).resolved(config.parent)
    own = _named(file, validation=validation, seed_set=seed_set, target_file=target_file, ledger=ledger)
    data = own["validation"]
    if data is None:
        raise ConfigError(
            "The validation set is not named.",
            advice="Give `--validation`, or the private file with `--config`.",
        )
    columns = DataColumns() if file is None else file.columns.columns()
    if features is not None:
        columns = DataColumns(
            tuple(name.strip() for name in features.split(",")), columns.label, columns.identifier
        )
    seeds = own["seed_set"]
    if seeds is None and file is not None and file.seed_points is not None and drawn_path(file).exists():
        seeds, seed_columns = drawn_path(file), DataColumns()
    else:
        seed_columns = columns
    return Consumer(
        validation=load_dataset(data, columns),
        seed_set=None if seeds is None else load_dataset(seeds, seed_columns),
        target=own["target_file"] or data.with_name(f"{data.name}.target"),
        ledger=own["ledger"] or data.with_name(f"{data.name}.ledger"),
        budget=stated_budget(None if file is None else file.budget, budget_epsilon, lift=lift_budget),
    )


def _named(file: ConsumerFile | None, **options: Path | None) -> dict[str, Path | None]:
    """Paths of options, made absolute; where one is not given, the file's."""
    return {
        name: path.expanduser().resolve() if path is not None else getattr(file, name, None)
        for name, path in options.items()
    }


def _show(result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Column, Table

    console = Console()
    titles = ("owner", "MMD²", "± s.e.", "weight", "point mass", "size", "ε", "δ", "neighbours")
    columns = [Column(title, overflow="fold", no_wrap=title == "neighbours") for title in titles]
    table = Table(*columns, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for row in result["owners"]:
        mass = "–" if row["point_mass"] is None else f"{row['point_mass']:.3f}"
        figures = (f"{row['mmd2']:.5f}", f"{row['standard_error']:.5f}", f"{row['weight']:.3f}", mass)
        privacy = (f"{row['epsilon']:.3g}", f"{row['delta']:.1g}", row["neighbours"])
        table.add_row(row["owner"], *figures, f"{row['size']:.0f}", *privacy)
    console.print(table)
    for each in result["refused"]:
        console.print(
            f"refused  {each['file']}: {each['why']}", markup=False, highlight=False, soft_wrap=True
        )
    chosen = next(each for each in result["subsets"] if each["owners"] == result["chosen"])
    lines = [
        f"chosen   {', '.join(result['chosen'])}: MMD² {chosen['mmd2']:.5f} ± {chosen['standard_error']:.5f} "
        f"by the best mixture, {chosen['mmd2_by_size']:.5f} by size; {_SEARCHES[result['search']]}",
        f"how many {result['why_so_many']}",
        f"why      {result['why_these']}",
        *(
            f"key      {row['fingerprint']}  {row['owner']}"
            for row in result["owners"]
            if row["owner"] in result["chosen"]
        ),
        _release_line(result["release"]),
        *(f"{name:<8} {result[name]}" for name in ("session", "plot") if result[name] is not None),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _release_line(release: Mapping[str, Any] | None) -> str:
    if release is None:
        return "release  none: ranked by the exact validation set, which nothing protects"
    paid = "charged now" if release["charged"] else "kept from before, nothing was charged"
    return (
        f"release  {release['mechanism']}, ε = {release['epsilon']:.3g} at δ = {release['delta']:.1g} "
        f"({release['neighbours']}, {release['noise']} noise), {paid}: {release['file']}"
    )
