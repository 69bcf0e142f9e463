"""A blind session buys, bit for bit, what `sealed` and `ask-all` buy for the same data, map and noise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.curator.ledger import Absence
from hushbid.protocol.crypto.blinding import BlindKeys
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import SEED_BYTES
from hushbid.protocol.wire.codec import Direction, decode_frame, decode_message
from hushbid.protocol.wire.messages import Broadcast, SealedBroadcast
from hushbid.simulation.network import SteadyNetwork
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file
from tests.support.totals import check_total

COLUMNS, DIMENSION = 5, 16
EXACT: dict[str, Any] = {"mechanism": "exact"}
RELEASES: dict[str, dict[str, Any]] = {
    "exact": EXACT,
    "gaussian": {"mechanism": "gaussian", "sigma": 15.0},
    "filtered-gaussian": {"mechanism": "filtered-gaussian", "epsilon": 3.0},
    "subspace": {"mechanism": "subspace", "epsilon": 3.0, "directions": 6},
}
Away = Callable[[int], Collection[str]]
Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Bought:
    """A session's outcome, as far as it is the same under every rule."""

    points: list[tuple[str, int, bytes, bytes]]
    """Owner, round, raw point and attributes of each purchase."""
    weights: dict[int, bytes]
    """Of each round, as owners score by them."""
    absences: list[Absence]
    settlement: Mapping[str, float] | None


def data_of(sizes: Collection[int], seed: int) -> dict[str, Points]:
    """Owners' points, some of them twice, within and across owners."""
    rng = np.random.default_rng(seed)
    distinct = rng.random((max(4, sum(sizes) * 3 // 4), COLUMNS))
    return {
        owner: distinct[rng.integers(0, len(distinct), size=size)]
        for owner, size in zip(names(len(sizes)), sizes, strict=True)
    }


def session_of(rule: str, *, owners: int, release: str = "exact", **options: Any) -> Session:
    summary = target = RELEASES[release]
    if release != "exact":
        summary = summary | {"neighbours": "add-remove-one"}
        target = target | {"neighbours": "substitute-one"}
    return open_session(
        session_file(
            owners=names(owners),
            rule=rule,
            dimension=DIMENSION,
            columns=COLUMNS,
            summary=summary,
            target=target,
            **options,
        )
    )


def in_public(session: Session) -> Session:
    """A session with a public map: the one that a simulated consumer draws where it is secret."""
    seed = SimulatedNoise(session.file.noise.seed or 0, CONSUMER).random_bytes(SEED_BYTES)
    return replace(session, public_map=session.space.map(seed))


def bought(session: Session, data: Mapping[str, Points], away: Away | None = None) -> Bought:
    weights: dict[int, bytes] = {}
    boxes: dict[int, bytes] = {}

    def tap(_sender: str, receiver: str, frame: Outgoing) -> None:
        if frame.kind in ("broadcast", "sealed-broadcast") and receiver in data:
            message = decode_message(Direction.CURATOR_TO_OWNER, decode_frame(frame.data).body)
            if isinstance(message, Broadcast):
                weights[message.round] = message.weights.tobytes()
            elif isinstance(message, SealedBroadcast):
                boxes[message.round] = message.box

    outcome = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rows, np.arange(len(rows))) for name, rows in data.items()},
        validation=Dataset.from_arrays("validation", np.random.default_rng(100).random((9, COLUMNS))),
        seed_set=Dataset.from_arrays("seed-set", np.random.default_rng(101).random((9, COLUMNS))),
        network=SteadyNetwork(away),
        tap=tap,
    ).run()
    if session.rule.blind:
        weights = opened(session, boxes)
    codes = {outcome.finishes[party].code for party in (CURATOR, CONSUMER)}
    assert codes == {ExitCode.DONE}, "owners that are away at the end have given up"
    assert outcome.delivered is not None
    assert {entry.dispute for entry in outcome.delivered.delivered} <= {""}
    assert not outcome.curator.ledger.faults
    check_total(outcome)
    return Bought(
        points_in(outcome), weights, list(outcome.curator.ledger.absences), outcome.curator.settlement()
    )


def points_in(outcome: SimulationOutcome) -> list[tuple[str, int, bytes, bytes]]:
    assert isinstance(outcome.consumer.buying, BlindBuying) == outcome.curator.rule.blind
    assert outcome.delivered is not None
    return [
        (entry.owner, entry.chosen_round, entry.candidate.point.tobytes(), entry.candidate.attributes)
        for entry in outcome.delivered.delivered
        if entry.candidate is not None
    ]


