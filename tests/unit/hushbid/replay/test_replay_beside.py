"""Two recordings side by side: their differences, where these begin, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.redaction import redact
from hushbid.replay.beside import Beside, Difference, beside_of
from hushbid.replay.merging import Recording, recording_of
from hushbid.replay.page import page_of
from hushbid.simulation.simulator import Crash
from hushbid.transcripts.diff import compare
from tests.support.replay_sessions import counted, recorded_with
from tests.unit.hushbid.replay.test_replay_page import unpacked
from tests.unit.hushbid.report.test_report_page import HOSTILE, Elements

Paths = dict[str, Path]
SESSIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sealed": ("sealed", {}),
    "again": ("sealed", {}),
    "crashed": ("sealed", {"crashes": [Crash("owner-0", 6, 0)]}),
    "longer": ("sealed", {"rounds": 6}),
    "ask-all": ("ask-all", {}),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Paths]:
    made: dict[str, Paths] = {}

    def of(name: str) -> Paths:
        if name not in made:
            rule, settings = SESSIONS[name]
            made[name] = recorded_with(tmp_path_factory.mktemp(name), rule, **settings)
        return made[name]

    return of


@pytest.fixture(scope="module")
def recording(paths: Callable[[str], Paths]) -> Callable[..., Recording]:
    read: dict[tuple[str, ...], Recording] = {}

    def of(name: str, *parties: str) -> Recording:
        if (name, *parties) not in read:
            here = paths(name)
            read[name, *parties] = recording_of([here[party] for party in parties or here])
        return read[name, *parties]

    return of


def differing(found: Beside) -> dict[str, tuple[str, str]]:
    return {term.name: (term.a, term.b) for term in found.differing}


# -- public terms ------------------------------------------------------------------------------------------


def test_what_differs_in_public_terms_is_what_the_transcripts_say(
    recording: Callable[..., Recording], paths: Callable[[str], Paths]
) -> None:
    found = beside_of(recording("sealed"), recording("ask-all"))
    read = [counted(paths(name)[CURATOR]) for name in ("sealed", "ask-all")]
    messages = [f"{(each.sent + each.received).total():,}" for each in read]
    told = differing(found)
    assert told["rule"] == ("sealed", "ask-all")
    assert told["messages"] == tuple(messages)
    assert set(told) == {"rule", "messages", "bytes of messages"}
    alike = {term.name: term.a for term in found.alike}
    assert alike["points bought"] == str(read[0].bought.total())
    assert alike["owners"] == "2: owner-0, owner-1"
    assert alike["ε of owners' data"] == "3"


def test_what_a_side_does_not_tell_is_not_made_up(recording: Callable[..., Recording]) -> None:
    found = beside_of(recording("sealed"), recording("ask-all", "owner-0"))
    assert differing(found)["points bought"] == ("4", "not known")
    assert any("curator: its transcript is here of one session only" in each for each in found.not_compared)


def test_other_terms_are_told_where_they_differ(recording: Callable[..., Recording]) -> None:
    a = recording("sealed")
    changed = replace(
        a.facts, batch=7, odometers=(), parties=(*a.facts.parties, "third"), session="00", rounds=3
    )
    told = differing(beside_of(a, replace(a, facts=changed)))
    assert told["points a round (batch)"] == ("1", "7")
    assert told["ε of owners' data"] == ("3", "none is promised")
    assert told["owners"] == ("2: owner-0, owner-1", "3: owner-0, owner-1, third")
    assert told["rounds"] == ("4", "3 of 4")


# -- the first difference ----------------------------------------------------------------------------------


def test_of_one_session_it_is_where_transcript_diff_says(
    recording: Callable[..., Recording], paths: Callable[[str], Paths]
) -> None:
    a, b = recording("sealed"), recording("crashed")
    found = beside_of(a, b).difference
    assert found is not None
    records = {party: compare(paths("sealed")[party], paths("crashed")[party])["parting"] for party in a.told}
    told = [f"{party} part at record {each['record']}:" for party, each in records.items() if each]
    assert any(words in found.words for words in told)
    assert "received in A, lost in B" in found.words
    steps = b.facts.steps
    step = steps.round.index(found.round) + found.message - 1
    assert b.facts.kinds[steps.kind[step]] == "lost"


def test_two_recordings_that_say_the_same_have_no_difference(recording: Callable[..., Recording]) -> None:
    found = beside_of(recording("sealed"), recording("again"))
    assert found.difference is None
    assert found.differing == ()


def test_a_copy_that_ends_earlier_says_where(
    recording: Callable[..., Recording], paths: Callable[[str], Paths], tmp_path: Path
) -> None:
    torn = tmp_path / "curator.transcript"
    torn.write_bytes(paths("sealed")[CURATOR].read_bytes()[:-5])
    found = beside_of(recording("sealed"), recording_of([torn])).difference
    assert found is not None
    assert found.words.endswith("B ends before it.")
    assert found.round == 5


def test_of_two_rules_it_is_the_first_message_that_only_one_has(recording: Callable[..., Recording]) -> None:
    found = beside_of(recording("sealed"), recording("ask-all")).difference
    assert found is not None
    assert found.round == 0
    assert found.named == "Before the first round: A alone has “curator to owner-0: secret-map”."
    assert found.words == "Before the first round: A alone has “secret-map”."
    steps = recording("sealed").facts.steps
    assert recording("sealed").facts.kinds[steps.kind[found.message - 1]] == "secret-map"


def test_of_two_lengths_it_is_the_first_round_with_another_choice(
    recording: Callable[..., Recording],
) -> None:
    a, b = recording("sealed"), recording("longer")
    found = beside_of(a, b).difference
    assert found is not None
    chosen = [
        [each.facts.chosen.owner[each.facts.chosen.round.index(number)] for number in range(1, 5)]  # type: ignore[union-attr]
        for each in (a, b)
    ]
    first = next(i for i, owners in enumerate(zip(*chosen, strict=True)) if owners[0] != owners[1])
    assert found.round == first + 1
    assert "points chosen" in found.named
    assert "owner-" in found.named
    assert "owner-" not in found.words


def test_where_all_is_said_alike_the_shorter_one_s_end_differs(recording: Callable[..., Recording]) -> None:
    a, b = recording("sealed"), recording("longer")
    found = beside_of(said_alone(a), said_alone(b)).difference
    assert found is not None
    assert found.round == 5
    assert found.words.startswith("In round 5, where A is at its end: A alone has “")
    assert "; B alone has “" in found.words


def said_alone(recording: Recording) -> Recording:
    """Without choices, and without notes, by which an owner tells that it has no point left."""
    facts = recording.facts
    return replace(recording, facts=replace(facts, chosen=None, notes=("",) * len(facts.notes)))


def test_the_order_within_a_round_is_left_aside(recording: Callable[..., Recording]) -> None:
    a = recording("sealed")
    steps = a.facts.steps
    first, second = (i for i in range(len(steps.round)) if steps.round[i] == 2 and is_bid(a, i))

    def swapped(column: Any) -> Any:
        changed = list(column)
        changed[first], changed[second] = changed[second], changed[first]
        return tuple(changed)

    other = replace(steps, sender=swapped(steps.sender), size=swapped(steps.size))
    facts = replace(a.facts, session="00", steps=other)
    assert beside_of(a, replace(a, facts=facts)).difference is None
    gone = replace(steps, unarrived=tuple(int(i == second) for i in range(len(steps.round))))
    found = beside_of(a, replace(a, facts=replace(facts, steps=gone))).difference
    assert found is not None
    assert found.round == 2
    assert "bid, did not arrive" in found.named


def is_bid(recording: Recording, step: int) -> bool:
    return recording.facts.kinds[recording.facts.steps.kind[step]] == "bid"


def test_a_redacted_side_is_not_compared_with_a_whole_one(
    recording: Callable[..., Recording], paths: Callable[[str], Paths], tmp_path: Path
) -> None:
    copy = tmp_path / "curator.transcript"
    with copy.open("wb") as file:
        redact(paths("ask-all")[CURATOR], file.write)
    found = beside_of(recording("sealed", CURATOR), recording_of([copy]))
    assert found.difference is None
    assert found.not_compared == ("curator: one of its transcripts is a redacted copy.",)


def test_a_damaged_side_of_one_session_is_compared_by_rounds(
    recording: Callable[..., Recording], paths: Callable[[str], Paths], tmp_path: Path
) -> None:
    copy = tmp_path / "curator.transcript"
    image = bytearray(paths("sealed")[CURATOR].read_bytes())
    image[-40] ^= 1
    copy.write_bytes(image)
    found = beside_of(recording("sealed", CURATOR), recording_of([copy]))
    assert found.not_compared == ("curator: its transcript does not hold to its end in one of the two.",)
    assert found.difference is not None
    words = "At the delivery and the end: A alone has “consumer to curator: farewell”."
    assert found.difference.named == words


# -- the page ----------------------------------------------------------------------------------------------


def test_the_page_has_both_and_names_the_difference(recording: Callable[..., Recording]) -> None:
    a, b = recording("sealed"), recording("ask-all")
    found = beside_of(a, b)
    page = page_of(a.facts, found)
    elements = Elements(page)
    assert elements.unbalanced == []
    assert elements.seen["script"] == 3
    told = " ".join(elements.text)
    assert found.difference is not None
    assert found.difference.named in told
    assert "The same in both: ε of owners' data 3;" in told
    assert "in B, under ask-all" in told
    assert unpacked(page, "beside") == json.loads(
        json.dumps(
            {"facts": b.facts.as_json(), "difference": {"round": 0, "message": found.difference.message}}
        )
    )
    assert unpacked(page) == json.loads(json.dumps(a.facts.as_json()))


def test_hostile_text_of_the_other_session_stays_text(recording: Callable[..., Recording]) -> None:
    a = recording("sealed")
    found = beside_of(a, recording("ask-all"))
    other = replace(found.other, name=HOSTILE, disclaimers=(HOSTILE,), rule=HOSTILE)
    terms = tuple(term._replace(b=HOSTILE) for term in found.terms)
    hostile = replace(
        found,
        other=other,
        terms=terms,
        difference=Difference(1, 1, HOSTILE, HOSTILE),
        not_compared=(HOSTILE,),
    )
    elements = Elements(page_of(a.facts, hostile))
    assert elements.unbalanced == []
    assert elements.seen["img"] == 0
    assert elements.seen["script"] == 3


# -- the verb ----------------------------------------------------------------------------------------------


def replayed(*arguments: object, code: int = 0) -> Any:
    ended = CliRunner().invoke(app, ["replay", *map(str, arguments), "--json"])
    assert ended.exit_code == code, ended.stderr
    return json.loads(ended.stdout)


def test_the_verb_takes_a_directory_or_transcripts(paths: Callable[[str], Paths], tmp_path: Path) -> None:
    here, there = paths("sealed"), paths("ask-all")
    output = tmp_path / "page.html"
    places = here[CURATOR].parent, "--beside", there[CURATOR].parent, "--transcripts-only"
    told = replayed(*places, "--output", output)["beside"]
    assert told["rule"] == "ask-all"
    assert {"name": "rule", "a": "sealed", "b": "ask-all"} in told["differing"]
    assert told["difference"] == {
        "round": 0,
        "message": 8,
        "words": "Before the first round: A alone has “secret-map”.",
    }
    assert told["not_compared"] == []
    before = output.read_bytes()
    files = [part for path in there.values() for part in ("--beside", path)]
    assert replayed(*here.values(), *files, "--output", output)["beside"] == told
    assert output.read_bytes() == before, "the same two sessions are replaced by the same page"
    refused = replayed(here[CURATOR], "--output", output, code=4)
    assert "another session" in refused["error"]["what"]
    assert replayed(here[CURATOR], "--output", tmp_path / "one.html")["beside"] is None


def test_the_first_difference_is_printed(paths: Callable[[str], Paths], tmp_path: Path) -> None:
    here, there = (paths(name)[CURATOR] for name in ("sealed", "again"))
    arguments = ["replay", str(here), "--beside", str(there), "--output", str(tmp_path / "page.html")]
    assert "First difference: none." in CliRunner().invoke(app, arguments).output
    arguments[3] = str(paths("crashed")[CURATOR])
    assert "First difference: The transcripts of curator part" in CliRunner().invoke(app, arguments).output


@pytest.mark.parametrize("copied", [False, True])
def test_the_same_recording_twice_is_refused(
    copied: bool, paths: Callable[[str], Paths], tmp_path: Path
) -> None:
    here = paths("sealed")[CURATOR].parent
    there = Path(shutil.copytree(here, tmp_path / "copy")) if copied else here
    output = tmp_path / "page.html"
    refused = replayed(here, "--beside", there, "--output", output, code=4)["error"]
    assert "the same recording" in refused["what"]
    assert not output.exists()


def test_what_cannot_be_compared_is_refused(paths: Callable[[str], Paths], tmp_path: Path) -> None:
    here, there = paths("sealed"), paths("ask-all")
    output = tmp_path / "page.html"
    other = tmp_path / "other"
    other.write_text("[session]\n", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    for beside, words in (
        (there[CONSUMER], "of a curator, and those of --beside of a consumer"),
        (here[CONSUMER], "of other parties of it"),
        (other, str(other)),
        (empty, "has no transcript"),
        (tmp_path / "nowhere", "nowhere"),
    ):
        refused = replayed(here[CURATOR], "--beside", beside, "--output", output, code=4)["error"]
        assert words in refused["what"]
        assert refused["advice"]
    assert not output.exists()
