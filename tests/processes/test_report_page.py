"""The report of a run, in headless Chromium: it draws everything, complains of nothing, and prints."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.report.plots import STATE_NAMES
from tests.processes.test_run import start
from tests.unit.hushbid.cluster.test_cluster import DIGITS

EXACT = DIGITS.with_name("exact.toml")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 120.0
PLOTS = {"quality", "objective", "gains", "map", "counts", "shares", "times"}
"""Those of a session without privacy, which has no odometer."""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs chromium and chromedriver, which `make browser` installs on Debian",
)


def hushbid(*arguments: object) -> dict[str, Any]:
    """The JSON that a verb prints."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    ended = start(EXACT, tmp_path_factory.mktemp("runs") / "exact", "session.points=60").end()
    assert ended.code == 0, ended.err
    return ended.json


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = str(CHROMIUM)
    # In a container there is no sandbox of its own to be had, nor much shared memory.
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.add_argument("--window-size=1200,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The driver that is here: without its path selenium would look for one on the network.
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def opened(browser: webdriver.Chrome, run: dict[str, Any]) -> webdriver.Chrome:
    """The browser with the run's report, drawn."""
    open_page(browser, Path(run["report"]))
    return browser


def open_page(browser: webdriver.Chrome, page: Path) -> None:
    browser.get(page.as_uri())
    WebDriverWait(browser, PATIENCE).until(
        lambda driver: driver.execute_script("return document.documentElement.dataset.drawn")
    )


def log(browser: webdriver.Chrome, kind: str = "browser") -> list[dict[str, Any]]:
    """What was logged since the last call; of the browser, what its console says."""
    entries: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def embedded(browser: webdriver.Chrome) -> dict[str, Any]:
    """The figures, as the page's own programs read them."""
    found: dict[str, Any] = browser.execute_script(
        "return JSON.parse(document.getElementById('figures').textContent)"
    )
    return found


def test_the_console_has_nothing_to_say(opened: webdriver.Chrome) -> None:
    assert log(opened) == []


def test_a_fault_would_be_noticed(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = tmp_path / "fault.html"
    page.write_text("<!DOCTYPE html><title>x</title><script>null.x</script>")
    browser.get(page.as_uri())
    assert any("null" in entry["message"] for entry in log(browser))


def test_every_plot_is_drawn(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    open_page(browser, Path(run["report"]))
    drawn: dict[str, dict[str, int]] = browser.execute_script(
        """
        const marks = ".scatterlayer path, .barlayer path, .heatmaplayer image";
        return Object.fromEntries(Array.from(document.querySelectorAll(".plot"), (plot) => [
            plot.id.replace("plot-", ""),
            {
                marks: plot.querySelectorAll(marks).length,
                width: Math.round(plot.querySelector(".main-svg").getBoundingClientRect().width),
                height: Math.round(plot.querySelector(".main-svg").getBoundingClientRect().height),
            },
        ]));
        """
    )
    assert set(drawn) == PLOTS
    for name, found in drawn.items():
        assert found["marks"] > 0, name
        assert found["width"] > 600, name
        assert found["height"] > 100, name
    assert drawn["gains"]["marks"] >= 60


def test_no_button_uploads_anything(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    open_page(browser, Path(run["report"]))
    bars: list[list[str]] = browser.execute_script(
        """
        return Array.from(document.querySelectorAll(".plot"), (plot) =>
            Array.from(plot.querySelectorAll(".modebar-btn"), (button) => button.dataset.title));
        """
    )
    assert len(bars) == len(PLOTS)
    assert all(bar == ["Zoom", "Pan", "Reset axes", "Download plot"] for bar in bars), bars
    links = browser.execute_script("return document.querySelectorAll('a, form, iframe').length")
    assert links == 0


@pytest.mark.parametrize("width", [1200, 420])
def test_the_toolbar_covers_no_plot(browser: webdriver.Chrome, run: dict[str, Any], width: int) -> None:
    before = browser.get_window_size()
    try:
        browser.set_window_size(width, 1000)
        open_page(browser, Path(run["report"]))
        overlaps: list[float] = browser.execute_script(
            """
            return Array.from(document.querySelectorAll(".plot"), (plot) =>
                plot.querySelector(".modebar-group").getBoundingClientRect().bottom
                - plot.querySelector(".main-svg").getBoundingClientRect().top);
            """
        )
    finally:
        browser.set_window_size(before["width"], before["height"])
    assert len(overlaps) == len(PLOTS)
    assert max(overlaps) <= 0


def test_plots_keep_their_height_when_the_window_changes(
    browser: webdriver.Chrome, run: dict[str, Any]
) -> None:
    open_page(browser, Path(run["report"]))
    before = heights(browser)
    size = browser.get_window_size()
    try:
        browser.set_window_size(900, 800)
        WebDriverWait(browser, PATIENCE).until(
            lambda driver: driver.execute_script(
                "return Array.from(document.querySelectorAll('.plot'))"
                ".every((plot) => plot._fullLayout.width === plot.clientWidth)"
            )
        )
        after = heights(browser)
    finally:
        browser.set_window_size(size["width"], size["height"])
    assert after == before
    assert all(box == plot > 100 for box, plot in after.values())


def heights(browser: webdriver.Chrome) -> dict[str, tuple[int, int]]:
    """Of each plot: of its place in the page, and of what is drawn there."""
    found: dict[str, list[int]] = browser.execute_script(
        """
        const height = (element) => Math.round(element.getBoundingClientRect().height);
        return Object.fromEntries(Array.from(document.querySelectorAll(".plot"), (plot) =>
            [plot.id, [height(plot), height(plot.querySelector(".main-svg"))]]));
        """
    )
    return {name: (box, plot) for name, (box, plot) in found.items()}


def test_a_cell_of_the_map_says_what_it_means(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    open_page(browser, Path(run["report"]))
    texts: list[list[str]] = browser.execute_script("return document.getElementById('plot-map').data[0].text")
    states = embedded(browser)["rounds"]["map"]["states"]
    assert [[STATE_NAMES[letter] for letter in row] for row in states] == texts
    assert sum(text == "its point was chosen" for row in texts for text in row) == 60


def test_nothing_is_fetched(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    log(browser, "performance")
    open_page(browser, Path(run["report"]))
    sent = [
        message["params"]["request"]["url"]
        for entry in log(browser, "performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in sent if not url.startswith(("data:", "blob:"))] == [Path(run["report"]).as_uri()]


def test_its_figures_are_those_of_the_result(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    open_page(browser, Path(run["report"]))
    figures = embedded(browser)
    assert figures["session"]["bought"] == run["points_delivered"] == 60
    assert figures["rounds"]["run"] == run["rounds"]
    assert figures["session"]["m"] == run["m"]
    for curve, figure in (("session", "mmd2"), ("greedy", "mmd2_greedy"), ("uniform", "mmd2_uniform")):
        assert figures["quality"][curve]["last"] == pytest.approx(run[figure], abs=1e-12)
    settled = dict(zip(figures["owners"]["name"], figures["owners"]["settlement"], strict=True))
    assert settled == run["settlement"]
    assert sum(figures["owners"]["raw"]) == run["points_accessed_curator"]
    assert figures["privacy"] == run["privacy"]
    assert figures["odometers"] == run["odometer"]


def test_its_figures_are_those_that_the_verb_prints(
    browser: webdriver.Chrome, run: dict[str, Any], tmp_path: Path
) -> None:
    evaluation, page = Path(run["directory"]) / "evaluation.json", tmp_path / "page.html"
    told = [run["transcripts"][party] for party in (CURATOR, CONSUMER)]
    printed = hushbid("report", *told, "--evaluation", evaluation, "--output", page)
    open_page(browser, page)
    assert embedded(browser) == printed["figures"]
    assert page.read_bytes() == Path(run["report"]).read_bytes()


def test_it_is_small_and_prints(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    assert Path(run["report"]).stat().st_size < 6_000_000
    open_page(browser, Path(run["report"]))
    printed = base64.b64decode(browser.print_page())
    assert printed.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 15
    assert log(browser) == []


def test_it_is_drawn_of_all_parties_and_of_a_redacted_file(
    browser: webdriver.Chrome, run: dict[str, Any], tmp_path: Path
) -> None:
    page, copy = tmp_path / "page.html", tmp_path / "redacted.transcript"
    hushbid("transcript", "export", run["transcripts"][CURATOR], "--redact", "--output", copy)
    for told, plots in (([copy], {"times"}), (run["transcripts"].values(), PLOTS)):
        hushbid("report", *told, "--output", page)
        open_page(browser, page)
        drawn = browser.execute_script("return document.querySelectorAll('.plot .main-svg').length > 0")
        assert drawn
        assert int(browser.execute_script("return document.documentElement.dataset.drawn")) == len(plots)
        assert log(browser) == []
