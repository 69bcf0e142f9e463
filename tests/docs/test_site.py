"""The documents as a site: it builds without a warning, is found by search, and its pages are short."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium import webdriver
from selenium.webdriver.common.by import By

import hushbid
from tests.conftest import ROOT
from tests.docs.pages import Page
from tests.processes.test_report_page import browser, log, until
from tests.processes.test_report_page import pytestmark as needs_browser
from tests.unit.project.figures import words_of

__all__ = ["browser"]

MOST_WORDS_FIRST = 1_000
"""On the first page of each kind."""
KINDS = ["Tutorials", "How-to", "Reference", "Explanation", "Studies"]


class Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads mkdocs.yml, ignoring its Python objects."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@pytest.fixture(scope="module")
def kinds() -> dict[str, list[str]]:
    """The pages of each kind, in their order."""
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)["nav"]
    return {kind: pages for entry in nav for kind, pages in entry.items() if isinstance(pages, list)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    done = build(place)
    assert done.returncode == 0, done.stderr
    return place


def build(place: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--config-file",
        config,
        "--site-dir",
        place,
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    """The site's address: search needs one, as a page from the disk may start no worker."""
    handler = functools.partial(Silent, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Silent(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def test_a_page_that_leads_nowhere_or_is_left_out_would_fail_the_build(tmp_path: Path) -> None:
    """The settings are the site's own; only the pages differ."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[there](nowhere.md) and [there](#nowhere)\n")
    (docs / "left-out.md").write_text("# Left out\n")
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    few = {name: settings[name] for name in ("site_name", "strict", "validation")}
    config = tmp_path / "mkdocs.yml"
    config.write_text(yaml.safe_dump({**few, "nav": [{"Home": "index.md"}]}))
    done = build(tmp_path / "built", config)
    assert done.returncode == 1
    for expected in ("left-out.md", "nowhere.md", "#nowhere"):
        assert expected in done.stderr


def test_pages_are_sorted_by_what_readers_want(kinds: dict[str, list[str]]) -> None:
    assert list(kinds) == KINDS
    named = [page for pages in kinds.values() for page in pages]
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(named) == sorted(there - {"index.md"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_page_of_a_kind_is_short(kinds: dict[str, list[str]], kind: str) -> None:
    assert words_of(ROOT / "docs" / kinds[kind][0]) <= MOST_WORDS_FIRST


def test_every_public_name_is_in_the_reference() -> None:
    text = Page("docs/api.md").text
    assert re.findall(r"^::: hushbid\.(\w+)$", text, re.M) != []
    names = set(re.findall(r"^::: hushbid\.(\w+)$", text, re.M))
    assert names == {name for name in hushbid.__all__ if not name.startswith("_")}


def test_the_reference_says_what_the_code_says(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    assert "Buy points of these owners that resemble a validation set." in page
    assert 'id="hushbid.procuring.procure"' in page or 'id="hushbid.procure"' in page


@needs_browser
@pytest.mark.parametrize("width", [360, 1400])
def test_a_page_fits_the_window_and_complains_of_nothing(
    browser: webdriver.Chrome, served: str, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for name in ("index", "first-purchase", "configuration", "api"):
        log(browser)
        browser.get(f"{served}/{name}.html")
        until(browser, lambda: browser.execute_script("return document.readyState") == "complete")
        assert browser.find_element(By.CSS_SELECTOR, "article h1").text != ""
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, name
        assert [entry for entry in log(browser) if "favicon" not in entry["message"]] == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@needs_browser
def test_search_finds_a_page(browser: webdriver.Chrome, served: str) -> None:
    browser.get(f"{served}/index.html?q=odometer")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "a.md-search-result__link") != [])
    links = browser.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")
    assert any("terms.html" in str(link.get_attribute("href")) for link in links)
