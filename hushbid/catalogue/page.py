"""A screening as a self-contained HTML page with a plot and a table."""

from __future__ import annotations

from typing import Final

import numpy as np
from bokeh.models import ColumnDataSource, LayoutDOM

from hushbid.catalogue.screening import ScreeningResult
from hushbid.protocol import __version__
from hushbid.protocol.printable import printable
from hushbid.report.drawing import POLICY, drawing, page_style
from hushbid.report.html import Html, data_script, document, element, header, numbers, table, words
from hushbid.report.plots import BAR_OWNERS, bars, beside
from hushbid.report.style import BLUE, GREEN, INK

__all__ = ["screening_page"]

_ROW_PIXELS: Final = 30


def screening_page(result: ScreeningResult) -> str:
    """The page of a screening; it loads nothing from elsewhere."""
    main = element(
        "main",
        element("p", _basis(result)),
        element("div", id="plot-owners", class_="plot"),
        _owners(result),
        element("h2", "Choices of owners"),
        _subsets(result),
    )
    return document(
        b"<!DOCTYPE html>\n",
        "Owners, screened by hushbid",
        header("Screening", "Owners"),
        main,
        element("footer", element("p", f"hushbid {__version__} made this page.")),
        data_script("screening", result.as_json()),
        drawing({"owners": _plot(result)}),
        style=page_style(),
        policy=POLICY,
    )


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


def _plot(result: ScreeningResult) -> LayoutDOM:
    rows = result.ranking.owners[:BAR_OWNERS]
    names = [printable(row.candidate.owner) for row in rows]
    height = 90 + _ROW_PIXELS * len(rows)
    values, errors = np.array([(row.estimate.value, row.estimate.standard_error) for row in rows]).T
    distances = bars("MMD² ± 1 s.e.", names, values, BLUE, "%.5f", height)
    errors_at = {"owner": np.arange(len(rows))[::-1], "lower": values - errors, "upper": values + errors}
    distances.segment(
        "lower", "owner", "upper", "owner", source=ColumnDataSource(errors_at), line_color=INK, line_width=2
    )
    weights = [row.weight for row in rows]
    return beside([distances, bars("weight, best mixture", names, weights, GREEN, "%.3f", height)])


def _owners(result: ScreeningResult) -> Html:
    figures = numbers("MMD²", "± s.e.", "weight", "mass of points", "size", "ε", "δ")
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
    return table([*words("owner"), *figures, *words("neighbours")], rows)


def _subsets(result: ScreeningResult) -> Html:
    rows = [
        (
            ", ".join(subset.owners),
            f"{subset.estimate.value:.5f}",
            f"{subset.estimate.standard_error:.5f}",
            f"{subset.by_size.value:.5f}",
        )
        for subset in result.ranking.subsets
    ]
    return table([*words("owners"), *numbers("MMD², best mixture", "± s.e.", "by size")], rows)
