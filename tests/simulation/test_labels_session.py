"""Whole sessions whose choice uses labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushbid.cluster.evaluation import greedy
from hushbid.protocol.data import Dataset, read_attributes
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.errors import DataError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.session.points import hash_dataset, hash_seed_set
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Crash, Simulation, SimulationOutcome
from tests.simulation.harness import names, session_file

OWNERS, POINTS, COLUMNS, WANTED = 3, 12, 5, "wanted"
LABELS: dict[str, Any] = {"classes": ["other", WANTED], "similarity": 0.05}
RNG = np.random.default_rng(3)


def dataset(name: str, rows: int, wanted: float) -> Dataset:
    labels = np.where(RNG.random(rows) < wanted, WANTED, "other")
    return Dataset.from_arrays(name, RNG.random((rows, COLUMNS)), labels)


DATA = {name: dataset(name, 20, 0.4) for name in names(OWNERS)}
VALIDATION = dataset("validation", 10, 1.1)
SEED_SET = Dataset.from_arrays("seed-set", RNG.random((6, COLUMNS)))


def session(rule: str, labels: dict[str, Any] | None = LABELS) -> Session:
    owners = names(OWNERS)
    return open_session(
        session_file(owners=owners, points=POINTS, rule=rule, dimension=32, columns=COLUMNS, labels=labels)
    )


def simulated(opened: Session, data: dict[str, Dataset] | None = None, **also: Any) -> SimulationOutcome:
    given: dict[str, Any] = {"owners": data or DATA, "validation": VALIDATION, "seed_set": SEED_SET} | also
    return Simulation(opened, **given).run()


def bought(outcome: SimulationOutcome) -> list[tuple[str, bytes]]:
    assert outcome.delivered is not None
    delivered = outcome.delivered.delivered
    return [
        (entry.owner, np.asarray(entry.candidate.point).tobytes()) for entry in delivered if entry.candidate
    ]


def share_wanted(outcome: SimulationOutcome) -> float:
    assert outcome.delivered is not None
    labels = [
        read_attributes(entry.candidate.attributes).label
        for entry in outcome.delivered.delivered
        if entry.candidate
    ]
    return float(np.mean([label == WANTED for label in labels]))


def greedily(opened: Session) -> list[tuple[str, bytes]]:
    feature_map = opened.public_map
    assert feature_map is not None
    chosen = greedy(
        {name: hash_dataset(feature_map, data) for name, data in DATA.items()},
        hash_dataset(feature_map, VALIDATION),
        hash_seed_set(feature_map, SEED_SET.features),
        POINTS,
        opened.space.norm_bound,
        opened,
    )
    return [(name, DATA[name].features[row].tobytes()) for name, row in chosen]


@pytest.mark.parametrize("rule", ["ask-all", "winner-only"])
def test_without_noise_a_session_is_the_greedy_choice_by_features_and_labels(rule: str) -> None:
    opened = session(rule)
    assert bought(simulated(opened)) == greedily(opened)


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"logistic"}))  # which takes far more owners
def test_what_is_wanted_is_bought_under_every_rule(rule: str) -> None:
    by_labels = share_wanted(simulated(session(rule)))
    by_features = share_wanted(simulated(session(rule, None)))
    assert by_labels > by_features
    assert by_labels > 0.9 or rule == "published"


def test_a_session_of_amounts_buys_those_that_are_wanted() -> None:
    def of(name: str, low: float, high: float, rows: int) -> Dataset:
        rng = np.random.default_rng(len(name))
        return Dataset.from_arrays(name, rng.random((rows, COLUMNS)), rng.uniform(low, high, rows))

    data = {name: of(name, 0.0, 100.0, 40) for name in names(OWNERS)}
    labels = {"lower": 0.0, "upper": 100.0, "similarity": 0.001}
    outcome = simulated(session("sealed", labels), data, validation=of("validation", 80.0, 100.0, 20))
    assert outcome.delivered is not None
    amounts = [
        read_attributes(each.candidate.attributes).label
        for each in outcome.delivered.delivered
        if each.candidate
    ]
    assert np.mean([float(amount) for amount in amounts if amount is not None]) > 75.0


@pytest.mark.parametrize("party", ["curator", "consumer", "owner-0"])
def test_a_party_that_is_started_again_goes_on_with_the_same_choice(party: str) -> None:
    opened = session("sealed")
    assert bought(simulated(opened, crashes=[Crash(party, 12, 0)])) == bought(simulated(opened))


class Lying(Dataset):
    """An owner's rows, each handed over with the wanted label, whatever label was scored."""

    def attributes_of(self, rows: Sequence[int]) -> list[bytes]:
        told = (Attributes(self.told(row), None) for row in rows)
        return [pack_attributes(each, self.attribute_length) for each in told]

    def told(self, row: int) -> str | None:
        return "other"


class Silent(Lying):
    def told(self, row: int) -> str | None:
        return None


@pytest.mark.parametrize("kind", [Lying, Silent])
def test_a_point_whose_label_is_not_the_one_it_was_bid_with_is_disputed(kind: type[Lying]) -> None:
    honest = DATA["owner-0"]
    liar = kind(honest.name, honest.features, honest.labels)
    outcome = simulated(session("sealed"), DATA | {"owner-0": liar})
    assert outcome.delivered is not None
    of_liar = [entry for entry in outcome.delivered.delivered if entry.owner == "owner-0"]
    assert of_liar
    assert all(entry.dispute for entry in of_liar)
    others = [entry.dispute for entry in outcome.delivered.delivered if entry.owner != "owner-0"]
    assert not any(others)
    # A curator that sees points refuses them itself.
    seen = simulated(session("ask-all"), DATA | {"owner-0": liar})
    assert all(owner != "owner-0" for owner, _ in bought(seen))
    # A blind curator's consumer finds such a box void, and buys on.
    blind = simulated(session("blind"), DATA | {"owner-0": liar})
    assert blind.delivered is not None
    assert all(entry.dispute for entry in blind.delivered.delivered if entry.owner == "owner-0")


@pytest.mark.parametrize("rule", ["sealed", "blind", "ask-all"])
def test_parties_without_the_labels_of_the_choice_are_refused_before_anything_is_sent(rule: str) -> None:
    frames: list[Any] = []
    bare = Dataset.from_arrays("owner-0", DATA["owner-0"].features)
    another = replace(DATA["owner-0"], labels=np.full(20, "unheard-of"))
    for data in (bare, another):
        with pytest.raises(DataError, match="label") as caught:
            simulated(session(rule), DATA | {"owner-0": data}, tap=lambda *frame: frames.append(frame))
        assert "unheard-of" not in str(caught.value)
    unlabelled = Dataset.from_arrays("validation", VALIDATION.features)
    with pytest.raises(DataError, match="validation has no labels"):
        simulated(session(rule), validation=unlabelled, tap=lambda *frame: frames.append(frame))
    assert not frames
