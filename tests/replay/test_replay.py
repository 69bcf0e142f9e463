"""A transcript replays to the last byte through the machine that recorded it, and through no other."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.cluster.file import open_cluster
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.protocol.errors import ConfigError, DataError, ReplayDivergence, TranscriptDamaged
from hushbid.protocol.privacy.acquisition import RULES, Logistic
from hushbid.protocol.transcript.record import Header, Record, encode_header, encode_record
from hushbid.protocol.transcript.redaction import redact
from hushbid.protocol.wire.values import Item
from hushbid.running.simulate import simulate
from hushbid.transcripts.replay import replayed
from hushbid.transcripts.replay_view import replay_all
from tests.support.transcripts import read_transcript

OWNERS = ("owner-0", "owner-1")
PARTIES = ("curator", "consumer", *OWNERS)
ROUNDS = 12
PRIVATE = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
OWN_KEYS: dict[str, dict[str, Any]] = {"subspace": {"directions": 8}}
MAPS = {"race": "lsh"}


def cluster_file(place: Path, rule: str, release: dict[str, Any], depth: int | None = None) -> Path:
    """Two owners of 40 points of 5 columns."""
    path = write_cluster(place, owners=2, points=40, columns=5, rounds=ROUNDS)
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    table["features"] |= {"dimension": 16, "map": MAPS.get(release["mechanism"], "paired")}
    table["acquisition"] = {"rule": rule} | ({} if depth is None else {"commitment_depth": depth})
    if RULES[rule].herds:
        table["session"]["batch"] = ROUNDS
    if RULES[rule].sealed:
        del table["features"]["seed"]
    private = release["mechanism"] != "exact"
    for name, neighbours in (("target", "substitute-one"), ("summary", "add-remove-one")):
        table[name] = release | ({"neighbours": neighbours} if private else {})
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes the directory of a simulated session's transcripts, with the parties' data beside it."""
    made: dict[str, Path] = {}

    def record(rule: str = "sealed", release: str = "filtered-gaussian", depth: int | None = None) -> Path:
        key = f"{rule}-{release}-{depth}"
        if key not in made:
            place = tmp_path_factory.mktemp(key)
            settings = PRIVATE if release != "exact" else {"mechanism": "exact"}
            mechanism = settings | {"mechanism": release} | OWN_KEYS.get(release, {})
            file = cluster_file(place, rule, mechanism, depth)
            simulate(open_cluster(file), record=place / "transcripts", report=False)
            made[key] = place / "transcripts"
        return made[key]

    return record


def run_hushbid(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def transcript(directory: Path, party: str) -> Path:
    (found,) = directory.rglob(f"{party}.transcript")
    return found


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {Logistic.name}))
def test_every_partys_transcript_replays_to_the_last_byte(recorded: Callable[..., Path], rule: str) -> None:
    for party in PARTIES:
        found = replayed(transcript(recorded(rule), party))
        assert found.finished
        assert found.header.party == party
        assert found.torn_bytes == 0
        assert found.environment == {}
        assert found.records == len(read_transcript(transcript(recorded(rule), party)).records)


def test_the_replayed_machine_is_what_the_party_had(recorded: Callable[..., Path]) -> None:
    curator = replayed(transcript(recorded(), "curator")).machine
    consumer = replayed(transcript(recorded(), "consumer")).machine
    wins = [(win.owner, win.chosen_round) for win in curator.ledger.wins]  # type: ignore[union-attr]
    assert len(wins) == ROUNDS
    assert [(entry.owner, entry.chosen_round) for entry in consumer.delivered] == wins  # type: ignore[union-attr]
    assert consumer.mmd2.shape == (ROUNDS,)  # type: ignore[union-attr]


@pytest.mark.parametrize("release", ["exact", "gaussian", "filtered-gaussian"])
def test_each_record_is_given_to_who_looks_on(recorded: Callable[..., Path], release: str) -> None:
    rounds: list[int] = []

    def look(record: Record, effects: list[Any], machine: Any) -> None:
        if record.event.kind == "started":
            assert [effect.KIND for effect in effects] == ["set-timer"]
        rounds.append(machine.round)

    replayed(transcript(recorded("ask-all", release), "curator"), look)
    assert rounds == sorted(rounds)
    assert rounds[-1] == ROUNDS


