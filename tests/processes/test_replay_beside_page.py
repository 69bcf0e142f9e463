"""Two sessions on one slider in headless Chromium: beside each other, or one below the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from hushbid.replay.beside import Beside, beside_of
from hushbid.replay.merging import Recording, recording_of
from hushbid.replay.page import page_of
from tests.processes.test_replay_page import click, emulate, press, show, text, with_shift
from tests.processes.test_report_page import browser, log, pytestmark, until
from tests.processes.test_report_pictures_page import CONTRAST, READ, SMALLEST
from tests.support.report_sessions import record
from tests.unit.hushbid.report.test_report_page import HOSTILE

__all__ = ["browser", "pytestmark"]

WIDTHS = (360, 1400)
LONG, SHORT = 12, 5
"""Rounds of the two sessions."""


def private(epsilon: float) -> dict[str, Any]:
    """A release of owners' summaries."""
    return {"mechanism": "filtered-gaussian", "epsilon": epsilon, "neighbours": "add-remove-one"}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    """A session, and a shorter one with another rule and ε in which an owner is away."""
    long = record(tmp_path_factory.mktemp("long"), rule="sealed", points=LONG, summary=private(3.0))
    short = record(
        tmp_path_factory.mktemp("short"),
        rule="ask-all",
        points=SHORT,
        summary=private(1.0),
        away=lambda number: ["beta"] if number == 3 else [],
    )
    a, b = (recording_of(list(each.paths.values())) for each in (long, short))
    return a, b


@pytest.fixture(scope="module")
def beside(recordings: tuple[Recording, Recording]) -> Beside:
    return beside_of(*recordings)


