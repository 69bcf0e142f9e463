"""Owners commit to their rows before they see anything: what that prevents, and what it does not."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.events import NOT_COMMITTED
from hushbid.owner.events import OpenMap
from hushbid.owner.numerics import BlindOwnerNumerics, OwnerNumerics
from hushbid.owner.party import owner_party
from hushbid.protocol.crypto.commitment import Opening, opening_bytes
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.base import Machine
from hushbid.protocol.machine.machine import Computation, Event
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.jitter import Jitter
from hushbid.protocol.space.mmd import mmd2
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

COLUMNS, ROWS, POINTS, TRIES = 3, 120, 60, 300
FEW = 24
"""Points where it does not matter how many are bought."""
OWNERS = dict(zip(("near", "like", "far"), names(3), strict=True))
MIDDLES = {"near": (0.5, 0.5, 0.5), "like": (0.55, 0.5, 0.45), "far": (0.2, 0.75, 0.7)}
NUDGE = 1e-4
"""The most that a ground point is moved by, of the columns' bounds."""
RULES = ("sealed", "tender", "blind")
Rows = npt.NDArray[np.float64]


def session(rule: str, depth: int | None = 16, **changes: Any) -> Session:
    given: dict[str, Any] = {
        "points": POINTS,
        "columns": COLUMNS,
        "dimension": 140,
        "jitter": 0.0 if rule == "tender" else 50.0,
        "batch": 1 if rule == "tender" else 2,
        "target": {"mechanism": "filtered-gaussian", "epsilon": 3.0, "neighbours": "substitute-one"},
        "summary": {"mechanism": "filtered-gaussian", "epsilon": 3.0, "neighbours": "add-remove-one"},
        **({} if depth is None else {"commitment_depth": depth}),
        **changes,
    }
    return open_session(session_file(owners=names(3), rule=rule, **given))


@cache
def market(seed: int) -> tuple[dict[str, Rows], Rows, Rows]:
    """The rows of each owner by its kind, D_v and D_init."""
    rng = np.random.default_rng(seed)

    def around(middle: Any, rows: int) -> Rows:
        return np.clip(rng.normal(middle, 0.12, (rows, COLUMNS)), 0.001, 0.999)

    owners = {kind: around(middle, ROWS) for kind, middle in MIDDLES.items()}
    return owners, around(MIDDLES["near"], 200), rng.uniform(0.05, 0.95, (5, COLUMNS))


def simulation(opened: Session, owners: dict[str, Rows], seed: int = 1, **also: Any) -> Simulation:
    _, validation, seed_set = market(seed)
    data = {OWNERS[kind]: Dataset.from_arrays(kind, rows) for kind, rows in owners.items()}
    given: dict[str, Any] = {
        "validation": Dataset.from_arrays("validation", validation),
        "seed_set": Dataset.from_arrays("seed set", seed_set),
    }
    return Simulation(opened, owners=data, **(given | also))


def run(opened: Session, owners: dict[str, Rows], seed: int = 1, **also: Any) -> SimulationOutcome:
    return simulation(opened, owners, seed, **also).run()


@cache
def honest(rule: str, depth: int | None = 16, seed: int = 1, noise_seed: int = 1) -> SimulationOutcome:
    """A session in which all owners have the rows that the market gives them."""
    return run(session(rule, depth, noise_seed=noise_seed), market(seed)[0], seed)


def sold(outcome: SimulationOutcome) -> Counter[str]:
    """Each owner's sold, undisputed points."""
    assert outcome.delivered is not None
    return Counter(each.owner for each in outcome.delivered.delivered if not each.dispute)


def disputes(outcome: SimulationOutcome) -> Counter[tuple[str, str]]:
    assert outcome.delivered is not None
    return Counter((each.owner, each.dispute) for each in outcome.delivered.delivered if each.dispute)


def points(outcome: SimulationOutcome) -> list[tuple[str, bytes]]:
    assert outcome.delivered is not None
    return [
        (each.owner, np.asarray(each.candidate.point).tobytes())
        for each in outcome.delivered.delivered
        if each.candidate is not None
    ]


