"""A screening as one HTML page: a plot and a table, and all that it takes to show them."""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from hushbid.catalogue.screening import ScreeningResult
from hushbid.protocol import __version__
from hushbid.report.html import Html, data_script, element, fragment, table
from hushbid.report.plots import BAR_OWNERS, DRAWING
from hushbid.report.style import BLUE, DARK, FONT, GREEN, GRID, INK, MUTED, PAPER

__all__ = ["screening_page"]

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_ROW_PIXELS: Final = 30


def screening_page(result: ScreeningResult) -> str:
    """The page of a screening; it loads nothing."""
    css, drawer = (
        (resources.files("hushbid.report") / name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js")
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "Owners, screened by hushbid"),
        element("style", Html(css)),
    )
    body = element(
        "body",
        element("header", element("p", "Screening", class_="kicker"), element("h1", "Owners")),
        element(
            "main",
            element("p", _basis(result)),
            element("div", id="plot-owners", class_="plot"),
            _owners(result),
            element("h2", "Choices of owners"),
            _subsets(result),
        ),
        element("footer", element("p", f"Made by hushbid {__version__}.")),
        data_script("plots", {"owners": json.loads(_plot(result).to_json())}),
        data_script("drawing", DRAWING),
        data_script("dark", DARK),
        data_script("screening", result.as_json()),
        element("script", Html(get_plotlyjs())),
        element("script", Html(drawer)),
    )
    return fragment(Html("<!DOCTYPE html>\n"), element("html", head, body, lang="en"), Html("\n"))


def _basis(result: ScreeningResult) -> str:
    release = result.release
    if release is None:
        return (
            "Ranked by the exact validation set, without any privacy: whoever learns of this ranking, or of "
            "the owners that were chosen by it, learns of the validation set what no ledger has."
        )
    return (
        f"Ranked by a release of the validation set: {release['mechanism']}, ε = {release['epsilon']:.3g} at "
        f"δ = {release['delta']:.1g} ({release['neighbours']}, {release['noise']} noise). This page is no "
        "more than follows from it and from the entries."
    )


def _plot(result: ScreeningResult) -> go.Figure:
    rows = result.ranking.owners[:BAR_OWNERS]
    names = [row.candidate.owner for row in rows]
    figure = make_subplots(
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=["MMD² to the target, ± 1 standard error", "weight in the best mixture of all"],
    )
    distances = go.Bar(
        x=[row.estimate.value for row in rows],
        y=names,
        orientation="h",
        marker_color=BLUE,
        error_x={"array": [row.estimate.standard_error for row in rows], "color": INK},
        hovertemplate="%{y}: %{x:.5f}<extra></extra>",
    )
    weights = go.Bar(
        x=[row.weight for row in rows],
        y=names,
        orientation="h",
        marker_color=GREEN,
        hovertemplate="%{y}: %{x:.3f}<extra></extra>",
    )
    figure.add_trace(distances, row=1, col=1)
    figure.add_trace(weights, row=1, col=2)
    figure.update_layout(
        template="none",
        height=120 + _ROW_PIXELS * len(rows),
        showlegend=False,
        bargap=0.35,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        margin={"l": 76, "r": 24, "t": 48, "b": 48},
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=True, zerolinecolor=MUTED)
    return figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)


def _owners(result: ScreeningResult) -> Html:
    titles = ("MMD²", "± s.e.", "weight", "mass of points", "size", "ε", "δ")
    columns = [("owner", "text"), *((title, "number") for title in titles), ("neighbours", "text")]
    rows = [
        (
            row.candidate.owner,
            f"{row.estimate.value:.5f}",
            f"{row.estimate.standard_error:.5f}",
            f"{row.weight:.3f}",
            "–" if row.point_mass is None else f"{row.point_mass:.3f}",
            f"{row.candidate.entry.release.size:.0f}",
            f"{row.candidate.entry.epsilon:.3g}",
            f"{row.candidate.entry.delta:.1g}",
            row.candidate.entry.neighbours,
        )
        for row in result.ranking.owners
    ]
    return table(columns, rows)


def _subsets(result: ScreeningResult) -> Html:
    columns = [
        ("owners", "text"),
        ("MMD², best mixture", "number"),
        ("± s.e.", "number"),
        ("by size", "number"),
    ]
    rows = [
        (
            ", ".join(subset.owners),
            f"{subset.estimate.value:.5f}",
            f"{subset.estimate.standard_error:.5f}",
            f"{subset.by_size.value:.5f}",
        )
        for subset in result.ranking.subsets
    ]
    return table(columns, rows)
