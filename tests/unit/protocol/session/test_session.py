"""The meaning of a session file: its parts, their guarantees, and what needs `allow_nonprivate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hushbid.protocol.errors import ConfigError, ExitCode
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.session.sizes import longest_to_curator
from hushbid.protocol.space.features import FEATURE_SPACES
from hushbid.protocol.space.features.lsh import LshSpace
from tests.support.session_files import load

GAUSSIAN = {"mechanism": "gaussian", "sigma": 50.0}
MWEM = {"mechanism": "mwem", "calibration": "sound", "step_epsilon": 0.05, "steps": 2, "eta": 0.25}
FILTERED = {"mechanism": "filtered-gaussian", "epsilon": 1.0}
SUBSPACE = {"mechanism": "subspace", "epsilon": 1.0, "directions": 3}
RACE = {"mechanism": "race", "epsilon": 1.0}
PUBLISHED_MWEM = MWEM | {"calibration": "published"}
EXACT = {"mechanism": "exact"}
SIMULATED = "the noise is simulated"
NO_NOISE = "the release exact has no noise"


def stated(table: dict[str, Any], neighbours: str) -> dict[str, Any]:
    """A mechanism's table with its neighbours, if it is private and names none itself."""
    mechanism = RELEASES.get(table["mechanism"])
    private = mechanism is not None and mechanism.private
    return ({"neighbours": neighbours} if private else {}) | table


def opened(
    summary: dict[str, Any] = GAUSSIAN,
    target: dict[str, Any] = GAUSSIAN,
    *,
    rule: str = "ask-all",
    allow: bool = True,
    **changes: Any,
) -> Session:
    given = {
        "summary": stated(summary, "add-remove-one"),
        "target": stated(target, "substitute-one"),
        "acquisition.rule": rule,
        "session.allow_nonprivate": allow,
    }
    if RULES.get(rule) is not None and RULES[rule].sealed:
        given["features.seed"] = None
    return open_session(load(given | {name.replace("__", "."): value for name, value in changes.items()}))


@pytest.fixture
def noise_that_protects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise like a secure source's: only then do the other reasons stand alone."""
    monkeypatch.setattr(Session, "noise_protects", True)


def refusal(**given: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        opened(**given)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.advice
    return str(caught.value)


# -- what protects nobody must be allowed ---------------------------------------------------------------


@pytest.mark.usefixtures("noise_that_protects")
@pytest.mark.parametrize(
    "mechanism", [GAUSSIAN, MWEM, PUBLISHED_MWEM, FILTERED], ids=["gaussian", "mwem", "published", "filtered"]
)
def test_a_session_that_protects_everybody_needs_no_permission(mechanism: dict[str, Any]) -> None:
    session = opened(mechanism, mechanism, allow=False)
    assert [statement.why for statement in session.privacy()[:2]] == ["", ""]


@pytest.mark.usefixtures("noise_that_protects")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"summary": EXACT}, f"the records of every owner: {NO_NOISE}"),
        ({"target": EXACT}, f"the consumer's validation set: {NO_NOISE}"),
        ({"rule": "winner-only"}, "the records of every owner: the rule winner-only tells an owner"),
        ({"rule": "published"}, "not differentially private at any ε"),
    ],
    ids=["exact-summary", "exact-target", "winner-only", "published"],
)
def test_what_protects_nobody_needs_permission(given: dict[str, Any], reason: str) -> None:
    found = refusal(allow=False, **given)
    assert reason in found
    assert "session.allow_nonprivate = true" in found
    opened(allow=True, **given)


def test_simulated_noise_needs_permission() -> None:
    found = refusal(allow=False)
    assert found.count(SIMULATED) == 2
    assert {statement.why[: len(SIMULATED)] for statement in opened(allow=True).privacy()[:2]} == {SIMULATED}


@pytest.mark.parametrize("table", ["target", "summary"])
def test_a_private_mechanism_without_its_neighbours_is_refused_with_what_to_say(table: str) -> None:
    changes = {table: dict(GAUSSIAN), "session.allow_nonprivate": True}
    with pytest.raises(ConfigError) as caught:
        open_session(load(changes))
    assert caught.value.what.startswith(f"[{table}]: ")
    assert "'neighbours'" in caught.value.what
    assert 'neighbours = "substitute-one" in [target], "add-remove-one" in [summary]' in caught.value.advice


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"logistic"}))
def test_every_rule_that_tells_owners_of_others_is_gated(rule: str, noise_that_protects: None) -> None:
    if RULES[rule].private:
        opened(rule=rule, allow=False)
    else:
        assert RULES[rule].learns in refusal(rule=rule, allow=False)


# -- privacy statements ---------------------------------------------------------------------------------


def owners_and_consumer(session: Session) -> tuple[PrivacyStatement, PrivacyStatement]:
    owners, consumer, _ = session.privacy()
    return owners, consumer


