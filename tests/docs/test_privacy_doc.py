"""docs/privacy.md says what the code does: who sees what, the lemma's small cases, names, and figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

from hushbid.audit.bounds import allowed_alarms
from hushbid.simulator import Simulation, SimulationOutcome
from protocol.accounting import GaussianCost, adaptive_epsilon, epsilon_of, epsilon_of_rho, gaussian_epsilon
from protocol.accounting.gaussian import gaussian_mu, law_ratios
from protocol.acquisition import RULES
from protocol.acquisition.logistic import Logistic, LogisticParameters
from protocol.data import Dataset
from protocol.errors import ConfigError
from protocol.features import feature_space
from protocol.messages import Close, CuratorToConsumer, CuratorToOwner, Receipt
from protocol.noise import NOISE_SOURCES, Draw, SecureNoise
from protocol.releases import RELEASES, GaussianRelease, Neighbours, Setting, release_mechanism
from protocol.releases.filtered_gaussian import FilteredGaussianRelease
from protocol.scoring import Pool
from protocol.session import open_session
from protocol.settlement import PrivateSettlement
from tests.conftest import ROOT
from tests.simulation.harness import corners, names, session_file, weights_of
from tests.simulation.lemma import Case, KeepsAbsentOwnersPool, TiesByArrival, difference, play

PAGE = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
OWNERS, POINTS = 3, 4
"""K and p of the sessions that are run."""
DIMENSION, DELTA = 140, 1e-5
"""Of the figures."""


def section(title: str) -> str:
    """The text under a heading, up to the next of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", PAGE, re.M | re.S)
    assert found, f"no section {title}"
    return found[2]


def rows(text: str) -> list[list[str]]:
    """The cells of the first table of a text, its head first."""
    table = text[text.index("\n|") :].strip().split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return [cells[0], *cells[2:]]


@cache
def who_sees_what() -> dict[str, dict[str, str]]:
    """What is said of a thing, by rule."""
    head, *body = rows(section("1. Who sees what"))
    rules = [cell.strip("`") for cell in head[1:]]
    return {row[0]: dict(zip(rules, row[1:], strict=True)) for row in body}


# -- who sees what ------------------------------------------------------------------------------------


@cache
def outcome(rule: str) -> SimulationOutcome:
    """A session whose owners have more points than there are rounds, and are always there."""
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
    assert least <= outcome(rule).curator.ledger.candidates <= most


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
    (listed,) = re.findall(r"An owner is sent (.*?), and nothing else", PAGE, re.S)
    assert set(re.findall(r"`([\w-]+)`", listed)) == kinds(CuratorToOwner)
    assert not {"broadcast", "bid"} & kinds(CuratorToConsumer)


def test_a_close_says_neither_who_won_nor_what_is_disputed_and_disputes_go_to_the_curator() -> None:
    assert set(Receipt.model_fields) == {"kind", "part", "disputed"}
    assert set(Close.model_fields) == {"kind", "outcome", "head", "signature"}
    assert "a head is a hash of salted commitments" in PAGE


def test_the_digest_covers_what_is_stated() -> None:
    file = session_file(owners=names(OWNERS), points=POINTS)
    for left_out in ("network", "timeouts"):
        assert f"`[{left_out}]`" in PAGE
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
    """How many points S and S' differ by, S, and S'."""
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


def test_the_sums_that_are_said_to_differ_do() -> None:
    assert "(0.1 + 0.2) + 0.3 ≠ 0.1 + (0.2 + 0.3)" in PAGE
    assert (0.1 + 0.2) + 0.3 != 0.1 + (0.2 + 0.3)


def test_every_mechanism_has_its_sensitivity() -> None:
    stated = {row[0].strip("`") for row in rows(section("3. Why a record changes so little: the lemma"))[1:]}
    assert stated >= set(RELEASES)


def test_the_neighbour_relations_are_those_of_the_code() -> None:
    assert [row[1].strip("`") for row in rows(section("2. Neighbouring datasets"))[1:]] == [
        Neighbours.ADD_REMOVE_ONE.value,
        Neighbours.SUBSTITUTE_ONE.value,
    ]


