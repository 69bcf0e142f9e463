"""What every registered release mechanism keeps. A new mechanism is tested by being registered.

Parameters come from the mechanism's own model: its required fields are filled from `EXAMPLES` by type, and
where that is not enough (an ε or a σ has to be given, but either will do), with each optional key in turn.
Its features are those of the first of `MAPS` that it takes. So no mechanism is named here. Each is tested as
the consumer's target and as the curator's summary, whose first release shows the public seed set alone.
"""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args, get_origin

import numpy as np
import numpy.typing as npt
import pytest
from pydantic_core import PydanticUndefined

from hushbid.protocol import limits
from hushbid.protocol.errors import ConfigError, LocalProtocolError
from hushbid.protocol.privacy.accounting import epsilon_of, merge_costs
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import RELEASES, Neighbours, Prior, ReleaseMechanism, release_mechanism
from hushbid.protocol.privacy.releases.base import Guarantee, ReleaseStream, Setting
from hushbid.protocol.runtime.ranged import without_range
from hushbid.protocol.space.features import FeatureMap, feature_map
from hushbid.protocol.space.features.lsh import LshSpace
from hushbid.protocol.space.grid import FEATURE_UNIT, Features, Totals

D, COUNT, RELEASES_MADE, DELTA = 12, 40, 4, 1e-5
EXAMPLES: dict[Any, Any] = {int: 4, float: 0.5, bool: True, Neighbours: "substitute-one"}
KEYS = {"directions": D - 1}
"""Keys of which an example of their type will not do: a release in few directions loses all others."""
Noise: TypeAlias = tuple[npt.NDArray[Any], ...]
MAPS = [
    feature_map(name, seed=1, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=3)
    for name in ("paired", "lsh")
]
PUBLIC = np.random.default_rng(9).random((60, 3))
"""The public seed set."""


class Role(StrEnum):
    """What a mechanism releases in a session."""

    TARGET = "target"
    SUMMARY = "summary"

    @property
    def neighbours(self) -> Neighbours:
        return Neighbours.SUBSTITUTE_ONE if self is Role.TARGET else Neighbours.ADD_REMOVE_ONE


class Case(NamedTuple):
    """A mechanism, its table, and what it is used for."""

    name: str
    table: dict[str, Any]
    role: Role

    def __str__(self) -> str:
        given = ",".join(f"{key}={value}" for key, value in self.table.items())
        return f"{self.role.value}-{self.name}({given})"

    @property
    def phi(self) -> FeatureMap:
        """A feature map that the mechanism takes."""
        return phi_of(self.name)

    @property
    def seeds(self) -> Features:
        return self.phi.hash(PUBLIC)

    @property
    def target_epsilon(self) -> float | None:
        """The ε that all releases together are to have, where the table names one."""
        return self.table.get("epsilon")


def required_tables(name: str) -> list[dict[str, Any]]:
    """One table for each value of the required keys' choices."""
    found: list[dict[str, Any]] = [{}]
    for key, field in RELEASES[name].Parameters.model_fields.items():
        if field.default is not PydanticUndefined:
            continue
        choices: tuple[Any, ...]
        if get_origin(field.annotation) is Literal:
            choices = get_args(field.annotation)
        else:
            assert field.annotation in EXAMPLES, f"{name}.{key}: teach this suite its type"
            choices = (KEYS.get(key, EXAMPLES[field.annotation]),)
        found = [table | {key: choice} for table in found for choice in choices]
    return found


def optional_keys(name: str) -> dict[str, Any]:
    """An example of every key that may be left out and is then None."""
    found = {}
    for key, field in RELEASES[name].Parameters.model_fields.items():
        inner = [part for part in get_args(without_range(field.annotation)) if part is not NoneType]
        if field.default is None and len(inner) == 1 and inner[0] in EXAMPLES:
            found[key] = EXAMPLES[inner[0]]
    return found


def tables(name: str) -> list[dict[str, Any]]:
    """The smallest tables that the mechanism takes."""
    found = []
    for table in required_tables(name):
        if map_of(name, table):
            found.append(table)
            continue
        more = [table | {key: value} for key, value in optional_keys(name).items()]
        taken = [larger for larger in more if map_of(name, larger)]
        assert taken, f"{name}: no optional key alone completes {table}; teach this suite what does"
        found += taken
    return found


