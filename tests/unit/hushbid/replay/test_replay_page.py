"""The page of a replay: one file that loads nothing, in which other people's words stay words."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.redaction import redact
from hushbid.replay.facts import Facts
from hushbid.replay.knowledge import TABLE
from hushbid.replay.merging import facts_of
from hushbid.replay.page import page_of
from tests.docs.pages import Page
from tests.support.replay_sessions import recorded_with
from tests.unit.hushbid.report.test_report_page import HOSTILE, Elements, forged

BYTES = 2_000_000
"""What a page may weigh."""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return facts_of(list(recorded_with(tmp_path_factory.mktemp("session"), "sealed").values()))


def unpacked(page: str, identifier: str = "facts") -> Any:
    found = re.search(rf'<script type="application/gzip" id="{identifier}">(.*?)</script>', page, re.S)
    assert found
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_the_page_has_the_facts(facts: Facts) -> None:
    assert unpacked(page_of(facts)) == json.loads(json.dumps(facts.as_json()))


def test_the_same_facts_give_the_same_page(facts: Facts) -> None:
    assert page_of(facts) == page_of(facts)


def test_the_page_loads_nothing_and_is_well_formed(facts: Facts) -> None:
    page = page_of(facts)
    found = Elements(page)
    assert found.unbalanced == []
    assert found.seen["script"] == 2
    assert {value for name, value in found.attributes if name in ("src", "href", "action")} == {"#knowledge"}
    policy = next(value for name, value in found.attributes if name == "content" and value and "src" in value)
    assert "default-src 'none'" in policy
    assert "connect" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_hostile_text_stays_text(facts: Facts, tmp_path: Path) -> None:
    hostile = replace(
        facts,
        name=HOSTILE,
        parties=(*facts.parties[:2], HOSTILE, HOSTILE),
        notes=(HOSTILE,) * len(facts.notes),
        kinds=(HOSTILE,) * len(facts.kinds),
        copies={HOSTILE: replace(facts.copies[CURATOR], stopped=HOSTILE, finish=(1, HOSTILE))},
        disclaimers=(HOSTILE,),
    )
    page = page_of(hostile)
    found = Elements(page)
    assert found.seen["script"] == 2
    assert found.seen["img"] == 0
    assert found.unbalanced == []
    assert page.count("</script>") == 2
    assert unpacked(page)["name"] == HOSTILE


def test_a_forged_copy_ends_in_no_error(tmp_path: Path) -> None:
    from hushbid.protocol.errors import DataError

    with pytest.raises(DataError, match="its party is not a curator of its session"):
        facts_of([forged(tmp_path)])


def test_the_banner_says_whose_private_values_are_here(facts: Facts, tmp_path: Path) -> None:
    told = " ".join(Elements(page_of(facts)).text)
    assert "They are of curator, consumer, owner-0, owner-1, from their own transcripts" in told
    assert "redacted" not in told
    path = recorded_with(tmp_path, "sealed")[CONSUMER]
    copy = tmp_path / "copy.transcript"
    with copy.open("wb") as file:
        redact(path, file.write)
    told = " ".join(Elements(page_of(facts_of([copy]))).text)
    assert "This page contains private values" not in told
    assert "The transcript of consumer is a redacted copy" in told


def test_a_file_that_does_not_hold_is_told_first(facts: Facts) -> None:
    copies = {
        **facts.copies,
        CURATOR: replace(facts.copies[CURATOR], stopped="Record 9 is damaged.", records=9),
    }
    told = " ".join(Elements(page_of(replace(facts, copies=copies))).text)
    assert "curator: Record 9 is damaged. The page shows its first 9 records." in told


def test_a_page_is_small(facts: Facts) -> None:
    assert len(page_of(facts).encode()) < 100_000


def test_the_words_are_those_of_the_privacy_page() -> None:
    """Cell by cell, so that the page and docs/privacy.md, section 1, say the same."""
    rows = {
        "raw points that the curator is handed": "raw",
        "points whose φ the curator has": "features",
        "who has the feature map": "map",
        "what the curator has of D_v": "target",
        "who sees bids: score, number": "bids",
        "what being asked tells an owner": "asked",
    }
    lines = [
        [re.sub(r"[*`]", "", cell).strip() for cell in line.strip("|\n ").split("|")]
        for line in Page("docs/privacy.md").text.splitlines()
        if line.startswith("|")
    ]
    start = next(i for i, line in enumerate(lines) if line[0] == "what, and who gets it")
    rules = lines[start][1:]
    same = takewhile(lambda line: len(line) == len(rules) + 1, lines[start + 2 :])
    table = {line[0]: dict(zip(rules, line[1:], strict=True)) for line in same}
    assert {key: table[row] for row, key in rows.items()} == {key: dict(TABLE[key]) for key in TABLE}
