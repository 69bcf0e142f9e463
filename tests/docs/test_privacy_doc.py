"""docs/privacy.md says what the code does: who sees what, the lemma's small cases, names, and figures."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

from hushbid.evidence.audit.bounds import allowed_alarms
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.noise import NOISE_SOURCES, Draw, SecureNoise
from hushbid.protocol.privacy.releases import RELEASES, Neighbours, Setting, release_mechanism
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.scoring import Pool
from hushbid.protocol.wire.messages import Close, CuratorToConsumer, CuratorToOwner, Receipt
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.conftest import ROOT
from tests.docs.pages import Page, names_in
from tests.simulation.harness import Player, corners, names, session_file, weights_of
from tests.simulation.lemma import (
    BidsItsBestAlone,
    Case,
    KeepsAbsentOwnersPool,
    TiesByArrival,
    difference,
    play,
)

PAGE = Page("docs/privacy.md")
OWNERS, POINTS = 3, 4
"""K and p of the sessions that are run."""


@cache
def who_sees_what() -> dict[str, dict[str, str]]:
    """The table's statement about a thing, by rule."""
    (head,) = re.findall(r"^\| what, and who gets it \|(.*)", PAGE.text, re.M)
    return {row[0]: dict(zip(names_in(head), row[1:], strict=True)) for row in PAGE.rows("1. Who sees what")}


# -- who sees what ------------------------------------------------------------------------------------


@cache
def outcome(rule: str) -> SimulationOutcome:
    """A session whose owners have more points than there are rounds, and are always present."""
    rng = np.random.default_rng(0)
    session = open_session(
        session_file(owners=names(OWNERS), points=POINTS, rule=rule, dimension=16, columns=5)
    )
    return Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rng.random((3 * POINTS, 5))) for name in names(OWNERS)},
        validation=Dataset.from_arrays("validation", rng.random((10, 5))),
        seed_set=Dataset.from_arrays("seed-set", rng.random((6, 5))),
    ).run()


def bounds(stated: str) -> tuple[int, int]:
    """The least and the most that a cell allows, for K and p of the sessions that are run."""
    values = {"0": 0, "p": POINTS, "K·p": OWNERS * POINTS}
    ends = [values[part] for part in stated.split(" to ")]
    return ends[0], ends[-1]


SMALL = sorted(set(RULES) - {"logistic"})


def test_every_rule_has_its_column() -> None:
    assert all(sorted(said) == sorted(RULES) for said in who_sees_what().values())


@pytest.mark.parametrize("rule", SMALL)
def test_the_curator_is_handed_as_many_raw_points_as_stated(rule: str) -> None:
    least, most = bounds(who_sees_what()["raw points that the curator is handed"][rule])
    assert least <= outcome(rule).curator.ledger.points_accessed <= most


@pytest.mark.parametrize("rule", SMALL)
def test_the_curator_has_as_many_features_as_stated(rule: str) -> None:
    least, most = bounds(who_sees_what()["points whose φ the curator has"][rule])
    ledger = outcome(rule).curator.ledger
    seen = [win.candidate.features.size > 0 for win in ledger.wins]
    assert seen == [most > 0] * POINTS
    assert least <= (ledger.candidates if all(seen) else 0) <= most


@pytest.mark.parametrize("rule", SMALL)
def test_the_consumer_is_handed_as_many_raw_points_as_stated(rule: str) -> None:
    _, most = bounds(who_sees_what()["raw points that the consumer is handed"][rule])
    delivered = outcome(rule).delivered
    assert delivered is not None
    assert len(delivered.delivered) == most


def test_a_session_of_few_owners_is_not_for_logistic() -> None:
    file = session_file(owners=names(OWNERS), points=POINTS, rule="logistic", epsilon=1.0)
    with pytest.raises(ConfigError, match=f"not for {OWNERS} owners"):
        open_session(file)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rules_that_are_said_to_be_private_are(rule: str) -> None:
    stated = who_sees_what()["is an owner private from the others"][rule]
    assert stated.startswith("yes") is RULES[rule].private


@pytest.mark.parametrize("rule", SMALL)
def test_the_curator_has_the_map_where_that_is_said(rule: str) -> None:
    session = open_session(session_file(owners=names(OWNERS), points=POINTS, rule=rule))
    stated = who_sees_what()["who has the feature map"][rule]
    assert stated == ("owners, consumer" if session.public_map is None else "all")