def map_of(name: str, table: dict[str, Any]) -> FeatureMap | None:
    """The first map whose features the mechanism takes with this table; None if it takes none."""
    for phi in MAPS:
        with suppress(ConfigError):
            release_mechanism(name, table, setting_of(phi, Role.SUMMARY))
            return phi
    return None


def setting_of(phi: FeatureMap, role: Role, **changes: Any) -> Setting:
    """What a session with this map has its consumer, or its curator, release."""
    space = phi.space
    made = Setting(
        dimension=D, releases=RELEASES_MADE, norm_bound=space.norm_bound, delta=DELTA, rows=space.rows
    )
    return replace(made, **({"starts_public": role is Role.SUMMARY} | changes))


@cache
def phi_of(name: str) -> FeatureMap:
    phi = map_of(name, tables(name)[0])
    assert phi is not None, "these are the tables that it takes"
    return phi


CASES = [
    Case(name, {**table, **({"neighbours": role.neighbours.value} if "neighbours" in table else {})}, role)
    for name in sorted(RELEASES)
    for table in tables(name)
    for role in Role
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_summary = pytest.mark.parametrize(
    "case", [case for case in CASES if case.role is Role.SUMMARY], ids=str
)
every_case_with_epsilon = pytest.mark.parametrize(
    "case", [case for case in CASES if case.target_epsilon is not None], ids=str
)
every_case_with_noise = pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.target_epsilon is None and RELEASES[case.name].private],
    ids=str,
)
every_name = pytest.mark.parametrize("name", sorted(RELEASES))


def build(case: Case, **changes: Any) -> ReleaseMechanism:
    """The mechanism, which knows nothing of the seed set: it can state what it guarantees."""
    return release_mechanism(case.name, case.table, setting_of(case.phi, case.role, **changes))


def prior_of(case: Case) -> Prior:
    return Prior.of_features(case.seeds, build(case).directions)


def offset_of(case: Case) -> Totals | None:
    return case.seeds.sum(axis=0, dtype=np.int64) if case.role is Role.SUMMARY else None


def stream(case: Case) -> ReleaseStream:
    """Its releases: with what the seed set tells."""
    return build(case).stream(offset_of(case), prior_of(case))


def private_points(case: Case, index: int) -> Features:
    """The points whose total release `index` shows: D_v, or those that were won so far."""
    count = COUNT if case.role is Role.TARGET else 5 * index
    return case.phi.hash(np.random.default_rng(index).random((count, 3)))


def totals(made: ReleaseStream, case: Case, index: int) -> Totals:
    return np.asarray(made.statistic.of(private_points(case, index)).sum(axis=0), dtype=np.int64)


def count_of(case: Case, index: int) -> int:
    public = len(PUBLIC) if case.role is Role.SUMMARY else 0
    return public + len(private_points(case, index))


def draw(mechanism: ReleaseMechanism, index: int, source: SimulatedNoise) -> Noise:
    return tuple(source.draw(request) for request in mechanism.draws(index))


def release(made: ReleaseStream, case: Case, index: int, source: SimulatedNoise) -> npt.NDArray[np.float64]:
    noise = draw(made.mechanism, index, source)
    return made.release(index, totals(made, case, index), count_of(case, index), noise)


def run(made: ReleaseStream, case: Case, seed: int = 1) -> list[npt.NDArray[np.float64]]:
    source = SimulatedNoise(seed, "party")
    return [release(made, case, index, source) for index in range(made.mechanism.releases)]


# -- releases ----------------------------------------------------------------------------------------


@every_case
def test_a_release_is_a_finite_read_only_vector(case: Case) -> None:
    for released in run(stream(case), case):
        assert released.dtype == np.float64
        assert released.shape == (D,)
        assert np.isfinite(released).all()
        assert not released.flags.writeable


