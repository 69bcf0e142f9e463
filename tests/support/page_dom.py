"""Readings of a page's plots for tests in a browser; most of them lie in shadow trees."""

from __future__ import annotations

from typing import Final

from hushbid.report.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

__all__ = ["DEEP", "SERIES", "rgb"]


def rgb(colour: str) -> str:
    """A colour like ``#0072B2`` as the browser writes it."""
    return "rgb({}, {}, {})".format(*(int(colour[place : place + 2], 16) for place in (1, 3, 5)))


SERIES: Final = [rgb(colour) for colour in (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)]
"""The colours of data, on a light page."""

DEEP: Final = """
const deep = (root, selector) => {
  const found = [];
  const walk = (node) => {
    for (const each of node.querySelectorAll("*")) {
      if (each.matches(selector)) found.push(each);
      if (each.shadowRoot) walk(each.shadowRoot);
    }
  };
  walk(root);
  return found;
};
const isDrawing = (svg) => svg.getRootNode().host?.matches(".bk-layer") && svg.querySelector("path") !== null;
const drawings = (plot) => deep(plot, "svg").filter(isDrawing);
const fills = (svg) => deep(svg, "path").map((mark) => getComputedStyle(mark).fill);
const paper = (svg) => fills(svg).find((fill) => fill !== "none");
const view = (plot) => Bokeh.index.roots.find((root) => plot.contains(root.el));
const seen = (colours) => (mark) => {
  const { fill, stroke } = getComputedStyle(mark);
  return colours.includes(fill) || colours.includes(stroke);
};
"""
"""JavaScript: `deep` is `querySelectorAll` that also enters shadow trees, `drawings` are the SVGs of a plot
without those of its legend, `paper` is the colour that one is filled with, `view` is Bokeh's view of a plot,
and `seen` tells marks of these colours from others."""
