"""A replay in headless Chromium: it plays and steps, by pointer and keys, wide and narrow, light and dark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from hushbid.protocol.names import CURATOR
from hushbid.replay.facts import ALL_OWNERS, ChosenPoints, Cloud, Facts, PointPicture, ScoreCourse, Steps
from hushbid.replay.knowledge import knowledge_of
from hushbid.replay.merging import facts_of
from hushbid.replay.offers import MOST_OFFERED
from hushbid.replay.page import page_of
from hushbid.replay.points import MOST_BOUGHT, MOST_WANTED
from tests.processes.test_report_page import browser, log, pytestmark, until
from tests.processes.test_report_pictures_page import CONTRAST, READ, SMALLEST
from tests.support.replay_sessions import counted
from tests.support.report_sessions import Recorded, record
from tests.unit.hushbid.report.test_report_page import HOSTILE

__all__ = ["browser", "pytestmark"]

VIEWS = [(width, scheme) for width in (360, 1400) for scheme in ("light", "dark")]
MOST_BYTES = 2_000_000
MOST_MILLISECONDS = 1_000
"""Until the first picture, by the browser's clock; a busy machine may take several times as long."""
BUSY = 8
ROUNDS, OWNERS = 10_000, 200


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A session in which an owner is away for three rounds."""
    place = tmp_path_factory.mktemp("session")
    return record(place, rule="sealed", away=lambda number: ["beta"] if 4 <= number < 7 else [])


@pytest.fixture(scope="module")
def facts(session: Recorded) -> Facts:
    return facts_of(list(session.paths.values()))


@pytest.fixture(scope="module")
def page(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(facts, tmp_path_factory.mktemp("page"))


@pytest.fixture
def emulating(browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser for a test that emulates another: it is itself again afterwards."""
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    show(browser, page)
    return browser


def written(facts: Facts, place: Path) -> Path:
    path = place / "replay.html"
    path.write_text(page_of(facts), encoding="utf-8")
    return path


def show(browser: webdriver.Chrome, page: Path, moment: str = "") -> None:
    browser.get("about:blank")  # else another moment of the same page loads nothing
    browser.get(page.as_uri() + moment)
    until(browser, lambda: browser.execute_script("return document.documentElement.dataset.drawn"))


def emulate(browser: webdriver.Chrome, width: int, **features: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": named})


def text(browser: webdriver.Chrome, identifier: str) -> str:
    found: str = browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", identifier
    )
    return found


def step(browser: webdriver.Chrome) -> int:
    """How many steps are played: 0 before the first."""
    words = text(browser, "where").split()
    return int(words[1].replace(",", "")) if words[0] == "Step" else 0


def press(browser: webdriver.Chrome, *keys: str) -> None:
    ActionChains(browser).send_keys(*keys).perform()


def with_shift(browser: webdriver.Chrome, key: str) -> None:
    ActionChains(browser).key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT).perform()


def click(browser: webdriver.Chrome, *identifiers: str) -> None:
    for identifier in identifiers:
        browser.find_element("id", identifier).click()


# -- it plays -----------------------------------------------------------------------------------------------


def test_it_plays_to_the_end_and_stops(opened: webdriver.Chrome, facts: Facts) -> None:
    assert step(opened) == 0
    speed = Select(opened.find_element("id", "speed"))
    speed.select_by_value("20")  # slow enough to see it play where it is busy
    click(opened, "play")
    assert text(opened, "play") == "Pause"
    until(opened, lambda: step(opened) >= 1)
    speed.select_by_value("100")
    until(opened, lambda: step(opened) == len(facts.steps.round))
    until(opened, lambda: text(opened, "play") == "Play")
    assert log(opened) == []


def test_it_pauses_where_it_is(opened: webdriver.Chrome) -> None:
    click(opened, "play")
    until(opened, lambda: step(opened) >= 1)
    click(opened, "play")
    assert text(opened, "play") == "Play"
    before = step(opened)
    opened.execute_async_script("setTimeout(arguments[0], 1500)")
    assert step(opened) == before