@every_case
def test_the_same_noise_gives_the_same_releases(case: Case) -> None:
    first, again = run(stream(case), case), run(stream(case), case)
    assert [released.tobytes() for released in first] == [released.tobytes() for released in again]


@every_case
def test_other_noise_shows_just_where_a_mechanism_is_private(case: Case) -> None:
    mechanism = build(case)
    first, other = run(stream(case), case, seed=1), run(stream(case), case, seed=2)
    differs = [not np.array_equal(a, b) for a, b in zip(first, other, strict=True)]
    assert any(differs) == mechanism.private
    assert bool(mechanism.draws(RELEASES_MADE - 1)) == mechanism.private
    assert all(differs[index] or not mechanism.draws(index) for index in range(RELEASES_MADE))


@every_case
def test_every_release_that_costs_something_has_noise_of_its_own(case: Case) -> None:
    """Two runs whose noise is the same but for one charged release differ from there on."""
    mechanism = build(case)
    for index in range(RELEASES_MADE):
        if not mechanism.cost(index, neighbours=case.role.neighbours):
            continue
        plain, other = stream(case), stream(case)
        source = SimulatedNoise(1, "party")
        for earlier in range(index + 1):
            noise = draw(mechanism, earlier, source)
            changed = draw(mechanism, earlier, SimulatedNoise(2, "party")) if earlier == index else noise
            total, count = totals(plain, case, earlier), count_of(case, earlier)
            last = plain.release(earlier, total, count, noise), other.release(earlier, total, count, changed)
            if earlier == index:
                assert not np.array_equal(*last)


@every_case
def test_streams_share_no_state(case: Case) -> None:
    """Two streams of one mechanism, used in turn, each release what they would release alone."""
    mechanism = build(case)
    first, second = (mechanism.stream(offset_of(case), prior_of(case)) for _ in range(2))
    source = SimulatedNoise(1, "party"), SimulatedNoise(2, "party")
    turns = []
    for index in range(RELEASES_MADE):
        turns.append(release(first, case, index, source[0]))
        total = -totals(second, case, index)
        second.release(index, total, count_of(case, index), draw(mechanism, index, source[1]))
    assert all(np.array_equal(a, b) for a, b in zip(turns, run(stream(case), case), strict=True))


@every_case
def test_draws_are_the_same_whenever_asked_and_whatever_was_released_or_learned(case: Case) -> None:
    """They are drawn ahead, before the seed set is known."""
    fresh, used = build(case), stream(case)
    run(used, case)
    for index in range(RELEASES_MADE):
        assert fresh.draws(index) == fresh.draws(index) == used.mechanism.draws(index)


@every_summary
def test_the_public_points_enter_every_release_without_noise(case: Case) -> None:
    """Another offset shows; a release of the public points alone shows nothing else."""
    moved = build(case).stream(-case.seeds.sum(axis=0, dtype=np.int64), prior_of(case))
    for index, (one, other) in enumerate(zip(run(stream(case), case), run(moved, case), strict=True)):
        assert not np.array_equal(one, other), f"release {index} is not over the seed set"


@every_case
def test_a_release_reads_its_arguments_and_changes_none(case: Case) -> None:
    made = stream(case)
    source = SimulatedNoise(1, "party")
    for index in range(RELEASES_MADE):
        total, noise = totals(made, case, index), draw(made.mechanism, index, source)
        for array in (total, *noise):
            array.flags.writeable = False
        made.release(index, total, count_of(case, index), noise)


@every_case
def test_wrong_arguments_are_refused_and_leave_the_state_as_it_was(case: Case) -> None:
    made, other = stream(case), stream(case)
    source = SimulatedNoise(1, "party")
    for index in (0, 1):
        noise = draw(made.mechanism, index, source)
        good, count = totals(made, case, index), count_of(case, index)
        bad: list[tuple[int, Any, int, Any]] = [
            (index, good[:-1], count, noise),
            (index, np.append(good, 0), count, noise),
            (index, good.astype(np.float64), count, noise),
            (index, good, 0, noise),
            (index, good, count, (*noise, np.zeros(1))),
            (-1, good, count, noise),
            (RELEASES_MADE, good, count, noise),
        ]
        if noise:
            bad += [
                (index, good, count, noise[:-1]),
                (index, good, count, (noise[0][:-1], *noise[1:])),
                (index, good, count, (noise[0].astype(np.float32), *noise[1:])),
            ]
        for arguments in bad:
            with pytest.raises(LocalProtocolError):
                made.release(*arguments)
        released = made.release(index, good, count, noise)
        assert np.array_equal(released, other.release(index, good, count, noise))