def opened(session: Session, boxes: Mapping[int, bytes]) -> dict[int, bytes]:
    """The weights in blind broadcasts, which the holder of the map's seed can read."""
    seed = SimulatedNoise(session.file.noise.seed or 0, CONSUMER).random_bytes(SEED_BYTES)
    keys = BlindKeys(seed, session.identifier)
    return {number: keys.decrypt(box, number).tobytes() for number, box in boxes.items()}


def same_under_all(data: Mapping[str, Points], **options: Any) -> Bought:
    """Run the rules, assert equal outcomes, and return them."""
    blind, sealed, public = sessions_of(len(data), **options)
    found = bought(blind, data)
    for other in (bought(sealed, data), bought(public, data)):
        assert found == other
    return found


def sessions_of(owners: int, **options: Any) -> tuple[Session, Session, Session]:
    """One session under `blind`, `sealed`, and `ask-all` with their map."""
    blind, sealed, public = (
        session_of(rule, owners=owners, **options) for rule in ("blind", "sealed", "ask-all")
    )
    return blind, sealed, in_public(public)


@pytest.mark.parametrize("batch", [1, 4, 20])
@pytest.mark.parametrize("owners", [1, 3, 8])
@pytest.mark.parametrize("release", ["exact", "filtered-gaussian"])
def test_blind_buys_what_sealed_and_ask_all_buy(owners: int, batch: int, release: str) -> None:
    data = data_of([40] * owners, seed=owners)
    found = same_under_all(data, points=3 * batch + 2, batch=batch, release=release)
    assert len(found.points) == min(3 * batch + 2, 40 * owners)
    assert len(found.weights) == -(-(3 * batch + 2) // batch)


@pytest.mark.parametrize("release", RELEASES)
def test_so_it_does_with_every_release_and_with_a_seed_set_that_counts_less(release: str) -> None:
    found = same_under_all(data_of([15, 20, 9], seed=2), points=18, batch=4, release=release, seed_weight=0.1)
    assert len(found.points) == 18


@pytest.mark.parametrize("batch", [1, 4, 20])
def test_so_it_does_where_owners_run_out(batch: int) -> None:
    data = data_of([2, 1, 9, 5], seed=3)
    found = same_under_all(data, points=24, batch=batch)
    assert len(found.points) == 17, "all that there are, and none twice"


def test_so_it_does_with_caps() -> None:
    first, second, _ = names(3)
    data = data_of([15, 20, 9], seed=4)
    found = same_under_all(data, points=16, batch=2, wishes={"caps": {first: 4, second: 6}})
    sold = [owner for owner, *_ in found.points]
    assert sold.count(first) <= 4
    assert sold.count(second) <= 6


ABSENCES: dict[str, Away] = {
    "one owner for a while": lambda number: {"owner-0"} if 3 <= number <= 5 else (),
    "two owners in turns": lambda number: {f"owner-{number // 3 % 2}"} if number > 1 else (),
    "one owner to the end": lambda number: {"owner-2"} if number >= 4 else (),
    "all but one, twice": lambda number: {"owner-0", "owner-1"} if number in (2, 6) else (),
}
"""Who has no connection in a round."""


@pytest.mark.parametrize("when", ABSENCES)
@pytest.mark.parametrize("batch", [1, 4])
def test_so_it_does_where_owners_are_absent_and_come_back(when: str, batch: int) -> None:
    """A withheld pool under the other rules, a missing score under this one.

    An owner that comes back in a round is late where others have its broadcast already; under `blind` the
    consumer's is still on its way. So a blind session's connection returns as late as its owner is present in
    the others.
    """
    data = data_of([20, 20, 20], seed=5)
    blind, sealed, public = sessions_of(3, points=10 * batch, batch=batch)
    other = bought(sealed, data, ABSENCES[when])
    found = bought(
        blind, data, lambda number: {each.owner for each in other.absences if each.round == number}
    )
    assert found.absences, "the control: somebody was away"
    assert found == other == bought(public, data, ABSENCES[when])
    assert found.points != bought(blind, data).points, "the control: it makes a difference"


def test_another_seed_of_noise_buys_other_points() -> None:
    """The control: the comparison would notice another choice."""
    data = data_of([40] * 3, seed=1)
    one, other = (
        bought(session_of("blind", owners=3, points=12, release="gaussian", noise_seed=seed), data)
        for seed in (0, 1)
    )
    assert one.points != other.points
    assert one.weights != other.weights
