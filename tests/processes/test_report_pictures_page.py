"""The pictures of a consumer's report in headless Chromium: readable wide and narrow, light and dark."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from hushbid.protocol.data import DataColumns
from hushbid.protocol.names import CURATOR
from hushbid.report.own_rows import ConsumerRows, Image
from hushbid.report.style import DARK, GREEN, PAPER
from hushbid.running.report import write_report
from tests.conftest import ROOT
from tests.processes.test_report_page import PATIENCE, browser, log, open_page, pytestmark, until
from tests.support.page_dom import DEEP, SERIES, rgb
from tests.support.picture_sessions import COLUMNS, SIDE, bought_images, bought_rows, bought_scans
from tests.support.report_sessions import record

__all__ = ["browser", "pytestmark"]

CONTRAST = 4.5
"""Of text, by WCAG 2.2, success criterion 1.4.3."""
SMALLEST = 11.0
"""Pixels of letters."""
TURNED = [(360, ("dark", "light")), (1400, ("light", "dark"))]
"""Widths, and the colours in which a page is loaded and into which it is then turned."""

READ = (
    DEEP
    + """
const luminance = (colour) => {
  const [r, g, b] = colour.slice(0, 3).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parts = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement || at.getRootNode().host) {
    const colour = parts(
      at.matches("svg") && isDrawing(at) ? paper(at) : getComputedStyle(at).backgroundColor
    );
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const found = [];
const read = (root) => {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.shadowRoot) read(node.shadowRoot);
    if (node.nodeType !== Node.TEXT_NODE) continue;
    const owner = node.parentElement || root.host, box = owner.getBoundingClientRect();
    if (!node.data.trim() || !box.width || !box.height || owner.closest("script, style")) continue;
    const style = getComputedStyle(owner);
    if (style.fill === "none") continue;  // the outline of a text that has none
    const ink = luminance(parts(owner.closest("svg") ? style.fill : style.color));
    const paper = luminance(behind(owner));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    found.push([node.data.trim().slice(0, 40), ratio, parseFloat(style.fontSize)]);
  }
};
read(document.body);
return found;
"""
)
"""Every text that is seen: its beginning, its contrast, and the size of its letters."""


SPARE = "return arguments[0].scrollWidth - arguments[0].clientWidth"
EDGES = """
const [picture, ink, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  done([0, image.width - 1].map((x) => {
    const pixels = canvas.getImageData(x, 0, 1, image.height).data;
    const rows = Array.from({ length: image.height }, (_, y) => 4 * y);
    return rows.filter((at) => ink.every((part, i) => pixels[at + i] === part)).length / image.height;
  }));
};
image.src = `data:image/png;base64,${picture}`;
"""
"""Shares of a picture's first and last columns that are of a colour."""


def edges(browser: webdriver.Chrome, box: WebElement, ink: str) -> tuple[bool, bool]:
    """Whether the left and the right edge of a box have a line of that colour."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    rgb = [int(ink[place : place + 2], 16) for place in (1, 3, 5)]
    left, right = browser.execute_async_script(EDGES, box.screenshot_as_base64, rgb)
    return left > 0.5, right > 0.5


def luminance(colour: str) -> float:
    """By WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]


def contrast(one: str, other: str) -> float:
    """By WCAG 2.2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a table, of images, and of columns of images with what was offered."""
    found = {}
    for name, make in (("table", bought_rows), ("images", bought_images), ("scans", bought_scans)):
        place = tmp_path_factory.mktemp(name)
        bought = make(place)
        image = Image(SIDE, SIDE + 1) if name == "images" else None
        columns = DataColumns(label="paid" if name == "table" else None)
        offered = tuple(place / f"{owner}.npz" for owner in ("north", "south") if name == "scans")
        wanted = ConsumerRows(validation=bought.validation, columns=columns, image=image, offered=offered)
        write_report([bought.consumer], place / "page.html", wanted=wanted)
        found[name] = place / "page.html"
    return found