def far_apart(phi: FeatureMap) -> Features:
    """Two vectors: as lopsided as can be and the opposite; or, of a map of rows, of other cells in each."""
    if phi.space.rows:
        return cast(LshSpace, phi.space).one_hot(np.arange(2)[:, None].repeat(phi.space.rows, axis=1))
    far = np.where(np.arange(D) % 2, 1, -1) * int(0.9 * phi.space.coordinate_bound / FEATURE_UNIT)
    return np.stack([far, -far]).astype(np.int16)


@every_case
def test_what_is_released_follows_the_mean_embedding(case: Case) -> None:
    """The averages of 300 releases of two sets of points differ in the direction that the sets do.

    Each set is one vector again and again, and the two are far apart: a random direction is not near theirs.
    """
    first, second = far_apart(case.phi)
    source = SimulatedNoise(3, "party")
    difference = np.zeros(D)
    mechanism, prior = build(case, releases=1, starts_public=False), prior_of(case)
    for sign, point in ((1, first), (-1, second)):
        total = COUNT * mechanism.statistic(prior).of(point[None])[0]
        for _ in range(300):
            released = mechanism.stream(prior=prior).release(0, total, COUNT, draw(mechanism, 0, source))
            difference += sign * released / 300
    apart = first.astype(np.float64) - second
    cosine = float(difference @ apart / np.linalg.norm(difference) / np.linalg.norm(apart))
    assert cosine > 0.9


# -- what of a point is released ---------------------------------------------------------------------


@every_case
def test_the_statistic_is_whole_numbers_the_same_for_a_point_alone_and_among_others(case: Case) -> None:
    """Totals do not depend on the order of addition, forged points included."""
    statistic = build(case).statistic(prior_of(case))
    ends = np.array([[-(2**15)] * D, [2**15 - 1] * D], dtype=np.int16)
    points = np.vstack([private_points(case, 3), case.seeds, ends])
    together = statistic.of(points)
    assert together.dtype == np.int64
    assert together.shape == (len(points), statistic.width)
    assert all(
        np.array_equal(statistic.of(row[None])[0], of) for row, of in zip(points, together, strict=True)
    )


@every_case
def test_the_noise_covers_every_statistic_of_a_release(case: Case) -> None:
    """A total of the statistic's width fits a release; of another width it is refused (above)."""
    made = stream(case)
    assert totals(made, case, 1).shape == (made.statistic.width,) == (made.mechanism.width,)
    assert release(made, case, 0, SimulatedNoise(1, "party")).shape == (D,)


@every_case
def test_what_needs_the_seed_set_says_so_and_releases_nothing_without_it(case: Case) -> None:
    """The statistic is φ itself, or follows from the prior: unavailable before the target is known."""
    mechanism, points = build(case), private_points(case, 3)
    if np.array_equal(mechanism.statistic(prior_of(case)).of(points), points):
        assert np.array_equal(mechanism.statistic(None).of(points), points)
        return
    with pytest.raises(LocalProtocolError, match=r"seed set|prior"):
        mechanism.statistic(None)


# -- guarantees --------------------------------------------------------------------------------------


@every_case
def test_a_guarantee_and_a_cost_need_their_neighbours_named(case: Case) -> None:
    mechanism = build(case)
    with pytest.raises(TypeError, match="neighbours"):
        mechanism.guarantee(delta=DELTA)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="neighbours"):
        mechanism.cost(0)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="some-other"):
        mechanism.guarantee(neighbours="some-other", delta=DELTA)  # type: ignore[arg-type]


