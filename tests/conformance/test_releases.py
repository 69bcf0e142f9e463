"""What every registered release mechanism keeps. A new mechanism is tested by being registered.

Parameters come from the mechanism's own model: its required fields are filled from `EXAMPLES` by type, so
that no mechanism is named here.
"""

from __future__ import annotations

import itertools
import math
import types
from typing import Any, Literal, TypeAlias, get_args, get_origin

import numpy as np
import numpy.typing as npt
import pytest
from pydantic_core import PydanticUndefined

from protocol import limits
from protocol.errors import ConfigError, LocalProtocolError
from protocol.features import feature_map
from protocol.grid import FEATURE_UNIT, Totals
from protocol.noise import SimulatedNoise
from protocol.releases import RELEASES, Guarantee, Neighbours, ReleaseMechanism, release_mechanism

D, COUNT, RELEASES_MADE = 12, 40, 3
EXAMPLES: dict[Any, Any] = {int: 4, float: 0.5, bool: True}
Mechanism: TypeAlias = ReleaseMechanism[Any]
Noise: TypeAlias = tuple[npt.NDArray[Any], ...]
PHI = feature_map("paired", seed=1, dimension=D, gamma=1.0, lower=0.0, upper=1.0, columns=3)


def tables(name: str) -> list[dict[str, Any]]:
    """Parameter tables of a mechanism: one for each value of its choices."""
    found: list[dict[str, Any]] = [{}]
    for key, field in RELEASES[name].Parameters.model_fields.items():
        if field.default is not PydanticUndefined:
            continue
        choices: tuple[Any, ...]
        if get_origin(field.annotation) is Literal:
            choices = get_args(field.annotation)
        else:
            assert field.annotation in EXAMPLES, f"{name}.{key}: teach this suite its type"
            choices = (EXAMPLES[field.annotation],)
        found = [table | {key: choice} for table in found for choice in choices]
    return found


CASES = [(name, table) for name in sorted(RELEASES) for table in tables(name)]
every_case = pytest.mark.parametrize(("name", "table"), CASES, ids=str)
every_name = pytest.mark.parametrize("name", sorted(RELEASES))


def build(name: str, table: dict[str, Any], releases: int = RELEASES_MADE) -> Mechanism:
    return release_mechanism(name, table, dimension=D, releases=releases, norm_bound=PHI.norm_bound)


def totals(seed: int) -> Totals:
    points = np.random.default_rng(seed).random((COUNT, 3))
    return np.asarray(PHI.hash(points).sum(axis=0), dtype=np.int64)


def draw(mechanism: Mechanism, index: int, source: SimulatedNoise) -> Noise:
    return tuple(source.draw(request) for request in mechanism.draws(index))


def run(mechanism: Mechanism, seed: int = 1) -> list[npt.NDArray[np.float64]]:
    source = SimulatedNoise(seed, "party")
    return [
        mechanism.release(index, totals(index), COUNT + index, draw(mechanism, index, source))
        for index in range(mechanism.releases)
    ]


@every_case
def test_a_release_is_a_finite_read_only_vector(name: str, table: dict[str, Any]) -> None:
    for released in run(build(name, table)):
        assert released.dtype == np.float64
        assert released.shape == (D,)
        assert np.isfinite(released).all()
        assert not released.flags.writeable


@every_case
def test_the_same_noise_gives_the_same_releases(name: str, table: dict[str, Any]) -> None:
    first, again = run(build(name, table)), run(build(name, table))
    assert [released.tobytes() for released in first] == [released.tobytes() for released in again]


@every_case
def test_other_noise_shows_just_where_a_mechanism_is_private(name: str, table: dict[str, Any]) -> None:
    mechanism = build(name, table)
    first, other = run(mechanism, seed=1), run(build(name, table), seed=2)
    differs = any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert differs == mechanism.private
    assert any(mechanism.draws(0)) == mechanism.private


@every_case
def test_instances_share_no_state(name: str, table: dict[str, Any]) -> None:
    """Two mechanisms used in turn release what each releases alone."""
    first, second = build(name, table), build(name, table)
    source = SimulatedNoise(1, "party"), SimulatedNoise(2, "party")
    turns = []
    for index in range(RELEASES_MADE):
        turns.append(first.release(index, totals(index), COUNT + index, draw(first, index, source[0])))
        second.release(index, -totals(index), COUNT + index, draw(second, index, source[1]))
    assert all(np.array_equal(a, b) for a, b in zip(turns, run(build(name, table)), strict=True))


@every_case
def test_draws_are_the_same_whenever_asked_and_whatever_was_released(
    name: str, table: dict[str, Any]
) -> None:
    fresh, used = build(name, table), build(name, table)
    run(used)
    for index in range(RELEASES_MADE):
        assert fresh.draws(index) == fresh.draws(index) == used.draws(index)


@every_case
def test_a_release_reads_its_arguments_and_changes_none(name: str, table: dict[str, Any]) -> None:
    mechanism = build(name, table)
    total, noise = totals(0), draw(mechanism, 0, SimulatedNoise(1, "party"))
    for array in (total, *noise):
        array.flags.writeable = False
    mechanism.release(0, total, COUNT, noise)


