"""Whole sessions in one process: determinism, what owners see, and size."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.protocol import limits
from hushbid.protocol.crypto.blinding import MASK_BYTES
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.machine import Finish
from hushbid.protocol.machine.weighing import ComputeWeights, Weigher, WeightsComputed
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.space.features import SEED_BYTES
from hushbid.protocol.space.grid import round_weights
from hushbid.protocol.wire.codec import decode_frame
from hushbid.simulation.simulator import Simulation, SimulationOutcome
from tests.conftest import ROOT
from tests.simulation.harness import RULES_FOR_FEW, names, session_file
from tests.support.totals import check_total

COLUMNS = 3
MWEM: dict[str, Any] = {
    "mechanism": "mwem", "step_epsilon": 1.0, "calibration": "sound", "steps": 4, "eta": 0.05
}  # fmt: skip
GAUSSIAN: dict[str, Any] = {"mechanism": "gaussian", "sigma": 15.0}
EXACT: dict[str, Any] = {"mechanism": "exact"}

Frames = list[tuple[str, str, str, int, bytes]]
Points = npt.NDArray[np.float64]


def points_of(seed: int, count: int) -> Points:
    return np.random.default_rng(seed).random((count, COLUMNS))


def protecting(release: dict[str, Any], neighbours: str) -> dict[str, Any]:
    """A release's table, with the neighbours that its guarantee compares, if it has one."""
    return release if release is EXACT else release | {"neighbours": neighbours}


def run(
    *,
    owners: dict[str, Points] | None = None,
    rule: str = "ask-all",
    points: int = 12,
    summary: dict[str, Any] = EXACT,
    target: dict[str, Any] = EXACT,
    noise_seed: int = 0,
) -> tuple[Frames, SimulationOutcome]:
    """Simulate; every frame as (sender, receiver, kind, sequence, bytes)."""
    data = owners or default_owners()
    session = session_of(
        rule,
        owners=tuple(data),
        points=points,
        summary=protecting(summary, "add-remove-one"),
        target=protecting(target, "substitute-one"),
        noise_seed=noise_seed,
    )
    return simulate(session, data)


def default_owners() -> dict[str, Points]:
    return {name: points_of(number, 6) for number, name in enumerate(names(3))}


def session_of(rule: str, *, owners: tuple[str, ...] = names(3), points: int = 12, **options: Any) -> Session:
    return open_session(
        session_file(owners=owners, points=points, rule=rule, dimension=8, columns=COLUMNS, **options)
    )


def simulate(session: Session, owners: dict[str, Points] | None = None) -> tuple[Frames, SimulationOutcome]:
    """Simulate a session; every frame as (sender, receiver, kind, sequence, bytes)."""
    data = owners or default_owners()
    frames: Frames = []

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        frames.append((sender, receiver, frame.kind, frame.sequence, frame.data))

    outcome = Simulation(
        session,
        owners={name: Dataset.from_arrays(name, rows) for name, rows in data.items()},
        validation=Dataset.from_arrays("validation", points_of(100, 9)),
        seed_set=Dataset.from_arrays("seed-set", points_of(101, 5)),
        tap=tap,
    ).run()
    return frames, outcome


def test_the_largest_map_goes_with_jitter() -> None:
    """A broadcast then has a weight for each coordinate, and one for jitter."""
    release = {"mechanism": "filtered-gaussian", "epsilon": 1.0}
    session = open_session(
        session_file(
            owners=names(3),
            points=4,
            batch=2,
            dimension=limits.MAX_DIMENSION,
            columns=COLUMNS,
            jitter=25.0,
            summary=release | {"neighbours": "add-remove-one"},
            target=release | {"neighbours": "substitute-one"},
        )
    )
    assert len(bought(simulate(session)[1])) == 4


def bought(outcome: SimulationOutcome) -> list[tuple[str, int, bytes]]:
    """Owner, round and raw point of each purchase."""
    assert outcome.delivered is not None
    found = []
    for entry in outcome.delivered.delivered:
        assert entry.candidate is not None
        found.append((entry.owner, entry.chosen_round, entry.candidate.point.tobytes()))
    return found


def seen_by(frames: Frames, party: str) -> Frames:
    """A party's frames, sent and received, in order."""
    return [frame for frame in frames if party in frame[:2]]


RELEASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exact": (EXACT, EXACT),
    "gaussian": (GAUSSIAN, GAUSSIAN),
    "mwem": (MWEM, MWEM),
    "mixed": (MWEM, GAUSSIAN),
}


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
@pytest.mark.parametrize("releases", RELEASES)
def test_the_same_seed_gives_the_same_frames_byte_for_byte(rule: str, releases: str) -> None:
    summary, target = RELEASES[releases]
    first, outcome = run(rule=rule, summary=summary, target=target)
    second, again = run(rule=rule, summary=summary, target=target)
    assert first == second
    assert outcome.seconds == again.seconds
    assert all(finish.code is ExitCode.DONE for finish in outcome.finishes.values())