@every_case
def test_a_table_of_a_private_mechanism_states_its_neighbours(case: Case) -> None:
    """The meaning of ε depends on them: there is no default."""
    assert ("neighbours" in case.table) == RELEASES[case.name].private
    if not RELEASES[case.name].private:
        return
    for wrong in ({}, {"neighbours": None}, {"neighbours": "all"}, {"neighbours": 1}):
        rest = {key: value for key, value in case.table.items() if key != "neighbours"}
        with pytest.raises(ConfigError, match="neighbours") as caught:
            release_mechanism(case.name, rest | wrong, setting_of(case.phi, case.role))
        assert (
            'neighbours = "substitute-one" in [target], "add-remove-one" in [summary]' in caught.value.advice
        )


@every_case
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_guarantee_is_finite_just_where_a_mechanism_is_private(case: Case, neighbours: Neighbours) -> None:
    mechanism = build(case)
    stated = mechanism.guarantee(neighbours=neighbours, delta=DELTA)
    assert isinstance(stated, Guarantee)
    assert stated.delta == DELTA
    assert (stated.epsilon is not None) == mechanism.private
    assert stated.epsilon is None or 0.0 < stated.epsilon < math.inf
    assert (stated.claimed_epsilon is None) == (stated.claimed_delta is None)


@every_case
@pytest.mark.parametrize("delta", [1e-3, DELTA, 1e-9])
def test_the_costs_of_all_releases_add_up_to_the_guarantee(case: Case, delta: float) -> None:
    """The charges of all releases add up to what the session file promised: no release is free."""
    mechanism, neighbours = build(case), case.role.neighbours
    costs = [mechanism.cost(index, neighbours=neighbours) for index in range(RELEASES_MADE)]
    stated = mechanism.guarantee(neighbours=neighbours, delta=delta).epsilon
    if stated is None:
        assert costs == [()] * RELEASES_MADE
        return
    free = 1 if case.role is Role.SUMMARY else 0
    assert costs[:free] == [()] * free, "the seed set alone is public"
    assert all(costs[free:])
    spent = epsilon_of(merge_costs(cost for each in costs for cost in each), delta)
    assert spent == pytest.approx(stated, rel=1e-9)


@every_case_with_epsilon
@pytest.mark.parametrize(("releases", "delta"), [(2, 1e-3), (4, 1e-5), (30, 1e-9)])
def test_a_target_epsilon_is_met_and_hardly_undercut(case: Case, releases: int, delta: float) -> None:
    for epsilon in (0.1, 1.0, 5.0):
        table = case.table | {"epsilon": epsilon}
        mechanism = build(case._replace(table=table), releases=releases, delta=delta)
        met = mechanism.guarantee(neighbours=case.role.neighbours, delta=delta).epsilon
        assert met is not None
        assert 0.999 * epsilon <= met <= epsilon


@every_case
def test_a_release_of_public_points_alone_costs_nobody_anything(case: Case) -> None:
    """A single release that starts public has no guarantee to give."""
    mechanism = build(case, releases=1, starts_public=True)
    stated = mechanism.guarantee(neighbours=Neighbours.ADD_REMOVE_ONE, delta=DELTA)
    assert stated.epsilon == (0.0 if mechanism.private else None)
    assert mechanism.cost(0, neighbours=Neighbours.ADD_REMOVE_ONE) == ()


@every_case_with_noise
def test_more_releases_and_a_smaller_delta_cost_more(case: Case) -> None:
    """With the same noise; where the noise follows from ε, the noise grows (next test)."""
    spent = [
        build(case, releases=releases).guarantee(neighbours=case.role.neighbours, delta=delta).epsilon
        for releases, delta in ((2, 1e-3), (4, 1e-3), (4, 1e-6), (30, 1e-6))
    ]
    numbers = [epsilon for epsilon in spent if epsilon is not None]
    assert len(numbers) == len(spent)
    assert all(a < b for a, b in itertools.pairwise(numbers))


@every_case_with_epsilon
@pytest.mark.parametrize("change", [{"releases": 30}, {"delta": 1e-9}], ids=str)
def test_a_target_epsilon_takes_more_noise_for_more_releases_and_a_smaller_delta(
    case: Case, change: dict[str, Any]
) -> None:
    """A release costs less where more of them share the target."""
    costs = [
        epsilon_of(mechanism.cost(1, neighbours=case.role.neighbours), DELTA)
        for mechanism in (build(case), build(case, **change))
    ]
    assert costs[1] < costs[0]


