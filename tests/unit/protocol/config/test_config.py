"""Configuration files: errors name file and key, and the digest covers the meaning alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hushbid.cluster.file import ClusterFile
from hushbid.protocol import limits
from hushbid.protocol.config.invitation import Invitation
from hushbid.protocol.config.loading import load_toml, load_toml_text, validated
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.refusal import KINDS
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.session.session import open_session
from tests.support.session_files import SESSION, load, text

KEYS = [chr(ord("a") + place) * 40 for place in range(8)]
"""Text of the form of public keys."""
SECURE: dict[str, Any] = {
    "network.insecure": False,
    "roster.curator": KEYS[0],
    "roster.consumer": KEYS[1],
    "roster.owners": {"alpha": KEYS[2], "beta": KEYS[3], "gamma": KEYS[4]},
}


def refusal(changes: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(changes)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.what.startswith("session.toml: ")
    assert caught.value.advice
    return str(caught.value)


def test_a_session_file_and_its_defaults() -> None:
    file = load({})
    assert file.session.points == 100
    assert (file.features.map, file.features.lower, file.features.upper) == ("paired", 0.0, 1.0)
    assert file.owners == ("alpha", "beta", "gamma")
    assert load(SECURE).roster.owners["beta"] == KEYS[3]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown table": ({"extra.key": 1}, "extra: unknown key"),
    "unknown key": ({"session.pionts": 5}, "session.pionts: unknown key, did you mean 'points'?"),
    "unknown timeout": ({"timeouts.rounds": 1.0}, "timeouts.rounds: unknown key, did you mean 'round'?"),
    "missing key": ({"session.points": None}, "session.points: is missing"),
    "missing table": ({"features": None}, "features: is missing"),
    "missing mechanism": ({"target.mechanism": None}, "target.mechanism: is missing"),
    "missing owners": ({"roster.owners": None}, "roster.owners: is missing"),
    "list for a table of any names": ({"roster.owners": ["a"]}, "roster.owners: should be a table"),
    "unknown key like a table": ({"sesion.name": "x"}, "sesion: unknown key, did you mean 'session'?"),
    "unknown key like no other": ({"session.colour": 1}, "session.colour: unknown key."),
    "text for an integer": ({"session.points": "100"}, "session.points"),
    "float for an integer": ({"session.points": 100.0}, "session.points"),
    "boolean for an integer": ({"session.points": True}, "session.points"),
    "integer for a boolean": ({"session.allow_nonprivate": 1}, "session.allow_nonprivate"),
    "boolean for a float": ({"features.gamma": True}, "features.gamma"),
    "text for a float": ({"features.gamma": "0.5"}, "features.gamma"),
    "number for a text": ({"session.name": 7}, "session.name"),
    "list for a table": ({"session": [1]}, "session: should be a table"),
    "no points": ({"session.points": 0}, "session.points"),
    "too many points": ({"session.points": limits.MAX_POINTS + 1}, "session.points"),
    "a name with spaces": ({"session.name": "a b"}, "session.name: not a name"),
    "delta of 1": ({"session.delta": 1.0}, "session.delta"),
    "delta of NaN": ({"session.delta": float("nan")}, "session.delta: is nan, which is no number"),
    "jitter of NaN": ({"session.jitter": float("nan")}, "session.jitter: is nan, which is no number"),
    "gamma of 0": ({"features.gamma": 0.0}, "features.gamma"),
    "infinite gamma": ({"features.gamma": float("inf")}, "features.gamma"),
    "negative seed": ({"features.seed": -1}, "features.seed"),
    "seed over 63 bits": ({"features.seed": 2**63}, "features.seed"),
    "dimension too small": ({"features.dimension": limits.MIN_DIMENSION - 1}, "features.dimension"),
    "dimension too large": ({"features.dimension": limits.MAX_DIMENSION + 1}, "features.dimension"),
    "too few lower bounds": (
        {"features.lower": [0.0, 0.0]},
        "features: lower has 2 values for 3",
    ),
    "too many upper bounds": (
        {"features.upper": [1.0] * 4},
        "features: upper has 4 values for 3",
    ),
    "a bound of NaN": ({"features.lower": [0.0, float("nan"), 0.0]}, "features.lower"),
    "a bound of text": ({"features.upper": "1"}, "features.upper"),
    "delta of 0": ({"session.delta": 0.0}, "session.delta"),
    "negative delta": ({"session.delta": -1e-5}, "session.delta"),
    "unknown noise": ({"noise.source": "dice"}, "noise.source"),
    "simulated noise without a seed": ({"noise.seed": None}, "noise: simulated noise needs a seed"),
    "secure noise with a seed": ({"noise.source": "secure"}, "noise: secure noise has no seed"),
    "negative seed of noise": ({"noise.seed": -1}, "noise.seed"),
    "seed of noise over 63 bits": ({"noise.seed": 2**63}, "noise.seed"),
    "text for a seed of noise": ({"noise.seed": "1"}, "noise.seed"),
    "an epsilon of 400 digits": (
        {"target.epsilon": 10**400},
        "target: epsilon has a whole number of",
    ),
    "a mechanism's number over 64 bits": ({"summary.rounds": 2**64}, "summary: rounds has a whole number of"),
    "a rule's number below 64 bits": (
        {"acquisition.own": [-(2**63) - 1]},
        "acquisition: own has a whole",
    ),
    "no time": ({"timeouts.round": 0.0}, "timeouts.round"),
    "endless time": ({"timeouts.round": float("inf")}, "timeouts.round"),
    "not an address": ({"network.address": "localhost"}, "network.address: not an address: tcp://HOST:PORT"),
    "an address without port": ({"network.address": "tcp://localhost"}, "network.address"),
    "no owners": ({"roster.owners": {}}, "roster: a session has 1 to"),
    "an owner named curator": ({"roster.owners": {"curator": ""}}, "roster: an owner cannot"),
    "an owner named consumer": ({"roster.owners": {"consumer": ""}}, "roster: an owner cannot"),
    "an owner's name in capitals": ({"roster.owners": {"Alpha": ""}}, "roster.owners.Alpha: not a name"),
    "a key too short": ({**SECURE, "roster.owners.beta": KEYS[3][1:]}, "beta: not a public key: 40 char"),
    "a key twice": ({**SECURE, "roster.owners.beta": KEYS[2]}, "roster: two parties"),
    "an owner's key is the curator's": (
        {**SECURE, "roster.curator": KEYS[2]},
        "roster: two parties",
    ),
    "secure without an owner's key": ({**SECURE, "roster.owners.beta": ""}, "no public key for beta"),
    "secure without curator's key": ({**SECURE, "roster.curator": ""}, "no public key for curator"),
    "secure without any key": ({"network.insecure": False}, "alpha, beta, consumer, curator, gamma"),
    "min_owners over the owners": ({"session.min_owners": 4}, "session.min_owners is more than the roster's"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_session_file_is_refused_by_key(name: str) -> None:
    changes, expected = BAD[name]
    assert expected in refusal(changes)


def test_a_question_ends_with_its_mark_alone() -> None:
    assert "unknown key, did you mean 'points'? Correct these keys" in refusal({"session.pionts": 5})


def test_a_number_where_text_should_be_says_how_text_is_written() -> None:
    found = refusal({"session.nonce": 2})
    assert found.startswith("session.toml: session.nonce: should be text. Correct")
    assert """`nonce = "…"` in a file, `--set 'session.nonce="…"'`""" in found


def test_all_faults_are_named_at_once() -> None:
    found = refusal({"session.points": "100", "features.gamma": None, "noise.colour": "pink"})
    assert all(key in found for key in ("session.points", "features.gamma", "noise.colour"))


@pytest.mark.parametrize("line", ["hushbid-public 1 {}", "{}\n", " {}", "{} {}"])
def test_more_than_the_key_is_no_key(line: str) -> None:
    found = refusal({**SECURE, "roster.curator": line.format(KEYS[0], KEYS[0])})
    assert "roster.curator: not a public key: 40 characters, as `hushbid keys show` prints" in found
    assert "the last word alone" in found
    assert KEYS[0] not in found


def test_a_bad_key_is_one_fault_and_is_not_shown() -> None:
    found = refusal({**SECURE, "roster.owners.beta": "#" * 39})
    assert found.count("roster.owners.beta") == 1
    assert "#" not in found


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ("points = \n", "line 1"),
        ('[roster.owners]\nalpha = ""\nbeta = ""\nalpha = ""\n', "line 4"),
        ("[session]\n[session]\n", "line 2"),
        ("a = " + "9" * 5000, "not TOML"),
        ("a = " + "[" * 3000, "not TOML"),
        ("\x00", "not TOML"),
    ],
    ids=["no-value", "owner-twice", "table-twice", "huge-integer", "deep", "null"],
)
def test_what_is_not_toml_is_refused_with_its_place(broken: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_toml_text(SessionFile, broken, where="session.toml")
    assert caught.value.what.startswith("session.toml: not TOML: ")
    assert expected in caught.value.what
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "session.toml"
    path.write_text(text({"session.nonce": "φ"}), encoding="utf-8")
    assert load_toml(SessionFile, path).session.nonce == "φ"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "caf\xe9"')
    for path, expected in (
        (tmp_path / "absent.toml", "no such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (latin, "cannot be read: not UTF-8"),
        (tmp_path / "latin.toml" / "below", "cannot be read: Not a directory"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_toml(SessionFile, path)
        assert str(path) in caught.value.what
        assert expected in caught.value.what
        assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_without_permission_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, **keywords: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)  # whoever is root may read every file
    with pytest.raises(ConfigError, match=r"session\.toml: cannot be read: Permission denied"):
        load_toml(SessionFile, tmp_path / "session.toml")


# -- the private files ----------------------------------------------------------------------------------

OWNER = {"name": "alpha", "data": "points.npz", "state": "state", "key": "alpha.key"}
CONSUMER = {"validation": "v.csv", "seed_set": "s.csv", "state": "state"}


def test_private_files_name_paths() -> None:
    owner = validated(OwnerFile, OWNER, where="owner.toml")
    assert (owner.data, owner.key, owner.durability) == (Path("points.npz"), Path("alpha.key"), "fsync")
    assert validated(ConsumerFile, CONSUMER, where="consumer.toml").test is None
    assert validated(CuratorFile, {"state": "state"}, where="curator.toml").listen is None


@pytest.mark.parametrize(
    ("model", "values", "expected"),
    [
        (OwnerFile, {**OWNER, "dat": "x"}, "dat: unknown key, did you mean 'data'?"),
        (OwnerFile, {"name": "alpha", "state": "s"}, "data: is missing"),
        (OwnerFile, {**OWNER, "data": 5}, "data: "),
        (OwnerFile, {**OWNER, "memory_limit": 1}, "memory_limit: "),
        (OwnerFile, {**OWNER, "columns": {"features": "a"}}, "columns.features: "),
        (
            OwnerFile,
            {**OWNER, "columns": {"feature": ["a"]}},
            "columns.feature: unknown key, did you mean 'features'?",
        ),
        (OwnerFile, {**OWNER, "budget": {"epsilon": 0.0}}, "budget.epsilon: "),
        (OwnerFile, {**OWNER, "budget": {"epsilon": 1.0, "delta": 1.0}}, "budget.delta: "),
        (ConsumerFile, {**CONSUMER, "budget": {"epsilon": -1.0}}, "budget.epsilon: "),
        (ConsumerFile, {**CONSUMER, "budget": {"epsilon": 1.0, "delta": 0.0}}, "budget.delta: "),
        (ConsumerFile, {**CONSUMER, "budget": {"delta": 1e-5}}, "budget: epsilon is missing"),
        (ConsumerFile, {**CONSUMER, "seed": -1}, "seed: "),
        (ConsumerFile, {**CONSUMER, "seed_set": None}, "a seed set is missing"),
        (ConsumerFile, {**CONSUMER, "seed_points": 5}, "leave one of them out"),
        (CuratorFile, {"state": "s", "durability": "none"}, "durability: "),
        (CuratorFile, {}, "state: is missing"),
    ],
)
def test_a_bad_private_file_is_refused_by_key(
    model: type[BaseModel], values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=r"^party\.toml: ") as caught:
        validated(model, values, where="party.toml")
    assert expected in caught.value.what


KIND_OF: dict[str, type[BaseModel]] = {
    "a session file": SessionFile,
    "a cluster file": ClusterFile,
    "an invitation": Invitation,
    "a curator's file": CuratorFile,
    "an owner's file": OwnerFile,
    "a consumer's file": ConsumerFile,
}


def test_every_kind_of_file_is_known_by_all_its_keys() -> None:
    found = {name: kind.keys for name, kind in KINDS.items()}
    assert found == {name: set(model.model_fields) for name, model in KIND_OF.items()}


def kind_refusal(model: type[BaseModel], values: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        validated(model, values, where="a.toml")
    return caught.value


CURATOR = {"state": "state", "key": "curator.key", "listen": "tcp://*:5790"}


@pytest.mark.parametrize(
    ("wanted", "values", "seen"),
    [
        ("a session file", OWNER, "an owner's file"),
        ("a session file", CONSUMER, "a consumer's file"),
        ("a session file", CURATOR, "a curator's file"),
        ("an owner's file", SESSION, "a session file"),
        ("a consumer's file", SESSION, "a session file"),
        ("a curator's file", SESSION, "a session file"),
        ("a cluster file", OWNER, "an owner's file"),
    ],
)
def test_files_that_are_swapped_are_known_before_any_of_their_keys(
    wanted: str, values: dict[str, Any], seen: str
) -> None:
    error = kind_refusal(KIND_OF[wanted], values)
    assert error.what == f"a.toml: this looks like {seen} where {wanted} is asked for."
    assert ("--session" if seen == "a session file" else "--config") in error.advice


@pytest.mark.parametrize(
    ("wanted", "values", "seen"),
    [
        ("an owner's file", CONSUMER, "a consumer's file"),
        ("a consumer's file", OWNER, "an owner's file"),
        ("a cluster file", SESSION, "a session file"),
        (
            "a session file",
            {**SESSION, "roster": None, "dataset": {"name": "digits"}, "run": {}},
            "a cluster file",
        ),
    ],
)
def test_of_files_that_share_keys_the_kind_comes_first_and_then_the_keys(
    wanted: str, values: dict[str, Any], seen: str
) -> None:
    values = {key: value for key, value in values.items() if value is not None}
    error = kind_refusal(KIND_OF[wanted], values)
    assert error.what.startswith(f"a.toml: this looks like {seen} where {wanted} is asked for: ")
    assert "unknown key" in error.what


def test_an_invitation_in_a_session_files_place_is_known() -> None:
    values = {"format": "hushbid-invitation", "version": 1, "party": "north", "configuration": SESSION}
    error = kind_refusal(SessionFile, values)
    assert error.what == "a.toml: this looks like an invitation where a session file is asked for."
    assert "--invitation" in error.advice


def test_a_file_with_faults_of_its_own_is_not_taken_for_another_kind() -> None:
    for model, values in (
        (SessionFile, {"session": {"name": "x"}}),
        (SessionFile, {}),
        (OwnerFile, {"state": "s", "key": "k"}),
        (OwnerFile, {**OWNER, "seed": 3}),
        (CuratorFile, {**CURATOR, "name": "x"}),
    ):
        assert "looks like" not in kind_refusal(model, values).what


# -- the digest -----------------------------------------------------------------------------------------

OTHERS: dict[str, Any] = {
    "session.name": "other",
    "session.points": 101,
    "session.submission": 2,
    "session.batch": 7,
    "session.seed_weight": 0.5,
    "session.jitter": 3.0,
    "session.distinct": False,
    "session.min_owners": 2,
    "session.delta": 1e-6,
    "session.allow_nonprivate": False,
    "session.nonce": "again",
    "session.labels": "text",
    "session.identifiers": "text",
    "session.fixed_cadence": 2.5,
    "session.column_values": 6,
    "features.map": "cosine",
    "features.dimension": 10,
    "features.gamma": 0.25,
    "features.seed": 8,
    "features.family": "l1",
    "features.cells": 2,
    "features.bandwidth": 0.5,
    "features.columns": 4,
    "features.lower": -1.0,
    "features.upper": [1.0, 2.0, 1.0],
    "target.mechanism": "gaussian",
    "summary.mechanism": "gaussian",
    "acquisition.rule": "published",
    "noise.seed": 1,
}
"""Another valid value for everything that the digest covers."""

OUTSIDE = ("network.", "timeouts.", "roster.curator", "roster.consumer")
SECURE_NOISE = {"noise.source": "secure", "noise.seed": None}
"""The source goes with its seed: neither can be changed alone."""
SETTLED = {"settlement.private": True, "settlement.epsilon": 1.0}
"""So do these (`tests.unit.protocol.privacy.test_settlement` has their digests)."""


def leaves(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Dotted paths of all fields except tables with known keys."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


BY_THEMSELVES = {"roster.owners", "columns", "labels", "wishes", "session.numbered"}
"""What other tests change: each is a table or a list of its own, or is of some rules alone."""


def test_every_field_is_known_to_be_inside_or_outside_of_the_digest() -> None:
    covered = {path for path in leaves(SessionFile) if not path.startswith(OUTSIDE)}
    assert covered == set(OTHERS) | set(SECURE_NOISE) | set(SETTLED) | BY_THEMSELVES


@pytest.mark.parametrize("path", OTHERS)
def test_the_digest_changes_with_every_field_of_meaning(path: str) -> None:
    assert load({path: OTHERS[path]}).digest() != load({}).digest()


@pytest.mark.parametrize(
    "changes",
    [
        {"target.sigma": 1.0},
        {"summary.steps": 3},
        {"acquisition.tau": 2},
        {"roster.owners.delta": ""},
        {"roster.owners": {"alpha": "", "beta": ""}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_digest_changes_with_parameters_and_owners(changes: dict[str, Any]) -> None:
    assert load(changes).digest() != load({}).digest()


@given(st.sets(st.sampled_from(sorted(OTHERS))), st.sets(st.sampled_from(sorted(OTHERS))))
def test_two_digests_are_equal_only_for_the_same_meaning(one: set[str], other: set[str]) -> None:
    def distinguished(paths: set[str]) -> set[str]:
        # Bounds for each of three columns do not go with four columns; and with the others points are not
        # distinct by default.
        without = {"features.upper"} if "features.columns" in paths else set()
        if paths & {"session.fixed_cadence", "session.column_values", "acquisition.rule"}:
            without |= {"session.distinct"}
        return paths - without

    one, other = map(distinguished, (one, other))
    digests = [load({path: OTHERS[path] for path in paths}).digest() for paths in (one, other)]
    assert (digests[0] == digests[1]) == (one == other)
    assert {len(digest) for digest in digests} == {32}


@given(st.permutations(["alpha", "beta", "gamma", "zeta", "a.b_c-9"]))
def test_the_digest_does_not_depend_on_the_order_of_owners(names: list[str]) -> None:
    file = load({"roster.owners": dict.fromkeys(names, "")})
    assert list(file.roster.owners) == names
    assert file.owners == tuple(sorted(names))
    assert file.digest() == load({"roster.owners": dict.fromkeys(sorted(names), "")}).digest()


def outside_of_meaning() -> dict[str, Any]:
    """Another value for everything about how parties reach each other, and for all keys."""
    outside = {path for path in leaves(SessionFile) if path.startswith(OUTSIDE)}
    changes = dict(SECURE) | {"network.address": "tcp://example.org:1"}
    changes |= {path: 7.5 for path in outside if path.startswith("timeouts.")}
    assert outside <= set(changes)
    return changes


def test_the_digest_does_not_depend_on_addresses_and_timeouts_nor_on_keys_where_noise_is_simulated() -> None:
    """Then nothing is sealed to a key: a simulation, which has none, gives the same bytes."""
    assert load(outside_of_meaning()).digest() == load({}).digest()


def test_where_noise_is_secure_the_digest_has_every_key_and_still_no_address() -> None:
    """Points and maps are sealed to the roster's keys: another key makes another session."""
    base = dict(SECURE) | SECURE_NOISE
    assert load(base | outside_of_meaning()).digest() == load(base).digest()
    digests = {load(base).digest()}
    for place, path in enumerate(("roster.curator", "roster.consumer", "roster.owners.beta")):
        other = KEYS[5 + place]
        digests.add(load(base | {path: other}).digest())
    assert len(digests) == 4