class Grinding(OwnerNumerics):
    """Once it has the map, it moves each row a little, to where jitter favours it most."""

    def perform(self, effect: Computation) -> Event | None:
        if type(effect) is OpenMap:
            if self._session.commitment_depth:
                _ = self._tree  # the rows that it has committed to
            outcome = super().perform(effect)
            self._grind()
            return outcome
        return super().perform(effect)

    def _keep_seed(self, seed: bytes) -> None:
        self._map = self._session.space.map(seed)

    def _grind(self) -> None:
        rows = self._ground(self._dataset.features)
        self._dataset = Dataset.from_arrays("ground", rows)
        self._hashed = lambda feature_map: feature_map.hash(rows)
        self._hash(self._map)

    def _ground(self, rows: Rows) -> Rows:
        rng = np.random.default_rng(5)
        tries = np.clip(rows[None] + rng.uniform(-NUDGE, NUDGE, (TRIES, *rows.shape)), 0.0, 1.0)
        favour = [Jitter(self._session.identifier).of(self._map.hash(each)) for each in tries]
        best: Rows = tries[np.argmax(favour, axis=0), np.arange(len(rows))]
        return best


def with_grinding(kind: str) -> Any:
    def make(opened: Session, name: str, dataset: Dataset, **given: Any) -> tuple[Machine, Any]:
        machine, numerics = owner_party(opened, name, dataset, **given)
        if name == OWNERS[kind]:
            numerics = Grinding(opened, dataset, numerics._hashed, sealer=numerics._sealer)
        return machine, numerics

    return make


# -- a session -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_a_session_with_commitments_buys_what_it_buys_without_them(rule: str) -> None:
    """The session's digest differs, and with it jitter: there is none here."""
    owners = market(1)[0]
    with_them, without = (
        run(
            session(rule, depth, points=FEW, jitter=0.0, **({"batch": 1} if rule != "tender" else {})), owners
        )
        for depth in (16, None)
    )
    assert with_them.finishes[CONSUMER].code is ExitCode.DONE
    assert len(points(with_them)) == FEW
    assert not disputes(with_them)
    assert {owner for owner, _ in points(with_them)} <= set(names(3))
    assert set(with_them.consumer.roots) == set(names(3))
    assert without.consumer.roots == {}


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("rule", RULES)
def test_crashes_change_nothing(rule: str, stride: int) -> None:
    """At the steps in which owners commit, and in the first rounds; a few come later."""
    owners = market(1)[0]
    opened = session(rule, points=12)
    plain = points(run(opened, owners, crashes=[]))
    for place, party in enumerate((CURATOR, CONSUMER, names(3)[0])):
        came = 0
        for step in range(2 + (place + len(rule)) % stride, 9, stride):
            crashing = simulation(opened, owners, crashes=[Crash(party, step, 0)])
            assert points(crashing.run()) == plain, (party, step)
            came += len(crashing.crashed)  # some parties take six steps in all
        assert came >= 4 // stride, party


# -- grinding --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["near", "far"])
def test_an_owner_that_grinds_once_it_has_the_map_sells_nothing(kind: str) -> None:
    """Without commitments it sells twice as much, or the consumer gets unwanted points."""
    owners, owner = market(1)[0], OWNERS[kind]
    usual = sold(honest("sealed", None, noise_seed=0))[owner]
    before = run(session("sealed", None), owners, owner=with_grinding(kind))
    after = run(session("sealed"), owners, owner=with_grinding(kind))
    print(kind, usual, sold(before), sold(after))
    assert sold(before)[owner] > 1.4 * usual
    assert not disputes(before)
    assert sold(after)[owner] == 0
    assert set(disputes(after)) == {(owner, NOT_COMMITTED)}


