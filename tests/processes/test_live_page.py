"""The page of a running session in headless Chromium: it follows, or keeps its place, and asks only us."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver

from hushbid.cli.web import LiveState
from hushbid.protocol.names import CURATOR
from hushbid.replay.serving import PageServer
from tests.processes.test_replay_page import click, emulate, step, text
from tests.processes.test_report_page import browser, log, pytestmark, until
from tests.processes.test_report_pictures_page import CONTRAST, READ, SMALLEST
from tests.support.replay_sessions import recorded_with
from tests.support.transcripts import record_spans
from tests.unit.hushbid.cli.test_watch import CURATOR as CURATORS
from tests.unit.hushbid.cli.test_watch import write
from tests.unit.hushbid.report.test_report_page import HOSTILE

__all__ = ["browser", "pytestmark"]


class Growing:
    """A session of which tests let so much be written, and its page's server."""

    def __init__(self, place: Path) -> None:
        self._images = {
            party: path.read_bytes()
            for party, path in recorded_with(place, "sealed", rounds=12).items()
            if party in (CURATOR, "owner-0")
        }
        self.run = place / "run"
        self.course = LiveState([self.run])
        self.server = PageServer(0, self.course.served)

    def look(self) -> None:
        self.course.go_on(time.time())
        self.server.serve(self.course.served)

    def grow(self, share: float, *parties: str) -> int:
        """Let the parties write on; returns the number of steps."""
        for party in parties or tuple(self._images):
            ends = [end for _, end in record_spans(self._images[party])]
            path = self.run / "parties" / party / "state" / f"{party}.transcript"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._images[party][: ends[int(share * (len(ends) - 1))] + 9])
        self.look()
        return 0 if self.course.facts is None else len(self.course.facts.steps.round)


@pytest.fixture
def growing(tmp_path: Path, browser: webdriver.Chrome) -> Iterator[Growing]:
    found = Growing(tmp_path)
    with found.server:
        yield found
        browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    log(browser)


def drawn(browser: webdriver.Chrome) -> int:
    return int(browser.execute_script("return document.documentElement.dataset.drawn") or 0)


def test_it_waits_for_the_session_and_follows_it(browser: webdriver.Chrome, growing: Growing) -> None:
    log(browser)
    browser.get(growing.server.address)
    growing.look()
    until(browser, lambda: "No party has begun yet." in text(browser, "live"))
    assert "is not there yet" in text(browser, "live-parties")
    for share in (0.3, 0.6, 1.0):
        steps = growing.grow(share)
        until(browser, lambda: drawn(browser) == steps)  # noqa: B023 - it is met before the next
        assert step(browser) == steps
        assert text(browser, "more") == "New steps follow."
    assert "of 12" in text(browser, "where") or "delivery and end" in text(browser, "where")
    assert "who was asked" in text(browser, "live-notices")
    assert "hushbid replay shows the whole" in text(browser, "live-notices"), "code, and no backticks"
    assert log(browser) == []


def test_who_looks_back_stays_there_and_is_told_that_there_is_more(
    browser: webdriver.Chrome, growing: Growing
) -> None:
    first = growing.grow(0.4, CURATOR)
    browser.get(growing.server.address)
    # What the parties do stands above the buttons, and moves them when it comes.
    until(browser, lambda: drawn(browser) == first and "The session runs." in text(browser, "live"))
    click(browser, "round-back", "round-back", "forward")
    before, moment = step(browser), text(browser, "now")
    where = text(browser, "where").partition(", ")[2]
    assert 0 < before < first
    assert text(browser, "more") == f"There is more: {first - before} later steps. End follows."
    steps = growing.grow(0.8)
    until(browser, lambda: drawn(browser) == steps)
    assert text(browser, "now") == moment
    assert text(browser, "where").partition(", ")[2] == where
    assert text(browser, "more").startswith(f"There is more: {steps - step(browser)} later steps.")
    click(browser, "last")
    assert step(browser) == steps
    steps = growing.grow(1.0)
    until(browser, lambda: drawn(browser) == steps)
    assert step(browser) == steps, "it follows again"