@pytest.fixture(scope="module")
def page(
    recordings: tuple[Recording, Recording], beside: Beside, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return written(recordings[0], beside, tmp_path_factory.mktemp("page"))


@pytest.fixture(params=WIDTHS)
def opened(
    browser: webdriver.Chrome, page: Path, request: pytest.FixtureRequest
) -> Iterator[webdriver.Chrome]:
    emulate(browser, request.param)
    show(browser, page)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def written(a: Recording, beside: Beside, place: Path) -> Path:
    path = place / "replay.html"
    path.write_text(page_of(a.facts, beside), encoding="utf-8")
    return path


PLACES = "['where', 'where-b'].map((id) => document.getElementById(id).textContent)"


def played(words: list[str]) -> tuple[int, int]:
    """How many steps of each are played, by what stands above them."""
    a, b = (int(each[1].replace(",", "")) if each[0] == "Step" else 0 for each in map(str.split, words))
    return a, b


def places(browser: webdriver.Chrome) -> tuple[int, int]:
    """How many steps of each are played."""
    return played(browser.execute_script(f"return {PLACES}"))


def test_the_slider_moves_both_by_rounds(
    opened: webdriver.Chrome, recordings: tuple[Recording, Recording]
) -> None:
    a, b = (each.facts for each in recordings)
    assert places(opened) == (0, 0)
    slider = opened.find_element("id", "slider")
    assert slider.get_attribute("max") == str(LONG + 1)
    slider.send_keys(*[Keys.ARROW_RIGHT] * 2)
    assert places(opened) == tuple(each.steps.round.index(2) + 1 for each in (a, b))
    assert "round 2 of 12" in text(opened, "where")
    assert "round 2 of 5" in text(opened, "where-b")
    assert (
        slider.get_attribute("aria-valuetext") == f"A: {text(opened, 'where')} B: {text(opened, 'where-b')}"
    )
    slider.send_keys(*[Keys.ARROW_RIGHT] * 6)
    assert places(opened) == (a.steps.round.index(8) + 1, len(b.steps.round)), "the shorter one is at its end"
    slider.send_keys(Keys.END, Keys.ARROW_LEFT)
    assert "round 12 of 12" in text(opened, "where")
    assert log(opened) == []


def test_messages_are_stepped_by_together_and_none_is_left_out(
    opened: webdriver.Chrome, recordings: tuple[Recording, Recording]
) -> None:
    a, b = (each.facts.steps.round for each in recordings)
    # In the page: a call for each of some hundred steps costs more than the step.
    told: list[list[str]] = opened.execute_script(
        f"const told = [{PLACES}];"
        "do {"
        f" document.getElementById('forward').click(); told.push({PLACES});"
        "} while (told.at(-1).join() !== told.at(-2).join() && told.length <= arguments[0]);"
        "return told;",
        len(a) + len(b) + 1,
    )
    *seen, after = (played(words) for words in told)
    assert seen[-1] == after == (len(a), len(b)), "it goes on to the end of both, and no further"
    for at in seen[1:]:
        steps = [column[place - 1] for column, place in zip((a, b), at, strict=True) if place]
        assert len({min(number, SHORT + 1) for number in steps}) == 1, "both are in one round, or at an end"
    assert [a for a, _ in seen] == sorted(a for a, _ in seen)
    assert {each[0] for each in seen} == set(range(len(a) + 1))
    assert {each[1] for each in seen} == set(range(len(b) + 1))
    press(opened, Keys.ARROW_LEFT)
    assert places(opened) == seen[-2]


def test_keys_do_what_they_do_for_one(
    opened: webdriver.Chrome, recordings: tuple[Recording, Recording]
) -> None:
    ends = tuple(len(each.facts.steps.round) for each in recordings)
    press(opened, Keys.END)
    assert places(opened) == ends
    press(opened, Keys.HOME)
    with_shift(opened, Keys.ARROW_RIGHT)
    press(opened, Keys.PAGE_DOWN, Keys.PAGE_UP)
    assert "round 1 of 12" in text(opened, "where")
    assert "round 1 of 5" in text(opened, "where-b")
    press(opened, Keys.SPACE)
    assert text(opened, "play") == "Pause"
    press(opened, Keys.SPACE)
    Select(opened.find_element("id", "speed")).select_by_value("100")
    click(opened, "play")
    until(opened, lambda: places(opened) == ends)
    until(opened, lambda: text(opened, "play") == "Play")


def test_a_button_jumps_to_the_first_difference(
    opened: webdriver.Chrome, page: Path, beside: Beside, recordings: tuple[Recording, Recording]
) -> None:
    assert beside.difference is not None
    assert beside.difference.named in text(opened, "first-difference")
    press(opened, Keys.END)
    click(opened, "difference")
    number, message = beside.difference.round, beside.difference.message
    ends = [[min(each, number + 1) for each in r.facts.steps.round].count(number) for r in recordings]
    assert number == 0, "two rules differ before the first round"
    assert places(opened) == tuple(min(message, end) for end in ends)
    assert text(opened, "said").startswith("A: Step ")
    click(opened, "moment")
    address = opened.current_url
    assert address.endswith(f"#round={number}&message={message}")
    before = places(opened)
    show(opened, page, "#" + address.split("#")[1])
    assert places(opened) == before
    assert log(opened) == []


def test_each_has_its_own_cards_pictures_and_owner(opened: webdriver.Chrome) -> None:
    press(opened, Keys.END)
    for identifier, points in (("shares", LONG), ("shares-b", SHORT)):
        assert f"{points} of {points} points chosen" in text(opened, identifier)
    Select(opened.find_element("id", "owner-b")).select_by_value("4")
    titles = "return Array.from(document.querySelectorAll('.card[data-party] select'), (each) => each.value)"
    assert opened.execute_script(titles) == ["2", "4"]
    ids = "return Array.from(document.querySelectorAll('[id]'), (each) => each.id)"
    found: list[str] = opened.execute_script(ids)
    assert len(found) == len(set(found))


def test_pictures_of_both_have_one_scale(
    opened: webdriver.Chrome, recordings: tuple[Recording, Recording]
) -> None:
    press(opened, Keys.END)
    labels = (
        "return Array.from(document.querySelectorAll(`#${arguments[0]} svg text`),"
        " (each) => each.textContent)"
    )
    scales = {
        name: [opened.execute_script(labels, identifier) for identifier in (name, f"{name}-b")]
        for name in ("closeness", "odometer")
    }
    for own, other in scales.values():
        assert own == other
        assert own[-1] == str(LONG)
    assert scales["odometer"][0][0] == "3.0", "the greater ε"
    assert "ε = 1.00 of 1.00" in text(opened, "odometer-b")
    bars = (
        "return Array.from(document.querySelectorAll(`#${arguments[0]} .bar`), (bar) =>"
        " [Number(bar.getAttribute('width')), Number(bar.nextSibling.textContent)])"
    )
    each = [pair for name in ("shares", "shares-b") for pair in opened.execute_script(bars, name)]
    a_point = {round(wide / count, 3) for wide, count in each if count}
    assert len(a_point) == 1, "a point is as wide in either"
    assert sum(count for _, count in each) == LONG + SHORT


def test_one_is_below_the_other_where_there_is_no_room(browser: webdriver.Chrome, page: Path) -> None:
    boxes = (
        "return ['stage', 'stage-b'].map((id) => document.getElementById(id).getBoundingClientRect())"
        ".map(({ left, right, top, bottom }) => [left, right, top, bottom])"
    )
    for width in WIDTHS:
        emulate(browser, width)
        show(browser, page, "#round=3")
        (_, right, top, bottom), (left, _, other, _) = browser.execute_script(boxes)
        if width < 960:
            assert bottom <= other
        else:
            assert right <= left
            assert top == other


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_readable(browser: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    emulate(browser, width, prefers_color_scheme=scheme)
    for moment in ("#round=3", "#round=13"):
        show(browser, page, moment)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        texts: list[tuple[str, float, float]] = browser.execute_script(READ)
        assert len(texts) > 120
        assert [each for each in texts if each[1] < CONTRAST] == []
        assert [each for each in texts if each[2] < SMALLEST] == []
    assert log(browser) == []


def test_it_asks_nobody_for_anything(opened: webdriver.Chrome, page: Path) -> None:
    log(opened, "performance")
    show(opened, page)
    click(opened, "last", "round-back", "difference")
    asked = [
        message["params"]["request"]["url"]
        for entry in log(opened, "performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if url not in ("about:blank", page.as_uri())] == []
    assert page.as_uri() in asked


def test_markup_of_the_other_session_is_text(
    browser: webdriver.Chrome, recordings: tuple[Recording, Recording], beside: Beside, tmp_path: Path
) -> None:
    other = beside.other
    hostile = replace(
        other,
        name=HOSTILE,
        parties=(*other.parties[:2], *(f"{HOSTILE}{i}" for i in range(len(other.parties) - 2))),
        kinds=(HOSTILE,) * len(other.kinds),
        meanings=(HOSTILE,) * len(other.meanings),
        notes=(HOSTILE,) * len(other.notes),
    )
    page = written(recordings[0], replace(beside, other=hostile), tmp_path)
    show(browser, page, "#round=4")
    assert browser.execute_script("return document.querySelectorAll('img, b, a:not(#moment)').length") == 0
    assert browser.execute_script("return document.querySelectorAll('script').length") == 3
    assert HOSTILE in text(browser, "now-b")
    assert log(browser) == []


def test_without_a_difference_there_is_no_button(
    browser: webdriver.Chrome, recordings: tuple[Recording, Recording], beside: Beside, tmp_path: Path
) -> None:
    show(browser, written(recordings[0], replace(beside, difference=None), tmp_path))
    assert browser.find_elements("id", "difference") == []
    assert "The compared steps do not differ" in text(browser, "first-difference")
