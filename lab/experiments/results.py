"""The files of an experiment: a table of all cells, a figure, and an HTML page."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from hushbid.lab.experiments.cells import Cell, Measured, software, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PAGE", "ROWS", "TABLE", "ExperimentRow", "PlottedFigure", "rows_table", "write_results"]

Lines: TypeAlias = dict[str, dict[float | None, list[float]]]
"""Line name → x → values, one per seed."""

TABLE: Final = "results"
"""Name of the table's two files, without suffix."""
ROWS: Final = "rows.csv"
"""File with the rows only, to keep beside a document."""
FIGURE: Final = "figure"
PAGE: Final = "results.md"
_NO_FIGURE: Final = "There is no figure: matplotlib is not installed (`pip install 'hushbid[lab]'`)."
_MOST_SERIES: Final = 20
"""Maximum number of distinguishable lines: ten colours with two markers each."""
_COLOURS: Final = 10
_PANEL_INCHES: Final = 7.0


@dataclass(frozen=True, kw_only=True)
class ExperimentRow:
    """A row of an experiment's table, explained in docs/results.md, experiments.md and catalogue.md."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PlottedFigure:
    """A figure: the mean over seeds against a setting, in a band from the smallest to the largest value.

    Attributes:
        x: A key of configurations; a configuration with None there becomes a horizontal line.
        y: A key of measurements, dotted if nested.
        by: Keys of configurations; each combination of their values gets its own line.
        panel: A key of configurations; each of its values gets its own axes. None: one pair of axes.
    """

    x: str
    y: str
    by: tuple[str, ...] = ()
    panel: str | None = None
    log_x: bool = True
    log_y: bool = False


def write_results(
    directory: Path, title: str, figure: PlottedFigure, rows: Sequence[Any], measured: Mapping[Cell, Measured]
) -> None:
    """Write the table as Parquet and CSV, the figure as PNG and SVG, and the page.

    Raises:
        ConfigError: A file cannot be written.
    """
    table = tidy(measured)
    parquet, text = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    pacsv.write_csv(table, text)
    write_whole(directory / f"{TABLE}.parquet", parquet.getvalue())
    write_whole(directory / f"{TABLE}.csv", text.getvalue())
    write_whole(directory / ROWS, rows_table(rows).encode())
    images = _drawn(figure, table)
    for kind, image in images.items():
        write_whole(directory / f"{FIGURE}.{kind}", image)
    shown = _shown_figure(figure, table) if images else [_NO_FIGURE, ""]
    write_whole(directory / PAGE, _page(title, shown, rows, measured).encode())


def rows_table(rows: Sequence[Any]) -> str:
    """The rows as CSV, single-valued fields only, with four significant digits."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = _single(rows)
    writer.writerow(names)
    for row in rows:
        values = [getattr(row, name) for name in names]
        writer.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in values])
    return stream.getvalue()


def _single(rows: Sequence[Any]) -> list[str]:
    """The fields with a single value in every row."""
    return [
        field.name
        for field in fields(rows[0])
        if all(isinstance(getattr(row, field.name), bool | int | float | str | None) for row in rows)
    ]


def tidy(measured: Mapping[Cell, Measured]) -> pa.Table:
    """One row per cell: configuration, seed and measurement, with dotted keys for nested values."""
    found = [
        {
            "experiment": cell.experiment,
            **dict(_flat(cell.configuration)),
            "seed": cell.seed,
            **dict(_flat(values)),
        }
        for cell, values in measured.items()
    ]
    names = list(dict.fromkeys(name for row in found for name in row))
    return pa.table({name: _column([row.get(name) for row in found]) for name in names})


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _column(values: Sequence[Any]) -> pa.Array:
    known = [value for value in values if value is not None]
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in known)
    if not whole and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pa.array(values, pa.float64())
    return pa.array(values)


# -- the figure --------------------------------------------------------------------------------------------


