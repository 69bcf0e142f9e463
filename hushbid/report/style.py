"""How a report's plots look: colours in the light and in the dark, and the parts that they are made of.

Colours are those of Okabe and Ito, which people who see red and green alike tell apart; what they say is
said by dashes, symbols or rows too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go

__all__ = [
    "BLUE", "DARK", "FONT", "GREEN", "GRID", "INK", "MUTED", "ORANGE", "PALE_BLUE",
    "PALE_ORANGE", "PAPER", "PURPLE", "SKY", "VERMILION",
    "dress", "figure", "floats", "integers", "key", "line", "logarithmic", "marks",
]  # fmt: skip

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
"""What page.js draws these in on a dark page; the others are seen on both."""
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def figure(x: str, y: str, *, height: int = 360, hovermode: str = "x unified") -> go.Figure:
    """An empty plot with the titles of its axes, of so many pixels."""
    axis = {"gridcolor": GRID, "zeroline": False}
    title = {"font": {"size": 13}, "standoff": 8}
    # All at once: plotly looks at every key anew in each update, which takes fifteen times as long.
    return go.Figure(
        layout=_look(height, hovermode)
        | {
            "xaxis": axis | {"title": title | {"text": x}, "linecolor": MUTED, "ticks": "outside"},
            "yaxis": axis | {"title": title | {"text": y}},
        }
    )


def dress(figure: go.Figure, *, height: int, hovermode: str, showlegend: bool = True) -> go.Figure:
    """A plot with the page's letters and colours."""
    return figure.update_layout(_look(height, hovermode) | {"showlegend": showlegend})


def _look(height: int, hovermode: str) -> dict[str, Any]:
    """The page's letters and colours, as plotly's layout has them."""
    return {
        "template": "none",
        "autosize": True,
        "height": height,
        "hovermode": hovermode,
        "showlegend": True,
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "margin": {"l": 76, "r": 24, "t": 36, "b": 48},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
        "hoverlabel": {"font": {"family": FONT, "size": 13}, "namelength": -1},
    }


def logarithmic(figure: go.Figure, values: Sequence[float]) -> go.Figure:
    """Scale y by magnitude, with ticks that are read as they stand; not if there is no magnitude."""
    low, high = min(values), max(values)
    if low <= 0:
        return figure
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    return figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])


def line(name: str, x: Sequence[int], y: Sequence[float], colour: str, dash: str, *, form: str) -> go.Scatter:
    """A line over whole numbers."""
    return go.Scatter(
        name=name,
        x=integers(x),
        y=np.asarray(y, dtype=np.float32),
        # One point makes no line.
        mode="lines" if len(x) > 1 else "markers",
        line={"color": colour, "width": 2, "dash": dash},
        hovertemplate=f"%{{y:{form}}}",
    )


def marks(name: str, x: Any, y: Any, colour: str, symbol: str) -> go.Scatter:
    """Marks at whole numbers."""
    return go.Scatter(
        name=name,
        x=integers(x),
        y=np.asarray(y, dtype=np.float32),
        mode="markers",
        marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.75},
        hovertemplate="round %{x}: %{y:+.6f}",
    )


def key(name: str, colour: str) -> go.Scatter:
    """An entry of the legend without a line in the plot."""
    marker = {"color": colour, "symbol": "square", "size": 12}
    return go.Scatter(name=name, x=[None], y=[None], mode="markers", marker=marker, hoverinfo="skip")


def integers(values: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """As an array, which plotly writes in as few bytes each as they need."""
    return np.array(list(values), dtype=np.int64)


def floats(values: Iterable[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """As an array, in which NaN stands for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
