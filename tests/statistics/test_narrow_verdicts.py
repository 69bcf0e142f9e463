"""A validation set that is narrow within right bounds: a rehearsal's verdict beside the outcome."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from hushbid.cluster.evaluation import uniform
from hushbid.consumer.appraisal import Judge
from hushbid.consumer.verdict import Verdict
from hushbid.plan.verdict import Rehearsing, Sets
from hushbid.protocol.data import Dataset
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation
from tests.simulation.harness import names, session_file

CLUSTERS: Final = 5
OWNERS: Final = names(3)

Points = npt.NDArray[np.float64]


def session_of(epsilon: float, points: int, columns: int, gamma: float) -> Session:
    release = {"mechanism": "filtered-gaussian", "epsilon": epsilon}
    file = session_file(
        owners=OWNERS,
        points=points,
        dimension=140,
        columns=columns,
        summary=release | {"neighbours": "add-remove-one"},
        target=release | {"neighbours": "substitute-one"},
        batch=max(1, points // 50),
        seed_weight=0.1,
        jitter=25.0,
    )
    return open_session(
        file.model_copy(update={"features": file.features.model_copy(update={"gamma": gamma})})
    )


class World:
    """Clusters in the unit cube, the first of which is wanted."""

    def __init__(self, columns: int, deviation: float) -> None:
        self.generator = np.random.default_rng(0)
        self.centres = self.generator.uniform(0.15, 0.85, (CLUSTERS, columns))
        self.deviation = deviation

    def of(self, clusters: npt.NDArray[np.int64]) -> Points:
        rows = self.centres[clusters]
        return np.clip(rows + self.generator.normal(0.0, self.deviation, rows.shape), 0.0, 1.0)

    def wanted(self, count: int) -> Points:
        return self.of(np.zeros(count, dtype=np.int64))

    def mixed(self, count: int, share: float) -> Points:
        others = self.generator.integers(1, CLUSTERS, count)
        others[: round(share * count)] = 0
        return self.of(self.generator.permutation(others))


def came_out(session: Session, data: dict[str, Dataset], validation: Points, seed_set: Points) -> float:
    """MMD² of the session's purchase over a uniform choice's, both with weights."""
    outcome = Simulation(
        session,
        owners=data,
        validation=Dataset.from_arrays("validation", validation),
        seed_set=Dataset.from_arrays("seeds", seed_set),
    ).run()
    assert outcome.delivered is not None
    bought = np.stack(
        [each.candidate.point for each in outcome.delivered.delivered if each.candidate is not None]
    )
    drawn = uniform({name: len(rows) for name, rows in data.items()}, len(bought), np.random.default_rng(0))
    others = np.stack([data[name].features[row] for name, row in drawn])
    scale = session.space.scale
    judge = Judge(scale(validation), session.space.gamma)
    found = [judge.judge(scale(each), [None] * len(each)).weighted for each in (bought, others)]
    first, second = (each.quality.mmd2 for each in found if each is not None)
    assert first is not None
    assert second
    return first / second


def verdict_of(session: Session, validation: Points, seed_set: Points, *, drawn: bool) -> Verdict:
    sets = Sets(Dataset.from_arrays("wanted", validation), Dataset.from_arrays("seeds", seed_set), drawn)
    return Rehearsing(anyway=True).verdict(session, lambda: sets)


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [False, True], ids=["related", "drawn"])
@pytest.mark.parametrize(
    ("epsilon", "points", "m", "columns", "deviation", "share", "gamma"),
    [
        (0.3, 300, 300, 4, 0.02, 0.1, 1.0),
        (1.0, 300, 300, 4, 0.02, 0.1, 1.0),
        (3.0, 300, 300, 4, 0.02, 0.1, 1.0),
        (1.0, 300, 300, 4, 0.02, 0.5, 1.0),
        (0.3, 300, 1000, 4, 0.01, 0.05, 2.0),
        (1.0, 100, 100, 2, 0.02, 0.2, 3.0),
        (3.0, 100, 50, 8, 0.02, 0.2, 0.5),
        (1.0, 300, 300, 12, 0.01, 0.05, 0.5),
    ],
)
def test_a_narrow_set_is_not_refused_where_it_comes_out_better_than_at_random(
    epsilon: float,
    points: int,
    m: int,
    columns: int,
    deviation: float,
    share: float,
    gamma: float,
    drawn: bool,
) -> None:
    """The noise is seeded: the result is the same each time."""
    world, session = World(columns, deviation), session_of(epsilon, points, columns, gamma)
    validation, related = world.wanted(m), world.mixed(100, 0.2)
    seed_set = world.generator.random((100, columns)) if drawn else related
    owners = {name: Dataset.from_arrays(name, world.mixed(3 * points, share)) for name in OWNERS}
    verdict = verdict_of(session, validation, seed_set, drawn=drawn)
    assert verdict.rehearsal is not None
    assert verdict.rehearsal.narrow
    assert came_out(session, owners, validation, seed_set) < 1.0
    assert verdict.word != "hopeless"
    assert not (drawn and verdict.word == "good"), "nothing shows that the bounds are right"