def _drawn(figure: PlottedFigure, table: pa.Table) -> dict[str, bytes]:
    """The figure in both formats; empty if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        return {}
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    panels = _panels(figure, table)
    numbers = {name: number for number, name in enumerate(_names(panels))}
    canvas = Canvas(figsize=(_PANEL_INCHES * len(panels), 4.5), layout="constrained")
    FigureCanvasAgg(canvas)
    for place, (title, lines) in enumerate(panels.items(), start=1):
        axes = canvas.add_subplot(1, len(panels), place, title=title)
        for name, points in lines.items():
            if numbers[name] < _MOST_SERIES:
                _draw(axes, name, points, numbers[name])
        axes.set(xlabel=figure.x, ylabel=figure.y)
        if figure.log_x and all(x > 0 for points in lines.values() for x in points if x is not None):
            axes.set_xscale("log")
        if figure.log_y:
            _scale_by_magnitude(
                axes, [y for points in lines.values() for each in points.values() for y in each]
            )
        if any(lines):
            axes.legend(fontsize="small")
    images = {}
    # Make files reproducible: SVG's identifiers are salted, and both formats are dated.
    with mpl.rc_context({"svg.hashsalt": "hushbid"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            stream = io.BytesIO()
            canvas.savefig(stream, format=kind, dpi=150, metadata=metadata)
            images[kind] = stream.getvalue()
    return images


def _scale_by_magnitude(axes: Axes, values: Sequence[float]) -> None:
    """Make an axis logarithmic; if values have no logarithm, it is linear up to the smallest that has."""
    positive = [value for value in values if value > 0.0]
    if len(positive) == len(values):
        axes.set_yscale("log")
    elif positive:
        axes.set_yscale("symlog", linthresh=min(positive))
        if min(values) == 0.0:
            axes.set_ylim(bottom=-0.3 * min(positive))  # Show a line at 0, but nothing below it.


def _panels(figure: PlottedFigure, table: pa.Table) -> dict[str, Lines]:
    """The lines of each panel by title, which is empty if there is one panel."""
    found: dict[str, Lines] = {}
    for row in table.to_pylist():
        title = "" if figure.panel is None else f"{figure.panel} {row.get(figure.panel)}"
        lines = found.setdefault(title, defaultdict(lambda: defaultdict(list)))
        value = row.get(figure.y)
        if value is not None and math.isfinite(value):
            name = ", ".join(f"{key} {row[key]}" for key in figure.by if row.get(key) is not None)
            lines[name][row.get(figure.x)].append(float(value))
    return found


def _names(panels: Mapping[str, Lines]) -> list[str]:
    """Names of all lines, which look the same in every panel."""
    return list(dict.fromkeys(name for lines in panels.values() for name in lines))


def _draw(axes: Axes, name: str, points: Mapping[float | None, Sequence[float]], number: int) -> None:
    color, marker = f"C{number % _COLOURS}", "os"[number // _COLOURS]
    places = sorted(x for x in points if x is not None)
    if places:
        low, high = ([extreme(points[x]) for x in places] for extreme in (min, max))
        axes.plot(places, [fmean(points[x]) for x in places], marker=marker, label=name, color=color)
        axes.fill_between(places, low, high, alpha=0.15, color=color)
    if None in points:
        across = None if places else name
        axes.axhline(fmean(points[None]), linestyle="--", label=across, color=color, alpha=0.6)


# -- the page ----------------------------------------------------------------------------------------------


def _shown_figure(figure: PlottedFigure, table: pa.Table) -> list[str]:
    left_out = _names(_panels(figure, table))[_MOST_SERIES:]
    return [
        f"![{figure.y} by {figure.x}]({FIGURE}.svg)",
        "",
        f"Lines are means of `{figure.y}` over the seeds, in bands from the smallest to the largest.",
        f"Broken lines are without `{figure.x}`.",
        *([f"Not drawn, as there are too many: {'; '.join(left_out)}."] if left_out else []),
        "",
    ]


def _page(title: str, figure: Sequence[str], rows: Sequence[Any], measured: Mapping[Cell, Measured]) -> str:
    names = _single(rows)
    data = dict.fromkeys(file for cell in measured for file in cell.data)
    return "\n".join(
        [
            f"# {title}",
            "",
            "| " + " | ".join(names) + " |",
            "|" + "---|" * len(names),
            *("| " + " | ".join(_shown(getattr(row, name)) for name in names) + " |" for row in rows),
            "",
            *figure,
            f"`{ROWS}` has the rows above; `{TABLE}.csv` and `{TABLE}.parquet` have a row for each "
            f"configuration and seed, {len(measured)} in all. `experiment.toml` declares the experiment: "
            "`hushbid experiment run experiment.toml --output .` makes this page again.",
            "",
            "| software, data | version, SHA-256 |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in (*software().items(), *data)),
            "",
        ]
    )


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