def test_a_statement_says_who_is_protected_from_whom_and_for_which_neighbours() -> None:
    owners, consumer = owners_and_consumer(opened())
    assert owners.as_json() == {
        "protects": "the records of every owner",
        "from": "every other owner",
        "neighbours": "add-remove-one",
        "epsilon": owners.epsilon,
        "delta": 1e-5,
        "claimed_epsilon": None,
        "noise": "simulated",
        "why": owners.why,
        "not_covered": "",
    }
    assert (consumer.protects, consumer.neighbours) == ("the consumer's validation set", "substitute-one")
    assert consumer.against == "the owners and the curator"


def test_a_statement_covers_all_releases_of_the_session() -> None:
    owners, consumer = owners_and_consumer(opened())
    assert owners.epsilon is not None
    assert consumer.epsilon is not None
    assert owners.epsilon > consumer.epsilon > 0  # 50 releases of S against one of D_v
    longer, _ = owners_and_consumer(opened(session__points=400, session__batch=2))
    assert longer.epsilon is not None
    assert longer.epsilon > owners.epsilon


def test_epsilon_is_stated_at_the_delta_of_the_file() -> None:
    loose, tight = (owners_and_consumer(opened(session__delta=delta))[0] for delta in (1e-3, 1e-9))
    assert (loose.delta, tight.delta) == (1e-3, 1e-9)
    assert loose.epsilon is not None
    assert tight.epsilon is not None
    assert loose.epsilon < tight.epsilon


def test_no_noise_is_no_guarantee_and_called_none() -> None:
    for statement in opened(EXACT, EXACT).privacy()[:2]:
        assert (statement.epsilon, statement.claimed_epsilon) == (None, None)
        assert (statement.noise, statement.why) == ("none", NO_NOISE)


@pytest.mark.parametrize("rule", ["winner-only", "published"])
def test_a_rule_that_tells_voids_the_owners_guarantee_and_not_the_consumers(rule: str) -> None:
    owners, consumer = owners_and_consumer(opened(rule=rule))
    assert owners.epsilon is None
    assert SIMULATED in owners.why
    assert RULES[rule].learns in owners.why
    assert consumer == owners_and_consumer(opened())[1]


def test_published_noise_states_the_claimed_and_the_sound_epsilon() -> None:
    for statement in opened(PUBLISHED_MWEM, PUBLISHED_MWEM).privacy()[:2]:
        assert statement.epsilon is not None
        assert statement.claimed_epsilon is not None
        assert statement.epsilon > statement.claimed_epsilon
    assert [statement.claimed_epsilon for statement in opened(MWEM, MWEM).privacy()[:2]] == [None, None]


# -- parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEATURE_SPACES)
def test_the_map_is_the_one_of_the_file(name: str) -> None:
    session = opened(features__map=name, features__lower=[0.0, -1.0, 0.0])
    space = session.space
    assert (space.name, space.dimension, space.columns, space.gamma) == (name, 8, 3, 0.5)
    assert space.scale(np.zeros((1, 3))).tolist() == [[0.0, 0.5, 0.0]]
    maps = [session, opened(features__map=name), opened(features__map=name, features__seed=8)]
    digests = [made.public_map.digest for made in maps if made.public_map is not None]
    assert digests[0] == digests[1] != digests[2]


def test_a_session_with_sketches_has_a_map_of_cells(noise_that_protects: None) -> None:
    session = opened(RACE, RACE, rule="sealed", allow=False, features__map="lsh")
    epsilons = [statement.epsilon for statement in session.privacy()[:2]]
    assert epsilons == [pytest.approx(1.0, rel=1e-3)] * 2
    assert session.space.rows == 2
    assert session.directions == 0
    assert 'map = "lsh"' in refusal_advice(summary=RACE, target=RACE)


