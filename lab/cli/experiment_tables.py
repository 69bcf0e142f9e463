"""How experiment results are printed: one table per experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SHOWN"]

_Row: TypeAlias = Mapping[str, Any]


class _Column(NamedTuple):
    """A column of a table.

    Attributes:
        of: The key of the row's value, or a function that formats the row.
        form: The format of a value.
        none: The text shown for None.
    """

    title: str
    of: str | Callable[[_Row], str]
    form: str = ""
    none: str = "-"

    def cell(self, row: _Row) -> str:
        if not isinstance(self.of, str):
            return self.of(row)
        return self.none if row[self.of] is None else f"{row[self.of]:{self.form}}"


class _Shown(NamedTuple):
    """A kind of table.

    Attributes:
        title: Makes the table's title from its first row.
    """

    title: Callable[[_Row], str]
    columns: Sequence[_Column]
    caption: str | None = None

    def print(self, rows: Sequence[_Row]) -> None:
        titles = (column.title for column in self.columns)
        table = _table(*titles, title=self.title(rows[0]), caption=self.caption)
        for row in rows:
            table.add_row(*(column.cell(row) for column in self.columns))
        _print(table)


def _table(*titles: str, **options: Any) -> Table:
    from rich import table
    from rich.box import SIMPLE_HEAD

    return table.Table(*titles, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False, **options)


def _print(table: Table) -> None:
    """Print a table in full: in a narrow terminal its lines wrap, and no figure is cut."""
    from hushbid.cli.terminal import Terminal

    console = Terminal()
    needed = console.measure(table, options=console.options.update(max_width=200)).maximum
    Terminal(width=max(console.width, needed)).print(table)


def _least(gains: Sequence[float | None]) -> str:
    """The smallest gain over the seeds."""
    known = [gain for gain in gains if gain is not None]
    return f"{min(known):+.3f}" if known else "-"


def _seeds(count: int) -> str:
    """The number of seeds, in words."""
    return "one seed" if count == 1 else f"mean of {count} seeds"


def _data(row: _Row) -> str:
    return f"{row['dataset']}, δ = {row['delta']:g}, {_seeds(row['seeds'])}"


_SELECTION: Final = _Shown(
    lambda row: (
        f"{row['dataset']}, {row['mechanism']}, b = {row['batch']}, s = {row['seed_weight']:g}, "
        f"jitter {row['jitter']:g}, {_seeds(len(row['mmd2_each']))}"
    ),
    (
        _Column("p", "points"),
        _Column("ε", "epsilon", "g"),
        _Column("MMD²", "mmd2", ".4f"),
        _Column("greedy", "mmd2_greedy", ".4f"),
        _Column("uniform", "mmd2_uniform", ".4f"),
        _Column("accuracy", "accuracy", ".3f"),
    ),
)
_SCREENING: Final = _Shown(
    lambda row: f"MNIST, 2 of 5 owners, {row['seeds']} seeds",
    (
        _Column("ε of entries", "epsilon", "g"),
        _Column("N", "owner_points", none="all"),
        _Column("right first", lambda row: f"{row['right_first']} of {row['seeds']}"),
        _Column("right chosen", lambda row: f"{row['right_chosen']} of {row['seeds']}"),
        _Column("p", "points"),
        _Column("MMD², all", "mmd2_full", ".4f"),
        _Column("chosen", "mmd2_screened", ".4f"),
        _Column("ratio", "ratio", ".4f"),
    ),
)
_RACE: Final = _Shown(
    lambda row: f"RACE, add or remove one record, {_seeds(len(row['figure_each']))}",
    (
        _Column("task", "task"),
        _Column("data", "dataset"),
        _Column("R", lambda row: f"{row['rows']}{' (Corollary 1)' if row['by_corollary'] else ''}"),
        _Column("ε", "epsilon", "g", none="none"),
        _Column("measure", "measure"),
        _Column("figure", "figure", ".4f"),
        _Column("authors", "authors", "g"),
        _Column("build s", "build_seconds", ".2f"),
        _Column("query ms", "query_milliseconds", ".4f"),
    ),
)
_KME: Final = _Shown(
    lambda row: f"RKHS distance, one record substituted, δ = {row['delta']:g}, {row['noise']} noise",
    (
        _Column("setting", "setting"),
        _Column("ε", "epsilon", "g"),
        _Column("distance", "distance", ".4f"),
        _Column("seeds", lambda row: str(len(row["distance_each"]))),
        _Column("published", "published", ".4f"),
        _Column("limit", "limit", ".4f"),
        _Column("met", lambda row: {True: "yes", False: "no", None: "-"}[row["met"]]),
        _Column("equal weights", "baseline", ".4f"),
        _Column("published", "published_baseline", ".4f"),
        _Column("projection", "projection", ".4f"),
        _Column("s", "wall_seconds", ".1f"),
    ),
    caption="leak: public points by the seed; random: the authors' own: seeds vary the noise alone",
)
_REGRESSION: Final = _Shown(
    lambda row: f"{row['dataset']}, {row['points']} points, {row['seeds']} seeds",
    (
        _Column("method", "method"),
        _Column("ε", "epsilon", "g"),
        _Column("neighbours", "neighbours"),
        _Column("δ", "delta", "g"),
        _Column("1 - R²", "relative_error", ".3f", none="refused"),
        _Column("worst seed", "worst", ".3f", none="refused"),
    ),
)
_QUALITY: Final = (
    _Column("MMD²", "mmd2", ".4f"),
    _Column("weighted", "mmd2_weighted", ".4f"),
    _Column("accuracy", "accuracy", ".3f"),
    _Column("weighted", "accuracy_weighted", ".3f"),
    _Column("eff. points", "effective_points", ".0f"),
)
_PURCHASES: Final = _Shown(
    _data,
    (
        _Column("share", "share", "g"),
        _Column("γ", "gamma", "g"),
        _Column("p", "points"),
        _Column("method", "method"),
        _Column("ε", "epsilon", "g"),
        _Column("bought", "bought", ".0f"),
        _Column("wanted", "wanted", ".0f"),
        *_QUALITY,
    ),
)
_RIVALS: Final = _Shown(
    _data,
    (
        _Column("kind", "kind"),
        _Column("rival", "rival"),
        _Column("p", "points"),
        _Column("ε", "epsilon", "g"),
        *_QUALITY,
        _Column("note", "note"),
    ),
)
_SCALING: Final = _Shown(
    lambda row: f"digits, p = {row['points']}, {row['owner_points']} points an owner",
    (
        _Column("rule", "rule"),
        _Column("K", "owners"),
        _Column("b", "batch"),
        _Column("raw points", "raw_points", ".0f"),
        _Column("each", "raw_per_point", ".1f"),
        _Column("features", "features", ".0f"),
        _Column("MMD²", "mmd2", ".4f"),
        _Column("ε owners", "epsilon_owners", ".2f"),
        _Column("s", "seconds", ".1f"),
        _Column(
            "MB sent", lambda row: "-" if row["bytes_sent"] is None else f"{row['bytes_sent'] / 1e6:.1f}"
        ),
        _Column("MB", "memory_mb", ".0f"),
        _Column("note", "note"),
    ),
)

_WORTH: Final = _Shown(
    lambda row: f"the consumer's model, {_seeds(row['seeds'])}: accuracy, or R² of airfoil",
    (
        _Column("setting", "setting"),
        _Column("m", "own_rows"),
        _Column("labelled", "labelled"),
        _Column("p", "points"),
        _Column("ε", "epsilon", "g"),
        _Column("model", "model"),
        _Column("by", "choice"),
        _Column("rule", "rule"),
        _Column("own", "own", ".3f"),
        _Column("own + bought", "own_and_bought", ".3f"),
        _Column("own + random", "own_and_uniform", ".3f"),
        _Column("own + greedy", "own_and_greedy", ".3f"),
        _Column("bought", "bought", ".3f"),
        _Column("random", "uniform", ".3f"),
        _Column("trivial", "trivial", ".3f"),
        _Column("gain", "gain", "+.3f"),
        _Column("least", lambda row: _least(row["gain_each"])),
        _Column("wanted", "wanted", ".0%"),
        _Column("effective", "effective_points", ".0f"),
    ),
    caption="Where no row has a label, own + is what is bought alone, and the gain is over as many at "
    "random.",
)

SHOWN: Final[Mapping[str, _Shown]] = {
    "selection": _SELECTION,
    "screening": _SCREENING,
    "race": _RACE,
    "kme": _KME,
    "regression": _REGRESSION,
    **dict.fromkeys(("mnist", "insurance", "rare", "privacy-utility"), _PURCHASES),
    "rivals": _RIVALS,
    "scaling": _SCALING,
    "worth": _WORTH,
}
"""The table of an experiment's rows, by its name."""