@pytest.mark.parametrize("releases", ["gaussian", "mwem"])
def test_another_seed_gives_other_noise(releases: str) -> None:
    summary, target = RELEASES[releases]
    first, _ = run(summary=summary, target=target, noise_seed=0)
    second, _ = run(summary=summary, target=target, noise_seed=1)
    assert first != second


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
def test_everything_that_was_chosen_is_delivered_and_matches(rule: str) -> None:
    _, outcome = run(rule=rule)
    assert outcome.delivered is not None
    wins = [(win.owner, win.chosen_round) for win in outcome.curator.ledger.wins]
    assert [(bought.owner, bought.chosen_round) for bought in outcome.delivered.delivered] == wins
    assert all(bought.candidate is not None for bought in outcome.delivered.delivered)
    assert {bought.dispute for bought in outcome.delivered.delivered} == {""}
    assert outcome.curator.ledger.faults == []
    check_total(outcome)


def test_sealed_buys_what_ask_all_buys_under_the_same_map() -> None:
    """The consumer draws the secret map from its own noise; the control's map is public."""
    seed = SimulatedNoise(0, CONSUMER).random_bytes(SEED_BYTES)
    _, sealed = run(rule="sealed")
    session = session_of("ask-all")
    _, opened = simulate(replace(session, public_map=session.space.map(seed)))
    assert bought(sealed) == bought(opened)
    assert len(bought(sealed)) == 12
    _, other = run(rule="ask-all")
    assert bought(other) != bought(sealed), "the control: another map chooses other points"


def test_fewer_points_than_rounds_show_in_the_result_only() -> None:
    data = {name: points_of(number, 2) for number, name in enumerate(names(2))}
    frames, outcome = run(owners=data, points=9)
    assert outcome.delivered is not None
    assert len(outcome.delivered.delivered) == 4
    assert outcome.curator.round == 9
    for owner in data:
        assert sum(kind == "broadcast" for _, to, kind, _, _ in frames if to == owner) == 9


def test_progress_is_told_after_every_round() -> None:
    rounds: list[int] = []
    session = open_session(session_file(owners=names(1), points=5, dimension=8, columns=COLUMNS))
    Simulation(
        session,
        owners={names(1)[0]: Dataset.from_arrays("o", points_of(0, 9))},
        validation=Dataset.from_arrays("validation", points_of(1, 9)),
        seed_set=Dataset.from_arrays("seed-set", points_of(2, 9)),
    ).run(progress=lambda machine: rounds.append(machine.round))
    assert rounds == [1, 2, 3, 4, 5]


# -- what an owner sees ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES_FOR_FEW)
def test_bids_of_one_owner_have_one_size_whatever_they_say(rule: str) -> None:
    """Nothing on the wire distinguishes an owner that ran out of points."""
    data = {name: points_of(number, 2 + 9 * number) for number, name in enumerate(names(2))}
    frames, _ = run(owners=data, rule=rule, points=12)
    kind = "blind-bid" if RULES[rule].blind else "submission" if RULES[rule].herds else "bid"
    sizes = [
        [len(bytes_) for sender, _, told, _, bytes_ in frames if (sender, told) == (owner, kind)]
        for owner in data
    ]
    assert sizes[0] == sizes[1]
    # A blind bid has a score of each box so far, of those of nothing too.
    grown = range(MASK_BYTES, MASK_BYTES + 3) if RULES[rule].blind else (0,)
    assert len(sizes[0]) == (1 if RULES[rule].herds else 12)
    assert all(later - earlier in grown for earlier, later in pairwise(sizes[0]))


