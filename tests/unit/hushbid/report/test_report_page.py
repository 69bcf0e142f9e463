"""The page of a report: one file that loads nothing, in which other people's words stay words."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import bokeh
import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import LayoutDOM, PlainText, Tool

from hushbid.consumer.verdict import Rehearsal, Verdict
from hushbid.protocol.machine.machine import Finish, Started
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.record import Header
from hushbid.protocol.transcript.redaction import redact
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.values import Item
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.html import Html, data_script, element, fragment, table
from hushbid.report.missing import Missing
from hushbid.report.page import page_of
from hushbid.report.plots import bars, plots_of
from hushbid.report.sources import open_sources
from hushbid.report.style import BLUE
from tests.simulation.harness import session_file
from tests.support.report_sessions import LABEL, OWNERS, Recorded, record

HOSTILE = "</script><script>alert('φ')</script><img src=x onerror=alert(1)>&amp;\"'"
SCRIPTS = 5
"""The figures, the plots, colours in the dark, Bokeh's program, and what draws with it."""
BYTES = 1_500_000
"""What a page may weigh: what mail takes, and a slow line brings in seconds."""


class Elements(HTMLParser):
    """The elements of a page, and those that are not closed properly."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        self.attributes += attrs
        if tag not in ("meta", "br", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in ("script", "style"):
            self.text.append(data)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def page(session: Recorded) -> str:
    return page_of(session.figures(CURATOR, CONSUMER))


def unplotted(figures: ReportFigures) -> str:
    """The page without its plots, which take most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushbid.report.page.drawing", lambda _plots: fragment())
        return page_of(figures)


