"""The report of a run, in headless Chromium: it draws everything, logs no complaint, and prints."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.report.naming import named
from hushbid.report.page import page_of
from hushbid.report.plots import STATE_NAMES
from hushbid.report.style import MUTED
from tests.processes.test_run import start
from tests.support.page_dom import DEEP, SERIES, rgb
from tests.support.report_sessions import record
from tests.unit.hushbid.cluster.test_cluster import DIGITS
from tests.unit.hushbid.report.test_report_page import BYTES

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
    # An arrow that moves is drawn sixty times a second by the processor, as long as a page is open.
    options.add_argument("--force-prefers-reduced-motion")
    options.add_argument("--window-size=1200,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # The driver that is here: without its path selenium would look for one on the network.
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


def open_page(browser: webdriver.Chrome, page: Path) -> None:
    browser.get(page.as_uri())
    WebDriverWait(browser, PATIENCE).until(
        lambda driver: driver.execute_script("return document.documentElement.dataset.drawn")
    )


def look_at(browser: webdriver.Chrome, page: Path) -> None:
    """Show a page to a test that only reads it: what such a test has left there is not loaded again."""
    if browser.execute_script("return window.onlyRead") != page.as_uri():
        open_page(browser, page)
        browser.execute_script("window.onlyRead = arguments[0]", page.as_uri())


def take(browser: webdriver.Chrome, page: Path) -> None:
    """Show a page to a test that changes it: the next one will load it."""
    look_at(browser, page)
    browser.execute_script("delete window.onlyRead")


@contextmanager
def borrow(browser: webdriver.Chrome, page: Path) -> Iterator[None]:
    """Show a page to a test that sees to it that it is as before; if it fails, the next will load it."""
    take(browser, page)
    yield
    browser.execute_script("window.onlyRead = arguments[0]", page.as_uri())


def log(browser: webdriver.Chrome, kind: str = "browser") -> list[dict[str, Any]]:
    """The lines logged since the last call, among them the browser's console."""
    entries: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def embedded(browser: webdriver.Chrome) -> dict[str, Any]:
    """The figures, as the page's own programs read them."""
    found: dict[str, Any] = browser.execute_script(
        "return JSON.parse(document.getElementById('figures').textContent)"
    )
    return found


