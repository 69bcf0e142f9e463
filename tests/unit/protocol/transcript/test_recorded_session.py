"""The session file comes back from a transcript's first record; without its seeds if that is redacted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, dataset_digest
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.privacy.acquisition import RULES, Logistic
from hushbid.protocol.runtime.party import transcript_header
from hushbid.protocol.session.session import open_session
from hushbid.protocol.transcript.journal import MemoryJournal
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import RecordedItem
from hushbid.protocol.transcript.session_file import (
    check_same_start,
    check_version,
    recorded_digest,
    recorded_session,
    started,
)
from hushbid.protocol.wire.messages import BLIND_VERSION, NUMBERED_VERSION, PROTOCOL_VERSION
from hushbid.protocol.wire.values import Item
from tests.docs.test_configs import CLUSTERS, path_of, separate_session, session_of
from tests.simulation.harness import names, session_file
from tests.support.transcripts import HEADER, redact


def image_of(item: Item) -> bytes:
    """A transcript with this event only."""
    journal = MemoryJournal(HEADER)
    journal.append(0.0, item, ())
    journal.commit()
    return journal.image


def first_event(image: bytes) -> RecordedItem:
    return next(TranscriptReader(Path("x.transcript"), image)).event


def recorded(file: SessionFile) -> RecordedItem:
    return first_event(image_of(started(file).item()))


@pytest.mark.parametrize("path", CLUSTERS, ids=path_of)
def test_every_configuration_comes_back(path: Path) -> None:
    file = session_of(path).file
    back = recorded_session(recorded(file))
    assert back.in_force() == file.in_force()
    assert back.digest() == file.digest()


def test_a_session_between_machines_comes_back() -> None:
    file = separate_session().file
    assert recorded_session(recorded(file)).digest() == file.digest()


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {Logistic.name}))
def test_without_its_seeds_it_still_makes_a_session(rule: str) -> None:
    written: dict[str, Any] = {"batch": 3, "submission": 3} if RULES[rule].herds else {}
    file = session_file(owners=names(2), points=3, rule=rule, noise_seed=1234, **written)
    event = first_event(redact(image_of(started(file).item()), lambda number, name: False))
    assert event.redacted
    back = recorded_session(event)
    assert back.noise.seed == 0
    assert back.features.seed == (None if RULES[rule].sealed else 0)
    assert open_session(back).rule.name == rule
    # Time-outs are not recorded, and the defaults of `tender` are its own.
    hidden = {"features": {"seed"}, "noise": {"seed"}, "timeouts": {"round"}, "session": {"numbered"}}
    assert back.model_dump(exclude=hidden) == file.model_dump(exclude=hidden)
    assert back.session.numbered == file.numbered, "it says what is in force"


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {Logistic.name}))
def test_a_header_says_the_version_that_the_parties_speak(rule: str) -> None:
    session = open_session(session_file(owners=names(2), points=3, rule=rule))
    header = transcript_header(session, "owner", names(2)[0])
    numbered = RULES[rule].sealed and not RULES[rule].herds
    assert header.protocol == (NUMBERED_VERSION if numbered else PROTOCOL_VERSION)
    check_version(header.protocol)
    assert recorded_digest(recorded(session.file), header.protocol) == session.digest


def test_a_blind_transcript_that_says_the_version_before_is_read_and_a_later_one_refused() -> None:
    """Parties of `blind` wrote 2 in their headers at first, and spoke 3."""
    session = open_session(session_file(owners=names(2), points=3, rule="blind", numbered=False))
    assert session.protocol_version == BLIND_VERSION
    check_version(PROTOCOL_VERSION)
    assert recorded_digest(recorded(session.file), PROTOCOL_VERSION) == session.digest
    with pytest.raises(DataError, match="is of protocol version 6; this hushbid knows 5"):
        recorded_digest(recorded(session.file), NUMBERED_VERSION + 1)


def test_a_session_before_there_were_batches_means_what_it_meant() -> None:
    whole = started(session_file(owners=names(1), points=200))
    before: dict[str, Any] = dict(whole.configuration)
    before["session"] = {
        key: value for key, value in before["session"].items() if key not in ("batch", "seed_weight")
    }
    back = recorded_session(first_event(image_of(Started(before, whole.seeds).item())))
    assert (back.batch, back.seed_weight, back.rounds) == (1, 1.0, 200)
    assert back.digest() == session_file(owners=names(1), points=200).digest()
    assert session_file(owners=names(1), points=200, batch=4).digest() != back.digest()
    assert session_file(owners=names(1), points=200, seed_weight=0.5).digest() != back.digest()


def test_seeds_are_in_no_public_field() -> None:
    item = started(session_file(owners=names(1), points=1, noise_seed=1234)).item()
    assert item.private == {"seeds": {"features": 1, "noise": 1234}, "data": b""}
    configuration: Any = item.public["configuration"]
    assert "seed" not in configuration["noise"]
    assert "seed" not in configuration["features"]
    assert "1234" not in repr(configuration)


@pytest.mark.parametrize(
    "item", [Item("tick", {}, {}), Item("started", {}, {}), Item("tick", {"configuration": {}}, {})]
)
def test_a_transcript_that_does_not_begin_with_it_is_refused(item: Item) -> None:
    with pytest.raises(DataError, match="does not begin with the session file") as caught:
        recorded_session(first_event(image_of(item)))
    assert caught.value.advice


def test_a_session_file_that_this_version_does_not_know_is_refused_by_its_key() -> None:
    whole = started(session_file(owners=names(1), points=1))
    later = Started({**whole.configuration, "of_the_future": {"x": 1}}, whole.seeds)
    with pytest.raises(DataError, match="cannot be read: of_the_future: ") as caught:
        recorded_session(first_event(image_of(later.item())))
    assert "version of hushbid that recorded it" in caught.value.advice


@pytest.mark.parametrize(
    ("section", "value"),
    [("acquisition", 1), ("acquisition", {}), ("noise", None), ("features", "x"), ("roster", {"owners": 5})],
)
@pytest.mark.parametrize("redacted", [False, True])
def test_a_session_file_that_was_forged_is_refused(section: str, value: Any, redacted: bool) -> None:
    event = started(session_file(owners=names(2), points=3))
    image = image_of(Started({**event.configuration, section: value}, event.seeds).item())
    with pytest.raises(DataError, match="cannot be read"):
        recorded_session(first_event(redact(image, lambda _number, _name: False) if redacted else image))


def test_a_session_goes_on_with_the_timeouts_and_the_data_that_it_was_begun_with() -> None:
    file = session_file(owners=names(2), points=3)
    recorded_start = first_event(image_of(started(file, b"\1" * 32).item()))
    check_same_start(recorded_start, started(file, b"\1" * 32))
    longer = file.timeouts.model_copy(update={"round": file.timeouts.round + 1})
    with pytest.raises(ConfigError, match="timeouts") as caught:
        check_same_start(recorded_start, started(file.model_copy(update={"timeouts": longer}), b"\1" * 32))
    assert f"round = {file.timeouts.round}" in caught.value.advice
    with pytest.raises(DataError, match="not those that the session was begun with"):
        check_same_start(recorded_start, started(file, b"\2" * 32))


def test_the_digest_of_a_dataset_is_of_all_that_is_in_it_and_of_its_order() -> None:
    points = np.arange(12, dtype=np.float64).reshape(4, 3)
    labels, identifiers = np.array([1, 2, 3, 4]), np.array(["a", "b", "c", "d"])
    own = Dataset.from_arrays("own", points, labels, identifiers)
    others = [
        Dataset.from_arrays("own", points[::-1], labels, identifiers),
        Dataset.from_arrays(
            "own", np.concatenate([points, points]), np.tile(labels, 2), np.tile(identifiers, 2)
        ),
        Dataset.from_arrays("own", points.astype(np.float32), labels, identifiers),
        Dataset.from_arrays("own", points, labels[::-1], identifiers),
        Dataset.from_arrays("own", points, labels, identifiers[::-1]),
        Dataset.from_arrays("own", points, labels),
        Dataset.from_arrays("own", points, identifiers=identifiers),
        Dataset.from_arrays("own", points),
    ]
    assert len({dataset_digest(own), *map(dataset_digest, others)}) == 1 + len(others)
    assert dataset_digest(Dataset.from_arrays("renamed", points, labels, identifiers)) == dataset_digest(own)
    assert dataset_digest(own, others[0]) != dataset_digest(others[0], own)