@pytest.mark.parametrize("verb", ["verify", "replay"])
def test_a_directory_stands_for_the_transcripts_that_it_has(
    recorded: Callable[..., Path], tmp_path: Path, verb: str
) -> None:
    done = run_hushbid("transcript", verb, str(recorded()), "--json")
    assert done.exit_code == 0, done.stderr
    assert len(json.loads(done.stdout)["transcripts"]) == len(PARTIES)
    empty = run_hushbid("transcript", verb, str(tmp_path))
    assert empty.exit_code == 4
    assert "has no transcript" in empty.stderr


# -- a replay that diverges --------------------------------------------------------------------------------


def forged(path: Path, place: Path, change: Callable[[int, str, dict[str, Any]], None]) -> Path:
    """A copy with other contents and a valid chain."""
    there = read_transcript(path)
    lead, head = encode_header(there.header)
    image = bytearray(lead)
    for record in there.records:
        items = []
        for item in record.items:
            fields = {**item.public, **item.private}
            change(record.number, item.kind, fields)
            items.append(
                Item(
                    item.kind,
                    {name: fields[name] for name in item.public},
                    {name: fields[name] for name in item.private},
                )
            )
        encoded, head = encode_record(
            record.number, record.now, items[0], items[1:], previous=head, salts=bytes
        )
        image += encoded
    copy = place / path.name
    copy.write_bytes(image)
    return copy


@pytest.mark.parametrize("party", PARTIES)
def test_a_copy_with_another_chain_and_the_same_contents_replays_up_to_its_signed_head(
    recorded: Callable[..., Path], tmp_path: Path, party: str
) -> None:
    """The control: contents are compared. Only the signed head shows another chain."""
    copy = forged(transcript(recorded(), party), tmp_path, lambda _number, _kind, _fields: None)
    with pytest.raises(ReplayDivergence, match="another head of the transcript"):
        replayed(copy)


def test_a_frame_with_another_byte_is_found_and_its_value_is_not_told(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    changed: list[int] = []

    def change(number: int, kind: str, fields: dict[str, Any]) -> None:
        if kind == "send" and fields["frame"]["message"] == "broadcast" and number > 20 and not changed:
            body = fields["frame"]["body"]
            fields["frame"] = {**fields["frame"], "body": body[:-1] + bytes([body[-1] ^ 1])}
            changed.append(number)

    copy = forged(transcript(recorded(), "curator"), tmp_path, change)
    with pytest.raises(ReplayDivergence) as caught:
        replayed(copy)
    assert caught.value.record == changed[0]
    assert f"Record {changed[0]} " in caught.value.what
    assert caught.value.expected == "a send of a broadcast"
    assert caught.value.actual == "a send of a broadcast with another body"
    assert "The environments are the same" in caught.value.advice


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("set-timer", "due", 1e6), ("charge", "first", 7), ("set-timer", "attempt", 99)],
)
def test_any_effect_with_another_field_is_found(
    recorded: Callable[..., Path], tmp_path: Path, kind: str, name: str, value: Any
) -> None:
    changed: list[int] = []

    def change(number: int, found: str, fields: dict[str, Any]) -> None:
        if found == kind and not changed:
            fields[name] = value
            changed.append(number)

    copy = forged(transcript(recorded(), "curator"), tmp_path, change)
    with pytest.raises(ReplayDivergence, match=f"another {name}") as caught:
        replayed(copy)
    assert caught.value.record == changed[0]


