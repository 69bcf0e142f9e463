"""A replay's facts equal a second count of the transcripts; and no file ends in an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from hushbid.owner.machine import OwnerMachine
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError, DataError, TranscriptDamaged
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.redaction import redact
from hushbid.protocol.wire.messages import Bid, Message, fixed
from hushbid.replay.facts import NOBODY, Facts
from hushbid.replay.knowledge import MEANINGS, TABLE, knowledge_of
from hushbid.replay.merging import facts_of
from hushbid.report.sources import open_sources
from hushbid.simulation.simulator import UNRECORDED, Crash
from tests.simulation.harness import names
from tests.support.replay_sessions import counted, recorded_with
from tests.support.report_sessions import OWNERS, record
from tests.support.transcripts import record_spans


def messages(facts: Facts) -> Counter[str]:
    """The messages of all steps, by kind; repeated ones as often as they were sent."""
    found: Counter[str] = Counter()
    for kind, event, count in zip(facts.steps.kind, facts.steps.event, facts.steps.count, strict=True):
        found[facts.kinds[kind]] += 0 if event else count
    return +found


def happened(facts: Facts, what: str) -> list[tuple[str, int]]:
    """The party and the round of each event."""
    steps = facts.steps
    return [
        (facts.parties[steps.sender[i]], steps.round[i])
        for i, kind in enumerate(steps.kind)
        if steps.event[i] and facts.kinds[kind] == what
    ]


def counted_records(path: Path) -> int:
    with TranscriptReader(path) as reader:
        return sum(1 for _ in reader)


def redacted(path: Path) -> Path:
    copy = path.with_suffix(".redacted")
    with copy.open("wb") as file:
        redact(path, file.write)
    return copy


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Path]]:
    """Transcripts of a session under a rule, which tests only read."""

    @cache
    def found(rule: str) -> Mapping[str, Path]:
        return recorded_with(tmp_path_factory.mktemp(rule), rule)

    return found


@pytest.fixture(scope="module")
def told(recorded: Callable[[str], Mapping[str, Path]]) -> Callable[[str], Facts]:
    """The facts of all of them."""
    return cache(lambda rule: facts_of(list(recorded(rule).values())))


# -- every rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_facts_are_those_of_a_second_reading(
    rule: str, recorded: Callable[[str], Mapping[str, Path]], told: Callable[[str], Facts]
) -> None:
    paths, facts = recorded(rule), told(rule)
    read = {party: counted(path) for party, path in paths.items()}
    curator = read[CURATOR]
    assert messages(facts) == curator.sent + curator.received
    assert facts.rounds == curator.round
    assert facts.chosen is not None
    sold = Counter(facts.parties[owner] for owner in facts.chosen.owner)
    assert sold == read[CONSUMER].bought == curator.bought
    for party, own in read.items():
        copy = facts.copies[party]
        assert (copy.sent, copy.received) == (own.sent.total(), own.received.total())
        assert copy.sent_bytes == own.sent_bytes
        for neighbours, track in {"add-remove-one": "rounds", "substitute-one": "target"}.items():
            charged = copy.tracks.get(f"charged_{track}")
            assert (charged and charged.value[-1]) == own.charged.get(neighbours)
    # The curator records digests in place of boxes: what it got has the size that was sent.
    assert facts.copies[CURATOR].received_bytes == sum(
        own.sent_bytes for party, own in read.items() if party != CURATOR
    )
    assert sum(size or 0 for size in facts.steps.size) == sum(own.sent_bytes for own in read.values())


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_step_of_every_rule_is_in_its_place(rule: str, told: Callable[[str], Facts]) -> None:
    facts = told(rule)
    steps = facts.steps
    assert list(steps.round) == sorted(steps.round)
    assert steps.round[0] == 0
    assert steps.round[-1] == facts.rounds + 1
    assert not any(steps.unarrived)
    assert not any(steps.again)
    assert not any(steps.late)
    for i, event in enumerate(steps.event):
        assert CURATOR in (facts.parties[steps.sender[i]], facts.parties[steps.receiver[i]]) or event
    for copy in facts.copies.values():
        assert copy.stopped is None
        assert copy.tracks["phase"].value[-1] == "done"
        for track in copy.tracks.values():
            assert list(track.at) == sorted(set(track.at))
    assert facts.disclaimers == ()


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_kind_has_words(rule: str, told: Callable[[str], Facts]) -> None:
    assert all(told(rule).meanings)


def test_every_message_has_words() -> None:
    def below(kind: type[Message]) -> set[Any]:
        own = kind.model_fields["kind"].default if "kind" in kind.model_fields else ""
        return {own}.union(*(below(each) for each in kind.__subclasses__()))

    kinds = below(Message) - {"", PydanticUndefined}
    assert len(kinds) > 20
    assert kinds - {"beat"} <= set(MEANINGS)


def test_mmd2_and_the_odometer_are_the_session_s(tmp_path: Path) -> None:
    found = record(tmp_path, rule="sealed")
    facts = facts_of(list(found.paths.values()))
    assert facts.closeness is not None
    assert found.outcome.consumer.mmd2 is not None
    assert facts.closeness.mmd2 == pytest.approx(found.outcome.consumer.mmd2.tolist())
    assert len(facts.closeness.round) == len(facts.closeness.mmd2)


def test_a_point_is_known_from_the_step_that_decided_it(told: Callable[[str], Facts]) -> None:
    facts = told("ask-all")
    assert facts.chosen is not None
    for number, at in zip(facts.chosen.round, facts.chosen.at, strict=True):
        assert facts.kinds[facts.steps.kind[at]] == "bid", "the round's last"
        assert facts.steps.round[at] == number


# -- what was bought ----------------------------------------------------------------------------------------


def delivered_in(facts: Facts) -> list[str]:
    """The kind of the step from which the consumer has each chosen point."""
    assert facts.chosen is not None
    return [facts.kinds[facts.steps.kind[at]] for at in facts.chosen.delivered]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_what_was_chosen_is_bought_once_it_is_delivered(
    rule: str, recorded: Callable[[str], Mapping[str, Path]], told: Callable[[str], Facts]
) -> None:
    facts = told(rule)
    assert facts.chosen is not None
    blind = RULES[rule].blind
    assert delivered_in(facts) == ["award" if blind else "delivery"] * len(facts.chosen.at)
    later = [at < last for at, last in zip(facts.chosen.at, facts.chosen.delivered, strict=True)]
    assert set(later) == {not blind}, "a blind session hands each over when it is chosen"
    alone = facts_of([recorded(rule)[CURATOR]])
    assert delivered_in(alone) == ["account" if blind else "receipt"] * len(facts.chosen.at)


@pytest.mark.parametrize("rule", ["sealed", "tender"])
def test_each_part_of_a_delivery_brings_its_own_points(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushbid.protocol.limits.DELIVERY_CHUNK_BYTES", 1)
    paths = recorded_with(tmp_path, rule)
    for kind, read in (("delivery", list(paths.values())), ("receipt", [paths[CURATOR]])):
        facts = facts_of(read)
        assert facts.chosen is not None
        parts = [i for i, each in enumerate(facts.steps.kind) if facts.kinds[each] == kind]
        assert facts.chosen.delivered == tuple(parts)
        assert len(parts) == len(facts.chosen.at) == 4


def test_what_never_came_is_not_bought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushbid.protocol.limits.DELIVERY_CHUNK_BYTES", 1)
    paths = recorded_with(tmp_path, "tender")
    image, whole = paths[CURATOR].read_bytes(), facts_of([paths[CURATOR]]).chosen
    assert whole is not None
    with TranscriptReader(paths[CURATOR]) as reader:
        heard = [
            record.number
            for record in reader
            if record.event.kind == "received" and record.event.private["frame"]["message"] == "receipt"  # type: ignore[index,call-overload]
        ]
    paths[CURATOR].write_bytes(image[: list(record_spans(image))[heard[1]][1]])
    facts = facts_of([paths[CURATOR]])
    assert facts.chosen is not None
    assert facts.chosen.at == whole.at
    assert facts.chosen.delivered == whole.delivered[:2]


@pytest.mark.parametrize("read", [facts_of, open_sources])
def test_a_session_is_opened_once_for_all_its_transcripts(
    read: Callable[[list[Path]], object],
    recorded: Callable[[str], Mapping[str, Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[SessionFile] = []

    def counting(file: SessionFile) -> Session:
        opened.append(file)
        return open_session(file)

    monkeypatch.setattr("hushbid.transcripts.replay.open_session", counting)
    paths = recorded("ask-all")
    _ = read(list(paths.values()))
    assert len(opened) == 1
    _ = read([paths[CURATOR], redacted(paths["owner-0"]), paths[CONSUMER]])
    assert len(opened) == 3, "a redacted copy lacks the seeds: another session file"
    assert opened[2] != opened[0] == opened[1]


# -- one party, and copies ----------------------------------------------------------------------------------


def test_one_owner_tells_its_own_view_and_what_it_cannot_know(tmp_path: Path) -> None:
    path = recorded_with(tmp_path, "sealed")["owner-0"]
    facts, read = facts_of([path]), counted(path)
    assert messages(facts) == read.sent + read.received
    assert facts.chosen is None
    assert facts.closeness is None
    assert [told.split(" ")[0] for told in facts.disclaimers] == ["The", "The", "No"]
    assert "owner-1" in facts.disclaimers[-1]


def test_a_consumer_alone_tells_who_sold(tmp_path: Path) -> None:
    path = recorded_with(tmp_path, "sealed")[CONSUMER]
    facts = facts_of([path])
    assert facts.chosen is not None
    assert facts.parties[facts.chosen.teller] == CONSUMER
    assert Counter(facts.parties[owner] for owner in facts.chosen.owner) == counted(path).bought
    assert any("hears of no round" in told for told in facts.disclaimers)


def test_two_owners_without_the_curator_are_on_one_course(tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed")
    facts = facts_of([paths["owner-0"], paths["owner-1"]])
    assert list(facts.steps.round) == sorted(facts.steps.round)
    assert messages(facts) == sum(
        (counted(paths[owner]).sent + counted(paths[owner]).received for owner in ("owner-0", "owner-1")),
        Counter(),
    )
    assert not any(facts.steps.unarrived), "only the receiver's own transcript tells that"


@pytest.mark.parametrize("party", [CURATOR, CONSUMER, "owner-0"])
def test_a_redacted_copy_shows_that_there_were_messages(party: str, tmp_path: Path) -> None:
    path = recorded_with(tmp_path, "sealed")[party]
    whole, facts = facts_of([path]), facts_of([redacted(path)])
    assert facts.copies[party].redacted
    assert messages(facts).total() == messages(whole).total()
    assert set(messages(facts)) == {"not in this copy"}
    assert facts.rounds == (0 if party == CONSUMER else whole.rounds)
    assert {size for size, event in zip(facts.steps.size, facts.steps.event, strict=True) if not event} == {
        None
    }
    ends = {
        end
        for i, event in enumerate(facts.steps.event)
        if not event
        for end in (facts.steps.sender[i], facts.steps.receiver[i])
    }
    assert (NOBODY in ends) == (party == CURATOR), "others speak with the curator alone"
    assert facts.chosen is None


def test_a_redacted_owner_beside_a_whole_curator_adds_no_message(tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed")
    alone = facts_of([paths[CURATOR]])
    facts = facts_of([paths[CURATOR], redacted(paths["owner-0"])])
    assert messages(facts) == messages(alone)
    assert facts.copies["owner-0"].finish == (0, None)


# -- faults as they were ------------------------------------------------------------------------------------


def test_an_absent_owner_is_absent_lost_and_back(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda number: ["beta"] if 4 <= number < 7 else [])
    facts = facts_of(list(found.paths.values()))
    gone = [each.round for each in found.outcome.curator.ledger.absences]
    assert happened(facts, "absent") == [("beta", number) for number in gone] != []
    assert ("beta", 4) in happened(facts, "lost")
    assert list(facts.steps.round) == sorted(facts.steps.round)
    assert messages(facts)["hello"] > len(OWNERS) + 1, "it has said hello again"
    beta, steps = facts.parties.index("beta"), facts.steps
    lost = [i for i, unarrived in enumerate(steps.unarrived) if unarrived]
    assert [(facts.kinds[steps.kind[i]], steps.round[i], steps.receiver[i]) for i in lost] == [
        ("broadcast", 4, beta)
    ]
    again = [i for i, each in enumerate(steps.again) if each]
    assert [(facts.kinds[steps.kind[i]], steps.receiver[i]) for i in again] == [("broadcast", beta)]
    late = [i for i, each in enumerate(steps.late) if each]
    assert [(facts.kinds[steps.kind[i]], steps.sender[i]) for i in late] == [("bid", beta)]
    assert max(lost) < min(again) < min(late)


@pytest.mark.parametrize(("party", "left"), [("owner-0", UNRECORDED), (CURATOR, 0), (CONSUMER, 0)])
def test_a_restarted_party_is_shown_and_counts_once(party: str, left: int, tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed", crashes=[Crash(party, 3, left)])
    facts = facts_of(list(paths.values()))
    assert [name for name, _ in happened(facts, "restarted")] == [party]
    read = {name: counted(path) for name, path in paths.items()}
    for name, told in read.items():
        copy = facts.copies[name]
        assert (copy.sent, copy.received) == (told.sent.total(), told.received.total())
    assert facts.chosen is not None
    assert Counter(facts.parties[owner] for owner in facts.chosen.owner) == read[CONSUMER].bought
    # Each frame that the curator has sent, or got, is a step; what never came to it, or came twice, one more.
    assert messages(facts).total() >= read[CURATOR].sent.total() + read[CURATOR].received.total()


def test_a_session_that_was_given_up_shows_how_far_it_came(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda number: OWNERS if number else ())
    facts = facts_of(list(found.paths.values()))
    assert facts.rounds < facts.planned
    assert facts.chosen is not None
    assert facts.chosen.round == ()
    assert facts.closeness is None
    assert "abandoned" in facts.notes
    finish = facts.copies[CURATOR].finish
    assert finish is not None
    assert finish[0] != 0
    assert [party for party, _ in happened(facts, "finish")].count(CURATOR) == 1


def test_a_session_that_nobody_came_to(tmp_path: Path) -> None:
    found = record(tmp_path, away=lambda _number: OWNERS)
    facts = facts_of(list(found.paths.values()))
    assert facts.rounds == 0
    assert set(facts.steps.round) <= {0, 1}


def test_an_owner_that_breaks_the_protocol_is_refused_and_one_that_is_no_honest_machine_is_told(
    tmp_path: Path,
) -> None:
    send = OwnerMachine.send

    def rude(self: OwnerMachine, peer: str, message: Message, body: bytes | None = None) -> None:
        if self.name == "beta" and isinstance(message, Bid) and message.round == 3:
            message = message.model_copy(update={"handle": fixed(1)})  # which it has handed over
        send(self, peer, message, body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OwnerMachine, "send", rude)
        found = record(tmp_path)
    facts = facts_of(list(found.paths.values()))
    (refusal,) = found.outcome.curator.ledger.refusals
    assert happened(facts, "refused peer") == [("beta", refusal.round)]
    assert any(note.startswith(refusal.offence.value) for note in facts.notes)
    copy = facts.copies["beta"]
    assert copy.stopped is not None, "its transcript is not what an owner's machine does"
    assert 0 < copy.records < counted_records(found.paths["beta"])
    assert not any(facts.copies[party].stopped for party in (CURATOR, CONSUMER, "alpha"))


# -- files that do not hold ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["sealed", "blind"])
def test_a_damaged_end_is_shown_up_to_the_last_good_record(rule: str, tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, rule)
    image = bytearray(paths[CURATOR].read_bytes())
    spans = list(record_spans(bytes(image)))
    broken = len(spans) - 4
    image[spans[broken][0] + 20] ^= 1
    paths[CURATOR].write_bytes(image)
    facts = facts_of(list(paths.values()))
    copy = facts.copies[CURATOR]
    assert copy.records == broken
    assert copy.stopped is not None
    assert f"record {broken} is damaged" in copy.stopped
    assert str(tmp_path) not in copy.stopped
    assert not any(facts.steps.unarrived[i] for i, to in enumerate(facts.steps.receiver) if to == 0)


def test_a_torn_end_is_told(tmp_path: Path) -> None:
    path = recorded_with(tmp_path, "sealed")["owner-0"]
    whole = facts_of([path]).copies["owner-0"].records
    path.write_bytes(path.read_bytes()[:-7])
    copy = facts_of([path]).copies["owner-0"]
    assert copy.records == whole - 1
    assert copy.torn_bytes > 0
    assert copy.stopped is None


def test_a_party_that_has_said_nothing_yet_has_no_step(tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed")
    image = paths["owner-0"].read_bytes()
    (_, end), *_ = record_spans(image)
    paths["owner-0"].write_bytes(image[:end])
    alone = facts_of([paths["owner-0"]])
    assert alone.steps.round == ()
    assert alone.copies["owner-0"].records == 1
    beside = facts_of(list(paths.values()))
    assert messages(beside).total() == sum(
        getattr(counted(paths[CURATOR]), side).total() for side in ("sent", "received")
    )


def test_what_cannot_be_a_replay_is_refused(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    paths, others = recorded_with(one, "sealed"), recorded_with(other, "ask-all")
    with pytest.raises(ConfigError, match="another session"):
        facts_of([paths[CURATOR], others[CONSUMER]])
    copy = one / "copy.transcript"
    copy.write_bytes(paths[CURATOR].read_bytes())
    with pytest.raises(ConfigError, match="both of curator"):
        facts_of([paths[CURATOR], copy])
    copy.write_bytes(b"no transcript")
    with pytest.raises(DataError, match="not a transcript"):
        facts_of([copy])
    copy.write_bytes(paths[CURATOR].read_bytes()[:100])
    with pytest.raises(TranscriptDamaged):
        facts_of([copy])


# -- many owners --------------------------------------------------------------------------------------------


def test_many_owners_are_one_step_and_their_messages_are_counted(tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed", owners=15, rounds=3)
    facts = facts_of(list(paths.values()))
    curator = counted(paths[CURATOR])
    assert facts.grouped
    assert messages(facts) == curator.sent + curator.received
    bids = [i for i, kind in enumerate(facts.steps.kind) if facts.kinds[kind] == "bid"]
    assert [facts.steps.count[i] for i in bids] == [15] * 3
    assert not any(facts.steps.some.get(i) for i in bids), "all owners are in it"
    assert sum(size or 0 for size in facts.steps.size) == sum(
        counted(path).sent_bytes for path in paths.values()
    )
    assert len(facts.steps.round) < 60


def test_an_absent_owner_of_many_is_named(tmp_path: Path) -> None:
    owners = names(13)
    away = owners[4]
    found = record(tmp_path, owners=owners, points=6, away=lambda number: [away] if 2 <= number < 4 else [])
    facts = facts_of(list(found.paths.values()))
    curator = counted(found.paths[CURATOR])
    assert facts.grouped
    assert messages(facts) == curator.sent + curator.received, "each once, whoever tells it"
    gone = [each.round for each in found.outcome.curator.ledger.absences]
    assert happened(facts, "absent") == [(away, number) for number in gone] != []
    assert list(facts.steps.round) == sorted(facts.steps.round)
    bids = [i for i, kind in enumerate(facts.steps.kind) if facts.kinds[kind] == "bid"]
    few = [i for i in bids if facts.steps.count[i] == 12 and not facts.steps.late[i]]
    assert [facts.steps.round[i] for i in few] == gone
    place = facts.parties.index(away)
    assert all(place not in facts.steps.some[i] for i in few)


def test_owners_of_a_large_session_without_its_curator_are_joined(tmp_path: Path) -> None:
    paths = recorded_with(tmp_path, "sealed", owners=15, rounds=3)
    facts = facts_of([paths["owner-1"], paths["owner-2"]])
    bids = [i for i, kind in enumerate(facts.steps.kind) if facts.kinds[kind] == "bid"]
    assert [facts.steps.count[i] for i in bids] == [2] * 3
    here = tuple(sorted(facts.parties.index(owner) for owner in ("owner-1", "owner-2")))
    assert {facts.steps.some[i] for i in bids} == {here}


# -- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", sorted(RULES))
def test_who_knows_what_is_said_of_every_rule(rule: str) -> None:
    told = knowledge_of(rule)
    assert set(told) == {"curator", "owner", "consumer"}
    curator = " ".join(told["curator"].hidden)
    assert ("Any raw point" in curator) == RULES[rule].sealed
    assert ("Which of its points were chosen" in " ".join(told["owner"].hidden)) == (
        TABLE["asked"][rule] == "nothing"
    )


@pytest.mark.parametrize("rule", ["sealed", "tender"])
def test_a_short_record_of_the_curator_hides_no_point_that_the_consumer_has(
    rule: str, tmp_path: Path
) -> None:
    paths = recorded_with(tmp_path, rule)
    whole = facts_of(list(paths.values())).chosen
    assert whole is not None
    spans = list(record_spans(paths[CURATOR].read_bytes()))
    paths[CURATOR].write_bytes(paths[CURATOR].read_bytes()[: spans[len(spans) // 3][1]])
    facts = facts_of(list(paths.values()))
    assert facts.chosen is not None
    assert facts.parties[facts.chosen.teller] == CONSUMER
    assert (facts.chosen.round, facts.chosen.owner) == (whole.round, whole.owner)