@pytest.fixture
def view(browser: webdriver.Chrome) -> Iterator[Any]:
    """Sets the width and the colours of pages opened next."""

    def set_to(width: int, scheme: str) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    yield set_to
    browser.get("about:blank")  # so that no plot is drawn at the width that comes back
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def shown_in(browser: webdriver.Chrome, scheme: str) -> bool:
    """Whether plots have the paper of these colours, and none has the other, two frames later."""
    own, other = (
        rgb(paper) for paper in ((PAPER, DARK[PAPER]) if scheme == "light" else (DARK[PAPER], PAPER))
    )
    papers = browser.execute_async_script(
        DEEP
        + """
        const done = arguments[0], look = () => done(drawings(document).map(paper));
        requestAnimationFrame(() => requestAnimationFrame(look));
        """
    )
    return own in papers and other not in papers


@pytest.mark.parametrize(
    ("name", "width", "schemes"),
    [
        *((name, *view) for name in ("table", "images") for view in TURNED),
        ("scans", 360, ("dark",)),
    ],
    ids=lambda value: "-then-".join(value) if isinstance(value, tuple) else str(value),
)
def test_everything_can_be_read(
    browser: webdriver.Chrome,
    view: Any,
    pages: dict[str, Path],
    name: str,
    width: int,
    schemes: tuple[str, ...],
) -> None:
    view(width, schemes[0])
    open_page(browser, pages[name])
    for scheme in schemes:
        view(width, scheme)
        until(browser, lambda scheme=scheme: shown_in(browser, scheme))  # type: ignore[misc]
        assert log(browser) == []
        assert browser.execute_script(SPARE, browser.find_element("tag name", "html")) == 0
        texts: list[tuple[str, float, float]] = browser.execute_script(READ)
        assert len(texts) > 100
        assert any("Column by column" in text or "The images" in text for text, _, _ in texts)
        # Of the plots, too: an axis, its ticks, and a legend.
        assert {"MMD² against the validation set", "10", "this session"} <= {text for text, _, _ in texts}
        assert [each for each in texts if each[1] < CONTRAST or each[2] < SMALLEST] == []


def test_names_of_owners_make_no_page_wider_however_long(
    browser: webdriver.Chrome, view: Any, tmp_path: Path
) -> None:
    owners = [f"{number}-{'a-long-name' * 5}" for number in range(9)]
    page = tmp_path / "page.html"
    write_report([record(tmp_path, owners=owners).paths[CURATOR]], page)
    view(360, "light")
    open_page(browser, page)
    assert browser.execute_script(SPARE, browser.find_element("tag name", "html")) == 0
    frames: list[float] = browser.execute_script(
        DEEP
        + "return deep(document, '.bk-CartesianFrame').map((frame) => frame.getBoundingClientRect().width)"
    )
    assert min(frames) > 100


