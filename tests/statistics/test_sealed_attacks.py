"""Why a curator of `sealed` has neither the map nor the seed set (docs/errata.md): two attacks that work.

With W and b, φ reveals its point, though the paper calls it a hash: each circle gives an angle Wx + b, up to
whole turns, and few columns leave few turns to try. With raw points beside their φ, W and b can be solved
for, frequency by frequency: close points differ by less than half a turn.

Each attack succeeds in all its cases with what it needs, and without it does no better than guessing. Cases
have fixed seeds; nothing here fails by chance.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from hushbid.protocol.space.features import FourierMap, feature_map
from hushbid.protocol.space.grid import Features

COLUMNS = 3
DIMENSION = 64
GAMMA = 0.5
"""Of the kernel on points in the unit cube: one turn is some six standard deviations of Wx."""
SEEDS = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
TURN = 2.0 * np.pi
EXACT = 1e-2
"""A coordinate that is known so well is known: the cube has side 1."""
USELESS = 0.15
"""A guess at random is off by a third on average, a guess at the centre by a quarter."""

Points = npt.NDArray[np.float64]


def the_map(seed: bytes) -> FourierMap:
    made = feature_map(
        "paired", seed=seed, dimension=DIMENSION, gamma=GAMMA, lower=0.0, upper=1.0, columns=COLUMNS
    )
    assert isinstance(made, FourierMap)
    return made


def frequencies_of(known: FourierMap) -> tuple[Points, Points]:
    """W of shape (d/2, columns), and b, of a known map."""
    return known.frequencies / known.space.range, known.phases


def angles_of(features: Features) -> Points:
    """Wx + b up to whole turns, shape (n, d/2)."""
    half = features.shape[1] // 2
    sines, cosines = features[:, half:].astype(float), features[:, :half].astype(float)
    return np.asarray(np.arctan2(sines, cosines), dtype=np.float64)


def wrapped(angles: Points) -> Points:
    return np.asarray(np.mod(angles + np.pi, TURN) - np.pi)


def invert(features: Features, frequencies: Points, phases: Points) -> Points:
    """The points that have these features under a map, by the map's W and b.

    Whole turns of the first few angles are tried out; those that explain all other angles are right.
    """
    tried = COLUMNS
    order = np.argsort(np.abs(frequencies).sum(axis=1))[::-1][:tried]
    inverse = np.linalg.pinv(frequencies[order])
    reach = int(np.ceil(np.abs(frequencies[order]).sum(axis=1).max() / TURN)) + 1
    turns = np.array(list(itertools.product(range(-reach, reach + 1), repeat=tried))) * TURN
    found = []
    for angles in angles_of(features):
        base = wrapped(angles - phases)
        candidates = (base[order] + turns) @ inverse.T
        inside = candidates[((candidates > -0.05) & (candidates < 1.05)).all(axis=1)]
        if not len(inside):
            found.append(np.full(COLUMNS, 0.5))
            continue
        misfit = np.square(wrapped(inside @ frequencies.T - base)).sum(axis=1)
        best = inside[int(misfit.argmin())]
        # The whole number of turns of every angle is known now: least squares over all of them.
        turned = best @ frequencies.T
        unwrapped = turned + wrapped(base - turned)
        found.append(np.linalg.lstsq(frequencies, unwrapped, rcond=None)[0])
    return np.array(found)


def recover_map(points: Points, features: Features) -> tuple[Points, Points]:
    """W and b, from raw points beside their features.

    Differences to the nearest neighbours are short, so that their angles differ by less than half a turn and
    W follows from a linear system; then b from what is left.
    """
    angles = angles_of(features)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1 : COLUMNS + 2]
    pairs = np.array([(row, int(other)) for row, others in enumerate(nearest) for other in others])
    steps = points[pairs[:, 0]] - points[pairs[:, 1]]
    moved = wrapped(angles[pairs[:, 0]] - angles[pairs[:, 1]])
    frequencies = np.linalg.lstsq(steps, moved, rcond=None)[0].T
    left = angles - points @ frequencies.T
    phases = np.mod(np.arctan2(np.sin(left).mean(axis=0), np.cos(left).mean(axis=0)), TURN)
    return frequencies, phases


def errors(found: Points, points: Points) -> Points:
    """Mean absolute error of each point's coordinates."""
    return np.asarray(np.abs(np.clip(found, 0.0, 1.0) - points).mean(axis=1))