@pytest.mark.parametrize("neighbours", sorted(Neighbours))
def test_a_private_mechanism_without_neighbours_is_refused(neighbours: Neighbours) -> None:
    setting = Setting(dimension=8, releases=2, norm_bound=1.0, delta=DELTA)
    release_mechanism("gaussian", {"epsilon": 1.0, "neighbours": neighbours.value}, setting)
    with pytest.raises(ConfigError, match="neighbours"):
        release_mechanism("gaussian", {"epsilon": 1.0}, setting)


# -- noise and figures --------------------------------------------------------------------------------


def test_secure_noise_has_no_laplace_noise() -> None:
    with pytest.raises(ConfigError, match="low bits"):
        SecureNoise().check(Draw("laplace", 1.0, 1))


@pytest.mark.parametrize("source", sorted(NOISE_SOURCES))
def test_every_source_of_noise_is_explained(source: str) -> None:
    assert f"`{source}`:" in section("4. How ε is computed")


def test_the_audit_s_alarms_are_as_stated() -> None:
    assert "in more than 4 of 20 with probability below 1 %" in section("7. What an audit is, and is not")
    assert allowed_alarms(20, 0.95) == 4


def bound() -> float:
    space = feature_space("paired", dimension=DIMENSION, gamma=1.0, lower=0.0, upper=1.0, columns=1)
    return space.norm_bound


def calibrated(
    mechanism: type[GaussianRelease | FilteredGaussianRelease], releases: int, *, summary: bool = True
) -> Any:
    """The mechanism that meets ε = 1 in all its releases."""
    neighbours = Neighbours.ADD_REMOVE_ONE if summary else Neighbours.SUBSTITUTE_ONE
    setting = Setting(
        dimension=DIMENSION, releases=releases, norm_bound=bound(), delta=DELTA, starts_public=summary
    )
    return mechanism.build({"epsilon": 1.0, "neighbours": neighbours.value}, setting)


def thousand_rounds() -> Any:
    """The costs of a session of a thousand rounds that has ε = 1."""
    return calibrated(GaussianRelease, 1000).costs(neighbours=Neighbours.ADD_REMOVE_ONE)


def logistic() -> Logistic:
    return Logistic(LogisticParameters(epsilon=1.0), owners=10_000, rounds=1000, delta=DELTA)


def as_printed(releases: int, step: float, steps: int, neighbours: Neighbours, delta: float) -> float:
    """ε of MWEM with the paper's own noise."""
    keys = {"calibration": "published", "step_epsilon": step, "steps": steps, "eta": 1 / 70}
    mechanism = release_mechanism(
        "mwem",
        {**keys, "neighbours": neighbours.value},
        Setting(dimension=DIMENSION, releases=releases, norm_bound=1.0, delta=delta),
    )
    return mechanism.guarantee(neighbours=neighbours, delta=delta).epsilon or 0.0


def settlement() -> PrivateSettlement:
    return PrivateSettlement.of(epsilon=1.0, delta=DELTA, owners=100)


def one_session() -> float:
    """μ of what has ε = 1."""
    return gaussian_mu(1.0, DELTA)


def in_view_of_one_another(sessions: int) -> float:
    """ε of so many sessions that have ε = 1 each, as a ledger adds them up."""
    one = GaussianCost(noise_multiplier=1.0 / one_session(), count=1)
    return adaptive_epsilon([(one,)] * sessions, DELTA)


