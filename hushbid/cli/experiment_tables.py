"""How results of experiments are shown to people: a table each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SHOWN"]


def _table(*titles: str, **options: Any) -> Table:
    """A table in the style of all verbs."""
    from rich import table
    from rich.box import SIMPLE_HEAD

    return table.Table(*titles, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False, **options)


def _seeds(count: int) -> str:
    """How many seeds the figures are of."""
    return "one seed" if count == 1 else f"mean of {count} seeds"


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
        f"{_seeds(len(rows[0]['mmd2_each']))}",
    )
    for row in rows:
        accuracy = "-" if row["accuracy"] is None else f"{row['accuracy']:.3f}"
        figures = (f"{row[name]:.4f}" for name in ("mmd2", "mmd2_greedy", "mmd2_uniform"))
        table.add_row(str(row["points"]), f"{row['epsilon']:g}", *figures, accuracy)
    _print(table)


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
        title=f"RACE, add or remove one record, {_seeds(len(rows[0]['figure_each']))}",
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


_QUALITY: Final = ("MMD²", "weighted", "accuracy", "weighted", "eff. points")


def _quality(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What `_QUALITY` is the titles of."""
    forms = {"mmd2": ".4f", "mmd2_weighted": ".4f", "accuracy": ".3f", "accuracy_weighted": ".3f"}
    return tuple(_shown(row[name], form) for name, form in {**forms, "effective_points": ".0f"}.items())


def _data(row: Mapping[str, Any]) -> str:
    return f"{row['dataset']}, δ = {row['delta']:g}, {_seeds(row['seeds'])}"


def _show_purchases(result: Mapping[str, Any]) -> None:
    rows = result["rows"]
    table = _table("share", "γ", "p", "method", "ε", "bought", "wanted", *_QUALITY, title=_data(rows[0]))
    for row in rows:
        table.add_row(
            _shown(row["share"], "g"),
            f"{row['gamma']:g}",
            str(row["points"]),
            row["method"],
            _shown(row["epsilon"], "g"),
            f"{row['bought']:.0f}",
            _shown(row["wanted"], ".0f"),
            *_quality(row),
        )
    _print(table)


def _show_rivals(result: Mapping[str, Any]) -> None:
    from rich.markup import escape

    rows = result["rows"]
    table = _table("kind", "rival", "p", "ε", *_QUALITY, "note", title=_data(rows[0]))
    for row in rows:
        size = str(row["points"]), _shown(row["epsilon"], "g")
        table.add_row(row["kind"], row["rival"], *size, *_quality(row), escape(row["note"]))
    _print(table)


def _show_scaling(result: Mapping[str, Any]) -> None:
    from rich.markup import escape

    first = result["rows"][0]
    table = _table(
        *(
            "rule",
            "K",
            "b",
            "raw points",
            "each",
            "features",
            "MMD²",
            "ε owners",
            "s",
            "MB sent",
            "MB",
            "note",
        ),
        title=f"digits, p = {first['points']}, {first['owner_points']} points an owner",
    )
    for row in result["rows"]:
        table.add_row(
            row["rule"],
            str(row["owners"]),
            str(row["batch"]),
            _shown(row["raw_points"], ".0f"),
            _shown(row["raw_per_point"], ".1f"),
            _shown(row["features"], ".0f"),
            _shown(row["mmd2"], ".4f"),
            _shown(row["epsilon_owners"], ".2f"),
            _shown(row["seconds"], ".1f"),
            "-" if row["bytes_sent"] is None else f"{row['bytes_sent'] / 1e6:.1f}",
            _shown(row["memory_mb"], ".0f"),
            escape(row["note"]),
        )
    _print(table)


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


SHOWN: Final[Mapping[str, Callable[[Mapping[str, Any]], None]]] = {
    "selection": _show_selection,
    "screening": _show_screening,
    "race": _show_race,
    "kme": _show_kme,
    "regression": _show_regression,
    "mnist": _show_purchases,
    "insurance": _show_purchases,
    "rare": _show_purchases,
    "rivals": _show_rivals,
    "privacy-utility": _show_purchases,
    "scaling": _show_scaling,
}
"""What shows an experiment's result, by its name."""