@pytest.mark.parametrize("kind", ["near", "far"])
def test_an_owner_that_grinds_before_it_has_the_map_gains_nothing(kind: str) -> None:
    """It grinds by another map: the jitter that decides is drawn after it has committed."""
    owner, gains = OWNERS[kind], []
    for seed in (1, 2, 4):
        owners = market(seed)[0]
        opened = session("sealed", noise_seed=seed)
        blindly = Grinding.__new__(Grinding)
        blindly._session, blindly._map = opened, opened.space.map(bytes([seed]) * 32)
        ground = {**owners, kind: blindly._ground(owners[kind])}
        usual = honest("sealed", seed=seed, noise_seed=seed)
        gains.append(sold(run(opened, ground, seed))[owner] - sold(usual)[owner])
    print(kind, gains)
    assert abs(np.mean(gains)) < 4.0
    assert max(map(abs, gains)) < 12


def cut(opening: Opening, depth: int) -> bytes:
    """A path that is too short, in as many bytes."""
    return opening._replace(path=opening.path[:-32]).packed() + bytes(32)


def elsewhere(opening: Opening, depth: int) -> bytes:
    return opening._replace(place=opening.place ^ 1).packed()


def beyond(opening: Opening, depth: int) -> bytes:
    return opening._replace(place=2**depth).packed()


def none(opening: Opening, depth: int) -> bytes:
    return bytes(opening_bytes(depth))


@pytest.mark.parametrize("change", [cut, elsewhere, beyond, none])
@pytest.mark.parametrize("rule", RULES)
def test_a_path_that_leads_elsewhere_is_disputed(rule: str, change: Any) -> None:
    class Lost(OwnerNumerics if rule != "blind" else BlindOwnerNumerics):  # type: ignore[misc]
        def _contents(self, rows: Any) -> list[bytes]:
            depth, whole = self._session.commitment_depth, super()._contents(rows)
            paths = [change(self._tree.opening(row), depth) for row in rows]
            return [path + each[len(path) :] for path, each in zip(paths, whole, strict=True)]

    def make(opened: Session, name: str, dataset: Dataset, **given: Any) -> tuple[Any, Any]:
        machine, numerics = owner_party(opened, name, dataset, **given)
        if name == OWNERS["near"]:
            numerics = Lost(opened, dataset, numerics._hashed, sealer=numerics._sealer)
        return machine, numerics

    outcome = run(session(rule, points=FEW), market(1)[0], owner=make)
    assert sold(outcome)[OWNERS["near"]] == 0
    assert set(disputes(outcome)) == {(OWNERS["near"], NOT_COMMITTED)}
    assert sum(sold(outcome).values()) > 0


# -- what it does not keep an owner from -------------------------------------------------------------------


def copied(rows: Rows) -> Rows:
    """Each row three hundred times, each slightly elsewhere: made before anything is committed to."""
    rng = np.random.default_rng(6)
    return np.concatenate(
        [np.clip(rows + rng.uniform(-NUDGE, NUDGE, rows.shape), 0, 1) for _ in range(TRIES)]
    )


@pytest.mark.parametrize("seeds", [(1,), pytest.param((1, 2, 3), marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("kind", ["near", "far"])
def test_near_copies_gain_in_rounds_and_not_in_a_tender(kind: str, seeds: tuple[int, ...]) -> None:
    """docs/privacy.md, "What an owner can still invent": each copy is another lot in the draw of jitter."""
    owner, told = OWNERS[kind], {}
    for rule in ("sealed", "tender"):
        shares, figures = [], []
        for seed in seeds:
            owners, validation, _ = market(seed)
            opened = session(rule, noise_seed=seed)
            repeated = run(opened, {**owners, kind: copied(owners[kind])}, seed)
            for outcome in (honest(rule, seed=seed, noise_seed=seed), repeated):
                held = np.array([np.frombuffer(point) for _, point in points(outcome)])
                shares.append(sold(outcome)[owner])
                figures.append(mmd2(held, validation, 1.0))
        told[rule] = np.array(shares).reshape(-1, 2), np.array(figures).reshape(-1, 2)
    print(kind, told)
    in_rounds, in_tender = (told[rule][0] for rule in ("sealed", "tender"))
    assert (in_rounds[:, 1] > 1.5 * in_rounds[:, 0]).all()
    assert (in_tender[:, 1] <= in_tender[:, 0] + 5).all()
    assert told["tender"][1].max() < 0.005