FIGURES: dict[str, Callable[[], float]] = {
    "Largest ‖φ‖, rounding included": bound,
    "`gaussian`, ε = 1, p = 1000: σ of a coordinate, in units of φ": lambda: (
        calibrated(GaussianRelease, 1000).sigma
    ),
    "the same, p = 3000": lambda: calibrated(GaussianRelease, 3000).sigma,
    "the same, one release (D_v)": lambda: calibrated(GaussianRelease, 1, summary=False).sigma,
    "`filtered-gaussian`, ε = 1, p = 1000: σ of a coordinate, in units of y": lambda: (
        calibrated(FilteredGaussianRelease, 1000).sigma
    ),
    "ε that zCDP alone states for noise that has ε = 1": lambda: epsilon_of_rho(
        sum(cost.rho for cost in thousand_rounds()), DELTA
    ),
    "a + b of the comparison of laws, ε = 1, p = 1000": lambda: sum(
        law_ratios(thousand_rounds(), 1.1, DELTA)
    ),
    "ε of two records at once, where one has ε = 1": lambda: gaussian_epsilon(2 * one_session(), DELTA),
    "ε of ten records at once, where one has ε = 1": lambda: gaussian_epsilon(10 * one_session(), DELTA),
    "ε of two sessions that have ε = 1 each": lambda: gaussian_epsilon(math.sqrt(2) * one_session(), DELTA),
    "ε of ten sessions that have ε = 1 each": lambda: gaussian_epsilon(math.sqrt(10) * one_session(), DELTA),
    "the same two, each agreed to in view of the last": lambda: in_view_of_one_another(2),
    "the same ten": lambda: in_view_of_one_another(10),
    "`logistic`, asks of ε = 1, p = 1000: r0": lambda: logistic().middle,
    "the same, K = 10,000: raw points handed to the curator": lambda: logistic().expected_points,
    "private settlement of ε = 1, 100 owners: standard error of each number, in points": lambda: (
        settlement().standard_error
    ),
    "ε of it together with rounds of ε = 1": lambda: epsilon_of(
        (*thousand_rounds(), *settlement().costs), DELTA
    ),
    "the paper's noise for D_v at its own δ = 0.01, as it is": lambda: as_printed(
        1, 0.01, 1656, Neighbours.SUBSTITUTE_ONE, 0.01
    ),
    "the paper's noise for the summary at its own δ = 10⁻⁴, as it is": lambda: as_printed(
        1000, 0.01 / math.sqrt(5 * 1000), 5, Neighbours.ADD_REMOVE_ONE, 1e-4
    ),
}
STATED = {row[0]: row[1] for row in rows(section("8. Figures"))[1:]}


def test_the_figures_are_those_that_are_recomputed() -> None:
    assert list(STATED) == list(FIGURES)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_is_what_the_code_gives(figure: str) -> None:
    """To every digit that is printed: half a unit of the last one."""
    printed = STATED[figure]
    mantissa, _, exponent = printed.partition("e")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    assert FIGURES[figure]() == pytest.approx(float(printed), abs=1.01 * half)


# -- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+/[\w/]+\.(?:py|md))", PAGE))))
def test_a_file_that_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((\w[\w.-]*)#?[\w-]*\)", PAGE))))
def test_a_page_that_the_page_points_to_exists(link: str) -> None:
    assert (ROOT / "docs" / link).is_file()


@pytest.mark.parametrize("number", sorted(set(re.findall(r"§(\d)", PAGE))))
def test_a_section_that_the_page_points_to_exists(number: str) -> None:
    assert re.search(rf"^## {number}\. ", PAGE, re.M)


@pytest.mark.parametrize(
    ("name", "path", "in_the_code"),
    [
        ("`PrivacyFilter`", "protocol/accounting/budget.py", "class PrivacyFilter"),
        ("`allow_nonprivate = true`", "protocol/config/session.py", "allow_nonprivate: bool"),
        ("`curator.boxes`", "curator/process.py", '"{CURATOR}.boxes"'),
        ("`hushbid keys show`", "hushbid/key_verbs.py", "fingerprint"),
        ("`[budget]`", "protocol/config/party.py", "budget: BudgetSection"),
    ],
)
def test_a_name_on_the_page_is_one_in_the_code(name: str, path: str, in_the_code: str) -> None:
    assert name in PAGE
    assert in_the_code in (ROOT / path).read_text(encoding="utf-8")