def test_a_session_with_keys_has_no_insecure_copy_of_the_same_digest() -> None:
    """The roster decides whether heads are signed, not `insecure`, which no digest covers."""
    base = dict(SECURE) | SECURE_NOISE
    with pytest.raises(ConfigError, match="an insecure session has no public keys"):
        load(base | {"network.insecure": True})
    bare = load(SECURE_NOISE | {"network.insecure": True})
    assert open_session(bare).keyless
    # Whatever the file says beside its roster's keys.
    kept = load(base)
    insecure = kept.network.model_copy(update={"insecure": True})
    assert not replace(open_session(bare), file=kept.model_copy(update={"network": insecure})).keyless
    assert bare.digest() != load(base).digest()


def test_the_digest_tells_secure_noise_from_simulated() -> None:
    assert load(SECURE_NOISE).digest() != load({}).digest()


def test_a_default_that_is_written_out_changes_nothing() -> None:
    written = {"features.map": "paired", "features.lower": 0, "session.delta": 1e-5}
    assert load(written).digest() == load({}).digest()
    assert load({"noise": None}).digest() == load(SECURE_NOISE).digest(), "noise is secure by default"
    assert load({"features.seed": None}).digest() != load({}).digest()


SEALED = {"features.seed": None, "acquisition.rule": "sealed"}
CELLS = {"features.map": "lsh"}
NOISY = {"summary.mechanism": "filtered-gaussian", "summary.neighbours": "add-remove-one"}
MWEM = {
    "summary.mechanism": "mwem",
    "summary.neighbours": "add-remove-one",
    "summary.calibration": "sound",
    "summary.step_epsilon": 0.5,
    "summary.steps": 2,
    "summary.eta": 0.25,
}