def test_an_input_that_was_changed_shows_in_what_comes_of_it(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    def change(_number: int, kind: str, fields: dict[str, Any]) -> None:
        if kind == "weights-computed" and fields["round"] == 3:
            weights = np.array(fields["weights"])
            weights[0] += 1
            fields["weights"] = weights

    copy = forged(transcript(recorded(), "curator"), tmp_path, change)
    with pytest.raises(ReplayDivergence, match="send of a broadcast with another body"):
        replayed(copy)


def test_a_divergence_says_in_what_the_environments_differ(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    path = transcript(recorded(), "owner-0")
    there = read_transcript(path)
    header = Header(*there.header)._replace(
        software="9.9", environment={**there.header.environment, "blas": ["another"]}
    )
    lead, head = encode_header(header)
    first = there.records[0]
    event = Item(first.event.kind, first.event.public, first.event.private)
    encoded, _ = encode_record(
        0, first.now, event, [Item("finish", {"code": 0}, {})], previous=head, salts=bytes
    )
    copy = tmp_path / path.name
    copy.write_bytes(lead + encoded)
    with pytest.raises(ReplayDivergence) as caught:
        replayed(copy)
    assert "hushbid (9.9 there" in caught.value.advice
    assert "blas" in caught.value.advice


# -- recomputing -------------------------------------------------------------------------------------------


def party_file(place: Path, party: str) -> Path:
    """A party's own file, for data that lie beside a cluster file."""
    path = place.parent / f"{party}.toml"
    table: dict[str, Any] = {"state": f"{party}-state"}
    if party == "consumer":
        table |= {"validation": "validation.npy", "seed_set": "seed-set.npy"}
    elif party != "curator":
        table |= {"name": party, "data": f"{party}.npz"}
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        *itertools.product(("exact", "filtered-gaussian"), ("ask-all", "sealed", "winner-only")),
        ("subspace", "sealed"),
        ("race", "ask-all"),
    ],
)
def test_features_releases_and_bids_come_out_again_from_the_partys_data(
    recorded: Callable[..., Path], rule: str, release: str
) -> None:
    place = recorded(rule, release)
    sealed = rule == "sealed"
    compared: dict[str, dict[str, int]] = {}
    for party in PARTIES:
        (found,) = replay_all([transcript(place, party)], party_file(place, party))["transcripts"]
        compared[party] = found["recomputed"]["compared"]
        assert all(value == 0.0 for value in found["recomputed"]["largest_differences"].values())
        assert bool(found["recomputed"]["skipped"]) == (sealed and party == "curator")
    assert compared["curator"]["weights-computed"] == ROUNDS
    assert ("candidates-checked" in compared["curator"]) != sealed
    assert compared["consumer"] == {"target-released": 1, "purchases-checked": 1}
    for owner in OWNERS:
        assert compared[owner]["scored"] == ROUNDS


@pytest.mark.parametrize("release", ["exact", "filtered-gaussian", "subspace", "race"])
def test_where_the_curator_is_blind_the_consumer_redoes_what_it_weighed(
    recorded: Callable[..., Path], release: str
) -> None:
    place = recorded("blind", release)
    compared = {}
    for party in PARTIES:
        (found,) = replay_all([transcript(place, party)], party_file(place, party))["transcripts"]
        assert found["rounds"] == ROUNDS
        assert found["recomputed"]["skipped"] == {}
        assert all(value == 0.0 for value in found["recomputed"]["largest_differences"].values())
        compared[party] = found["recomputed"]["compared"]
    drawn = {} if release == "exact" else {"noise-drawn": 1}
    assert compared["curator"] == {"bids-checked": ROUNDS}, "signatures, and nothing else"
    each_round = dict.fromkeys(("weights-computed", "weight-sealed", "purchases-checked"), ROUNDS)
    assert compared["consumer"] == {"target-released": 1, "account-made": 1, **each_round, **drawn}
    for owner in OWNERS:
        assert compared[owner] == {"map-opened": 1, "blind-scored": ROUNDS}


def test_where_it_cannot_link_the_consumer_finds_places_and_boxes_again(
    recorded: Callable[..., Path],
) -> None:
    place = recorded("blind", "filtered-gaussian", 8)
    for party, kinds in (
        ("curator", ("bids-checked",)),
        ("consumer", ("weights-computed", "round-opened", "choice-placed", "purchases-checked")),
        *((owner, ("blind-scored",)) for owner in OWNERS),
    ):
        assert replayed(transcript(place, party)).finished
        (found,) = replay_all([transcript(place, party)], party_file(place, party))["transcripts"]
        assert found["recomputed"]["skipped"] == {}
        assert {kind: found["recomputed"]["compared"][kind] for kind in kinds} == dict.fromkeys(kinds, ROUNDS)