@pytest.fixture
def _same_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The released weights depend on the round alone."""

    def weights_of_the_round(_: Weigher, effect: ComputeWeights) -> WeightsComputed:
        weights = round_weights(np.random.default_rng(effect.round).normal(size=len(effect.total)))
        weights.flags.writeable = False
        return WeightsComputed(effect.round, weights)

    monkeypatch.setattr(Weigher, "_weights", weights_of_the_round)


def seen_in_two_runs(rule: str) -> tuple[Frames, Frames, int, int]:
    """An owner's frames, and how often it won, in two runs that differ in another owner's data only."""
    watched, other = names(2)
    mine = points_of(0, 20)
    first, one = run(owners={watched: mine, other: points_of(1, 20)}, rule=rule)
    second, two = run(owners={watched: mine, other: points_of(2, 3)}, rule=rule)
    won = [[win.owner for win in outcome.curator.ledger.wins].count(watched) for outcome in (one, two)]
    return seen_by(first, watched), seen_by(second, watched), won[0], won[1]


@pytest.mark.usefixtures("_same_releases")
@pytest.mark.parametrize("rule", ["ask-all", "sealed"])
def test_with_the_same_releases_an_owner_sees_the_same_whoever_wins(rule: str) -> None:
    """No feedback (DESIGN §3), in either direction, down to the bytes."""
    first, second, won_first, won_second = seen_in_two_runs(rule)
    assert won_first != won_second
    assert first == second


@pytest.mark.usefixtures("_same_releases")
def test_the_same_comparison_tells_a_rule_that_does_feed_back() -> None:
    """The control: `winner-only` asks the winner, and that shows."""
    first, second, _, _ = seen_in_two_runs("winner-only")
    assert first != second


@pytest.mark.parametrize("rule", ["ask-all", "sealed", "winner-only"])
def test_after_the_last_broadcast_an_owners_frames_are_constant(rule: str) -> None:
    """After the bid (and the offer, where the rule asks) come only one close and one farewell.

    Nobody keeps a transcript here, whose head they would contain: salts make that random.
    """
    closes, farewells = set(), set()
    for seed in range(3):
        data = {name: points_of(10 * seed + number, 20) for number, name in enumerate(names(3))}
        frames, _ = run(owners=data, rule=rule)
        for owner in data:
            mine = seen_by(frames, owner)
            last = max(place for place, frame in enumerate(mine) if frame[2] == "broadcast")
            after = [frame for frame in mine[last + 1 :] if frame[2] not in ("bid", "ask", "offer")]
            close, farewell = after
            assert (close[2], farewell[2]) == ("close", "farewell")
            closes.add(decode_frame(close[4]).body)
            farewells.add((owner, decode_frame(farewell[4]).body))
    assert len(closes) == 1, "it is the same for every owner, whoever won"
    assert len(farewells) == 3, "one of each owner, which it signed"


# -- size --------------------------------------------------------------------------------------------

SIZED = """
import json, resource, sys, time
import numpy as np
from hushbid.simulation.simulator import Simulation
from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import open_session
from tests.simulation.harness import names, session_file

count, rows, points, dimension, columns = map(int, sys.argv[1:])
owners = names(count)
rng = np.random.default_rng(0)
session = open_session(session_file(owners=owners, points=points, dimension=dimension, columns=columns))
outcome = Simulation(
    session,
    owners={name: Dataset.from_arrays(name, rng.random((rows, columns))) for name in owners},
    validation=Dataset.from_arrays("v", rng.random((50, columns))),
    seed_set=Dataset.from_arrays("s", rng.random((30, columns))),
).run()
outcome.curator.selection.check_total()
json.dump(
    {
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "bought": len(outcome.delivered.delivered),
        "accessed": outcome.curator.ledger.points_accessed,
        "codes": sorted({int(finish.code) for finish in outcome.finishes.values()}),
    },
    sys.stdout,
)
"""


def sized(owners: int, rows: int, points: int) -> dict[str, Any]:
    """Run a session of that size in a process of its own; returns its peak of memory."""
    sizes = [str(size) for size in (owners, rows, points, 140, 64)]
    done = subprocess.run(
        [sys.executable, "-c", SIZED, *sizes], cwd=ROOT, capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["bought"] == points
    assert result["accessed"] == min(points, rows) * owners
    assert result["codes"] == [int(ExitCode.DONE)]
    return result


def test_a_thousand_owners_take_part() -> None:
    sized(1000, 20, 3)


@pytest.mark.slow
def test_a_thousand_owners_of_a_hundred_points_take_less_than_a_gigabyte_and_a_half() -> None:
    result = sized(1000, 100, 200)
    assert result["bytes"] < 1.5 * 2**30


def test_a_session_of_nobody_in_time_ends() -> None:
    """Owners never arrive: the simulated clock runs out at once, not after a minute."""
    session = open_session(
        session_file(owners=names(2), points=3, min_owners=2, dimension=8, columns=COLUMNS)
    )
    outcome = Simulation(
        session,
        owners={names(2)[0]: Dataset.from_arrays("o", points_of(0, 4))},
        validation=Dataset.from_arrays("validation", points_of(1, 9)),
        seed_set=Dataset.from_arrays("seed-set", points_of(2, 9)),
    ).run()
    finish = outcome.finishes["curator"]
    assert isinstance(finish, Finish)
    assert finish.code is ExitCode.TIMEOUT
    assert outcome.seconds == pytest.approx(60.0, abs=0.1)
    assert outcome.delivered is None
