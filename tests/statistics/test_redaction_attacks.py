"""Attacks on a curator's redacted transcript find nothing, where the whole one reveals everything.

The curator's transcript holds everybody's secrets, whether points are handed over in the clear or sealed.
Each attack has a control that must succeed: the same procedure on the file before redaction, or on one with
known salts.

Sessions have fixed seeds, and nothing here fails by chance: matching a salted commitment would take a
preimage of SHA-256. What a redacted file does reveal is tested, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol.data.attributes import Attributes, pack_attributes, unpack_attributes
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.space.grid import FEATURE_UNIT, WEIGHT_UNIT
from hushbid.protocol.transcript.session_file import recorded_session
from hushbid.protocol.transcript.verify import verify
from hushbid.protocol.wire.codec import Direction, decode_message, encode_message
from hushbid.protocol.wire.messages import Bid, Candidate
from hushbid.protocol.wire.values import Value, pack_value
from tests.statistics.recorded_sessions import (
    DIMENSION,
    LABELS,
    NOISE_SEED,
    OWNERS,
    ROUNDS,
    RecordedSession,
    items_of,
    read_image,
    recorded,
    redacted,
)
from tests.support.transcripts import Transcript

Array = npt.NDArray[np.float64]
RULES = ("ask-all", "sealed")
SHORTEST = 8
"""Bytes of what is searched for: shorter pieces may be found anywhere by chance."""


@cache
def session_of(rule: str) -> RecordedSession:
    """An `ask-all` session with exact releases, and a `sealed` one with noise; its data have labels."""
    return recorded(rule, noisy=rule == "sealed")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacks") / "transcript"


@pytest.mark.parametrize("rule", RULES)
def test_a_redacted_file_verifies_and_has_the_originals_head(scratch: Path, rule: str) -> None:
    image = session_of(rule).images[CURATOR]
    scratch.write_bytes(image)
    original = verify(scratch)
    scratch.write_bytes(redacted(scratch, image))
    copy = verify(scratch)
    assert (copy.head, copy.records) == (original.head, original.records)
    assert copy.redacted_fields == copy.private_fields == original.private_fields > 0
    assert copy.faults == original.faults == ()


# -- searching byte by byte ------------------------------------------------------------------------------


def encodings(array: npt.NDArray[np.generic]) -> Iterator[bytes]:
    """An array's bytes as it is, and as other types could hold it."""
    for dtype in (array.dtype, np.float64, np.float32, np.int64, np.int32, np.int16):
        as_other = array.astype(dtype)
        if dtype == np.float32 or np.array_equal(as_other, array):
            yield as_other.tobytes()


