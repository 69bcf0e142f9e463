"""The look of a report's plots: colours in light and dark mode, and the parts of plots.

Colours are those of Okabe and Ito, which people with red-green colour blindness can tell apart; dashes,
symbols or rows carry the same information.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from bokeh.models import (
    BasicTicker,
    BoxZoomTool,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    NoOverlap,
    PanTool,
    PlainText,
    PrintfTickFormatter,
    Range1d,
    ResetTool,
    SaveTool,
)
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure as new_figure
from bokeh.themes import Theme

from hushbid.protocol.printable import printable
from hushbid.report.html import element

__all__ = [
    "BLUE", "DARK", "GREEN", "GRID", "INK", "LOOK", "MUTED", "ORANGE", "PALE_BLUE",
    "PALE_ORANGE", "PAPER", "PURPLE", "SKY", "VERMILION",
    "Figure", "Series", "figure", "floats", "hover", "integers", "key", "lines", "marks",
    "place_legend", "round_figure", "rows", "scaled", "short",
]  # fmt: skip

Figure = new_figure
"""A plot."""

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
INK, MUTED, GRID, PAPER = "#1F2933", "#7B8794", "#E4E7EB", "#FFFFFF"
PALE_BLUE, PALE_ORANGE = "#DCE9F3", "#F6D79A"
DARK: Final[Mapping[str, str]] = {
    INK: "#E6EAEE",
    MUTED: "#8D99A5",
    GRID: "#2E3842",
    PAPER: "#14191E",
    BLUE: "#3A7FE0",
    GREEN: "#1FB88A",
    PALE_BLUE: "#2A3B49",
    PALE_ORANGE: "#7A5B1E",
}
"""The replacements that page.js draws on a dark page; other colours are visible on both."""
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_LEGEND_CSS: Final = """
:host { grid-template-columns: minmax(0, auto); max-width: 100%; }
.bk-grid { display: flex; flex-wrap: wrap; gap: 4px 14px !important; width: auto; height: auto; }
.bk-item { max-width: 100%; }
.bk-label { display: block; max-width: 16rem; overflow: hidden; text-overflow: ellipsis; }
svg { flex: none; width: 20px; height: 14px; }
"""
"""Bokeh lays a legend out in one row, which a narrow page cuts, and its marks have 500 pixels initially."""
LOOK: Final = Theme(
    json={
        "attrs": {
            "Plot": {
                "background_fill_color": PAPER,
                "border_fill_color": PAPER,
                "min_border_right": 12,
                "outline_line_color": None,
                "output_backend": "svg",
                "sizing_mode": "stretch_width",
            },
            "Title": {
                "text_color": INK,
                "text_font": _FONT,
                "text_font_size": "13px",
                "text_font_style": "normal",
            },
            "Axis": {
                "axis_label_text_color": INK,
                "axis_label_text_font": _FONT,
                "axis_label_text_font_size": "13px",
                "axis_label_text_font_style": "normal",
                "axis_line_color": MUTED,
                "major_label_text_color": INK,
                "major_label_text_font": _FONT,
                "major_label_text_font_size": "13px",
                "major_tick_in": 0,
                "major_tick_line_color": MUTED,
                "minor_tick_line_color": None,
            },
            "Grid": {"grid_line_color": GRID},
            "Legend": {
                "background_fill_alpha": 0.0,
                "border_line_color": None,
                "glyph_height": 14,
                "inactive_fill_color": PAPER,
                "label_text_color": INK,
                "label_text_font": _FONT,
                "label_text_font_size": "13px",
                "location": "top_left",
                "margin": 2,
                "orientation": "horizontal",
                "stylesheets": [_LEGEND_CSS],
            },
            "Toolbar": {"logo": None, "stylesheets": ["@media print { :host { visibility: hidden; } }"]},
        }
    }
)
"""The page's fonts and colours, for every part of every plot."""
_LONGEST_WORD: Final = 18
_TOOLBAR_PIXELS: Final = 30


@dataclass(frozen=True, kw_only=True)
class Series:
    """A line of a plot."""

    name: str
    x: npt.NDArray[Any]
    y: npt.NDArray[Any]
    colour: str
    dash: str


def figure(x: str, y: str, *, height: int = 360, tools: bool = True, **given: Any) -> Figure:
    """An empty plot with axis titles, of that height in pixels, with its toolbar."""
    zoom, save = BoxZoomTool(description="Zoom"), SaveTool(filename="plot", description="Save as SVG")
    drawn = new_figure(
        height=height + (_TOOLBAR_PIXELS if tools else 0),
        x_axis_label=x or None,
        y_axis_label=y or None,
        # Only these tools: each of them works in the page.
        tools=[zoom, PanTool(), ResetTool(), save] if tools else [],
        active_drag=zoom if tools else None,
        toolbar_location="above" if tools else None,
        **given,
    )
    drawn.xaxis.major_label_policy = NoOverlap(min_distance=8)
    drawn.axis.formatter = PrintfTickFormatter(format="%.6g")
    return drawn


def round_figure(y: str, last: int, *, values: Iterable[float] = (), **given: Any) -> Figure:
    """An empty plot over the rounds up to `last`. If all values have a magnitude, y is logarithmic."""
    room = max(1.0, last / 100)
    drawn = scaled("round", y, values, x_range=Range1d(start=1 - room, end=last + room), **given)
    drawn.xaxis.ticker = BasicTicker(min_interval=1)
    return drawn