@pytest.mark.parametrize(
    ("base", "written"),
    [
        ({"features.gamma": 1}, {"features.gamma": 1.0}),
        ({}, {"features.lower": -0.0, "features.upper": 1}),
        ({}, {"features.lower": [0, 0.0, -0.0]}),
        (NOISY | {"summary.epsilon": 1}, {"summary.epsilon": 1.0}),
        ({"acquisition.rule": "published"}, {"acquisition.epsilon": 0.5}),
        ({"acquisition.rule": "published"}, {"acquisition.tau": 3}),
        ({"acquisition.rule": "logistic", "acquisition.epsilon": 2}, {"acquisition.epsilon": 2.0}),
        (SEALED, {"acquisition.box_bytes": 320}),
        (MWEM, {"summary.first_steps": 2}),
        (MWEM, {"summary.first_epsilon": 0.5}),
        (CELLS, {"features.family": "l2"}),
        (CELLS, {"features.cells": 4}),
        (CELLS, {"features.bandwidth": 1.0 / math.sqrt(0.5)}),
        ({}, {"session.min_owners": 1, "session.nonce": "", "features.dimension": 8}),
    ],
    ids=lambda changes: ",".join(changes) or "base",
)
def test_two_ways_to_write_one_session_have_one_digest(base: dict[str, Any], written: dict[str, Any]) -> None:
    assert load(base | written).digest() == load(base).digest()


