"""The plots of a page and the program that draws them, as elements of the page.

The program is Bokeh's, compressed to a third of its size. page.js unpacks it, and draws every plot in its
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import bokeh
from bokeh.document import Document
from bokeh.models import LayoutDOM

from hushbid.report.html import Html, data_script, element, fragment, own_file, packed_script
from hushbid.report.style import DARK, LOOK

__all__ = ["POLICY", "drawing", "page_style", "program"]

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""The permissions of a page with plots: run its own scripts, and show their drawings, and nothing else."""
_PACKAGE: Final = "hushbid.report"


def drawing(plots: Mapping[str, LayoutDOM]) -> Html:
    """The script that draws plots in the elements ``#plot-NAME``, to be placed after them.

    Args:
        plots: By name. They belong to this page afterwards: make others for another.
    """
    return fragment(
        data_script("plots", {name: _document(plot) for name, plot in plots.items()}),
        data_script("dark", DARK),
        program(),
        element("script", own_file(_PACKAGE, "page.js")),
    )


def page_style() -> Html:
    """The style sheet of a page."""
    return own_file(_PACKAGE, "page.css")


def _document(plot: LayoutDOM) -> Any:
    """A plot as a document of Bokeh's. The same plot gives the same document: its models count from 1."""
    numbers: dict[str, str] = {}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: numbers.setdefault(each, str(len(numbers) + 1)) if key == "id" else renamed(each)
                for key, each in value.items()
            }
        return [renamed(each) for each in value] if isinstance(value, list | tuple) else value

    document = Document(theme=LOOK)
    document.add_root(plot)
    return renamed(document.to_json(deferred=False))


@cache
def program() -> Html:
    """Bokeh's program, compressed once in a process."""
    file = resources.files(bokeh) / "server" / "static" / "js" / "bokeh.min.js"
    return packed_script("program", file.read_bytes())