@every_case
def test_a_larger_norm_bound_never_makes_a_release_cheaper(case: Case) -> None:
    larger = build(case, norm_bound=1.4)
    known, worst = (
        m.guarantee(neighbours=case.role.neighbours, delta=DELTA).epsilon for m in (build(case), larger)
    )
    assert (known is None) == (worst is None)
    assert known is None or worst is None or worst >= 0.999 * known
    for one, other in zip(build(case).draws(1), larger.draws(1), strict=True):
        assert other.scale >= one.scale


@every_case
def test_a_guarantee_does_not_depend_on_what_was_released_or_learned(case: Case) -> None:
    """Every party states it, and only two of them know the seed set."""
    used = stream(case)
    run(used, case)
    asked: dict[str, Any] = {"neighbours": case.role.neighbours, "delta": DELTA}
    assert build(case).guarantee(**asked) == used.mechanism.guarantee(**asked)


@every_case
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_guarantee_at_no_delta_is_refused(case: Case, delta: float) -> None:
    with pytest.raises(ConfigError, match="delta"):
        build(case).guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=delta)


# -- parameters --------------------------------------------------------------------------------------


@every_case
def test_keys_are_checked_and_named(case: Case) -> None:
    def refused(table: dict[str, Any], key: str) -> None:
        with pytest.raises(ConfigError, match=key) as caught:
            release_mechanism(case.name, table, setting_of(case.phi, case.role))
        assert case.name in caught.value.what
        assert caught.value.advice

    refused(case.table | {"surprise": 1}, "surprise")
    for key, value in case.table.items():
        refused({other: kept for other, kept in case.table.items() if other != key}, key)
        wrong = ["text", None, math.nan, math.inf] + ([-value, 0] if not isinstance(value, str) else [])
        for bad in wrong:
            refused(case.table | {key: bad}, key)


@every_name
def test_optional_keys_are_optional_types(name: str) -> None:
    """A key with a default may be left out; its default then says so."""
    for key, field in RELEASES[name].Parameters.model_fields.items():
        if field.default is not PydanticUndefined and NoneType in get_args(field.annotation):
            assert field.default is None, key


@every_name
def test_a_mechanism_takes_a_target_epsilon_just_where_it_is_private(name: str) -> None:
    """A session file states the guarantee, and the noise follows from it."""
    assert any("epsilon" in table for table in tables(name)) == RELEASES[name].private


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        *(("dimension", size, "Dimension") for size in (limits.MIN_DIMENSION - 1, limits.MAX_DIMENSION + 1)),
        *(("releases", count, "releases are not") for count in (0, limits.MAX_POINTS + 1)),
        *(("norm_bound", bound, "norm bound") for bound in (0.0, 2.0, math.nan)),
        *(("delta", delta, "delta is") for delta in (0.0, 1.0, -1e-5, math.nan)),
    ],
)
def test_sizes_out_of_range_are_refused(name: str, value: Any, told: str) -> None:
    """They are refused before a mechanism is chosen: the one named here does not exist."""
    setting = replace(setting_of(phi_of("exact"), Role.SUMMARY), **{name: value})
    with pytest.raises(ConfigError, match=told) as caught:
        release_mechanism("no mechanism", {}, setting)
    assert caught.value.advice


def test_an_unknown_mechanism_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="exact"):
        release_mechanism("perfect", {}, setting_of(MAPS[0], Role.TARGET))


def test_registered_names_are_the_mechanisms_own() -> None:
    assert {name: mechanism.name for name, mechanism in RELEASES.items()} == {name: name for name in RELEASES}


def test_every_kind_of_noise_is_one_that_a_source_has() -> None:
    for case in CASES:
        for index in range(RELEASES_MADE):
            for request in build(case).draws(index):
                assert isinstance(request, Draw)
                SimulatedNoise(1, "party").check(request)