def test_a_blind_sessions_owner_with_other_data_is_found_out(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    place = recorded("blind", "exact")
    points = np.load(place.parent / "owner-0.npz")["features"][::-1]
    np.savez(tmp_path / "owner-0.npz", features=points, labels=np.zeros(len(points), dtype=np.int64))
    other = tmp_path / "party.toml"
    other.write_text(party_file(place, "owner-0").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ReplayDivergence, match="blind-scored has another"):
        replay_all([transcript(place, "owner-0")], other)


def test_other_data_are_found_out(recorded: Callable[..., Path], tmp_path: Path) -> None:
    place = recorded("ask-all", "exact")
    own = party_file(place, "owner-0")
    other = tmp_path / "party.toml"
    points = np.load(place.parent / "owner-0.npz")["features"].copy()
    points[:, 0] = 1.0 - points[:, 0]
    np.savez(tmp_path / "owner-0.npz", features=points, labels=np.zeros(len(points), dtype=np.int64))
    other.write_text(own.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ReplayDivergence, match="Recomputed") as caught:
        replay_all([transcript(place, "owner-0")], other)
    assert caught.value.record is not None


def test_another_partys_file_is_refused(recorded: Callable[..., Path]) -> None:
    place = recorded("ask-all", "exact")
    with pytest.raises(DataError, match="owner-1's"):
        replay_all([transcript(place, "owner-0")], party_file(place, "owner-1"))


def test_a_file_of_another_role_or_of_one_of_several_parties_is_refused(
    recorded: Callable[..., Path],
) -> None:
    place = recorded("ask-all", "exact")
    curators, owners = transcript(place, "curator"), transcript(place, "owner-0")
    with pytest.raises(ConfigError, match=r"is owner owner-0's, and this is no owner's file") as caught:
        replay_all([owners], party_file(place, "curator"))
    assert str(owners) in caught.value.what
    assert "owner owner-0 was started with" in caught.value.advice
    with pytest.raises(ConfigError, match=r"several parties: .* is curator's, .* is owner owner-0's"):
        replay_all([curators, owners], party_file(place, "curator"))
    assert len(replay_all([curators, curators], party_file(place, "curator"))["transcripts"]) == 2


# -- bad input ---------------------------------------------------------------------------------------------


def test_a_redacted_copy_cannot_be_replayed_and_says_so(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    copy = tmp_path / "redacted.transcript"
    with copy.open("wb") as out:
        redact(transcript(recorded(), "curator"), out.write)
    with pytest.raises(DataError, match="redacted"):
        replayed(copy)


def test_a_torn_transcript_replays_to_its_last_whole_record(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    path = transcript(recorded(), "curator")
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes()[:-5])
    whole, torn = replayed(path), replayed(copy)
    assert torn.records == whole.records - 1
    assert torn.torn_bytes > 0
    assert not torn.finished


def test_a_damaged_transcript_is_refused_with_the_record(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    path = transcript(recorded(), "curator")
    image = bytearray(path.read_bytes())
    image[len(image) // 2] ^= 1
    copy = tmp_path / path.name
    copy.write_bytes(image)
    with pytest.raises(TranscriptDamaged) as caught:
        replayed(copy)
    assert caught.value.record > 0


@pytest.mark.parametrize("content", [b"", b"something else altogether"])
def test_what_is_no_transcript_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.transcript"
    path.write_bytes(content)
    with pytest.raises(DataError):
        replayed(path)


def test_a_transcript_without_a_record_is_refused(recorded: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "a.transcript"
    lead, _ = encode_header(read_transcript(transcript(recorded(), "curator")).header)
    path.write_bytes(lead)
    with pytest.raises(DataError, match="no record yet"):
        replayed(path)


def test_the_verb_ends_with_0_where_all_is_identical_and_with_1_where_it_is_not(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    files = [str(transcript(recorded(), party)) for party in PARTIES]
    good = run_hushbid("transcript", "replay", *files, "--json")
    assert good.exit_code == 0
    told = json.loads(good.stdout)
    assert told["identical"] is True
    assert [entry["party"] for entry in told["transcripts"]] == list(PARTIES)
    copy = forged(Path(files[0]), tmp_path, lambda _number, _kind, _fields: None)
    bad = run_hushbid("transcript", "replay", str(copy), "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["error"]["kind"] == "ReplayDivergence"