def test_buttons_step_by_message_and_by_round(opened: webdriver.Chrome, facts: Facts) -> None:
    click(opened, "forward", "forward", "forward", "back")
    assert step(opened) == 2
    assert facts.kinds[facts.steps.kind[1]] in text(opened, "now")
    click(opened, "round-forward")
    assert "round 1 of 12" in text(opened, "where")
    assert step(opened) == facts.steps.round.index(1) + 1
    click(opened, "round-forward", "round-forward", "round-back")
    assert "round 2 of 12" in text(opened, "where")
    click(opened, "forward", "round-back")
    assert step(opened) == facts.steps.round.index(2) + 1, "back to the round's start first"
    click(opened, "last")
    assert step(opened) == len(facts.steps.round)
    click(opened, "first")
    assert step(opened) == 0


def test_keys_do_what_buttons_do(opened: webdriver.Chrome, facts: Facts) -> None:
    press(opened, Keys.END)
    assert step(opened) == len(facts.steps.round)
    press(opened, Keys.ARROW_LEFT)
    assert step(opened) == len(facts.steps.round) - 1
    press(opened, Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert step(opened) == 2
    with_shift(opened, Keys.ARROW_RIGHT)
    press(opened, Keys.PAGE_DOWN)
    assert "round 2 of 12" in text(opened, "where")
    with_shift(opened, Keys.ARROW_LEFT)
    assert "round 1 of 12" in text(opened, "where")
    press(opened, Keys.SPACE)
    assert text(opened, "play") == "Pause"
    press(opened, Keys.SPACE)
    assert text(opened, "play") == "Play"


def test_the_slider_goes_by_rounds_and_is_moved_by_keys(opened: webdriver.Chrome, facts: Facts) -> None:
    slider = opened.find_element("id", "slider")
    assert slider.get_attribute("max") == str(facts.rounds + 1)
    slider.send_keys(*[Keys.ARROW_RIGHT] * 5)
    assert "round 5 of 12" in text(opened, "where")
    assert step(opened) == facts.steps.round.index(5) + 1
    assert slider.get_attribute("aria-valuetext") == text(opened, "where")
    slider.send_keys(Keys.END)
    assert "delivery and end" in text(opened, "where")


def test_a_moment_has_a_link(browser: webdriver.Chrome, page: Path, facts: Facts) -> None:
    show(browser, page, "#round=7")
    assert step(browser) == facts.steps.round.index(7) + 1
    click(browser, "forward")
    before = step(browser)
    click(browser, "moment")
    address = browser.current_url
    assert address.endswith("#round=7&message=2")
    show(browser, page, "#" + address.split("#")[1])
    assert step(browser) == before
    for nonsense in ("#round=x", "#round=-3", "#round=1e999", "#other"):
        show(browser, page, nonsense)
        assert step(browser) == 0
    show(browser, page, "#round=99999")
    assert step(browser) == facts.steps.round.index(facts.rounds + 1) + 1
    assert log(browser) == []


# -- what it says -------------------------------------------------------------------------------------------


def card(browser: webdriver.Chrome, party: int) -> dict[str, str]:
    found: dict[str, str] = browser.execute_script(
        "const card = document.querySelector(`.card[data-party='${arguments[0]}']`);"
        "return Object.fromEntries(Array.from(card.querySelectorAll('dt'), (term) =>"
        " [term.textContent, term.nextSibling.textContent]));",
        party,
    )
    return found


def test_the_cards_at_the_end_are_the_transcripts(
    opened: webdriver.Chrome, session: Recorded, facts: Facts
) -> None:
    click(opened, "last")
    read = counted(session.paths[CURATOR])
    told = card(opened, 0)
    assert told["phase"] == "done"
    assert told["received"].startswith(f"{read.received.total()} messages, ")
    assert told["sent"].startswith(f"{read.sent.total()} messages, ")
    assert told["points chosen"] == str(read.bought.total())
    beta = facts.parties.index("beta")
    Select(opened.find_element("id", "owner")).select_by_value(str(beta))
    own = counted(session.paths["beta"])
    assert card(opened, beta)["received"].startswith(f"{own.received.total()} messages, ")
    assert card(opened, beta)["points sold"].startswith(f"{read.bought['beta']} (by the curator")
    assert f"{read.bought.total()} of {read.bought.total()} points" in text(opened, "shares")
    for _ in range(2):
        click(opened, "round-back")  # to the delivery, and before it
    assert "points chosen" in card(opened, beta)
    assert "points sold" not in card(opened, beta)


def test_at_the_start_nobody_has_anything(opened: webdriver.Chrome) -> None:
    assert card(opened, 0)["received"] == card(opened, 0)["sent"] == "nothing"
    assert card(opened, 0)["points chosen"] == "0"
    assert "No point was chosen yet" in text(opened, "closeness")


def test_faults_are_seen_where_they_were(browser: webdriver.Chrome, page: Path) -> None:
    show(browser, page, "#round=5")
    seen = browser.find_element("id", "stage").get_property("textContent")
    assert all(word in str(seen) for word in ("✕", "absent (round 4)", "lost"))
    show(browser, page, "#round=8")
    assert "late" in str(browser.find_element("id", "stage").get_property("textContent"))


def test_a_screen_reader_is_told_of_each_step_and_not_of_each_that_plays(opened: webdriver.Chrome) -> None:
    said = opened.find_element("id", "said")
    assert said.get_attribute("role") == "status"
    click(opened, "forward")
    assert text(opened, "said") == f"{text(opened, 'where')} {text(opened, 'now')}"
    changes = opened.execute_async_script(
        """
        const done = arguments[0];
        let changes = 0;
        const seen = new MutationObserver(() => { changes += 1; });
        seen.observe(document.getElementById("said"), { childList: true });
        document.getElementById("speed").value = "20";
        document.getElementById("play").click();
        setTimeout(() => {
          document.getElementById("play").click();
          setTimeout(() => done(changes), 50);
        }, 1500);
        """
    )
    assert 1 <= changes <= 3
    names = opened.execute_script(
        "return Array.from(document.querySelectorAll('#player button, #player select, #player input'),"
        " (each) => each.labels?.[0]?.textContent || each.textContent)"
    )
    assert all(str(name).strip() for name in names)
    assert len(names) == 10


# -- how it looks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_it_is_readable(emulating: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    emulate(emulating, width, prefers_color_scheme=scheme)
    for moment in ("#round=5", "#round=13"):
        show(emulating, page, moment)
        assert emulating.execute_script("return document.documentElement.scrollWidth") <= width
        texts: list[tuple[str, float, float]] = emulating.execute_script(READ)
        assert len(texts) > 60
        assert [each for each in texts if each[1] < CONTRAST] == []
        assert [each for each in texts if each[2] < SMALLEST] == []
    assert log(emulating) == []


def test_a_narrow_page_puts_owners_on_one_line(emulating: webdriver.Chrome, page: Path) -> None:
    lanes = "return Array.from(document.querySelectorAll('#stage .name'), (name) => name.firstChild.data)"
    emulate(emulating, 1400)
    show(emulating, page)
    assert emulating.execute_script(lanes) == ["alpha", "beta", "gamma", "curator", "consumer"]
    emulate(emulating, 360)
    until(emulating, lambda: emulating.execute_script(lanes) == ["3 owners", "curator", "consumer"])


def test_nothing_moves_for_who_wants_no_motion(emulating: webdriver.Chrome, page: Path) -> None:
    arrow = "const arrow = getComputedStyle(document.querySelector('.step.now .arrow'));"
    moving = f"{arrow} return arrow.animationName"
    for wanted, name in (("no-preference", "run"), ("reduce", "none")):
        emulate(emulating, 1400, prefers_reduced_motion=wanted)
        show(emulating, page, "#round=2")
        assert emulating.execute_script(moving) == name
        assert emulating.execute_script(f"{arrow} return arrow.animationIterationCount") != "infinite"


# -- what it must not do ------------------------------------------------------------------------------------


def test_it_asks_nobody_for_anything(browser: webdriver.Chrome, page: Path) -> None:
    browser.get("about:blank")
    log(browser, "performance")
    show(browser, page)
    click(browser, "last", "round-back", "forward")
    asked = [
        message["params"]["request"]["url"]
        for entry in log(browser, "performance")
        if (message := json.loads(entry["message"])["message"])["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if url not in ("about:blank", page.as_uri())] == []
    assert page.as_uri() in asked


def test_markup_in_names_kinds_and_reasons_is_text(
    browser: webdriver.Chrome, facts: Facts, tmp_path: Path
) -> None:
    names = tuple(f"{HOSTILE}{i}" for i in range(len(facts.parties) - 2))
    hostile = replace(
        facts,
        name=HOSTILE,
        parties=(*facts.parties[:2], *names),
        kinds=(HOSTILE,) * len(facts.kinds),
        meanings=(HOSTILE,) * len(facts.meanings),
        notes=(HOSTILE,) * len(facts.notes),
        disclaimers=(HOSTILE,),
    )
    show(browser, written(hostile, tmp_path), "#round=4")
    strange = "img, b, a:not(#moment):not([href='#knowledge'])"
    assert browser.find_elements("css selector", strange) == []
    assert browser.execute_script("return document.querySelectorAll('script').length") == 2
    assert HOSTILE in text(browser, "now")
    assert HOSTILE in str(browser.find_element("id", "owner").get_property("textContent"))
    assert log(browser) == []


def test_a_fault_of_its_own_is_told(browser: webdriver.Chrome, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text(encoding="utf-8").replace('id="facts">', 'id="facts">AAAA'), "utf-8")
    browser.get(broken.as_uri())
    until(browser, lambda: "cannot read the session" in text(browser, "player"))
    log(browser)


def test_a_session_without_a_step_says_so(browser: webdriver.Chrome, facts: Facts, tmp_path: Path) -> None:
    none: dict[str, Any] = {field.name: {} if field.name == "some" else () for field in fields(Steps)}
    copies = {name: replace(copy, tracks={}) for name, copy in facts.copies.items()}
    empty = replace(
        facts, steps=Steps(**none), rounds=0, copies=copies, chosen=None, closeness=None, odometers=()
    )
    show(browser, written(empty, tmp_path))
    assert text(browser, "where") == "Before the first of 0 steps."
    click(browser, "play", "forward", "round-forward", "last", "round-back", "back", "first")
    assert step(browser) == 0
    assert log(browser) == []


# -- how large it may be ------------------------------------------------------------------------------------


def large() -> Facts:
    """10,000 rounds of 200 owners: a broadcast and the bids of each, sometimes without two owners."""
    numbers = [number for number in range(1, ROUNDS + 1) for _ in range(2)]
    steps = len(numbers)
    few = {i: tuple(range(4, OWNERS + 2)) for i in range(1, steps, 20)}
    none: Any = (0,) * steps
    return Facts(
        name="large",
        session="00" * 16,
        rule="sealed",
        batch=1,
        points=ROUNDS,
        parties=("curator", "consumer", *(f"owner-{i:03}" for i in range(OWNERS))),
        grouped=True,
        rounds=ROUNDS,
        planned=ROUNDS,
        kinds=("broadcast", "bid"),
        meanings=("sends the round's weight", "bids its best point"),
        notes=("",),
        steps=Steps(
            round=tuple(numbers),
            seconds=tuple(i * 0.173 for i in range(steps)),
            kind=(0, 1) * ROUNDS,
            event=none,
            sender=(0, ALL_OWNERS) * ROUNDS,
            receiver=(ALL_OWNERS, 0) * ROUNDS,
            count=tuple(len(few.get(i, range(OWNERS))) for i in range(steps)),
            size=tuple(700 * len(few.get(i, range(OWNERS))) for i in range(steps)),
            again=none,
            late=none,
            unarrived=none,
            note=none,
            teller=none,
            some=few,
        ),
        copies={},
        chosen=ChosenPoints(
            teller=0,
            round=tuple(range(1, ROUNDS + 1)),
            owner=tuple(2 + (i * 7919) % OWNERS for i in range(ROUNDS)),
            at=tuple(range(1, steps, 2)),
            delivered=(),
        ),
        closeness=None,
        points_drawn=crowded(),
        scores=ScoreCourse(
            metric="accuracy",
            points=tuple(range(0, ROUNDS + 1, ROUNDS // 20)),
            round=tuple(range(0, ROUNDS + 1, ROUNDS // 20)),
            value=(0.9,) * 21,
            low=(0.8,) * 21,
            high=(0.95,) * 21,
            told=(),
        ),
        knowledge=knowledge_of("sealed"),
        odometers=(),
        disclaimers=(),
    )


def crowded() -> PointPicture:
    """As many points of each kind as are drawn at most."""
    generator = np.random.default_rng(0)

    def cloud(drawn: int, of: int, steps: int) -> Cloud:
        rounds = np.sort(generator.integers(1, ROUNDS + 1, drawn)) if steps else np.empty(0, dtype=np.int64)
        x, y = generator.normal(size=(2, drawn)).round(4).tolist()
        at = tuple((2 * rounds - 1).tolist())
        return Cloud(of=of, x=tuple(x), y=tuple(y), at=at, round=tuple(rounds.tolist()))

    bought = cloud(MOST_BOUGHT, ROUNDS, 1)
    return PointPicture(
        explained=(0.5, 0.25),
        mean=(0.1, 0.2),
        wanted=cloud(MOST_WANTED, 100_000, 0),
        offered=cloud(MOST_OFFERED, ROUNDS * OWNERS, 1),
        bought=bought,
        means=tuple(zip(bought.x, bought.y, strict=True)),
        told=(),
    )


def test_a_large_session_stays_usable(browser: webdriver.Chrome, tmp_path: Path) -> None:
    page = written(large(), tmp_path)
    assert page.stat().st_size < MOST_BYTES
    show(browser, page, "#round=9876")
    assert browser.execute_script("return performance.now()") < MOST_MILLISECONDS * BUSY
    assert "Step 19,751 of 20,000, round 9,876 of 10,000" in text(browser, "where")
    assert "200 owners" in str(browser.find_element("id", "stage").get_property("textContent"))
    assert browser.execute_script("return document.querySelectorAll('*').length") < 1_500
    each = browser.execute_script(
        "const before = performance.now(), forward = document.getElementById('back');"
        "for (let i = 0; i < 50; i += 1) forward.click();"
        "return (performance.now() - before) / 50;"
    )
    assert each < 50 * BUSY, "milliseconds a step"
    assert log(browser) == []


def test_a_party_may_be_named_like_what_every_object_has(
    browser: webdriver.Chrome, facts: Facts, tmp_path: Path
) -> None:
    """The page looks up a party without a transcript by name, and every object has a `constructor`."""
    parties = (*facts.parties[:2], "constructor", *facts.parties[3:])
    named = replace(facts, parties=parties, copies={CURATOR: facts.copies[CURATOR]})
    log(browser)
    show(browser, written(named, tmp_path))
    assert log(browser) == []
    assert "constructor" in browser.find_element("tag name", "main").text
    read = "return Object.getPrototypeOf(parts.read(arguments[0]).copies)"
    bare = browser.execute_script(read, '{"copies": {}}')
    assert bare is None, "likewise what a page that follows a session is sent"