def embedded(page: str, identifier: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{identifier}">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def forged(place: Path) -> Path:
    """A redacted transcript in which all free text is hostile: no machine vouches for it."""
    file = session_file(owners=OWNERS, points=3)
    header = Header(
        "curator",
        HOSTILE,
        "00" * 16,
        bytes(32),
        HOSTILE,
        {"python": HOSTILE, HOSTILE: [HOSTILE]},
        "simulated",
    )
    journal = MemoryJournal(header)
    journal.append(0.0, started(file).item(), [])
    journal.append(1.0, Item("lost", {}, {"peer": HOSTILE}), [])
    finish = Item(Finish.KIND, {"code": 1}, {"reason": HOSTILE, "advice": HOSTILE})
    journal.append(2.0, Item("timer", {"name": HOSTILE, "attempt": 1}, {}), [finish])
    journal.commit()
    whole, path = place / "whole.transcript", place / "forged.transcript"
    whole.write_bytes(journal.image)
    with path.open("wb") as redacted:
        redact(whole, redacted.write)
    return path


# -- markup -------------------------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not() -> None:
    assert fragment("a<b>&", Html("<br>")) == "a&lt;b&gt;&amp;<br>"
    assert element("p", "<", class_='"x') == '<p class="&quot;x">&lt;</p>'
    assert "<td" in table([("a", "text")], [["<td>"]])
    assert "&lt;td&gt;" in table([("a", "text")], [["<td>"]])


def test_json_cannot_end_its_element() -> None:
    script = data_script("x", {"a": HOSTILE, HOSTILE: 1})
    assert script.count("</script>") == 1
    assert embedded(script, "x") == {"a": HOSTILE, HOSTILE: 1}


def test_a_number_that_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_script("x", {"a": float("nan")})


# -- the page -----------------------------------------------------------------------------------------------


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    found = Elements(page_of(figures_of(open_sources([forged(tmp_path)]))))
    assert found.seen["script"] == SCRIPTS
    assert found.seen["img"] == 0
    assert not any(name.startswith("on") for name, _ in found.attributes)
    assert any(HOSTILE in text for text in found.text)
    assert found.unbalanced == []


def test_labels_of_points_are_nowhere_in_it(session: Recorded, page: str) -> None:
    assert LABEL.encode() in session.paths[CURATOR].read_bytes()
    assert LABEL not in page
    assert json.dumps(LABEL)[1:-1] not in page
    assert "of-a-point" not in page


def test_it_is_whole_and_well_formed(page: str) -> None:
    found = Elements(page)
    assert found.unbalanced == []
    assert found.seen["script"] == SCRIPTS
    assert len(page.encode()) < BYTES


def test_what_draws_is_in_it_as_bokeh_ships_it(page: str) -> None:
    (packed,) = re.findall(r'<script type="application/gzip" id="program">(.*?)</script>', page, re.S)
    shipped = resources.files(bokeh) / "server" / "static" / "js" / "bokeh.min.js"
    assert gzip.decompress(base64.b64decode(packed, validate=True)) == shipped.read_bytes()


def test_it_loads_nothing(page: str) -> None:
    found = Elements(page)
    assert [value for name, value in found.attributes if name in ("src", "href", "action")] == []
    policy = [value for name, value in found.attributes if name == "content" and "default-src" in str(value)]
    assert len(policy) == 1
    assert str(policy[0]).startswith("default-src 'none'")
    assert re.findall(r"https?://|url\(|@import", page) == []


def test_its_plots_have_no_button_that_uploads_them(page: str) -> None:
    for plot in embedded(page, "plots").values():
        tools = {type(tool).__name__ for tool in Document.from_json(plot).select({"type": Tool})}
        assert tools == {"BoxZoomTool", "PanTool", "ResetTool", "SaveTool", "HoverTool"}


def test_no_part_of_a_plot_is_a_program_or_a_formula(page: str) -> None:
    """The policy forbids the one, and Bokeh would fetch a program for the other."""
    kinds = {
        type(part).__name__
        for plot in embedded(page, "plots").values()
        for part in Document.from_json(plot).models
    }
    assert "Grid" in kinds
    assert not [kind for kind in kinds if "JS" in kind or kind in ("TeX", "Ascii", "MathML")]


def test_a_name_like_a_formula_is_drawn_as_it_stands() -> None:
    figure = bars("points", ["$$a$$", "b"], [1.0, 2.0], BLUE, "%d", 100)
    labels: dict[Any, Any] = figure.yaxis[0].major_label_overrides
    assert [(type(labels[row]), labels[row].text) for row in (1.0, 0.0)] == [
        (PlainText, "$$a$$"),
        (PlainText, "b"),
    ]


def test_its_figures_are_those_of_the_data_layer(session: Recorded, page: str) -> None:
    assert embedded(page, "figures") == session.figures(CURATOR, CONSUMER).as_json()


def test_it_has_a_place_for_every_plot(page: str) -> None:
    plots = embedded(page, "plots")
    places = {value for name, value in Elements(page).attributes if name == "id" and value}
    assert {f"plot-{name}" for name in plots} <= places
    assert set(plots) == {"quality", "objective", "gains", "map", "counts", "shares", "times"}


def test_what_is_plotted_is_what_the_figures_say(session: Recorded) -> None:
    figures = session.figures(CURATOR, CONSUMER)
    plots = plots_of(figures)
    assert figures.quality.session is not None
    assert figures.rounds.curator is not None
    drawn = values(plots["quality"], "this session")
    np.testing.assert_allclose(drawn, figures.quality.session.mmd2, rtol=1e-6)
    expected = [figures.rounds.curator.objective_before, *figures.rounds.curator.objective]
    drawn = values(plots["objective"], "J")
    np.testing.assert_allclose(drawn, np.array(expected, dtype=float), rtol=1e-6)
    won = sum(len(values(plots["gains"], owner)) for owner in figures.owners.name)
    assert won == figures.session.bought


def values(plot: LayoutDOM, name: str) -> np.ndarray[Any, Any]:
    """The drawn values of that name; empty if there are none."""
    found: Any = plot.select_one({"name": name})
    return np.array([]) if found is None else np.asarray(found.data_source.data[found.glyph.y])


def test_simulated_noise_is_said_before_any_epsilon(tmp_path: Path) -> None:
    private = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    found = record(
        tmp_path,
        rule="sealed",
        target=private | {"neighbours": "substitute-one"},
        summary=private | {"neighbours": "add-remove-one"},
    )
    text = " ".join(Elements(unplotted(found.figures(CURATOR))).text)
    assert "the noise is simulated" in text
    assert text.index("the noise is simulated") < text.index("ε = 3")
    assert "nothing; with secret noise ε = 3" in text


def test_a_redacted_page_says_what_it_does_not_show_and_why(session: Recorded) -> None:
    page = page_of(figures_of(open_sources([session.redacted(CURATOR)])))
    text = " ".join(Elements(page).text)
    assert "Not shown here" in text
    assert "private fields were taken out" in text
    assert set(embedded(page, "plots")) == {"times"}
    assert embedded(page, "figures")["owners"]["settlement"] is None
    assert "Nothing that went wrong" not in text
    assert (
        "Redacted transcripts tell of lost connections and restarted processes only. They are of: curator."
        in text
    )
    assert "map above" not in text
    assert "settlement table" not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "The session is complete."),
        ({"away": lambda _: OWNERS}, "curator ended with exit code 3: a time limit passed."),
    ],
    ids=["complete", "given up"],
)
def test_of_why_a_party_ended_a_redacted_page_has_the_code_in_words(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    found = record(tmp_path, **changes)
    (facts,) = found.figures(CURATOR).transcripts
    assert facts.finish is not None
    page = page_of(figures_of(open_sources([found.redacted(CURATOR)])))
    assert words in Elements(page).text
    if facts.finish["code"]:
        assert facts.finish["reason"] in unplotted(found.figures(CURATOR))
        assert facts.finish["reason"] not in page


def test_of_a_redacted_and_a_whole_transcript_each_is_said_what_it_tells(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda number: ["beta"] if number == 4 else [])
    told = [found.paths[CURATOR], found.redacted(CONSUMER)]
    text = " ".join(Elements(unplotted(figures_of(open_sources(told)))).text)
    assert "The map above and the settlement table show absent owners." in text
    assert "connection lost" in text
    assert "restarted processes only. They are of: consumer." in text


def test_a_whole_transcript_with_nothing_wrong_says_so(page: str) -> None:
    text = " ".join(Elements(page).text)
    assert "Nothing that went wrong is on record in the transcripts of: curator, consumer." in text
    assert "Redacted transcripts" not in text
    assert "to the start of the next, by the curator's clock." in text


def test_an_odometer_of_a_single_reading_is_not_drawn(tmp_path: Path) -> None:
    private = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    found = record(tmp_path, rule="sealed", target=private | {"neighbours": "substitute-one"},
                   summary=private | {"neighbours": "add-remove-one"})  # fmt: skip
    redacted = figures_of(open_sources([found.redacted(CONSUMER)]))
    assert [each.rounds for each in redacted.odometers] == [(0,)]
    assert "odometer" not in plots_of(redacted)
    assert "odometer" in plots_of(found.figures(CONSUMER))


def test_no_markup_of_the_terminal_is_left_in_its_words(session: Recorded) -> None:
    for parties in ((CURATOR,), (CONSUMER,), ("alpha",)):
        assert not any("`" in text for text in Elements(unplotted(session.figures(*parties))).text)


def test_what_a_terminal_shows_between_backticks_is_code(session: Recorded) -> None:
    figures = session.figures(CURATOR)
    told = replace(
        figures,
        transcripts=(
            replace(figures.transcripts[0], finish={"code": 1, "reason": "Lost.", "advice": "Try `a<b`."}),
        ),
        missing=(Missing(what="MMD²", why="`not_computed` says why"),),
        verdict=Verdict(Rehearsal((), 0.5, expected=0.5), "there was no time"),
    )
    page = unplotted(told)
    assert not any("`" in text for text in Elements(page).text)
    assert "<code>a&lt;b</code>" in page
    assert "<code>not_computed</code>" in page
    assert "By the rule of thumb of <code>hushbid plan</code>" in page


@pytest.mark.parametrize(
    "changes",
    [
        {"points": 1},
        {"rows": 2},
        {"away": lambda number: OWNERS if number else ()},
        {"away": lambda _: OWNERS},
    ],
    ids=["one round", "too few points", "nobody there", "nobody came"],
)
def test_a_page_is_made_of_sessions_that_came_to_little(tmp_path: Path, changes: dict[str, Any]) -> None:
    found = record(tmp_path, **changes)
    for parties in ((CURATOR,), (CONSUMER,), ("alpha",), (CURATOR, CONSUMER, *OWNERS)):
        elements = Elements(page_of(found.figures(*parties)))
        assert elements.unbalanced == []
        assert elements.seen["h1"] == 1


def test_incidents_are_listed_up_to_a_limit(session: Recorded, tmp_path: Path) -> None:
    found = record(tmp_path, points=30, away=lambda number: ["beta"] if number % 2 else [])
    figures = found.figures(CURATOR)
    assert figures.incidents.total >= 15
    text = " ".join(Elements(unplotted(figures)).text)
    assert "connection lost" in text
    assert "process started again" not in text


def test_the_first_event_is_the_session_file() -> None:
    """The forgery above begins as parties' records do."""
    assert started(session_file(owners=OWNERS, points=3)).item().kind == Started.KIND
