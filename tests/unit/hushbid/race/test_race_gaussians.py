"""Gaussian classes from counts of projections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hushbid.protocol.space.lsh import L2Family
from hushbid.race import count_cells
from hushbid.race.gaussians import GaussianPrior, Gaussians, Scores, fit_own, fit_shared


def test_gaussian_classes_are_found_from_counts_of_their_projections() -> None:
    rng = np.random.default_rng(0)
    factors = np.tril(rng.normal(size=(2, 3, 3))) * 0.3 + np.eye(3)
    means = np.array([[0.0, 1.0, -1.0], [0.5, -0.5, 0.0]])
    family = L2Family(rows=120, width=200, lower=[-9.0] * 3, upper=9.0, seed=0, bandwidth=1.0)
    points = [
        mean + rng.normal(size=(60_000, 3)) @ factor.T for mean, factor in zip(means, factors, strict=True)
    ]
    counts = [count_cells(family, np.clip(part, -9.0, 9.0)) for part in points]
    prior = GaussianPrior(np.zeros((2, 3)), 2.0, np.eye(3), 1.0)
    shared, error = fit_shared(family, counts, [6e4, 6e4], 0.0, prior)
    own = fit_own(family, counts, [6e4, 6e4], 0.0, shared)
    assert own.means == pytest.approx(means, abs=0.02)
    covariances, found = (factor @ factor.transpose(0, 2, 1) for factor in (factors, own.factors))
    assert found == pytest.approx(covariances, abs=0.06)
    assert np.linalg.eigvalsh(error).min() > 0.0
    # A mean of both, as far as one factor can be.
    assert shared.factors[0] == pytest.approx(factors.mean(axis=0), abs=0.4)


def test_scores_are_log_densities_but_for_a_constant() -> None:
    rng = np.random.default_rng(0)
    factors = np.tril(rng.normal(size=(2, 3, 3))) * 0.2 + np.eye(3)
    means, x = rng.normal(size=(2, 3)), rng.normal(size=(50, 3))
    scores = Scores(Gaussians(means, factors), 12.0)(x)
    exact = np.stack(
        [
            multivariate_normal(mean, factor @ factor.T).logpdf(x)
            for mean, factor in zip(means, factors, strict=True)
        ],
        axis=1,
    )
    assert scores - exact == pytest.approx(np.full((50, 2), 1.5 * math.log(2.0 * math.pi)), abs=0.02)
