"""The distance of the seed set from D_v, beside its distance by chance."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.consumer.events import CheckPurchases, PurchasesChecked
from hushbid.consumer.party import consumer_party
from hushbid.consumer.seed_distance import FAR_RADII, SeedDistance, seed_distance
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ReplayDivergence
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Prior
from hushbid.protocol.session.session import open_session
from hushbid.protocol.space.features.paired import PairedSpace
from hushbid.protocol.space.mmd import MOST_COMPARED, at_even_distances, mmd2
from hushbid.transcripts.recompute import CLOSE, Recomputation
from tests.simulation.harness import names, session_file

GAMMA = 2.0


def test_sets_of_one_distribution_differ_by_chance_alone() -> None:
    rng = np.random.default_rng(0)
    found = [seed_distance(rng.random((40, 3)), rng.random((25, 3)), GAMMA) for _ in range(200)]
    means = np.mean([[each.mmd2, each.by_chance] for each in found], axis=0)
    assert means[0] == pytest.approx(means[1], rel=0.05)
    assert not [each for each in found if each.far]


def test_it_is_the_biased_mmd2() -> None:
    rng = np.random.default_rng(1)
    validation, seeds = rng.random((30, 3)), 0.5 * rng.random((20, 3))
    assert seed_distance(validation, seeds, GAMMA).mmd2 == pytest.approx(
        mmd2(validation, seeds, GAMMA), abs=1e-12
    )


def test_radii_are_the_distance_of_mean_embeddings_by_the_radius_that_releases_clip_to() -> None:
    rng = np.random.default_rng(2)
    validation, seeds = 0.4 * rng.random((600, 3)), rng.random((400, 3))
    found = seed_distance(validation, seeds, GAMMA)
    space = PairedSpace(dimension=4096, gamma=GAMMA, columns=3, lower=0.0, upper=1.0)
    hashed = [space.map(5).hash(points).astype(np.float64) for points in (validation, seeds)]
    prior = Prior.of_total(hashed[1].sum(axis=0).astype(np.int64), len(seeds))
    apart = float(np.linalg.norm(hashed[0].mean(axis=0) - hashed[1].mean(axis=0)))
    assert found.radii == pytest.approx(apart / prior.radius, rel=0.03)
    assert found.radii > FAR_RADII
    assert found.far


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1), (2, 2)], ids=str)
def test_sets_of_single_points_have_a_figure_too(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    validation, seeds = (rng.random((count, 3)) for count in sizes)
    found = seed_distance(validation, seeds, GAMMA)
    assert np.isfinite([found.mmd2, found.by_chance, found.radii]).all()


def test_equal_points_are_no_distance_apart() -> None:
    found = seed_distance(np.full((4, 3), 0.5), np.full((3, 3), 0.5), GAMMA)
    assert (found.mmd2, found.by_chance, found.radii, found.far) == (0.0, 0.0, 0.0, False)


def test_what_a_few_points_differ_by_is_not_called_far() -> None:
    assert not SeedDistance(mmd2=0.5, by_chance=0.3, radii=0.8).far


def test_of_large_sets_a_thousand_rows_are_compared_at_even_distances() -> None:
    rng = np.random.default_rng(4)
    validation, seeds = rng.random((3 * MOST_COMPARED, 2)), 0.5 * rng.random((2 * MOST_COMPARED + 1, 2))
    found, of_all = (seed_distance(validation, seeds, GAMMA, most=most) for most in (MOST_COMPARED, 10**6))
    assert found == seed_distance(validation[::3], at_even_distances(seeds), GAMMA), (
        "and not by their squares"
    )
    assert found != of_all
    assert found.radii == pytest.approx(of_all.radii, rel=0.1)


@pytest.mark.parametrize("rows", [20, MOST_COMPARED + 500])
def test_a_record_of_before_which_compared_all_rows_is_still_found_right(rows: int) -> None:
    rng = np.random.default_rng(5)
    session = open_session(session_file(owners=names(1), points=1, columns=2))
    sets = [Dataset.from_arrays(name, rng.random((rows, 2))) for name in ("validation", "seeds")]
    _, numerics = consumer_party(
        session,
        identity=None,
        noise=SimulatedNoise(0, "consumer"),
        validation=sets[0],
        seed_set=sets[1],
        store=lambda _: None,
    )
    again = CheckPurchases((), last=True)
    found = Recomputation(numerics, boxes_gone=False)
    recorded = numerics.seed_distance(most=10**6)
    found(again, PurchasesChecked((), None, recorded))
    assert found.largest["seed_distance"] < CLOSE
    wrong = SeedDistance(recorded.mmd2 + 1e-3, recorded.by_chance, recorded.radii)
    with pytest.raises(ReplayDivergence):
        found(again, PurchasesChecked((), None, wrong))


def test_rows_at_even_distances_are_from_all_of_a_set() -> None:
    rows = np.arange(10)
    assert [at_even_distances(rows, most).tolist() for most in (1, 3, 4, 10, 11)] == [
        [0],
        [0, 3, 6],
        [0, 2, 5, 7],
        list(range(10)),
        list(range(10)),
    ]


def test_it_travels_as_json_and_through_a_transcript() -> None:
    found = SeedDistance(mmd2=0.4, by_chance=0.01, radii=0.9)
    assert found.as_json() == {"mmd2": 0.4, "by_chance": 0.01, "radii": 0.9, "far": True}
    assert SeedDistance.from_json(found.as_json()) == found
    item = PurchasesChecked((), None, found).item()
    assert item.public == {}, "it is a function of D_v"
    assert PurchasesChecked.restored(item.private).seed_distance == found
    earlier = PurchasesChecked((), None).item()
    assert "seed_distance" not in earlier.private
    assert PurchasesChecked.restored(earlier.private).seed_distance is None