@every_case
def test_wrong_arguments_are_refused_and_leave_the_state_as_it_was(name: str, table: dict[str, Any]) -> None:
    mechanism = build(name, table)
    noise = draw(mechanism, 0, SimulatedNoise(1, "party"))
    good = totals(0)
    bad: list[tuple[int, Any, int, Any]] = [
        (0, good[:-1], COUNT, noise),
        (0, good.astype(np.float64), COUNT, noise),
        (0, good, 0, noise),
        (0, good, COUNT, (*noise, np.zeros(1))),
        (-1, good, COUNT, noise),
        (RELEASES_MADE, good, COUNT, noise),
    ]
    if noise:
        bad += [
            (0, good, COUNT, noise[:-1]),
            (0, good, COUNT, (noise[0][:-1], *noise[1:])),
            (0, good, COUNT, (noise[0].astype(np.float32), *noise[1:])),
        ]
    for arguments in bad:
        with pytest.raises(LocalProtocolError):
            mechanism.release(*arguments)
    first = mechanism.release(0, good, COUNT, noise)
    assert np.array_equal(first, build(name, table).release(0, good, COUNT, noise))


@every_case
def test_a_guarantee_needs_its_neighbours_named(name: str, table: dict[str, Any]) -> None:
    mechanism = build(name, table)
    with pytest.raises(TypeError, match="neighbours"):
        mechanism.guarantee(delta=1e-5)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="some-other"):
        mechanism.guarantee(neighbours="some-other", delta=1e-5)  # type: ignore[arg-type]


@every_case
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_guarantee_is_finite_just_where_a_mechanism_is_private(
    name: str, table: dict[str, Any], neighbours: Neighbours
) -> None:
    mechanism = build(name, table)
    stated = mechanism.guarantee(neighbours=neighbours, delta=1e-5)
    assert isinstance(stated, Guarantee)
    assert stated.delta == 1e-5
    assert (stated.epsilon is not None) == mechanism.private
    assert stated.epsilon is None or 0.0 < stated.epsilon < math.inf
    assert (stated.claimed_epsilon is None) == (stated.claimed_delta is None)


@every_case
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_more_releases_and_a_smaller_delta_cost_more(
    name: str, table: dict[str, Any], neighbours: Neighbours
) -> None:
    spent = [
        build(name, table, releases).guarantee(neighbours=neighbours, delta=delta).epsilon
        for releases, delta in ((1, 1e-3), (3, 1e-3), (3, 1e-6), (30, 1e-6))
    ]
    numbers = [epsilon for epsilon in spent if epsilon is not None]
    assert len(numbers) in (0, len(spent))
    assert all(a < b for a, b in itertools.pairwise(numbers))


@every_case
def test_a_guarantee_does_not_depend_on_what_was_released(name: str, table: dict[str, Any]) -> None:
    fresh, used = build(name, table), build(name, table)
    run(used)
    asked: dict[str, Any] = {"neighbours": Neighbours.SUBSTITUTE_ONE, "delta": 1e-5}
    assert fresh.guarantee(**asked) == used.guarantee(**asked)


@every_case
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_a_guarantee_at_no_delta_is_refused(name: str, table: dict[str, Any], delta: float) -> None:
    with pytest.raises(ConfigError, match="delta"):
        build(name, table).guarantee(neighbours=Neighbours.SUBSTITUTE_ONE, delta=delta)


@every_case
def test_keys_are_checked_and_named(name: str, table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="surprise"):
        build(name, table | {"surprise": 1})
    for key, value in table.items():
        with pytest.raises(ConfigError, match=key):
            build(name, {other: kept for other, kept in table.items() if other != key})
        wrong = ["text", None, math.nan, math.inf] + ([-value, 0] if not isinstance(value, str) else [])
        for bad in wrong:
            with pytest.raises(ConfigError, match=key):
                build(name, table | {key: bad})


@every_name
def test_optional_keys_are_optional_types(name: str) -> None:
    """A key with a default may be left out; its default says that it was."""
    for key, field in RELEASES[name].Parameters.model_fields.items():
        if field.default is not PydanticUndefined and isinstance(field.annotation, types.UnionType):
            assert field.default is None, key


@every_case
@pytest.mark.parametrize(
    "change",
    [
        {"dimension": limits.MIN_DIMENSION - 1},
        {"dimension": limits.MAX_DIMENSION + 1},
        {"releases": 0},
        {"releases": limits.MAX_POINTS + 1},
        {"norm_bound": 0.0},
        {"norm_bound": 2.0},
        {"norm_bound": math.nan},
    ],
    ids=str,
)
def test_sizes_out_of_range_are_refused(name: str, table: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        release_mechanism(name, table, **({"dimension": D, "releases": 2} | change))


@every_case
def test_without_a_norm_bound_the_worst_map_s_is_assumed(name: str, table: dict[str, Any]) -> None:
    assumed = release_mechanism(name, table, dimension=D, releases=2)
    asked: dict[str, Any] = {"neighbours": Neighbours.SUBSTITUTE_ONE, "delta": 1e-5}
    known = build(name, table, 2).guarantee(**asked).epsilon
    worst = assumed.guarantee(**asked).epsilon
    assert (known is None and worst is None) or (known is not None and worst is not None and worst >= known)


@every_case
def test_what_is_released_estimates_the_mean_embedding(name: str, table: dict[str, Any]) -> None:
    """The average of 300 releases of a strongly asymmetric total points its way; a random one does not."""
    total = np.where(np.arange(D) % 2, 1, -1) * np.int64(COUNT * 0.9 * PHI.coordinate_bound / FEATURE_UNIT)
    source = SimulatedNoise(3, "party")
    average = np.zeros(D)
    for _ in range(300):
        mechanism = build(name, table, 1)
        average += mechanism.release(0, total, COUNT, draw(mechanism, 0, source)) / 300
    cosine = float(average @ total / np.linalg.norm(average) / np.linalg.norm(total))
    assert cosine > 0.9


def test_an_unknown_mechanism_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="exact"):
        build("perfect", {})


def test_registered_names_are_the_mechanisms_own() -> None:
    assert {name: mechanism.name for name, mechanism in RELEASES.items()} == {name: name for name in RELEASES}