def scaled(x: str, y: str, values: Iterable[float], **given: Any) -> Figure:
    """An empty plot whose y is scaled by magnitude, unless a value has none, or all are equal.

    Its ticks are labelled in plain notation, by 1, 2 and 5.
    """
    all_values = list(values)
    low, high = min(all_values, default=0.0), max(all_values, default=0.0)
    if low <= 0 or low == high:
        return figure(x, y, **given)
    drawn = figure(x, y, y_axis_type="log", **given)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    drawn.yaxis.ticker = FixedTicker(ticks=[step * 10.0**power for power in powers for step in (1, 2, 5)])
    return drawn


def lines(drawn: Figure, x: str, series: Sequence[Series], form: str, *, steps: bool = False) -> None:
    """Lines over whole numbers, with one box that shows the values of all at the pointer.

    Args:
        x: The meaning of the whole numbers.
        form: The printf format of a value.
    """
    places = np.unique(np.concatenate([each.x for each in series]))
    values = np.full((len(series), len(places)), np.nan, dtype=np.float32)
    for row, each in zip(values, series, strict=True):
        row[np.searchsorted(places, each.x)] = each.y
    said = {f"y{number}": row for number, row in enumerate(values)}
    # Where one line is, the pointer shows all.
    everywhere = ColumnDataSource({"x": integers(places), "top": np.fmax.reduce(values), **said})
    drawn.xaxis.ticker = BasicTicker(min_interval=1)
    told = [(x, "@x")]
    for name, each in zip(said, series, strict=True):
        told.append((each.name, f"@{name}{{{form}}}"))
        own = {"x": integers(each.x), name: np.asarray(each.y, dtype=np.float32)}
        source = everywhere if len(each.x) == len(places) else ColumnDataSource(own)
        named: dict[str, Any] = {"source": source, "name": each.name, "legend_label": each.name}
        look = named | {"line_color": each.colour, "line_width": 2, "line_dash": each.dash}
        if len(each.x) == 1:  # one point makes no line
            drawn.scatter("x", name, color=each.colour, size=6, **named)
        elif steps:
            drawn.step("x", name, mode="center", **look)
        else:
            drawn.line("x", name, **look)
    if len(places) > 1:
        hover(drawn, told, [drawn.line("x", "top", source=everywhere, line_alpha=0.0)], mode="vline")
    else:
        hover(drawn, told, [drawn.scatter("x", "top", source=everywhere, size=12, alpha=0.0)])


def marks(
    drawn: Figure, name: str, at: tuple[Any, Any], colour: str, symbol: str, size: int = 6
) -> GlyphRenderer[Any]:
    """Marks with an entry of the legend; a symbol that ends in ``_open`` is not filled."""
    x, y = at
    marker, is_open = symbol.removesuffix("_open"), symbol.endswith("_open")
    return drawn.scatter(
        "x",
        "y",
        source=ColumnDataSource({"x": np.asarray(x, dtype=np.float32), "y": np.asarray(y, dtype=np.float32)}),
        marker=marker,
        size=size,
        line_color=colour,
        fill_color=None if is_open else colour,
        alpha=0.75,
        name=name,
        legend_label=name,
    )


def rows(drawn: Figure, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Name the rows of a plot, and return the places of their middles: the first is on top."""
    places = np.arange(len(names), dtype=np.float64)[::-1]
    drawn.y_range = Range1d(start=-0.5, end=len(names) - 0.5)
    drawn.yaxis.ticker = FixedTicker(ticks=places.tolist())
    drawn.yaxis.major_label_overrides = {
        # Bokeh takes a plain string between dollars for a formula, and would load a program for it.
        float(place): PlainText(text=short(name))
        for place, name in zip(places, names, strict=True)
    }
    drawn.yaxis.major_tick_line_color = None
    drawn.ygrid.visible = False
    return places


def short(text: str) -> str:
    """Others' text on an axis: printable, and cut where it would leave no room for the plot."""
    shown = printable(text)
    return shown if len(shown) <= _LONGEST_WORD else shown[: _LONGEST_WORD - 1] + "…"


def key(drawn: Figure, name: str, colour: str) -> None:
    """An entry of the legend without a mark in the plot."""
    drawn.scatter([np.nan], [np.nan], marker="square", size=12, color=colour, legend_label=name)


def place_legend(drawn: Figure, *, hides: bool = True) -> None:
    """Put the legend above the plot; a click on an entry hides or shows what it names."""
    (legend,) = drawn.legend
    legend.click_policy = "hide" if hides else "none"
    drawn.center = [each for each in drawn.center if each is not legend]
    drawn.add_layout(legend, "above")


def hover(
    drawn: Figure,
    told: Sequence[tuple[str, str]],
    marks: Sequence[GlyphRenderer[Any]],
    *,
    mode: Literal["mouse", "vline"] = "mouse",
) -> None:
    """A box beside the pointer: a word and a template for each of its lines; numbers in printf format."""
    parts = [
        element("span", each, style=look)
        for line in told
        for each, look in zip(line, ("color: var(--muted)", ""), strict=True)
    ]
    grid = "display: grid; grid-template-columns: auto auto; column-gap: 0.6em; font-size: 13px"
    tool = HoverTool(
        tooltips=element("div", *parts, style=grid),
        formatters={template.partition("{")[0]: "printf" for _, template in told if "{%" in template},
        renderers=list(marks),
        mode=mode,
        point_policy="follow_mouse",
        show_arrow=False,
        visible=False,  # in the toolbar
    )
    drawn.add_tools(tool)


def integers(values: Iterable[int]) -> npt.NDArray[np.int32]:
    """The values as an array, which takes less room in the page than their digits."""
    return np.array(list(values), dtype=np.int32)


def floats(values: Iterable[float | None]) -> npt.NDArray[np.float64]:
    """The values as an array, in which NaN stands for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