def test_the_console_has_nothing_to_say(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    browser.get("about:blank")
    log(browser)
    look_at(browser, Path(run["report"]))
    assert log(browser) == []


def test_every_plot_is_drawn(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    look_at(browser, Path(run["report"]))
    drawn: dict[str, dict[str, int]] = browser.execute_script(
        DEEP
        + """
        return Object.fromEntries(Array.from(document.querySelectorAll(".plot"), (plot) => {
            const svgs = drawings(plot);
            const boxes = svgs.map((svg) => svg.getBoundingClientRect());
            const marks = svgs.flatMap((svg) => deep(svg, "path").filter(seen(arguments[0])));
            return [plot.id.replace("plot-", ""), {
                marks: marks.length + svgs.flatMap((svg) => deep(svg, "image")).length,
                width: Math.round(boxes.reduce((sum, box) => sum + box.width, 0)),
                height: Math.round(boxes[0].height),
            }];
        }));
        """,
        SERIES,
    )
    assert set(drawn) == PLOTS
    for name, found in drawn.items():
        assert found["marks"] > 0, name
        assert found["width"] > 600, name
        assert found["height"] > 100, name
    assert drawn["gains"]["marks"] >= 60


def test_no_button_uploads_anything(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    look_at(browser, Path(run["report"]))
    bars: list[list[str]] = browser.execute_script(
        DEEP
        + """
        return deep(document, ".bk-Toolbar").map((bar) =>
            deep(bar.shadowRoot, "[title]").map((button) => button.title));
        """
    )
    assert len(bars) == len(PLOTS) + 1, "shares and settlement have one each"
    assert all(bar == ["Pan", "Zoom", "Reset", "Save as SVG"] for bar in bars), bars
    links = browser.execute_script(DEEP + "return deep(document, 'a, form, iframe').length")
    assert links == 0


def test_a_cell_of_the_map_says_what_it_means(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    look_at(browser, Path(run["report"]))
    texts: list[list[str]] = browser.execute_script(
        DEEP
        + """
        const [cells] = view(document.getElementById("plot-map")).model.renderers;
        return cells.data_source.data.state.map(([row]) => row);
        """
    )
    states = embedded(browser)["rounds"]["map"]["states"]
    assert [[STATE_NAMES[letter] for letter in row] for row in states] == texts
    assert sum(text == "its point was chosen" for row in texts for text in row) == 60


def quality(browser: webdriver.Chrome, script: str) -> Any:
    """A script's finding about `plot`, that of the distances."""
    plot = "const plot = document.getElementById('plot-quality'); plot.scrollIntoView({ block: 'center' });"
    return browser.execute_script(f"{DEEP}{plot}{script}")


TOLD = """
return deep(document.body, ".bk-Tooltip").filter((box) => box.getClientRects().length)
    .map((box) => box.shadowRoot.textContent).join();
"""
TICKS = "return deep(drawings(plot)[0], 'text').map((text) => text.textContent).join()"
BUTTON = "return deep(plot, '[title]').find((button) => button.title === arguments[0])"


def until(browser: webdriver.Chrome, met: Callable[[], bool]) -> None:
    """Wait for the page's next frames."""
    WebDriverWait(browser, PATIENCE).until(lambda _: met())


def button(browser: webdriver.Chrome, name: str) -> WebElement:
    found: WebElement = quality(browser, BUTTON.replace("arguments[0]", json.dumps(name)))
    return found


def test_the_pointer_is_told_the_values_that_it_is_at(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    with borrow(browser, Path(run["report"])):
        for plot, words in (
            ("quality", ("points", "this session", "greedy, nothing private")),
            ("gains", ()),
            ("map", ("owner", "round", "point")),
        ):
            place = browser.find_element("id", f"plot-{plot}")
            browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", place)
            ActionChains(browser).move_to_element(place).perform()
            for word in words:
                until(browser, lambda word=word: word in browser.execute_script(DEEP + TOLD))  # type: ignore[misc]
        ActionChains(browser).move_to_element(browser.find_element("tag name", "footer")).perform()
        until(browser, lambda: browser.execute_script(DEEP + TOLD) == "")


def test_a_click_on_the_legend_hides_a_line_and_shows_it_again(
    browser: webdriver.Chrome, run: dict[str, Any]
) -> None:
    with borrow(browser, Path(run["report"])):
        lines = f"return deep(drawings(plot)[0], 'path').filter(seen(['{rgb(MUTED)}'])).length"
        before = quality(browser, lines)
        for left in (before - 1, before):
            ActionChains(browser).click(quality(browser, "return deep(plot, '.bk-item')[0]")).perform()
            until(browser, lambda left=left: quality(browser, lines) == left)  # type: ignore[misc]


def test_a_plot_is_zoomed_into_and_reset(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    with borrow(browser, Path(run["report"])):
        before = quality(browser, TICKS)
        place = browser.find_element("id", "plot-quality")
        drag = ActionChains(browser).move_to_element_with_offset(place, -60, -30).click_and_hold()
        drag.move_by_offset(60, 40).move_by_offset(60, 40).release().perform()
        until(browser, lambda: quality(browser, TICKS) != before)
        ActionChains(browser).click(button(browser, "Reset")).perform()
        until(browser, lambda: quality(browser, TICKS) == before)


def test_plots_keep_their_height_when_the_window_changes(
    browser: webdriver.Chrome, run: dict[str, Any]
) -> None:
    with borrow(browser, Path(run["report"])):
        before = heights(browser)
        size = browser.get_window_size()
        try:
            browser.set_window_size(900, 800)
            after = heights(browser)
        finally:
            browser.set_window_size(size["width"], size["height"])
        assert after == before
        assert all(box == plot > 100 for box, plot in after.values())
        assert heights(browser) == before


def heights(browser: webdriver.Chrome) -> dict[str, tuple[int, int]]:
    """For each plot, as wide as the window lets it be: the height of its place, and of its drawing."""
    until(
        browser,
        lambda: browser.execute_script(
            DEEP + "return Array.from(document.querySelectorAll('.plot'))"
            ".every((plot) => Math.abs(view(plot).bbox.width - plot.clientWidth) < 1)"
        ),
    )
    found: dict[str, list[int]] = browser.execute_script(
        DEEP
        + """
        const height = (element) => Math.round(element.getBoundingClientRect().height);
        return Object.fromEntries(Array.from(document.querySelectorAll(".plot"), (plot) =>
            [plot.id, [height(plot), height(drawings(plot)[0])]]));
        """
    )
    return {name: (box, plot) for name, (box, plot) in found.items()}


def test_a_plot_is_saved_as_a_picture_of_itself(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    take(browser, Path(run["report"]))
    browser.execute_script(
        """
        URL.createObjectURL = (blob) => {
            blob.text().then((text) => { window.saved = [blob.type, text]; });
            return "#";
        };
        HTMLAnchorElement.prototype.dispatchEvent = () => true;
        """
    )
    ActionChains(browser).click(button(browser, "Save as SVG")).perform()
    until(browser, lambda: bool(browser.execute_script("return window.saved")))
    kind, text = browser.execute_script("return window.saved")
    assert kind.startswith("image/svg")
    assert text.startswith("<svg")
    assert "this session" in text
    assert "MMD² against the validation set" in text


@pytest.mark.parametrize("width", [1200, 420])
def test_the_toolbar_covers_no_plot(browser: webdriver.Chrome, run: dict[str, Any], width: int) -> None:
    before = browser.get_window_size()
    try:
        browser.set_window_size(width, 1000)
        open_page(browser, Path(run["report"]))
        overlaps: list[float] = browser.execute_script(
            DEEP
            + """
            const edge = (element, side) => element.getBoundingClientRect()[side];
            return Array.from(document.querySelectorAll(".plot"), (plot) => {
                const bars = deep(plot, ".bk-Toolbar"), frames = deep(plot, ".bk-CartesianFrame");
                const legends = deep(plot, ".bk-Legend").filter((legend) => legend.clientHeight);
                return Math.max(...bars.map((bar, place) => edge(bar, "bottom")
                    - Math.min(...[frames[place], ...legends].map((below) => edge(below, "top")))));
            });
            """
        )
    finally:
        browser.set_window_size(before["width"], before["height"])
    assert len(overlaps) == len(PLOTS)
    assert max(overlaps) <= 0


def test_markup_in_a_name_is_told_as_it_stands(browser: webdriver.Chrome, tmp_path: Path) -> None:
    session = record(tmp_path)
    name = "<b onmouseover='x'>$$a$$ @x{safe} &amp;"
    figures = named(session.figures(CURATOR), dict.fromkeys(session.figures(CURATOR).owners.name, name))
    page = tmp_path / "page.html"
    page.write_text(page_of(figures), encoding="utf-8")
    open_page(browser, page)
    place = browser.find_element("id", "plot-map")
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", place)
    ActionChains(browser).move_to_element(place).perform()
    until(browser, lambda: name in browser.execute_script(DEEP + TOLD))
    assert browser.execute_script(DEEP + "return deep(document, 'b').length") == 0
    legend = "return deep(document, '.bk-label').map((label) => label.textContent)"
    assert name in browser.execute_script(DEEP + legend)
    assert log(browser) == []


def test_a_fault_would_be_noticed(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = tmp_path / "fault.html"
    page.write_text("<!DOCTYPE html><title>x</title><script>null.x</script>")
    browser.get(page.as_uri())
    assert any("null" in entry["message"] for entry in log(browser))


def test_a_browser_that_cannot_draw_says_so(
    browser: webdriver.Chrome, run: dict[str, Any], tmp_path: Path
) -> None:
    page, text = tmp_path / "page.html", Path(run["report"]).read_text(encoding="utf-8")
    page.write_text(text.replace("<body>", "<body><script>delete window.DecompressionStream;</script>", 1))
    browser.get(page.as_uri())
    places = browser.find_elements("class name", "plot")
    until(browser, lambda: all("cannot draw the plots" in place.text for place in places))
    assert len(places) == len(PLOTS)
    assert any("DecompressionStream" in entry["message"] for entry in log(browser))


def test_nothing_is_fetched(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    browser.get("about:blank")
    log(browser, "performance")
    look_at(browser, Path(run["report"]))
    sent = [
        message["params"]["request"]["url"]
        for entry in log(browser, "performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in sent if not url.startswith(("data:", "blob:"))] == [Path(run["report"]).as_uri()]


def test_its_figures_are_those_of_the_result(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    look_at(browser, Path(run["report"]))
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
    assert page.read_bytes() == Path(run["report"]).read_bytes()
    look_at(browser, Path(run["report"]))
    assert embedded(browser) == printed["figures"]


def test_it_is_small_and_prints(browser: webdriver.Chrome, run: dict[str, Any]) -> None:
    assert Path(run["report"]).stat().st_size < BYTES
    take(browser, Path(run["report"]))
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
        drawn = browser.execute_script(DEEP + "return drawings(document).length > 0")
        assert drawn
        assert int(browser.execute_script("return document.documentElement.dataset.drawn")) == len(plots)
        assert log(browser) == []