def refusal_advice(**given: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        opened(**given)
    return caught.value.advice


def test_keys_of_the_map_of_cells_make_it_and_are_refused_with_another_map() -> None:
    session = opened(features__map="lsh", features__cells=2, features__bandwidth=0.7, features__family="l1")
    assert isinstance(session.space, LshSpace)
    assert (session.space.rows, session.space.bandwidth, session.space.family) == (4, 0.7, "l1")
    assert "cells" in refusal(features__cells=2)


def test_a_session_sends_as_many_directions_as_the_larger_release_needs() -> None:
    more = SUBSPACE | {"directions": 5}
    assert opened(SUBSPACE, more).directions == opened(more, SUBSPACE).directions == 5
    assert opened(SUBSPACE, GAUSSIAN).directions == 3
    assert opened().directions == 0
    assert longest_to_curator(opened(SUBSPACE, more)) - longest_to_curator(opened()) == 2 * 5 * 8


def test_where_points_are_sealed_the_space_is_public_and_the_map_is_not() -> None:
    session = opened(rule="sealed")
    assert session.public_map is None
    assert session.space.dimension == 8


def test_mechanisms_are_made_once_and_streams_as_often_as_releases_are() -> None:
    session = opened(GAUSSIAN, MWEM)
    assert (session.summary.name, session.summary.releases) == ("gaussian", session.rounds)
    assert (session.target.name, session.target.releases) == ("mwem", 1)
    assert session.summary is session.summary
    assert session.summary.stream() is not session.summary.stream()


def test_frames_name_the_session_by_its_digest() -> None:
    session = opened()
    assert session.identifier == session.file.digest()[:16]
    assert session.identifier != opened(session__nonce="again").identifier


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"features__map": "fourier"}, ["feature map", "'fourier'", "paired"]),
        ({"features__dimension": 7}, ["dimension 7", "odd"]),
        ({"features__lower": 1.0}, ["upper is not above lower"]),
        ({"target": {"mechanism": "noise"}}, ["[target]", "'noise'", "gaussian"]),
        ({"summary": {"mechanism": "noise"}}, ["[summary]", "'noise'", "gaussian"]),
        ({"summary": {"mechanism": "gaussian"}}, ["[summary]", "`epsilon`", "`sigma`", "has to be given"]),
        ({"summary": GAUSSIAN | {"epsilon": 0.0}}, ["[summary]", "'epsilon'", "greater than 0"]),
        ({"target": GAUSSIAN | {"epsilon": -1.0}}, ["[target]", "'epsilon'", "greater than 0"]),
        (
            {"target": GAUSSIAN | {"neighbours": "add-remove-one"}},
            [
                "[target]",
                "'add-remove-one'",
                'Set neighbours = "substitute-one"',
                "size of the validation set",
            ],
        ),
        (
            {"summary": GAUSSIAN | {"neighbours": "substitute-one"}},
            ["[summary]", "'substitute-one'", 'Set neighbours = "add-remove-one"', "one record more or less"],
        ),
        ({"summary": GAUSSIAN | {"neighbours": "all"}}, ["[summary]", "'neighbours'", '"substitute-one" in']),
        (
            {"summary": GAUSSIAN | {"epsilon": 1e-3}},
            ["[summary]", "sigma = 50", "over the budget of 0.001", "Leave sigma out"],
        ),
        ({"features__seed": None}, ["features.seed is missing", "ask-all", "Set any whole number"]),
        (
            {"rule": "sealed", "features__seed": 7},
            ["features.seed", "keeps the feature map from the curator", "Leave the seed out"],
        ),
        ({"rule": "sealed", "acquisition__box_bytes": 63}, ["acquisition.box_bytes", "greater"]),
        ({"target": GAUSSIAN | {"sigma": "1"}}, ["[target]", "'sigma'", "number"]),
        ({"target": GAUSSIAN | {"sigma": True}}, ["[target]", "'sigma'", "number"]),
        ({"target": GAUSSIAN | {"sigma": float("inf")}}, ["sigma is not a finite number"]),
        ({"target": EXACT | {"sigma": 1.0}}, ["[target]", "'sigma'", "unknown key"]),
        ({"rule": "auction"}, ["acquisition.rule", "'auction'", "ask-all"]),
        ({"acquisition__tau": 3}, ["acquisition.tau", "unknown key", "ask-all"]),
        ({"rule": "published", "acquisition__tau": 0}, ["acquisition.tau", "greater"]),
        ({"rule": "published", "acquisition__epsilon": float("nan")}, ["epsilon is not a finite number"]),
    ],
)
def test_what_the_parts_do_not_take_is_refused_by_key(changes: dict[str, Any], expected: list[str]) -> None:
    found = refusal(**changes)
    assert [part for part in expected if part not in found] == []


@pytest.mark.parametrize("table", ["target", "summary", "acquisition"])
@pytest.mark.parametrize("key", ["parameters", "model_extra", "model_config", "mechanism_", "rule_"])
def test_no_unknown_key_of_an_open_table_slips_through(table: str, key: str) -> None:
    assert key in refusal(**{f"{table}__{key}": 1})


@pytest.mark.parametrize("name", RELEASES)
def test_every_mechanism_makes_a_session_with_the_keys_that_it_says(name: str) -> None:
    known = RELEASES[name]
    table = {"mechanism": name, **({"epsilon": 1.0} if known.private else {}), **known.small_keys}
    features: dict[str, Any] = {f"features__{key}": value for key, value in known.small_features.items()}
    session = opened(table, table, **features)
    assert session.target.name == session.summary.name == name
    stated = [statement.epsilon for statement in session.privacy()[:2]]
    assert stated == ([pytest.approx(1.0, rel=1e-3)] * 2 if known.private else [None] * 2)