def kinds(union: Any) -> set[str]:
    """The kinds of a direction's messages."""
    return {message.model_fields["kind"].default for message in get_args(get_args(union)[0])}


def test_an_owner_is_sent_what_is_listed_and_nothing_else() -> None:
    (listed,) = re.findall(r"An owner is sent (.*?), and nothing else", PAGE.text, re.S)
    assert set(re.findall(r"`([\w-]+)`", listed)) == kinds(CuratorToOwner)
    assert not {"broadcast", "bid"} & kinds(CuratorToConsumer)


def test_a_close_says_neither_who_won_nor_what_is_disputed_and_disputes_go_to_the_curator() -> None:
    assert set(Receipt.model_fields) == {"kind", "part", "disputed"}
    assert set(Close.model_fields) == {"kind", "outcome", "head", "signature"}
    assert "a head is a hash of salted commitments" in PAGE.on_one_line


def test_the_digest_covers_what_is_stated() -> None:
    file = session_file(owners=names(OWNERS), points=POINTS)
    for left_out in ("network", "timeouts"):
        assert f"`[{left_out}]`" in PAGE.text
    other = file.model_copy(
        update={
            "network": file.network.model_copy(update={"address": "tcp://127.0.0.1:2"}),
            "timeouts": file.timeouts.model_copy(update={"round": 1.0}),
        }
    )
    assert other.digest() == file.digest()
    assert session_file(owners=names(OWNERS), points=POINTS + 1).digest() != file.digest()


# -- the lemma ----------------------------------------------------------------------------------------

FIRST, SECOND = names(2)
C, X, A, F, G = (corners()[[row]] for row in (8, 1, 7, 12, 13))
"""Points that the map admits, for which there are weights of every order that the page asks for."""
RANKS_C_X_A_F, RANKS_A_F_X, RANKS_X_G = (0, 0, 2, 1), (-2, 1, -2, -2), (-1, -2, 2, 2)
TIES_A_F = (-2, 1, -2, -1)


def small_case(second_round: tuple[int, ...], *, away: bool) -> Case:
    """Owner 1 has a, owner 2 has c, f, g; x is one more record of owner 1."""
    return Case(
        data={FIRST: A, SECOND: np.concatenate([C, F, G])},
        extra=X[0],
        extra_owner=FIRST,
        weights=tuple(weights_of(*(1000 * np.array(w))) for w in (RANKS_C_X_A_F, second_round, RANKS_X_G)),
        order=((FIRST, SECOND), (SECOND, FIRST), (FIRST, SECOND)),
        late=frozenset(),
        delay=1,
        gone=frozenset({(FIRST, 2)}) if away else frozenset(),
    )


def chosen(case: Case, pool: type[Pool]) -> tuple[int, list[bytes], list[bytes]]:
    """By how many points S and S' differ, S, and S'."""
    without, bench = play(case, "ask-all", with_extra=False, pool=pool)
    including, other = play(case, "ask-all", with_extra=True, pool=pool)
    return difference(without, including), bench.chosen, other.chosen


@pytest.mark.parametrize(
    ("case", "broken"),
    [
        (small_case(RANKS_A_F_X, away=True), KeepsAbsentOwnersPool),
        (small_case(TIES_A_F, away=False), TiesByArrival),
    ],
    ids=["an absent owner's pool kept", "ties by arrival"],
)
def test_where_the_lemma_breaks_two_points_differ_and_one_does_otherwise(
    case: Case, broken: type[Pool]
) -> None:
    differ, with_d, with_x = chosen(case, broken)
    assert differ == 2
    assert with_d == [point.tobytes() for point in (C, A, G)]
    assert with_x == [point.tobytes() for point in (C, F, X)]
    assert chosen(case, Pool)[0] == 1