def test_faint_text_would_be_found(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = tmp_path / "faint.html"
    page.write_text(
        "<!DOCTYPE html><title>x</title><p style='color: #8a8a8a'>faint<p style='color: #555'>not"
    )
    browser.get(page.as_uri())
    assert [(text, ratio < CONTRAST) for text, ratio, _ in browser.execute_script(READ)] == [
        ("faint", True),
        ("not", False),
    ]


def test_every_picture_is_drawn_and_has_words(browser: webdriver.Chrome, pages: dict[str, Path]) -> None:
    open_page(browser, pages["table"])
    marks: dict[str, int] = browser.execute_script(
        DEEP
        + """
        return Object.fromEntries(Array.from(document.querySelectorAll(".plot"), (plot) =>
            [plot.id, drawings(plot).flatMap((svg) => deep(svg, "path").filter(seen(arguments[0]))).length]));
        """,
        SERIES,
    )
    expected = {f"plot-column-{place}" for place in range(len(COLUMNS))} | {"plot-principal", "plot-weights"}
    assert expected <= set(marks)
    assert all(marks.values()), marks
    words: list[int] = browser.execute_script(
        """
        return Array.from(document.querySelectorAll("[role=img]"), (picture) =>
            document.getElementById(picture.getAttribute("aria-labelledby")).textContent.length);
        """
    )
    assert len(words) == len(marks)
    assert min(words) > 20


def test_images_are_seen(browser: webdriver.Chrome, pages: dict[str, Path]) -> None:
    open_page(browser, pages["images"])
    sizes: list[list[int]] = browser.execute_script(
        "return Array.from(document.images, (each) => [each.naturalWidth, each.naturalHeight, each.width])"
    )
    assert len(sizes) == 70
    assert all(each[:2] == [SIDE, SIDE + 1] and each[2] >= 32 for each in sizes)


def test_images_of_columns_are_seen_and_so_is_what_was_offered(
    browser: webdriver.Chrome, pages: dict[str, Path]
) -> None:
    open_page(browser, pages["scans"])
    sizes: list[list[int]] = browser.execute_script(
        "return Array.from(document.images, (each) => [each.naturalWidth, each.naturalHeight, each.width])"
    )
    assert [each[:2] for each in sizes] == [[SIDE, SIDE + 1]] * 35 + [[3, 2]] * 35
    assert min(each[2] for each in sizes) >= 32
    kinds = """
    const { renderers } = view(document.getElementById("plot-principal")).model;
    return renderers.map((each) => [each.name, each.data_source.data.x.length]);
    """
    assert browser.execute_script(DEEP + kinds) == [["offered", 60], ["wanted", 15], ["bought", 20]]


def test_colours_follow_the_reader_s_choice_but_not_onto_paper(
    browser: webdriver.Chrome, view: Any, pages: dict[str, Path]
) -> None:
    # The paper of a plot, and whether the bars of the weights are all of the one green or the other.
    colours = (
        DEEP
        + """
    const [plot] = drawings(document.getElementById("plot-weights"));
    const count = (green) => deep(plot, "path").filter(seen([green])).length;
    const found = [paper(plot), count(arguments[0]), count(arguments[1])];
    """
    )
    greens = [rgb(GREEN), rgb(DARK[GREEN])]

    def turns(expected: list[Any]) -> None:
        # The browser tells a page of other colours with its next frame, not before the command has returned.
        WebDriverWait(browser, PATIENCE).until(
            lambda driver: driver.execute_script(f"{colours} return found", *greens) == expected,
            message=str(expected),
        )

    view(1400, "light")
    open_page(browser, pages["table"])
    paper, bars, none = browser.execute_script(f"{colours} return found", *greens)
    assert (paper, bars > 3, none) == (rgb(PAPER), True, 0)
    view(1400, "dark")
    turns([rgb(DARK[PAPER]), 0, bars])
    browser.execute_script(
        "const [light, dark] = arguments; window.onbeforeprint = () => {"
        f"(function () {{ {colours} window.printed = found; }})(light, dark); }}",
        *greens,
    )
    assert base64.b64decode(browser.print_page()).startswith(b"%PDF-")
    assert browser.execute_script("return window.printed") == [rgb(PAPER), bars, 0]
    turns([rgb(DARK[PAPER]), 0, bars])


STYLE = (ROOT / "hushbid" / "report" / "page.css").read_text(encoding="utf-8")
COLOURS = {
    name: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", part))
    for name, part in zip(("light", "dark"), STYLE.split(" color-scheme: ")[1:], strict=True)
}


@pytest.mark.parametrize("scheme", COLOURS)
def test_a_table_that_goes_on_beyond_an_edge_shows_it_there(
    browser: webdriver.Chrome, view: Any, pages: dict[str, Path], tmp_path: Path, scheme: str
) -> None:
    # The style sheet does it, and plots take a second to be drawn.
    page, text = tmp_path / "page.html", pages["table"].read_text(encoding="utf-8")
    page.write_text(re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    view(360, scheme)
    browser.get(page.as_uri())
    boxes = browser.find_elements("class name", "table")
    spare = [browser.execute_script(SPARE, box) for box in boxes]
    wide, narrow = boxes[spare.index(max(spare))], boxes[spare.index(0)]
    ink = COLOURS[scheme]["muted"]
    assert edges(browser, narrow, ink) == (False, False)
    seen = []
    for share in (0.0, 0.5, 1.0):
        browser.execute_script("arguments[0].scrollLeft = arguments[1]", wide, share * max(spare))
        seen.append(edges(browser, wide, ink))
    assert seen == [(False, True), (True, True), (True, False)]


@pytest.mark.parametrize("scheme", COLOURS)
def test_text_can_be_read_on_the_shade_of_an_edge(scheme: str) -> None:
    colours = COLOURS[scheme]
    for text in ("ink", "muted", "accent", "alert"):
        assert contrast(colours[text], colours["shade"]) >= CONTRAST, text
    assert contrast(colours["muted"], colours["paper"]) >= 3.0  # of the line, by criterion 1.4.11
