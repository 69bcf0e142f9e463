"""The pictures of a replay in headless Chromium: points and the model's score at each moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from hushbid.replay.beside import Beside, beside_of
from hushbid.replay.facts import Cloud, Facts, PointPicture, ScoreCourse
from hushbid.replay.merging import facts_of, recording_of
from hushbid.replay.page import page_of
from hushbid.simulation.simulator import Crash
from tests.processes.test_replay_page import VIEWS, click, emulate, emulating, press, show, text, written
from tests.processes.test_report_page import browser, log, pytestmark
from tests.processes.test_report_pictures_page import CONTRAST, READ, SMALLEST
from tests.support.replay_sessions import recorded_with
from tests.unit.hushbid.report.test_report_page import HOSTILE

__all__ = ["browser", "emulating", "pytestmark"]

ROUNDS, BATCH = 6, 2
GRAPHICS = 3.0
"""Least contrast of what is no text (WCAG 2.1, 1.4.11)."""
SCORES = ScoreCourse(
    metric="accuracy",
    points=(0, 4, 8, 12),
    round=(0, 2, 4, 6),
    value=(0.71, None, 0.83, 0.9),
    low=(0.6, None, 0.7, 0.8),
    high=(0.8, None, 0.9, 0.95),
    told=("Trained by a test.",),
)
DOTS = (
    "return (document.querySelector(`#${arguments[0]} svg.points > path.${arguments[1]}`)"
    ".getAttribute('d').match(/M/g) ?? []).length"
)
LIT = (
    "const lit = document.querySelectorAll(`#${arguments[0]} svg.points > path.lit, "
    "#${arguments[0]} svg.points > path.rim`);"
    "return Array.from(lit, (path) => (path.getAttribute('d').match(/M/g) ?? []).length)"
)
STROKES = (
    "const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map((each) => {"
    " const part = each / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });"
    " return 0.2126 * r + 0.7152 * g + 0.0722 * b; };"
    "const paper = light(getComputedStyle(document.body).backgroundColor);"
    "const marks = document.querySelectorAll('svg.points > path, svg.points > circle');"
    "return Array.from(marks, (mark) => { const own = light(getComputedStyle(mark).stroke);"
    " return (Math.max(own, paper) + 0.05) / (Math.min(own, paper) + 0.05); })"
)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    place = tmp_path_factory.mktemp("session")
    paths = recorded_with(place, "sealed", rounds=ROUNDS, owners=3, batch=BATCH)
    found = facts_of(list(paths.values()))
    assert isinstance(found.points_drawn, PointPicture)
    wanted = Cloud(of=4, x=(0.1, 0.2, -0.1, -0.2), y=(0.1, -0.1, 0.1, -0.1))
    return replace(found, points_drawn=replace(found.points_drawn, wanted=wanted), scores=SCORES)


@pytest.fixture(scope="module")
def page(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(facts, tmp_path_factory.mktemp("page"))


@pytest.fixture
def opened(browser: webdriver.Chrome, page: Path) -> webdriver.Chrome:
    show(browser, page)
    return browser


def points(facts: Facts) -> PointPicture:
    assert isinstance(facts.points_drawn, PointPicture)
    return facts.points_drawn


# -- points -------------------------------------------------------------------------------------------------


def test_points_are_there_from_their_step_on_and_those_of_the_round_are_lit(
    opened: webdriver.Chrome, facts: Facts
) -> None:
    found = points(facts)
    moments = [0, *range(1, len(facts.steps.round) + 1)]
    (delivery,) = (i for i, kind in enumerate(facts.steps.kind) if facts.kinds[kind] == "delivery")
    # In the page: six calls for each moment cost more than the moment.
    told: list[tuple[list[int], list[int], str]] = opened.execute_script(
        f"""
        const dots = (...given) => (function () {{ {DOTS} }})(...given);
        const lit = (...given) => (function () {{ {LIT} }})(...given);
        return Array.from({{ length: arguments[0] }}, () => {{
          const shown = ["offered", "bought", "wanted"].map((kind) => dots("points", kind));
          const found = [shown, lit("points"), document.getElementById("points").textContent];
          document.getElementById("forward").click();
          return found;
        }});
        """,
        len(moments),
    )
    for played, (dots, shining, words) in zip(moments, told, strict=True):
        shown = [sum(at < played for at in cloud.at) for cloud in (found.offered, found.bought)]
        number = facts.steps.round[played - 1] if played else 0
        lit = [
            sum(at < played and own == number for at, own in zip(cloud.at, cloud.round, strict=True))
            for cloud in (found.offered, found.bought)
        ]
        assert dots == [*shown, 4]
        assert shining == lit
        word = "bought" if played > delivery else "chosen"
        for said, count in zip(("offered so far", f"{word} so far"), shown, strict=True):
            assert f"{said}: {count}" in words
        assert f"mean of what was {word} so far" in words
        for said, count in zip(("offered in this round", "chosen in this round"), lit, strict=True):
            assert f"{said}: {count}" in words
    assert max(len(found.bought.at), len(found.offered.at)) == len(found.offered.at) > 12
    assert log(opened) == []


def test_each_point_is_where_the_facts_have_it(opened: webdriver.Chrome, facts: Facts) -> None:
    press(opened, Keys.END)
    paths: list[str] = opened.execute_script(
        "return ['offered', 'wanted', 'bought'].map((kind) =>"
        " document.querySelector(`#points svg.points > path.${kind}`).getAttribute('d'))"
    )
    places = [tuple(map(float, part.removesuffix("h0").split(","))) for part in "".join(paths).split("M")[1:]]
    found = points(facts)
    clouds = (found.offered, found.wanted, found.bought)
    own = [place for cloud in clouds for place in zip(cloud.x, cloud.y, strict=True)]
    assert len(places) == len(own)
    (x0, y0), (u0, v0) = own[0], places[0]
    far = max(range(len(own)), key=lambda i: abs(own[i][0] - x0))
    scale = (places[far][0] - u0) / (own[far][0] - x0)
    assert scale > 0.0
    for (x, y), (u, v) in zip(own, places, strict=True):
        assert u == pytest.approx(u0 + scale * (x - x0), abs=0.6)
        assert v == pytest.approx(v0 - scale * (y - y0), abs=0.6), "one scale, and up is more"


def test_a_screen_reader_is_told_what_is_drawn(opened: webdriver.Chrome) -> None:
    press(opened, Keys.END)
    label = opened.find_element("css selector", "#points svg.points").get_attribute("aria-label")
    assert label is not None
    assert label.startswith("Points, by the first two components of φ: wanted: 4; offered so far: ")
    assert "released mean" in label


def test_a_released_mean_that_noise_threw_far_is_at_the_edge(
    browser: webdriver.Chrome, facts: Facts, tmp_path: Path
) -> None:
    far = replace(facts, points_drawn=replace(points(facts), mean=(99.0, -99.0)))
    show(browser, written(far, tmp_path))
    assert "lies outside of the picture, by its noise" in text(browser, "points")
    inside = browser.execute_script(
        "const [frame, cross] = ['svg.points', 'svg.points .cross'].map((each) =>"
        " document.querySelector(each).getBoundingClientRect());"
        "return cross.left >= frame.left && cross.right <= frame.right && cross.bottom <= frame.bottom"
    )
    assert inside
    assert log(browser) == []


def test_what_cannot_be_shown_is_said(browser: webdriver.Chrome, facts: Facts, tmp_path: Path) -> None:
    none = replace(facts, points_drawn="No point is here.", scores="No score is here.")
    show(browser, written(none, tmp_path), "#round=3")
    assert text(browser, "points").endswith("No point is here.")
    assert text(browser, "score").endswith("No score is here.")
    assert browser.find_elements("css selector", "#points svg, #score svg") == []
    assert log(browser) == []


# -- the score ----------------------------------------------------------------------------------------------


def test_the_score_is_that_of_the_points_known_so_far(
    opened: webdriver.Chrome, page: Path, facts: Facts
) -> None:
    assert "71.0 % right with no point yet (95 % interval 60.0 % to 80.0 %)." in text(opened, "score")
    assert "Trained by a test." in text(opened, "score")
    assert facts.chosen is not None
    for number, said in ((2, "Nothing could be learned with 4 points."), (4, "83.0 % right with 8 points")):
        show(opened, page, f"#round={number + 1}")
        assert said in text(opened, "score")
    press(opened, Keys.END)
    assert "90.0 % right with 12 points (95 % interval 80.0 % to 95.0 %)." in text(opened, "score")
    labels = [each.text for each in opened.find_elements("css selector", "#score svg text")]
    assert labels == ["0.95", "0.65", "12"]


def test_an_r2_may_be_below_zero(browser: webdriver.Chrome, facts: Facts, tmp_path: Path) -> None:
    worse = replace(SCORES, metric="r2", value=(-0.41, None, 0.2, 0.5), low=(-1.0, None, 0.1, 0.4))
    show(browser, written(replace(facts, scores=worse), tmp_path))
    assert "R² -0.410 with no point yet" in text(browser, "score")
    labels = [each.text for each in browser.find_elements("css selector", "#score svg text")]
    assert labels == ["0.55", "-0.45", "12"]
    heights: list[float] = browser.execute_script(
        "return document.querySelector('#score path.all').getAttribute('d').split(/[ML]/).slice(1)"
        ".map((part) => Number(part.split(',')[1]))"
    )
    assert heights == sorted(heights, reverse=True)
    assert all(0.0 < height < 150.0 for height in heights)


# -- two, how it looks, and other people's words -------------------------------------------------------------


def test_two_sessions_have_a_picture_each_and_scores_of_one_scale(
    browser: webdriver.Chrome, facts: Facts, tmp_path: Path
) -> None:
    worse = replace(SCORES, points=(0, 6), round=(0, 6), value=(0.3, 0.4), low=(0.2, 0.3), high=(0.4, 0.5))
    other = replace(facts, session="00" * 16, scores=worse)
    beside = Beside(other, (), None, ())
    path = tmp_path / "both.html"
    path.write_text(page_of(facts, beside), encoding="utf-8")
    show(browser, path, "#round=7")
    scales = [
        [each.text for each in browser.find_elements("css selector", f"#{name} svg text")]
        for name in ("score", "score-b")
    ]
    assert scales == [["0.95", "0.25", "12"]] * 2
    assert "40.0 % right with 6 points" in text(browser, "score-b")
    for name in ("points", "points-b"):
        assert browser.execute_script(DOTS, name, "bought") == len(points(facts).bought.x)
        assert "are this session’s own" in text(browser, name)
    assert log(browser) == []


def test_a_crash_is_the_first_difference_and_is_gone_to(browser: webdriver.Chrome, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    a, b = (
        recording_of(list(recorded_with(tmp_path / name, "sealed", crashes=crashes).values()))
        for name, crashes in (("a", []), ("b", [Crash("owner-0", 6, 0)]))
    )
    assert a.facts.session == b.facts.session, "one session, recorded twice"
    beside = beside_of(a, b)
    assert beside.difference is not None
    path = tmp_path / "both.html"
    path.write_text(page_of(a.facts, beside), encoding="utf-8")
    show(browser, path)
    assert "received in A, lost in B" in text(browser, "first-difference")
    assert beside.difference.named in text(browser, "first-difference")
    click(browser, "difference")
    assert "lost" in text(browser, "now-b")
    assert "owner-0" in text(browser, "now-b")
    assert browser.current_url.partition("#")[2] == "", "the address is the page's"
    link = browser.find_element("id", "moment").get_attribute("href") or ""
    assert link.endswith(f"#round={beside.difference.round}&message={beside.difference.message}")
    press(browser, Keys.END)
    for name in ("shares", "shares-b"):
        assert "4 of 4 points chosen" in text(browser, name), "both came to the same"
    restarted = [kind for kind in b.facts.kinds if kind == "restarted"]
    assert restarted == ["restarted"]
    assert log(browser) == []


@pytest.mark.parametrize(("width", "scheme"), [*VIEWS, (800, "light"), (1200, "light")])
def test_pictures_are_readable(emulating: webdriver.Chrome, page: Path, width: int, scheme: str) -> None:
    emulate(emulating, width, prefers_color_scheme=scheme)
    show(emulating, page, "#round=4&message=8")
    assert emulating.execute_script("return document.documentElement.scrollWidth") <= width
    texts: list[tuple[str, float, float]] = emulating.execute_script(READ)
    assert any("offered so far" in each[0] for each in texts)
    assert [each for each in texts if each[1] < CONTRAST] == []
    assert [each for each in texts if each[2] < SMALLEST] == []
    strokes: list[float] = emulating.execute_script(STROKES)
    assert len(strokes) == 8
    assert min(strokes) >= GRAPHICS
    assert log(emulating) == []


def test_markup_in_sentences_is_text(browser: webdriver.Chrome, facts: Facts, tmp_path: Path) -> None:
    hostile = replace(
        facts,
        points_drawn=replace(points(facts), told=(HOSTILE,)),
        scores=replace(SCORES, told=(HOSTILE,)),
    )
    show(browser, written(hostile, tmp_path), "#round=2")
    assert HOSTILE in text(browser, "points")
    assert HOSTILE in text(browser, "score")
    assert browser.execute_script("return document.querySelectorAll('img, b').length") == 0
    assert log(browser) == []