def test_with_fewer_than_b_in_a_bid_two_points_differ_and_one_does_otherwise() -> None:
    c, d, x, a, z, f, g, h = (corners()[[row]] for row in (10, 2, 11, 6, 14, 5, 7, 12))
    ranks = (1, 0, 2, 1), (-2, 0, -1, 2), (0, 1, 1, -2)
    case = Case(
        data={FIRST: np.concatenate([a, z]), SECOND: np.concatenate([c, d, f, g, h])},
        extra=x[0],
        extra_owner=FIRST,
        weights=tuple(weights_of(*(1000 * np.array(w))) for w in ranks),
        order=((FIRST, SECOND),) * 3,
        late=frozenset(),
        delay=1,
        gone=frozenset(),
        batch=2,
    )

    def sets(player: type[Player]) -> list[set[bytes]]:
        benches = [play(case, "ask-all", with_extra=there, honest=player)[1] for there in (False, True)]
        return [set(bench.chosen) for bench in benches]

    both, without = {point.tobytes() for point in (c, d, a, g)}, {point.tobytes() for point in (z, h)}
    assert sets(BidsItsBestAlone) == [both | without, both | {f.tobytes(), x.tobytes()}]
    assert sets(Player) == [both | without, both | {z.tobytes(), x.tobytes()}]


def test_the_sums_that_are_said_to_differ_do() -> None:
    assert "(0.1 + 0.2) + 0.3 ≠ 0.1 + (0.2 + 0.3)" in PAGE.text
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)


def test_every_mechanism_has_its_sensitivity() -> None:
    stated = PAGE.first_names("Sensitivity")
    assert set(stated) >= set(RELEASES)


def test_the_neighbour_relations_are_those_of_the_code() -> None:
    assert [row[1].strip("`") for row in PAGE.rows("2. Neighbouring datasets")] == [
        Neighbours.ADD_REMOVE_ONE.value,
        Neighbours.SUBSTITUTE_ONE.value,
    ]


@pytest.mark.parametrize("neighbours", sorted(Neighbours))
def test_a_private_mechanism_without_neighbours_is_refused(neighbours: Neighbours) -> None:
    setting = Setting(dimension=8, releases=2, norm_bound=1.0, delta=1e-5)
    release_mechanism("gaussian", {"epsilon": 1.0, "neighbours": neighbours.value}, setting)
    with pytest.raises(ConfigError, match="neighbours"):
        release_mechanism("gaussian", {"epsilon": 1.0}, setting)


# -- noise and figures --------------------------------------------------------------------------------


def test_secure_noise_has_no_laplace_noise() -> None:
    with pytest.raises(ConfigError, match="low bits"):
        SecureNoise().check(Draw("laplace", 1.0, 1))


@pytest.mark.parametrize("source", sorted(NOISE_SOURCES))
def test_every_source_of_noise_is_explained(source: str) -> None:
    assert f"`{source}`:" in PAGE.section("4. How ε is computed")


def test_the_audit_s_alarms_are_as_stated() -> None:
    said = " ".join(PAGE.section("7. What an audit is, and is not").split())
    assert "in more than 4 of 20 with probability below 1 %" in said
    assert allowed_alarms(20, 0.95) == 4


# -- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/[\w/]+\.(?:py|md))", PAGE.text))))
def test_a_file_that_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((\w[\w.-]*)#?[\w-]*\)", PAGE.text))))
def test_a_page_that_the_page_points_to_exists(link: str) -> None:
    assert (ROOT / "docs" / link).is_file()


@pytest.mark.parametrize("number", sorted(set(re.findall(r"§(\d)", PAGE.text))))
def test_a_section_that_the_page_points_to_exists(number: str) -> None:
    assert re.search(rf"^## {number}\. ", PAGE.text, re.M)


@pytest.mark.parametrize(
    ("name", "path", "in_the_code"),
    [
        ("`PrivacyFilter`", "protocol/privacy/accounting/budget.py", "class PrivacyFilter"),
        ("`allow_nonprivate = true`", "protocol/config/session.py", "allow_nonprivate: bool"),
        ("`curator.boxes`", "curator/process.py", '"{CURATOR}.boxes"'),
        ("`hushbid keys show`", "hushbid/cli/keys.py", "fingerprint"),
        ("`[budget]`", "protocol/config/party.py", "budget: BudgetSection"),
    ],
)
def test_a_name_on_the_page_is_one_in_the_code(name: str, path: str, in_the_code: str) -> None:
    assert name in PAGE.text
    assert in_the_code in (ROOT / path).read_text(encoding="utf-8")