def leaves(value: Value) -> Iterator[bytes]:
    """The bytes of every array and byte string within a value."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, np.ndarray):
        yield from encodings(value)
    elif isinstance(value, Mapping):
        for field in value.values():
            yield from leaves(field)
    elif isinstance(value, list | tuple):
        for element in value:
            yield from leaves(element)


def secrets(scratch: Path, found: RecordedSession) -> dict[str, set[bytes]]:
    """Secrets that a redacted file must lack: what the parties hold, and all that any recorded as private."""
    datasets = [*found.owners.values(), found.validation, found.seed_set]
    rows = [row for each in datasets for row in each.features]
    hashed = [row for each in datasets for row in found.feature_map(scratch).hash(each.features)]
    keys = [found.session.simulated_identity(party) for party in (CURATOR, CONSUMER, *OWNERS)]
    held = {
        "rows": {encoded for row in rows for encoded in encodings(row)},
        "coordinates": {coordinate.tobytes() for row in rows for coordinate in row},
        "features": {encoded for row in hashed for encoded in encodings(row)},
        "labels": {label.encode() for label in LABELS},
        "attributes": {each.attributes(row) for each in datasets for row in range(len(each))},
        "boxes": {*found.boxes, *(hashlib.sha256(box).digest() for box in found.boxes)},
        "keys": {bytes(key) for each in keys for key in (each.signing, each.sealing)},
        "seed": {str(NOISE_SEED).encode(), pack_value(NOISE_SEED)[1:]},
    }
    for party, image in found.images.items():
        for item in items_of(read_image(scratch, image)):
            for name, value in item.private.items():
                kind = f"{party}: {item.kind}.{name}"
                held.setdefault(kind, set()).update((pack_value(value), *leaves(value)))
    return held


def found_in(image: bytes, wanted: Mapping[str, Iterable[bytes]], but: Iterable[bytes] = ()) -> set[str]:
    """The kinds that occur in a file."""
    passed_over = set(but)
    return {
        kind
        for kind, needles in wanted.items()
        if any(len(each) >= SHORTEST and each in image for each in set(needles) - passed_over)
    }


@pytest.mark.parametrize("rule", RULES)
def test_no_secret_of_anybody_is_in_a_redacted_file(scratch: Path, rule: str) -> None:
    found = session_of(rule)
    copy = redacted(scratch, found.images[CURATOR])
    # What frames have in common with what is public: the session's digest, and the head that is signed.
    (signed,) = (item for item in items_of(read_image(scratch, copy)) if item.kind == "head-signed")
    public = [found.session.file.digest(), *leaves(signed.public)]
    assert found_in(copy, secrets(scratch, found), but=public) == set()


@pytest.mark.parametrize(
    ("rule", "held"),
    [
        ("ask-all", {"rows", "coordinates", "features", "labels", "attributes", "curator: send.frame"}),
        ("sealed", {"features", "boxes", "curator: send.frame", "curator: noise-drawn.rounds"}),
    ],
)
def test_the_search_finds_what_is_in_the_whole_file(scratch: Path, rule: str, held: set[str]) -> None:
    found = session_of(rule)
    wanted = secrets(scratch, found)
    assert all(any(len(each) >= SHORTEST for each in wanted[kind]) for kind in held)
    there = found_in(found.images[CURATOR], wanted)
    assert held | {"curator: received.frame", "curator: weights-computed.weights"} <= there
    assert "keys" not in there, "they are in no transcript"
    # The curator has no data of its own, and says nothing at a good end: empty values are not searched for.
    own = {
        kind
        for kind, values in wanted.items()
        if kind.startswith("curator: ") and any(len(value) >= SHORTEST for value in values)
    } - {"curator: candidates-checked.signed"}
    assert own - there <= {"curator: candidates-checked.features"} if rule == "sealed" else own <= there


# -- trying all labels -----------------------------------------------------------------------------------


def guessed_labels(known: Transcript, copy: Transcript) -> list[tuple[str, str]]:
    """The label of each bid by a commitment of the copy, and its true one.

    The attacker knows all of each bid except its label, and tries every label with every available salt:
    none, zeros, the session's digest, and the digests of the records.
    """
    committed = {commitment for item in items_of(copy) for commitment in item.commitments.values()}
    digests = [record.digest for record in copy.records]
    salts = (b"", bytes(32), copy.header.config_digest, *digests)
    found = []
    for item in items_of(known):
        frame = item.private.get("frame")
        if not isinstance(frame, dict) or frame["message"] != "bid" or item.kind != "received":
            continue
        message = decode_message(Direction.OWNER_TO_CURATOR, frame["body"])
        assert isinstance(message, Bid)
        assert isinstance(message.candidate, Candidate)
        true = unpack_attributes(message.candidate.attributes)
        for label in LABELS:
            body = encode_message(with_label(message, message.candidate, label))
            encoded = pack_value({**frame, "body": body})
            if any(hashlib.sha256(salt + encoded).digest() in committed for salt in salts):
                found.append((label, str(true.label)))
    return found


def with_label(bid: Bid, candidate: Candidate, label: str) -> Bid:
    """The bid if its point had that label."""
    length = len(candidate.attributes)
    packed = pack_attributes(Attributes(label, unpack_attributes(candidate.attributes).identifier), length)
    return bid.model_copy(update={"candidate": candidate.model_copy(update={"attributes": packed})})


def test_trying_all_labels_finds_none(scratch: Path) -> None:
    image = session_of("ask-all").images[CURATOR]
    copy = read_image(scratch, redacted(scratch, image))
    assert guessed_labels(read_image(scratch, image), copy) == []


def test_trying_all_labels_finds_all_where_there_is_no_salt(scratch: Path) -> None:
    image = recorded("ask-all", salts=bytes).images[CURATOR]
    copy = read_image(scratch, redacted(scratch, image))
    found = guessed_labels(read_image(scratch, image), copy)
    assert len(found) == ROUNDS * len(OWNERS)
    assert all(guess == true for guess, true in found)
    assert len({true for _, true in found}) > 1


# -- solving for the points that were won ----------------------------------------------------------------


def arrays_by_round(transcript: Transcript, *, private: bool) -> dict[int, Array]:
    """Every array of d numbers in an event or effect that names a round: the broadcast weights."""
    found: dict[int, Array] = {}
    for item in items_of(transcript):
        fields = {**item.public, **(item.private if private else {})}
        number = fields.get("round")
        for value in fields.values():
            if isinstance(number, int) and isinstance(value, np.ndarray) and value.shape == (DIMENSION,):
                found[number] = value * WEIGHT_UNIT
    return found


def solved(weights: Mapping[int, Array], seed_total: Array, seed_size: int) -> tuple[Array, Array]:
    """g̃, and φ of the points won in all rounds except the last, by least squares.

    Without noise, the weight of round r is w = g̃ − (Σφ(D_init) + Σφ(won before r))/(q + 1) with q = |D_init|
    + r − 1. So each round is an equation, linear in g̃ and in φ of the points.
    """
    system = np.zeros((len(weights), ROUNDS))
    right = np.zeros((len(weights), DIMENSION))
    for row, (number, weight) in enumerate(sorted(weights.items())):
        after = seed_size + number
        system[row, 0] = after
        system[row, 1:number] = -1.0
        right[row] = after * weight + seed_total
    unknown = np.linalg.lstsq(system, right, rcond=None)[0].astype(float)
    return unknown[0], unknown[1:]


@pytest.mark.parametrize("whole", [True, False], ids=["control", "redacted"])
def test_a_linear_solve_finds_the_points_that_were_won_in_the_whole_file_alone(
    scratch: Path, whole: bool
) -> None:
    found = session_of("ask-all")
    hashed = found.feature_map(scratch)
    # The seed set is public, and without noise g̃ is the mean of φ over D_v.
    seed_total = hashed.hash(found.seed_set.features).sum(axis=0) * FEATURE_UNIT
    mean = hashed.hash(found.validation.features).mean(axis=0) * FEATURE_UNIT
    points = found.won[:-1] * FEATURE_UNIT
    image = found.images[CURATOR]
    transcript = read_image(scratch, image if whole else redacted(scratch, image))
    target, won = solved(arrays_by_round(transcript, private=True), seed_total, len(found.seed_set))
    errors = [float(np.abs(target - mean).max()), float(np.abs(won - points).max())]
    if whole:
        assert max(errors) < FEATURE_UNIT / 2, "each point to the grid unit, so that it can be looked up"
    else:
        assert np.abs(won).max() == 0.0, "no equation is left: least squares gives zeros"
        assert min(errors) > 0.1


def numbers(transcript: Transcript, *, private: bool = False) -> Array:
    """Every number of a transcript in order: times, counts, and fields, except digests."""

    def of(value: Value) -> Iterator[float]:
        if isinstance(value, bool | int | float):
            yield float(value)
        elif isinstance(value, np.ndarray):
            yield from value.ravel().astype(float).tolist()
        elif isinstance(value, Mapping):
            for field in value.values():
                yield from of(field)
        elif isinstance(value, list | tuple):
            yield float(len(value))
            for element in value:
                yield from of(element)

    found: list[float] = []
    for record in transcript.records:
        found += (record.now, len(record.effects))
        for item in record.items:
            found += (len(item.kind), len(item.commitments), *of(dict(item.public)))
            found += of(dict(item.private)) if private else ()
    return np.array(found)


@pytest.mark.parametrize("rule", RULES)
def test_the_numbers_that_are_left_are_the_same_whatever_the_data(scratch: Path, rule: str) -> None:
    """Under these two rules and without absences: under others, asks depend on data."""
    noisy = rule == "sealed"

    def left(seed: int) -> Array:
        image = recorded(rule, seed=seed, noisy=noisy).images[CURATOR]
        return numbers(read_image(scratch, redacted(scratch, image)))

    first = left(1)
    assert len(first) > 10 * ROUNDS
    assert all(np.array_equal(left(seed), first) for seed in (2, 3, 4))


SESSIONS, TRAINED = 60, 45
FEW = 3
"""Rounds of sessions of which there are many: fewer numbers than sessions to learn from."""


@cache
def many_sessions() -> tuple[RecordedSession, ...]:
    return tuple(recorded("ask-all", seed=1000 + number, rounds=FEW) for number in range(SESSIONS))


def explained(features: Array, hidden: Array) -> float:
    """R² of the best linear prediction on held-out sessions; 0 is guessing the mean."""
    # From the first session's on, exactly: rounding must not make a number that never changes one that does.
    known = np.column_stack([np.ones(len(features)), features - features[0]])
    learned = np.linalg.lstsq(known[:TRAINED], hidden[:TRAINED], rcond=1e-9)[0]
    missed = np.square(hidden[TRAINED:] - known[TRAINED:] @ learned).sum()
    mean = hidden[:TRAINED].mean(axis=0)
    return float(1.0 - missed / np.square(hidden[TRAINED:] - mean).sum())


@pytest.mark.parametrize("whole", [True, False], ids=["control", "redacted"])
def test_what_is_learned_from_many_sessions_predicts_from_the_whole_file_alone(
    scratch: Path, whole: bool
) -> None:
    """Every number of many redacted files against what they hide, by least squares."""
    features, targets, firsts = [], [], []
    for found in many_sessions():
        image = found.images[CURATOR]
        transcript = read_image(scratch, image if whole else redacted(scratch, image))
        if whole:
            weights = arrays_by_round(transcript, private=True)
            features.append(np.concatenate([weights[number] for number in range(1, FEW + 1)]))
        else:
            features.append(numbers(transcript))
        hashed = found.feature_map(scratch).hash(found.validation.features)
        targets.append(hashed.mean(axis=0) * FEATURE_UNIT)
        firsts.append(found.won[0] * FEATURE_UNIT)
    known = np.array(features)
    for hidden in (np.array(targets), np.array(firsts)):
        if whole:
            assert explained(known, hidden) > 0.999
        else:
            assert explained(known, hidden) < 0.01


# -- what is given away all the same ---------------------------------------------------------------------


def test_a_seed_that_can_be_guessed_is_confirmed_by_the_configurations_digest(scratch: Path) -> None:
    """In a simulated session, which protects nobody; with secure noise the seed is in no file."""
    image = recorded("sealed", noise_seed=321).images[CURATOR]
    copy = read_image(scratch, redacted(scratch, image))
    file = recorded_session(copy.records[0].event)
    guesses = {
        seed: file.model_copy(update={"noise": file.noise.model_copy(update={"seed": seed})})
        for seed in range(1000)
    }
    fits = [seed for seed, guess in guesses.items() if guess.digest() == copy.header.config_digest]
    assert fits == [321]


def test_who_has_a_redacted_file_can_count_answers_but_not_tell_whose(scratch: Path) -> None:
    found = session_of("ask-all")
    copy = read_image(scratch, redacted(scratch, found.images[CURATOR]))
    answers, round_under_way = dict.fromkeys(range(ROUNDS + 1), 0), 0
    for item in items_of(copy):
        round_under_way = item.public.get("round", round_under_way)  # type: ignore[assignment]
        answers[round_under_way] += item.kind == "received"
    assert [answers[number] for number in range(1, ROUNDS)] == [len(OWNERS)] * (ROUNDS - 1)
    assert not any("peer" in item.public for item in items_of(copy))
