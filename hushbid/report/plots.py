"""The plots of a report, as Bokeh's models. Everything that they draw is in the report's figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

import numpy as np
from bokeh.layouts import row
from bokeh.models import BasicTicker, ColumnDataSource, DataRange1d, Image, LayoutDOM, LinearColorMapper

from hushbid.protocol.printable import printable
from hushbid.protocol.session.guarantee import OWNERS_DATA
from hushbid.report import style
from hushbid.report.figures import ReportFigures
from hushbid.report.gallery import picture_plots
from hushbid.report.rounds import MAP_OWNERS
from hushbid.report.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILION,
    Figure,
    Series,
)

__all__ = ["BAR_OWNERS", "STATE_NAMES", "bars", "beside", "plots_of"]

BAR_OWNERS: Final = 30
"""Most owners with a bar."""
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
_SYMBOLS: Final = ("circle", "square", "diamond", "cross", "triangle", "star")
_OWNER_STYLES: Final = tuple(
    (colour, symbol) for symbol, colour in product(_SYMBOLS, (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION))
)
_ROW_PIXELS: Final = 26
_ROW_PART: Final = 0.88
"""The part of a map row that is coloured."""
_NARROWEST: Final = 280


def plots_of(figures: ReportFigures) -> dict[str, LayoutDOM]:
    """All plots that the figures have data for, by name."""
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
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _quality(figures: ReportFigures) -> Figure | None:
    quality = figures.quality
    curves = (
        ("uniform, nobody chooses", quality.uniform, MUTED, "dotted"),
        ("greedy, nothing private", quality.greedy, GREEN, "dashed"),
        ("this session", quality.session, BLUE, "solid"),
    )
    series = [
        _series(name, curve.points, curve.mmd2, colour, dash)
        for name, curve, colour, dash in curves
        if curve is not None
    ]
    if not series:
        return None
    values = [float(value) for each in series for value in each.y]
    figure = style.scaled("points", "MMD² against the validation set", values)
    style.lines(figure, "points", series, "%.5f")
    style.place_legend(figure)
    return figure


def _objective(figures: ReportFigures) -> Figure | None:
    series = figures.rounds.weighed
    if series is None or series.objective_before is None:
        return None
    figure = style.figure("round", "J in the released target")
    rounds, values = (0, *figures.rounds.number), (series.objective_before, *series.objective)
    style.lines(figure, "round", [_series("J", rounds, values, BLUE, "solid")], "%.5f")
    figure.legend.visible = False
    return figure


def _gains(figures: ReportFigures) -> Figure | None:
    series, winners = figures.rounds.weighed, figures.rounds.winner
    if series is None or winners is None or not any(gain is not None for gain in series.gain):
        return None
    figure = style.round_figure("gain of the round's point", figures.rounds.run)
    rounds, gains = np.array(figures.rounds.number), style.floats(series.gain)
    places = np.array([-1 if place is None else place for place in winners])
    shown = _most(figures, MAP_OWNERS)
    drawn = []
    for (colour, symbol), place in zip(_OWNER_STYLES, shown, strict=False):
        mine = places == place
        if mine.any():
            name = printable(figures.owners.name[place])
            drawn.append(style.marks(figure, name, (rounds[mine], gains[mine]), colour, symbol))
    others = ~np.isin(places, [-1, *shown])
    if others.any():
        drawn.append(style.marks(figure, "others", (rounds[others], gains[others]), MUTED, "circle_open"))
    figure.hspan(y=[0], line_color=MUTED)
    style.hover(figure, [("owner", "$name"), ("round", "@x"), ("gain", "@y{%+.6f}")], drawn)
    style.place_legend(figure)
    return figure


def _map(figures: ReportFigures) -> Figure | None:
    found, numbers = figures.rounds.map, figures.rounds.number
    if found is None or not numbers:
        return None
    letters = list(STATE_NAMES)
    names = [printable(owner) for owner in found.owners]
    figure = style.round_figure("", figures.rounds.run, height=110 + _ROW_PIXELS * len(names))
    codes = [np.array([[letters.index(letter) for letter in row]], dtype=np.uint8) for row in found.states]
    step = (numbers[-1] - numbers[0]) / max(1, len(numbers) - 1) or 1.0
    cells = figure.add_glyph(
        # page.js adds the meaning of a letter: a text for every cell would fill the page.
        ColumnDataSource(
            {"image": codes, "y": style.rows(figure, names) - _ROW_PART / 2, "owner": names},
            name="map",
            tags=[STATE_NAMES],
        ),
        Image(
            image="image",
            x=numbers[0] - step / 2,
            y="y",
            dw=numbers[-1] - numbers[0] + step,
            dh=_ROW_PART,
            color_mapper=LinearColorMapper(
                palette=list(_STATE_COLOURS.values()), low=-0.5, high=len(letters) - 0.5
            ),
        ),
    )
    style.hover(figure, [("owner", "@owner"), ("round", "$x{%.0f}"), ("", "@state")], [cells])
    figure.xgrid.visible = False
    told = [letter for letter in letters[1:] if any(letter in row for row in found.states)]
    for letter in told:
        style.key(figure, STATE_NAMES[letter], _STATE_COLOURS[letter])
    if told:
        style.place_legend(figure, hides=False)
    return figure


def _counts(figures: ReportFigures) -> Figure | None:
    series = figures.rounds.curator
    if series is None or not figures.rounds.number:
        return None
    counts = (
        ("handed a sealed point over", series.sealed_owners, SKY, "solid"),
        ("handed a raw point over", series.raw_owners, ORANGE, "solid"),
        ("were asked", series.asked, INK, "dotted"),
        ("were absent", series.absent, VERMILION, "dashed"),
    )
    drawn = [
        _series(name, figures.rounds.number, values, colour, dash)
        for name, values, colour, dash in counts
        if any(values)
    ]
    if not drawn:
        return None
    figure = style.round_figure("owners", figures.rounds.run, height=260, y_range=DataRange1d(start=0))
    style.lines(figure, "round", drawn, "%d", steps=True)
    style.place_legend(figure)
    figure.yaxis.ticker = BasicTicker(min_interval=1)  # owners are whole numbers
    return figure


def _shares(figures: ReportFigures) -> LayoutDOM | None:
    owners = figures.owners
    if owners.won is None or not sum(owners.won):
        return None
    shown = _most(figures, BAR_OWNERS)
    names = [printable(owners.name[place]) for place in shown]
    panels: list[tuple[str, Sequence[float], str, str]] = [
        ("points chosen", [owners.won[place] for place in shown], BLUE, "%d")
    ]
    if owners.settlement is not None:
        paid = [owners.settlement[place] for place in shown]
        digits = "%+.5f" if figures.settlement_terms.standard_error is None else "%+.2f"
        panels.append(("settlement", paid, GREEN, digits))
    return beside(
        bars(title, names, values, colour, form, 70 + _ROW_PIXELS * len(names))
        for title, values, colour, form in panels
    )


def beside(figures: Iterable[Figure]) -> LayoutDOM:
    """Plots beside each other, or below each other on a narrow page."""
    return row(list(figures), sizing_mode="stretch_width", styles={"flex-wrap": "wrap"})


def bars(
    title: str, names: Sequence[str], values: Sequence[float], colour: str, form: str, height: int
) -> Figure:
    """A bar for each name, the first on top.

    Args:
        form: The printf format of a value.
        height: Pixels.
    """
    figure = style.figure("", "", height=height, title=title, min_width=_NARROWEST)
    source = ColumnDataSource(
        {"y": style.rows(figure, names), "x": np.asarray(values, dtype=np.float32), "owner": list(names)}
    )
    drawn = figure.hbar("y", right="x", height=0.65, source=source, color=colour, line_color=None)
    style.hover(figure, [("owner", "@owner"), (title, f"@x{{{form}}}")], [drawn])
    figure.vspan(x=[0], line_color=MUTED)
    figure.xaxis.ticker = BasicTicker(desired_num_ticks=4)
    return figure


def _odometer(figures: ReportFigures) -> Figure | None:
    end = figures.rounds.run
    if not end:  # none was run, or their number is unknown: a single reading, which the table has
        return None
    series = []
    for odometer in figures.odometers:
        rounds, spent = odometer.rounds, odometer.epsilon
        if rounds[-1] < end:
            # A single release is spent in full, from before the first round on.
            rounds, spent = (*rounds, end), (*spent, spent[-1])
        colour, dash = (BLUE, "solid") if odometer.protects == OWNERS_DATA else (VERMILION, "dashed")
        series.append(_series(odometer.protects, rounds, spent, colour, dash))
    if not series:
        return None
    figure = style.figure("round", "ε spent", height=300, y_range=DataRange1d(start=0))
    style.lines(figure, "round", series, "%.4g")
    style.place_legend(figure)
    return figure


def _times(figures: ReportFigures) -> Figure | None:
    seconds = figures.rounds.seconds
    if seconds is None or not any(value is not None for value in seconds):
        return None
    milliseconds = np.asarray(style.floats(seconds) * 1e3, dtype=np.float32)
    known = milliseconds[~np.isnan(milliseconds)].tolist()
    figure = style.round_figure("milliseconds", figures.rounds.run, height=280, values=known)
    drawn = style.marks(figure, "a round", (figures.rounds.number, milliseconds), BLUE, "circle", size=4)
    median = float(np.median(known))
    figure.hspan(y=[median], line_color=VERMILION, line_width=2, line_dash="dashed", legend_label="median")
    style.hover(figure, [("round", "@x"), ("milliseconds", "@y{%.3g}")], [drawn])
    style.place_legend(figure)
    return figure


# -- parts of plots ---------------------------------------------------------------------------------------


def _series(name: str, x: Sequence[int], y: Sequence[float], colour: str, dash: str) -> Series:
    return Series(name=name, x=np.asarray(x), y=np.asarray(y, dtype=np.float64), colour=colour, dash=dash)


def _most(figures: ReportFigures, count: int) -> list[int]:
    """The places of the owners that won most, in the order of their names."""
    won = figures.owners.won or (0,) * len(figures.owners.name)
    return sorted(sorted(range(len(won)), key=lambda place: (-won[place], place))[:count])