def drawn(seed: int, count: int) -> Points:
    return np.random.default_rng(seed).random((count, COLUMNS))


def test_with_the_map_a_point_can_be_read_off_its_features() -> None:
    for number, seed in enumerate(SEEDS):
        secret = the_map(seed)
        points = drawn(number, 20)
        found = invert(secret.hash(points), *frequencies_of(secret))
        assert np.abs(found - points).max() < EXACT


def test_without_the_map_the_same_procedure_does_no_better_than_a_guess() -> None:
    for number, seed in enumerate(SEEDS):
        secret, wrong = the_map(seed), the_map(bytes([number]) * 31 + b"!")
        points = drawn(number, 20)
        found = invert(secret.hash(points), *frequencies_of(wrong))
        assert errors(found, points).mean() > USELESS
        centre = errors(np.full_like(points, 0.5), points).mean()
        assert errors(found, points).mean() > 0.8 * centre


def test_with_the_seed_set_the_map_can_be_solved_for() -> None:
    for number, seed in enumerate(SEEDS):
        secret = the_map(seed)
        seed_set = drawn(100 + number, 200)
        frequencies, phases = recover_map(seed_set, secret.hash(seed_set))
        true_frequencies, true_phases = frequencies_of(secret)
        assert np.abs(frequencies - true_frequencies).max() < EXACT
        assert np.abs(wrapped(phases - true_phases)).max() < EXACT
        # And with it every point that the curator was handed.
        points = drawn(number, 20)
        assert np.abs(invert(secret.hash(points), frequencies, phases) - points).max() < 2 * EXACT


def test_with_features_alone_the_map_cannot_be_solved_for() -> None:
    for number, seed in enumerate(SEEDS):
        secret = the_map(seed)
        seed_set = drawn(100 + number, 200)
        # What a curator of `sealed` has: φ of unknown points, beside which it can only put guesses.
        guessed = drawn(200 + number, 200)
        frequencies, phases = recover_map(guessed, secret.hash(seed_set))
        true_frequencies, _ = frequencies_of(secret)
        spread = np.abs(true_frequencies).mean()
        assert np.abs(frequencies - true_frequencies).mean() > 0.5 * spread
        points = drawn(number, 20)
        assert errors(invert(secret.hash(points), frequencies, phases), points).mean() > USELESS


def test_pairwise_distances_are_what_features_do_tell() -> None:
    """As the rule's own description admits: ⟨φ(x), φ(y)⟩ is near the kernel, with the map or without."""
    secret = the_map(SEEDS[0])
    points = drawn(7, 40)
    inner = secret.hash(points).astype(float) @ secret.hash(points).astype(float).T / 2.0**30
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    # An estimate of d/2 = 32 cosines has standard deviation 0.18 at most, here far less: points are near.
    assert np.abs(inner - np.exp(-GAMMA * squared)).max() < 0.35
    assert np.corrcoef(inner.ravel(), np.exp(-GAMMA * squared).ravel())[0, 1] > 0.9


def test_cells_of_a_secret_map_tell_how_far_from_the_middle_a_point_lies() -> None:
    """Why `lsh` is not preferable under `sealed`: its cells are counted from the edge of the bounds."""
    points = np.random.default_rng(4).uniform(0.0, 1.0, (300, 2))
    secret = feature_map(
        "lsh", seed=bytes(range(32)), dimension=1024, gamma=4.0, lower=0.0, upper=1.0, columns=2
    )
    cells = secret.hash(points).reshape(300, 256, 4).argmax(axis=2)
    at_the_edge = np.isin(cells, (0, 3)).mean(axis=1)
    distances = np.linalg.norm(points - 0.5, axis=1)
    assert spearmanr(at_the_edge, distances).statistic > 0.8
