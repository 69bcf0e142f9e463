"""The recorded demonstrations are what today's machines do, and what today's page shows of it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest

from hushbid.replay.facts import Facts
from hushbid.replay.page import page_of
from tests.docs.demonstrations import PLACE, RULES, facts_of_demonstration, sequence

PACKED = re.compile(r'(<script[^>]*id="facts"[^>]*>)([^<]*)(</script>)')


@pytest.fixture(scope="module", params=RULES)
def facts(request: pytest.FixtureRequest) -> Facts:
    return facts_of_demonstration(request.param)


def unpacked(page: str) -> Any:
    found = PACKED.search(page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[2])))


def alike(one: Any, other: Any) -> bool:
    """Whether two values differ at most in the last bits of numbers, which depend on the BLAS."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-12)
    return type(one) is type(other) and bool(one == other)


def test_a_page_is_of_the_session_that_is_played_today(facts: Facts) -> None:
    kept = (PLACE / f"{facts.rule}.html").read_text(encoding="utf-8")
    made = page_of(facts)
    again = "`python -m tests.docs.demonstrations` writes it anew"
    assert PACKED.sub("", kept) == PACKED.sub("", made), again
    assert alike(unpacked(kept), unpacked(made)), again
    assert not alike(unpacked(kept) | {"points": 13}, unpacked(made)), "the control"


def test_a_demonstration_buys_all_of_its_points(facts: Facts) -> None:
    assert facts.chosen is not None
    assert len(facts.chosen.round) == facts.points == 12
    assert facts.rounds == facts.planned == (1 if facts.rule == "tender" else 4)
    assert len({facts.parties[place] for place in facts.chosen.owner}) > 1, "nobody is bought from alone"
    assert not facts.disclaimers, "all is told"


def test_a_diagram_has_every_kind_of_message_and_no_other(facts: Facts) -> None:
    told = {line.split(": ")[1] for line in sequence(facts.rule).splitlines() if "->>" in line}
    steps = facts.steps
    sent = {facts.kinds[kind] for kind, event in zip(steps.kind, steps.event, strict=True) if not event}
    assert told == sent - {"beat"}
