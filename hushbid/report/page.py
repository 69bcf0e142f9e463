"""The report as one HTML file: its figures as sections, tables and plots, and everything needed to show them.

The page loads nothing: its scripts are in it, and its content security policy forbids the rest.
"""

from __future__ import annotations

from hushbid.protocol import __version__
from hushbid.report.drawing import POLICY, drawing, page_style
from hushbid.report.figures import ReportFigures
from hushbid.report.html import FIRST_BYTES, Html, data_script, document, element, header
from hushbid.report.overview import judgement, notices, tiles
from hushbid.report.plots import plots_of
from hushbid.report.sections import sections

__all__ = ["page_of"]


def page_of(figures: ReportFigures) -> str:
    """The page of a report's figures."""
    plots = plots_of(figures)
    top = (*judgement(figures), *notices(figures), tiles(figures))
    return document(
        FIRST_BYTES,
        f"{figures.session.name}: report of a hushbid session",
        header("Report of a session", figures.session.name, *top),
        element("main", *sections(figures, frozenset(plots))),
        _footer(figures),
        data_script("figures", figures.as_json()),
        drawing(plots),
        style=page_style(),
        policy=POLICY,
        session=figures.session.identifier,
    )


def _footer(figures: ReportFigures) -> Html:
    parties = ", ".join(each.party for each in figures.transcripts)
    return element(
        "footer",
        element(
            "p",
            f"hushbid {__version__} made this report from the transcripts of: {parties}. The report is as "
            "private as they are: its figures are not differentially private, even if the session's releases "
            "are.",
        ),
        element("p", "The element ", element("code", "#figures"), " of this page has every figure as JSON."),
    )
