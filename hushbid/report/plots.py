"""The plots of a report, as plotly specifications. Whatever they draw is in the report's figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hushbid.protocol.session.guarantee import OWNERS_DATA
from hushbid.report import style
from hushbid.report.figures import Figures
from hushbid.report.gallery import picture_plots
from hushbid.report.html import word
from hushbid.report.rounds import MAP_OWNERS
from hushbid.report.style import BLUE, GREEN, GRID, INK, MUTED, ORANGE, PAPER, PURPLE, SKY, VERMILION

__all__ = ["BAR_OWNERS", "DRAWING", "STATE_NAMES", "plots_of"]


DRAWING: Final[Mapping[str, Any]] = {
    "responsive": True,
    "displaylogo": False,
    "displayModeBar": "hover",
    # These and no others: plotly's own choice has one that uploads the figure to its makers' servers.
    "modeBarButtons": [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
    "toImageButtonOptions": {"format": "svg"},
    # That nothing is uploaded is said in every way that a release of plotly knows.
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "showLink": False,
    "showEditInChartStudio": False,
}
"""How plotly draws every plot: its configuration."""
BAR_OWNERS: Final = 30
"""Most owners that have a bar."""
STATE_NAMES: Final = {
    "-": "nothing",
    "s": "sealed point handed over",
    "r": "raw point handed over",
    "q": "asked, no point came",
    "a": "absent",
    "W": "its point was chosen",
}
_STATE_COLOURS: Final = {
    "-": PAPER,
    "s": style.PALE_BLUE,
    "r": style.PALE_ORANGE,
    "q": ORANGE,
    "a": VERMILION,
    "W": BLUE,
}
_SYMBOLS: Final = ("circle", "square", "diamond", "cross", "triangle-up", "star")
_OWNER_STYLES: Final = tuple(
    (colour, symbol) for symbol, colour in product(_SYMBOLS, (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION))
)
_ROW_PIXELS: Final = 26
_FEW: Final = 8


def plots_of(figures: Figures) -> dict[str, dict[str, Any]]:
    """All plots that the figures have something for: name → specification (``data``, ``layout``)."""
    drawn = {
        "quality": _quality(figures),
        "objective": _objective(figures),
        "gains": _gains(figures),
        "map": _map(figures),
        "counts": _counts(figures),
        "shares": _shares(figures),
        "odometer": _odometer(figures),
        "times": _times(figures),
        **({} if figures.pictures is None else picture_plots(figures.pictures)),
    }
    # Through JSON, which plotly writes its own way: arrays in base64, what is not a number as null.
    return {name: json.loads(figure.to_json()) for name, figure in drawn.items() if figure is not None}


def _quality(figures: Figures) -> go.Figure | None:
    quality = figures.quality
    curves = (
        ("uniform, nobody chooses", quality.uniform, MUTED, "dot"),
        ("greedy, nothing private", quality.greedy, GREEN, "dash"),
        ("this session", quality.session, BLUE, "solid"),
    )
    figure = style.figure("points", "MMD² against the validation set")
    for name, curve, colour, dash in curves:
        if curve is not None:
            figure.add_trace(style.line(name, curve.points, curve.mmd2, colour, dash, form=".5f"))
    if not figure.data:
        return None
    return style.logarithmic(
        figure, [value for _, curve, _, _ in curves if curve is not None for value in curve.mmd2]
    )


def _objective(figures: Figures) -> go.Figure | None:
    series = figures.rounds.weighed
    if series is None or series.objective_before is None:
        return None
    figure = style.figure("round", "J in the released target")
    rounds = (0, *figures.rounds.number)
    figure.add_trace(
        style.line("J", rounds, (series.objective_before, *series.objective), BLUE, "solid", form=".5f")
    )
    return figure.update_layout(showlegend=False)


def _gains(figures: Figures) -> go.Figure | None:
    series, winners = figures.rounds.weighed, figures.rounds.winner
    if series is None or winners is None or not any(gain is not None for gain in series.gain):
        return None
    figure = style.figure("round", "gain of the round's point", hovermode="closest")
    rounds, gains = np.array(figures.rounds.number), style.floats(series.gain)
    places = np.array([-1 if place is None else place for place in winners])
    shown = _most(figures, MAP_OWNERS)
    for (colour, symbol), place in zip(_OWNER_STYLES, shown, strict=False):
        mine = places == place
        if mine.any():
            name = word(figures.owners.name[place])
            figure.add_trace(style.marks(name, rounds[mine], gains[mine], colour, symbol))
    others = ~np.isin(places, [-1, *shown])
    if others.any():
        figure.add_trace(style.marks("others", rounds[others], gains[others], MUTED, "circle-open"))
    figure.update_xaxes(range=_span(figures))
    return figure.update_yaxes(zeroline=True, zerolinecolor=MUTED, zerolinewidth=1)


def _map(figures: Figures) -> go.Figure | None:
    found = figures.rounds.map
    if found is None or not figures.rounds.number:
        return None
    letters = list(STATE_NAMES)
    codes = np.array([[letters.index(letter) for letter in row] for row in found.states], dtype=np.uint8)
    steps = [(place / len(letters), (place + 1) / len(letters)) for place in range(len(letters))]
    scale = [
        (edge, _STATE_COLOURS[letter]) for letter, step in zip(letters, steps, strict=True) for edge in step
    ]
    names = [word(owner) for owner in found.owners]
    figure = style.figure("round", "", hovermode="closest", height=110 + _ROW_PIXELS * len(names))
    figure.add_trace(
        go.Heatmap(
            x=style.integers(figures.rounds.number),
            y=names,
            z=codes,
            zmin=-0.5,
            zmax=len(letters) - 0.5,
            colorscale=scale,
            showscale=False,
            ygap=3,
            # What a letter means, for page.js: a text for every cell would fill the page.
            meta=STATE_NAMES,
            hovertemplate="%{y}, round %{x}: %{text}<extra></extra>",
        )
    )
    for letter in letters[1:]:
        if any(letter in row for row in found.states):
            figure.add_trace(style.key(STATE_NAMES[letter], _STATE_COLOURS[letter]))
    figure.update_yaxes(showgrid=False, autorange="reversed", automargin=True)
    return figure.update_xaxes(showgrid=False)


def _counts(figures: Figures) -> go.Figure | None:
    series = figures.rounds.curator
    if series is None or not figures.rounds.number:
        return None
    figure = style.figure("round", "owners", height=260)
    lines = (
        ("handed a sealed point over", series.sealed_owners, SKY, "solid"),
        ("handed a raw point over", series.raw_owners, ORANGE, "solid"),
        ("were asked", series.asked, INK, "dot"),
        ("were absent", series.absent, VERMILION, "dash"),
    )
    for name, counts, colour, dash in lines:
        if any(counts):
            trace = style.line(name, figures.rounds.number, counts, colour, dash, form="d")
            figure.add_trace(trace.update(line_shape="hvh"))
    if not figure.data:
        return None
    most = max(max(counts) for _, counts, _, _ in lines)
    # Left alone, plotly marks halves of few owners.
    return figure.update_yaxes(rangemode="tozero", dtick=1 if most < _FEW else None)


def _shares(figures: Figures) -> go.Figure | None:
    owners = figures.owners
    if owners.won is None or not sum(owners.won):
        return None
    shown = _most(figures, BAR_OWNERS)
    names = [word(owners.name[place]) for place in shown]
    panels: list[tuple[str, Sequence[float], str, str]] = [
        ("points chosen", [owners.won[place] for place in shown], BLUE, "points of %{y}: %{x}")
    ]
    if owners.settlement is not None:
        paid = [owners.settlement[place] for place in shown]
        digits = ".5f" if figures.settlement_terms.standard_error is None else ".2f"
        panels.append(("settlement", paid, GREEN, f"settlement of %{{y}}: %{{x:+{digits}}}"))
    figure = make_subplots(
        cols=len(panels), shared_yaxes=True, horizontal_spacing=0.06, subplot_titles=[p[0] for p in panels]
    )
    for column, (_, values, colour, hover) in enumerate(panels, start=1):
        bar = go.Bar(
            x=values, y=names, orientation="h", marker_color=colour, hovertemplate=f"{hover}<extra></extra>"
        )
        figure.add_trace(bar, row=1, col=column)
    style.dress(figure, height=100 + _ROW_PIXELS * len(names), hovermode="closest", showlegend=False)
    for annotation, axis in zip(figure.layout.annotations, ("xaxis", "xaxis2"), strict=False):
        annotation.update(x=figure.layout[axis].domain[0], xanchor="left", font={"size": 13, "color": INK})
    figure.update_layout(bargap=0.35)
    figure.update_xaxes(gridcolor=GRID, zeroline=True, zerolinecolor=MUTED)
    return figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)


def _odometer(figures: Figures) -> go.Figure | None:
    end = figures.rounds.run
    if not end:  # none was run, or nobody tells how many: a single reading, which the table has
        return None
    figure = style.figure("round", "ε spent", height=300)
    for odometer in figures.odometers:
        of_owners = odometer.protects == OWNERS_DATA
        rounds, spent = odometer.rounds, odometer.epsilon
        if rounds[-1] < end:
            # A single release is all that is spent, from before the first round on.
            rounds, spent = (*rounds, end), (*spent, spent[-1])
        colour, dash = (BLUE, "solid") if of_owners else (VERMILION, "dash")
        figure.add_trace(style.line(odometer.protects, rounds, spent, colour, dash, form=".4g"))
    return figure.update_yaxes(rangemode="tozero") if figure.data else None


def _times(figures: Figures) -> go.Figure | None:
    seconds = figures.rounds.seconds
    if seconds is None or not any(value is not None for value in seconds):
        return None
    milliseconds = style.floats(seconds) * 1e3
    figure = style.figure("round", "milliseconds", height=280, hovermode="closest")
    marks = style.marks("a round", np.array(figures.rounds.number), milliseconds, BLUE, "circle")
    figure.add_trace(marks.update(hovertemplate="round %{x}: %{y:.3~f} ms<extra></extra>", marker_size=4))
    median = float(np.nanmedian(milliseconds))
    ends = (figures.rounds.number[0], figures.rounds.number[-1])
    figure.add_trace(style.line("median", ends, (median, median), VERMILION, "dash", form=".3~f"))
    figure.update_xaxes(range=_span(figures))
    return style.logarithmic(figure, [value * 1e3 for value in seconds if value is not None])


# -- parts of plots ---------------------------------------------------------------------------------------


def _span(figures: Figures) -> tuple[float, float]:
    """The rounds, with room for the marks of the first and the last."""
    room = max(1.0, figures.rounds.run / 100)
    return 1 - room, figures.rounds.run + room


def _most(figures: Figures, count: int) -> list[int]:
    """The places of the owners that won most, in the order of their names."""
    won = figures.owners.won or (0,) * len(figures.owners.name)
    return sorted(sorted(range(len(won)), key=lambda place: (-won[place], place))[:count])