@pytest.mark.parametrize(
    ("base", "other"),
    [
        (NOISY | {"summary.epsilon": 1}, {"summary.epsilon": 1.5}),
        ({"acquisition.rule": "published"}, {"acquisition.tau": 4}),
        (SEALED, {"acquisition.box_bytes": 321}),
        (MWEM, {"summary.first_steps": 3}),
        (MWEM, {"summary.first_epsilon": 0.25}),
        (CELLS, {"features.bandwidth": 1.0}),
        (CELLS, {"features.cells": 2}),
    ],
    ids=",".join,
)
def test_a_value_that_is_not_the_default_is_another_session(
    base: dict[str, Any], other: dict[str, Any]
) -> None:
    assert load(base | other).digest() != load(base).digest()


def test_the_digest_of_one_file_is_the_same_everywhere() -> None:
    """Parties compare digests at Hello: a change would separate releases from each other."""
    assert load({}).digest().hex() == "e3c839029096017ebeff535e64864e86a60c17960c2df8843417c9ab06118185"
    assert (
        load(SECURE_NOISE).digest().hex()
        == "7c93cec44d43ae3e967e2ee9adbbcc4b192776cf4c2d8e8c261195844b69fde5"
    )


def test_a_session_as_they_were_before_there_were_batches_has_its_digest_of_then() -> None:
    then = {"session.batch": 1, "session.seed_weight": 1.0, "session.jitter": 0.0, "session.distinct": False}
    assert load(then).digest().hex() == "fe8f902fbdbcd1afa7a1f2b8fec3ada5939a0e904dd340c4c02992b3b60ce1ea"
    assert (
        load(SECURE_NOISE | then).digest().hex()
        == "a967a8f6f7cebede49c0ea278c928ac0e37c0ae056d8b8736e17e706deb81489"
    )


def test_a_default_that_is_written_out_is_the_same_session() -> None:
    assert load({"session.seed_weight": 0.1}).digest() == load({}).digest()
    assert (
        load({"session.jitter": 50}).digest() == load({"session.jitter": 50.0}).digest() == load({}).digest()
    )
    assert load({"session.jitter": 0}).digest() != load({}).digest()
    assert load({"acquisition.rule": "winner-only"}).jitter == 0.0
    assert load({"session.distinct": True}).digest() == load({}).digest()
    assert load({"session.distinct": False}).digest() != load({}).digest()
    for others in (
        {"acquisition.rule": "winner-only"},
        {"session.fixed_cadence": 2.0},
        {"session.column_values": 9},
        {"settlement.private": True, "settlement.epsilon": 1.0},
    ):
        assert not load(others).distinct
    thousand = {"session.points": 1000, "acquisition.rule": "ask-all"}
    assert load(thousand).batch == 20
    assert load(thousand | {"session.batch": 20}).digest() == load(thousand).digest()
    assert load(thousand | {"session.batch": 10}).digest() != load(thousand).digest()
