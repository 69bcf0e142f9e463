"""The pictures of a report: images, columns, a map and weights of the consumer's rows, wanted and bought."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable
from io import BytesIO
from itertools import groupby
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from bokeh.models import BasicTicker, ColumnDataSource, DataRange1d, LayoutDOM, PrintfTickFormatter
from PIL import Image as PixelImage

from hushbid.protocol.printable import printable
from hushbid.report import style
from hushbid.report.html import Html, element, notice, plot, section
from hushbid.report.pictures import MAP_POINTS, Distribution, Pictures, PrincipalMap, Sheet, WeightFigures
from hushbid.report.style import BLUE, GREEN, INK, MUTED, ORANGE, PAPER, Figure

__all__ = ["OWNERS_ROWS", "PRIVATE_ROWS", "picture_plots", "pictures"]

PRIVATE_ROWS: Final = (
    "This page shows rows of the consumer's validation set and of its purchase. They are as private here "
    "as in their files: the page is for the consumer alone. Do not pass it on."
)
OWNERS_ROWS: Final = (
    "Its map shows the exact places of owners' rows: it is for whoever runs all parties, and not for the "
    "consumer."
)

_KINDS: Final = (("wanted", ORANGE, "solid"), ("bought", BLUE, "solid"), ("with weights", GREEN, "dotted"))
"""Kinds of shares with their colours and patterns; page.css repeats them for the legend of small plots."""
_SMALL: Final = "plot small"
_BAR_PIXELS: Final = 13
_AXIS_PIXELS: Final = 42


def picture_plots(found: Pictures) -> dict[str, LayoutDOM]:
    """The plots of the pictures, by name."""
    plots: dict[str, LayoutDOM] = {
        f"column-{place}": _column(column) for place, column in enumerate(found.columns)
    }
    if found.map is not None:
        plots["principal"] = _principal(found.map)
    if found.weights is not None:
        plots["weights"] = _weights(found.weights)
    return plots


def pictures(found: Pictures | None, plots: Collection[str]) -> Iterable[Html]:
    """The section of the pictures, if there are any, with the plots of these names."""
    if found is None:
        return ()
    parts = (
        notice("Private rows", [PRIVATE_ROWS, *([] if found.offered is None else [OWNERS_ROWS])], alert=True),
        *_sheets(found),
        *_columns(found, plots),
        *_map_place(found, plots),
        *_weights_place(found, plots),
    )
    lead = (
        f"The consumer wanted {found.wanted:,} rows and bought {found.bought:,} undisputed points. "
        "Source: the consumer's transcript and its own files. "
    )
    if found.offered is None:
        lead += (
            "No picture shows points that the consumer did not buy: it has never seen them, nor random "
            "points of owners."
        )
    else:
        lead += (
            f"The map also shows the {found.offered:,} points that owners offered, from their files. In a "
            "session between machines the consumer has no such files."
        )
    return section("Wanted rows and bought points", parts, lead)


# -- images -----------------------------------------------------------------------------------------------


def _sheets(found: Pictures) -> Iterable[Html]:
    drawn = list(zip(found.sheets, found.pixels, strict=True))
    for number, (column, group) in enumerate(groupby(drawn, key=lambda each: each[0].column)):
        sheets = list(group)
        image = sheets[0][0].image
        of = "" if column is None else f" of {column}"
        black = "at the lower bound" if column is None else "is 0"
        white = "at the upper" if column is None else "255"
        colour = f"black {black} and white {white}" if image.channels == 1 else "in colour"
        yield element("h3", f"The images{of}, by round")
        yield element(
            "p",
            f"Images of {image.width} × {image.height} pixels, {colour}. Of many images, sheets show some, "
            "evenly spaced in their order.",
        )
        boxes = [_sheet(sheet, pixels, number) for sheet, pixels in sheets]
        yield element("div", element("div", boxes[0]), element("div", *boxes[1:]), class_="sheets")


def _sheet(sheet: Sheet, pixels: npt.NDArray[np.uint8], column: int) -> Html:
    name = "sheet-wanted" if sheet.rounds is None else f"sheet-{sheet.rounds[0]}"
    if column:  # the first keeps its original name
        name = f"{name}-of-{column + 1}"
    images = [element("img", src=_png(image), alt="") for image in pixels]
    box = element("div", *images, class_="sheet", role="img", aria_labelledby=name)
    return element("figure", element("figcaption", _sheet_caption(sheet), id=name), box)


def _png(pixels: npt.NDArray[np.uint8]) -> str:
    """Pixels, of (height, width) or (height, width, 3), as the data URL of a PNG."""
    file = BytesIO()
    PixelImage.fromarray(pixels).save(file, "PNG")
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def _sheet_caption(sheet: Sheet) -> str:
    count = f"{sheet.points:,} image{'' if sheet.points == 1 else 's'}"
    if len(sheet.shown) < sheet.points:
        count = f"{len(sheet.shown):,} of {count}"
    if sheet.rounds is None:
        return f"Wanted: {count} of the validation set."
    first, last = sheet.rounds
    return f"Bought in {f'round {first}' if first == last else f'rounds {first} to {last}'}: {count}."


# -- columns ----------------------------------------------------------------------------------------------


def _columns(found: Pictures, plots: Collection[str]) -> Iterable[Html]:
    if not found.columns:
        return
    left = ""
    if found.columns_left_out:
        left = (
            f" The plots show the {len(found.columns)} columns in which wanted and bought differ most, and "
            f"leave {found.columns_left_out:,} out."
        )
    kinds = _KINDS[: len(_shares(found.columns[0]))]
    yield element("h3", "Column by column")
    yield element(
        "p",
        "Shares of the wanted rows, of the bought points, and of their weights, by value. In a column of "
        "many different numbers, each outermost bar also has the hundredth of the rows that lies beyond "
        f"it.{left}",
    )
    names = (element("span", name, class_=f"key {name.replace(' ', '-')}") for name, _, _ in kinds)
    yield element("p", *names, class_="keys")
    places = (
        element("div", element("h4", each.name), *plot(f"column-{place}", plots, _said(each), kind=_SMALL))
        for place, each in enumerate(found.columns)
    )
    yield element("div", *places, class_="columns")


def _said(column: Distribution) -> str:
    named = [name for name, _, _ in _KINDS]
    if column.means is not None:
        means = (f"{_number(mean)} {name}" for name, mean in zip(named, column.means, strict=False))
        told = f"Mean {', '.join(means)}."
    else:
        assert column.values is not None
        singles = len(column.values) - (column.others > 0)
        most = int(np.argmax(column.wanted[:singles]))
        parts = (
            f"{_percent(each[most])} {name}"
            for name, each in zip(named, _shares(column), strict=False)
        )  # fmt: skip
        told = f"Most wanted, {column.values[most]}: {', '.join(parts)}."
    weighted = column.apart_weighted
    also = "" if weighted is None else f", with weights by {_percent(weighted)}"
    return f"{told} Bought and wanted differ by {_percent(column.apart)}{also}."


def _shares(column: Distribution) -> list[tuple[float, ...]]:
    return [column.wanted, column.bought, *([] if column.weighted is None else [column.weighted])]


def _number(value: float) -> str:
    return format(value, ",.4g" if abs(value) < 1e4 else ",.0f").replace("-", "−")


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _column(column: Distribution) -> Figure:
    # One legend above all of them explains the colours, and there is no room for a toolbar.
    return _words(column) if column.edges is None else _intervals(column, column.edges)


def _intervals(column: Distribution, edges: tuple[float, ...]) -> Figure:
    figure = style.figure("", "", height=200, tools=False, y_range=DataRange1d(start=0))
    shares = {
        f"y{number}": np.array([0.0, *each, 0.0], dtype=np.float32) * 100.0
        for number, each in enumerate(_shares(column))
    }
    source = ColumnDataSource({"x": np.array([*edges, edges[-1]]), **shares})
    for (name, colour, dash), key in zip(_KINDS, shares, strict=False):
        if name == "wanted":
            figure.varea_step(
                "x", 0, key, source=source, step_mode="before", fill_color=colour, fill_alpha=0.3
            )
        figure.step("x", key, source=source, mode="before", line_color=colour, line_width=2, line_dash=dash)
    bars = {key: each[1:-1] for key, each in shares.items()}
    unseen = figure.quad(
        "left", "right", top="y0", bottom=0, alpha=0.0,
        source=ColumnDataSource({"left": edges[:-1], "right": edges[1:], **bars}),
    )  # fmt: skip
    told = [(name, f"@{key}{{%.1f %%}}") for (name, _, _), key in zip(_KINDS, shares, strict=False)]
    style.hover(figure, [("from", "@left{%.6g}"), ("to", "@right{%.6g}"), *told], [unseen], mode="vline")
    figure.xaxis.ticker = BasicTicker(desired_num_ticks=3)
    figure.yaxis.ticker = BasicTicker(desired_num_ticks=4)
    figure.yaxis.formatter = PrintfTickFormatter(format="%g %%")
    return figure


def _words(column: Distribution) -> Figure:
    assert column.values is not None
    kinds = _shares(column)
    height = _AXIS_PIXELS + (len(kinds) * _BAR_PIXELS + 8) * len(column.values)
    figure = style.figure("", "", height=height, tools=False, x_range=DataRange1d(start=0))
    rows = style.rows(figure, column.values)
    width = 0.8 / len(kinds)
    words = [printable(each) for each in column.values]
    drawn = []
    for number, ((name, colour, _), shares) in enumerate(zip(_KINDS, kinds, strict=False)):
        places = rows + 0.4 - width * (number + 0.5)
        source = ColumnDataSource(
            {"y": places, "x": np.array(shares, dtype=np.float32) * 100.0, "word": words}
        )
        look: dict[str, Any] = {"color": colour, "line_color": None}
        if number == 2:
            look |= {"hatch_pattern": "/", "hatch_color": PAPER, "hatch_scale": 6}
        drawn.append(figure.hbar("y", right="x", height=width, source=source, name=name, **look))
    style.hover(figure, [("value", "@word"), ("of", "$name"), ("share", "@x{%.1f %%}")], drawn)
    figure.xaxis.ticker = BasicTicker(desired_num_ticks=4)
    figure.xaxis.formatter = PrintfTickFormatter(format="%g %%")
    return figure


# -- map and weights --------------------------------------------------------------------------------------


def _principal(found: PrincipalMap) -> Figure:
    first, second = (f"{_percent(share)} of the variance" for share in found.explained)
    figure = style.figure(f"first component, {first}", f"second, {second}", height=460)
    kinds = [("wanted", found.wanted, ORANGE, "circle"), ("bought", found.bought, BLUE, "x")]
    if found.offered is not None:  # below the others, as they are many
        kinds.insert(0, ("offered", found.offered, MUTED, "circle_open"))
    drawn = [
        style.marks(figure, name, tuple(np.array(places).T), colour, symbol, size=7)
        for name, places, colour, symbol in kinds
    ]
    style.hover(figure, [("row", "$name"), ("first", "@x{%.3f}"), ("second", "@y{%.3f}")], drawn)
    style.place_legend(figure)
    return figure


def _map_place(found: Pictures, plots: Collection[str]) -> Iterable[Html]:
    if found.map is None:
        return
    shown = len(found.map.wanted), len(found.map.bought)
    offered = found.map.offered
    thinned = ""
    if (*shown, None if offered is None else len(offered)) != (found.wanted, found.bought, found.offered):
        thinned = f"The map shows at most {MAP_POINTS:,} of each kind, evenly spaced in their order. "
    yield element("h3", "Map of wanted and bought")
    yield from plot(
        "principal",
        plots,
        f"{shown[0]:,} wanted rows and {shown[1]:,} bought points on their first two principal components "
        f"under the session's kernel, which explain {_percent(sum(found.map.explained))} of the variance. To "
        f"that extent, points that lie near each other are similar under the kernel. {thinned}"
        + (
            "The consumer has no points that owners offered and it did not buy, so the map shows none."
            if offered is None
            else f"{len(offered):,} offered points, bought ones among them, lie on the same components."
        ),
    )


def _weights(found: WeightFigures) -> Figure:
    edges = np.array(found.edges)
    figure = style.figure(
        "weight, as a multiple of an equal one", "points", height=280, y_range=DataRange1d(start=0)
    )
    source = ColumnDataSource({"left": edges[:-1], "right": edges[1:], "top": style.integers(found.points)})
    bars = figure.quad("left", "right", top="top", bottom=0, source=source, color=GREEN, line_color=PAPER)
    style.hover(figure, [("from", "@left{%.2f}"), ("to", "@right{%.2f}"), ("points", "@top")], [bars])
    figure.vspan(x=[1.0], line_color=INK, line_width=2, line_dash="dashed")
    figure.yaxis.ticker = BasicTicker(min_interval=1)
    return figure


def _weights_place(found: Pictures, plots: Collection[str]) -> Iterable[Html]:
    yield element("h3", "Weights of the bought points")
    weights = found.weights
    if weights is None:
        yield element("p", f"The report shows no weights: {found.no_weights}.")
        return
    yield from plot(
        "weights",
        plots,
        f"{found.bought:,} points by weight; the dashed line marks equal weights. The effective number of "
        f"points, 1/Σw², is {weights.effective:,.1f}. Points with less than a hundredth of an equal "
        f"weight: {weights.hardly:,}.",
    )