def test_it_asks_its_own_server_and_nobody_else(browser: webdriver.Chrome, growing: Growing) -> None:
    steps = growing.grow(0.5)
    log(browser, "performance")
    browser.get(growing.server.address)
    until(browser, lambda: drawn(browser) == steps and "The session runs." in text(browser, "live"))
    browser.execute_async_script("setTimeout(arguments[0], 2200)")
    asked = [
        message["params"]["request"]["url"]
        for entry in log(browser, "performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    address = growing.server.address
    assert {url.partition("?")[0] for url in asked if url != "about:blank"} == {address, f"{address}facts"}
    elsewhere = (
        "const done = arguments[1]; fetch(arguments[0]).then(() => done('got'), () => done('refused'))"
    )
    assert browser.execute_async_script(elsewhere, "http://127.0.0.1:9/") == "refused"
    assert any("Content Security Policy" in each["message"] for each in log(browser))


def test_a_session_that_was_over_goes_on(browser: webdriver.Chrome, growing: Growing) -> None:
    """A party that ended early, and is restarted, writes on: the page follows it."""
    run = growing.run
    statuses = [CURATORS, replace(CURATORS, party="owner-0", role="owner")]
    first = growing.grow(0.5)
    for status in statuses:
        write(run, replace(status, finished=True, exit_code=1))
    growing.look()
    browser.get(growing.server.address)
    until(browser, lambda: drawn(browser) == first and "The session is over." in text(browser, "live-state"))
    for status in statuses:
        write(run, replace(status, beat=time.time()))
    steps = growing.grow(0.9)
    until(browser, lambda: drawn(browser) == steps and "The session runs." in text(browser, "live-state"))
    for status in statuses:
        write(run, replace(status, finished=True, exit_code=0))
    growing.look()
    until(browser, lambda: "The session is over." in text(browser, "live-state"))
    growing.server.close()
    until(browser, lambda: "Nothing new can be asked for" in text(browser, "live-state"))
    assert text(browser, "live-state").startswith("The session is over.")


def test_it_stops_asking_when_nobody_answers(browser: webdriver.Chrome, growing: Growing) -> None:
    steps = growing.grow(0.5)
    browser.get(growing.server.address)
    until(browser, lambda: drawn(browser) == steps and "The session runs." in text(browser, "live"))
    growing.server.close()
    until(browser, lambda: "Nothing new can be asked for" in text(browser, "live-state"))
    assert step(browser) == steps
    log(browser)
    browser.execute_async_script("setTimeout(arguments[0], 2200)")
    assert log(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_and_others_words_are_text(
    browser: webdriver.Chrome, growing: Growing, scheme: str
) -> None:
    steps = growing.grow(0.7)
    news = json.loads(growing.course.served.news)
    news |= {"awaited": [[HOSTILE, HOSTILE]], "parties": [[HOSTILE] * 9], "titles": [HOSTILE] * 9}
    news["notices"] += [{"title": HOSTILE, "lines": [HOSTILE], "alert": True}]
    growing.server.serve(replace(growing.course.served, news=json.dumps(news).encode()))
    browser.get(growing.server.address)
    emulate(browser, 360, prefers_color_scheme=scheme)
    until(browser, lambda: drawn(browser) == steps and "The session runs." in text(browser, "live"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    texts: list[tuple[str, float, float]] = browser.execute_script(READ)
    assert len(texts) > 60
    assert [each for each in texts if each[1] < CONTRAST] == []
    assert [each for each in texts if each[2] < SMALLEST] == []
    assert text(browser, "live").count(HOSTILE) == 9 + 9 + 2 + 2
    assert browser.execute_script("return document.querySelectorAll('img, #live b, #live a').length") == 0
    assert log(browser) == []
