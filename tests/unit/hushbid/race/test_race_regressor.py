"""Private linear regression, by products or a sketch: its accuracy, guarantees, and refusals."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from hushbid.lab.experiments.regression import adassp
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.space.lsh import AsymmetricFamily
from hushbid.race import PoorModelWarning, least_points
from hushbid.race.enough import MOST_FEATURES, SURE, Method
from hushbid.race.marginals import measure_marginals
from hushbid.race.reference import _Model, in_ball
from hushbid.race.regressor import RaceRegressor
from hushbid.race.surrogate import SurrogateLoss

POINTS, HELD_OUT, FEATURES = 100_000, 10_000, 8

NEGATIVE = 0
"""A seed whose first noise on a size is below -2."""

Array = npt.NDArray[np.float64]


def features_of(kind: str, generator: np.random.Generator) -> tuple[Array, float, float]:
    """Features, and bounds of all of them."""
    shape = (POINTS + HELD_OUT, FEATURES)
    match kind:
        case "normal":
            return np.clip(generator.standard_normal(shape), -4.0, 4.0), -4.0, 4.0
        case "correlated":
            mixed = generator.standard_normal(shape) @ generator.standard_normal((FEATURES, FEATURES)) / 3.0
            return np.clip(mixed, -4.0, 4.0), -4.0, 4.0
        case "box":
            return generator.uniform(-1.0, 1.0, shape), -1.0, 1.0
        case "skewed":
            return np.clip(generator.exponential(size=shape), 0.0, 8.0), 0.0, 8.0
        case "binary":
            return (generator.random(shape) < np.linspace(0.1, 0.5, FEATURES)).astype(np.float64), 0.0, 1.0
    raise AssertionError(kind)


def regressor(**parameters: Any) -> RaceRegressor:
    defaults: dict[str, Any] = {
        "lower": -4.0,
        "upper": 4.0,
        "target_lower": -8.0,
        "target_upper": 8.0,
        "epsilon": 1.0,
        "neighbours": "add-remove-one",
        "random_state": 0,
        "noise": partial(SimulatedNoise, 0, "test"),
    }
    return RaceRegressor(**(defaults | parameters))


def small(points: int = 400, features: int = 2, seed: int = 0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (points, features))
    return X, X.sum(axis=1) + 0.3 * generator.standard_normal(points)


@pytest.mark.parametrize(
    ("kind", "neighbours", "method"),
    [
        ("normal", "add-remove-one", "sketch"),
        ("normal", "substitute-one", "sketch"),
        pytest.param("correlated", "add-remove-one", "sketch", marks=pytest.mark.slow),
        pytest.param("box", "add-remove-one", "sketch", marks=pytest.mark.slow),
        ("skewed", "add-remove-one", "sketch"),
        pytest.param("binary", "add-remove-one", "sketch", marks=pytest.mark.slow),
        *((kind, "add-remove-one", "auto") for kind in ("normal", "correlated", "box", "skewed", "binary")),
        ("normal", "substitute-one", "auto"),
    ],
)
def test_a_linear_model_of_8_features_is_recovered_at_epsilon_1(
    kind: str, neighbours: str, method: str
) -> None:
    generator = np.random.default_rng(1)
    X, lower, upper = features_of(kind, generator)
    signal = X @ generator.standard_normal(FEATURES)
    y = 3.0 + signal + 0.65 * signal.std() * generator.standard_normal(len(X))
    bound = float(np.ceil(np.abs(y).max()))
    model = regressor(
        lower=lower,
        upper=upper,
        target_lower=-bound,
        target_upper=bound,
        neighbours=neighbours,
        method=method,
    ).fit(X[:POINTS], y[:POINTS])
    assert model.model_ == ("sketch" if method == "sketch" else "moments")
    exact = LinearRegression().fit(X[:POINTS], y[:POINTS])
    held_out = X[POINTS:], y[POINTS:]
    assert model.score(*held_out) >= 0.9 * exact.score(*held_out)
    assert model.privacy_ is not None
    assert model.privacy_.epsilon <= 1.0 + 1e-12
    assert model.privacy_.delta == 0.0


def test_without_a_reference_the_same_release_says_next_to_nothing() -> None:
    generator = np.random.default_rng(1)
    X = features_of("normal", generator)[0][:40_000]
    y = X.sum(axis=1) / 3.0 + 0.5 * generator.standard_normal(len(X))
    fits = [regressor(method="sketch", assisted=assisted).fit(X, y).score(X, y) for assisted in (True, False)]
    assert fits[0] > 0.7
    assert fits[1] < 0.5


def test_the_loss_is_unbiased_over_hash_functions_whatever_points_are_the_reference() -> None:
    # The mean over 400 sketches of 20 rows is within 4 standard errors: false positives, 1 in 15,000.
    generator = np.random.default_rng(2)
    points = in_ball(0.4 * generator.exponential(size=(500, 3)) - 0.3)
    reference_points = in_ball(0.3 * generator.standard_normal((500, 3)))
    query = np.array([0.5, -0.2, -1.0])
    length = float(np.linalg.norm(query))
    exact = float(np.mean(np.arcsin(points @ query / length) ** 2)) * length**2
    plain, assisted = [], []
    for seed in range(400):
        family = AsymmetricFamily(rows=20, width=4, lower=[-1.0] * 3, upper=1.0, seed=seed, power=2)
        shares, expected = (
            np.stack([(family.hash(given) == cell).mean(axis=0) for cell in range(4)], axis=1)
            for given in (points, reference_points)
        )
        plain.append(SurrogateLoss(family, shares, None, 1.0)(query[:-1]))
        assisted.append(SurrogateLoss(family, shares - expected, reference_points, 1.0)(query[:-1]))
    for losses in (plain, assisted):
        assert abs(np.mean(losses) - exact) < 4.0 * np.std(losses) / math.sqrt(len(losses))
    assert np.std(assisted) < 0.5 * np.std(plain)


def test_derivatives_of_cell_shares_are_what_differences_come_to() -> None:
    # Shares of 8,192 points move in steps; differences over 0.4 are exact to about 0.02.
    generator = np.random.default_rng(3)
    marginals, _ = measure_marginals(generator.uniform(-1.0, 1.0, (5_000, 4)), 33, None, None)
    family = AsymmetricFamily(rows=15, width=4, lower=[-1.0] * 4, upper=1.0, seed=0, power=2)
    model = _Model(marginals, family, 0.4)
    at = model.start + 0.3 * generator.standard_normal(len(model.start))
    derivatives = model.share_derivatives(at)
    for index in range(len(at)):
        step = np.zeros(len(at))
        step[index] = 0.2
        after, before = (model.shares(model.hashed(moved)[1]) for moved in (at + step, at - step))
        assert derivatives[:, :, index] == pytest.approx((after - before) / 0.4, abs=0.03)


def test_marginals_without_noise_are_the_columns_own() -> None:
    generator = np.random.default_rng(4)
    points = np.column_stack([generator.uniform(-1.0, 1.0, 20_000), generator.random(20_000) < 0.3]) * 1.0
    marginals, privacy = measure_marginals(points, 65, None, None)
    assert privacy is None
    assert marginals.means == pytest.approx(points.mean(axis=0), abs=0.002)
    assert marginals.deviations == pytest.approx(points.std(axis=0), abs=0.002)
    deciles = np.linspace(0.1, 0.9, 9)
    found = marginals.quantiles(deciles[:, None])[:, 0]
    assert found == pytest.approx(np.quantile(points[:, 0], deciles), abs=0.01)


@pytest.mark.parametrize(("neighbours", "changed"), [("add-remove-one", 1), ("substitute-one", 2)])
def test_noise_is_for_what_a_record_changes(neighbours: str, changed: int) -> None:
    X, y = small()
    model = regressor(neighbours=neighbours, rows=40, epsilon=100.0).fit(X, y)
    privacy = model.privacy_
    assert privacy is not None
    assert privacy.neighbours == neighbours
    # One cell, or two, of each of 3 histograms and of each of 40 rows; sizes have a share of their own.
    least = (changed * 3 / 20.0, changed * 40 / 80.0)
    for draw, scale in zip(privacy.cells, least, strict=True):
        assert draw.distribution == "discrete-laplace"
        assert scale <= draw.scale < 1.5 * scale
    assert len(privacy.sizes) == (2 if changed == 1 else 0)
    spent = sum(
        changes / draw.scale for changes, draw in zip((changed * 3, changed * 40), privacy.cells, strict=True)
    )
    spent += sum(changed / draw.scale for draw in privacy.sizes)
    assert spent == pytest.approx(100.0)
    assert privacy.epsilon == pytest.approx(100.0)


def test_the_same_seeds_give_the_same_model_and_others_another() -> None:
    X, y = small()
    one, same, other = (regressor(epsilon=20.0, rows=20, random_state=seed).fit(X, y) for seed in (5, 5, 6))
    assert one.coef_.tobytes() == same.coef_.tobytes()
    assert one.intercept_ == same.intercept_
    assert one.coef_.tobytes() != other.coef_.tobytes()


def test_noise_that_protects_is_the_default() -> None:
    X, y = small(points=50)
    model = RaceRegressor(
        lower=-1, upper=1, target_lower=-4, target_upper=4, epsilon=100.0, neighbours="substitute-one", rows=8
    ).fit(X, y)
    assert model.privacy_ is not None
    assert model.privacy_.protects


def test_more_rows_are_made_where_there_is_less_noise() -> None:
    X, y = small()
    with pytest.warns(PoorModelWarning, match="may be worse than the mean"):
        rows = [regressor(epsilon=1.0, method="sketch").fit(X, y).sketch_.family.rows]
    rows += [regressor(epsilon=e, method="sketch").fit(X, y).sketch_.family.rows for e in (25.0, None)]
    assert rows == sorted(set(rows))


def test_rows_out_of_bounds_are_refused_or_clipped_and_counted() -> None:
    X, y = small()
    X[:3, 0] = 5.0
    y[2:4] = 50.0
    with pytest.raises(DataError, match="outside of the public bounds"):
        regressor(epsilon=100.0).fit(X, y)
    clipped = regressor(epsilon=100.0, rows=8, out_of_bounds="clip").fit(X, y)
    assert clipped.n_clipped_ == 4
    assert clipped.n_target_clipped_ == 2


@pytest.mark.parametrize(
    ("features", "target", "told", "advice"),
    [
        (0, 2, r"^The target of 2 of 400 rows lies outside", r"\(target_lower and target_upper\)"),
        (3, 0, r"^Features of 3 of 400 rows \(column 1\) lie outside", r"\(lower and upper\)"),
        (
            3, 2, r"^Features of 3 of 400 rows \(column 1\), and the target of 2, lie outside",
            r"\(lower and upper, target_lower and target_upper\)",
        ),
    ],
)  # fmt: skip
def test_an_error_says_whether_features_or_the_target_lie_out_of_bounds(
    features: int, target: int, told: str, advice: str
) -> None:
    X, y = small()
    X[:features, 1], y[:target] = 5.0, 50.0
    with pytest.raises(DataError, match=told) as error:
        regressor(noise=never).fit(X, y)
    assert re.search(advice, str(error.value.advice))


def test_columns_out_of_bounds_are_named_as_the_table_names_them() -> None:
    X, y = small(features=5)
    X[0, :4] = 5.0
    with pytest.raises(DataError, match=r"1 of 400 rows \(columns a, b, c and 1 more\)"):
        regressor(noise=never).fit(pd.DataFrame(X, columns=list("abcde")), y)


def test_fewer_points_than_noise_hides_are_refused() -> None:
    # With noise this large a size is negative half of the time; this seed's is.
    with pytest.raises(DataError, match="fewer"):
        regressor(epsilon=0.01, rows=4, noise=partial(SimulatedNoise, NEGATIVE, "test")).fit(*small(points=2))


# What cannot be better than the mean


def never() -> SimulatedNoise:
    raise AssertionError("Noise was drawn.")


@pytest.mark.parametrize(("method", "instead"), [("moments", "a delta above 0"), ("sketch", "AdaSSP")])
def test_a_public_number_of_points_that_is_too_small_is_refused_before_anything_is_spent(
    method: Method, instead: str
) -> None:
    least = least_points(2, 1.0, neighbours=Neighbours.SUBSTITUTE_ONE, method=method)
    X, y = small(points=least - 1)
    with pytest.raises(
        DataError, match=rf"no more than the mean below {least}.*Nothing was released.*{instead}"
    ):
        regressor(neighbours="substitute-one", method=method, noise=never).fit(X, y)
    regressor(neighbours="substitute-one", method=method).fit(*small(points=math.ceil(least * SURE)))
    regressor(neighbours="substitute-one", rows=10).fit(X, y)


def test_a_private_number_of_points_that_is_too_small_gives_the_mean_of_the_target() -> None:
    X, y = small(points=300, seed=1)
    with pytest.warns(PoorModelWarning, match="target's mean"):
        model = regressor(epsilon=1.0).fit(X, y + 3.0)
    assert model.privacy_ is not None
    assert 0.999 < model.privacy_.epsilon <= 1.0 + 1e-12
    # The sum is of the target less about its mean by the histogram: a record changes it by that much more.
    least, most = 2**15 / 0.8, 2**15 / 0.8 * (1.0 + abs(model.marginals_.means[-1]))
    assert least < model.privacy_.cells[1].scale < most
    assert (model.coef_ == 0.0).all()
    assert model.predict(X) == pytest.approx(np.full(len(X), 3.0), abs=0.5)
    assert model.trust_ == 0.0
    assert model.model_ == "mean"
    for method, name in (("moments", "products_"), ("sketch", "sketch_")):
        again = model.set_params(epsilon=100.0, method=method).fit(X, y)
        assert hasattr(again, name)
        assert again.model_ == method
        with pytest.warns(PoorModelWarning):
            assert not hasattr(again.set_params(epsilon=0.5).fit(X, y), name)


def test_fewest_points_grow_with_parameters_noise_and_what_a_record_changes() -> None:
    fewest = partial(least_points, neighbours=Neighbours.ADD_REMOVE_ONE, method="sketch")
    assert fewest(8, 1.0) == math.ceil(30 * 54 / 0.8)
    assert fewest(8, 0.1) == pytest.approx(10 * fewest(8, 1.0), abs=10)
    assert fewest(8, 1.0, neighbours=Neighbours.SUBSTITUTE_ONE) == 2 * fewest(8, 1.0)
    assert fewest(8, 1.0, marginals_share=0.6) == 2 * fewest(8, 1.0)
    fewest = partial(least_points, neighbours=Neighbours.ADD_REMOVE_ONE)
    assert fewest(20, 0.1) == pytest.approx(10 * fewest(20, 1.0), abs=10)
    assert fewest(20, 1.0, neighbours=Neighbours.SUBSTITUTE_ONE) == pytest.approx(2 * fewest(20, 1.0), abs=2)
    assert fewest(20, 1.0, delta=1e-6) < fewest(20, 1.0) / 3
    assert fewest(5, 1.0) < fewest(14, 1.0) < fewest(40, 1.0)


def test_more_features_than_a_reference_is_fitted_to_are_refused_before_anything_is_spent() -> None:
    X = np.zeros((100, MOST_FEATURES["sketch"] + 1))
    with pytest.raises(ConfigError, match=r"64 features are the most. Nothing was released.*AdaSSP"):
        regressor(method="sketch", noise=never).fit(X, np.zeros(100))
    X = np.zeros((3, MOST_FEATURES["moments"] + 1))
    with pytest.raises(ConfigError, match=r"1000 features are the most. Nothing was released"):
        regressor(noise=never).fit(X, np.zeros(3))


@pytest.mark.parametrize(
    "wrong",
    [
        {"neighbours": None},
        {"neighbours": "neither"},
        {"marginals_share": 0.0},
        {"marginals_share": 1.0},
        {"epsilon": -1.0},
        {"steps": 2},
        {"rows": 0},
        {"lower": 4.0},
        {"target_upper": -8.0},
        {"target_upper": math.nan},
        {"out_of_bounds": "drop"},
        {"method": "adassp"},
        {"method": "moments", "rows": 8},
        {"method": "moments", "assisted": False},
        {"delta": -1e-6},
        {"delta": 1.0},
        {"delta": 1 / 400},
        {"epsilon": 1e-30},
    ],
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        regressor(**wrong).fit(*small())


def test_adassp_comes_to_least_squares_as_noise_goes() -> None:
    X, y = small(points=5_000)
    X, y = X / 2.0, np.clip(y / 4.0, -1.0, 1.0)
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    found = [
        adassp(X, y, epsilon=epsilon, delta=1e-6, generator=np.random.default_rng(0))
        for epsilon in (0.01, 1000.0)
    ]
    assert found[1] == pytest.approx(exact, abs=0.01)
    assert np.abs(found[0] - exact).max() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [{"assisted": False, "rows": 32}, {"rows": 32}, {}], ids=["plain", "assisted", "moments"]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::hushbid.race.PoorModelWarning")
def test_it_is_an_estimator_of_scikit_learn(model: dict[str, Any]) -> None:
    check_estimator(
        regressor(
            lower=-10.0,
            upper=10.0,
            target_lower=-10.0,
            target_upper=10.0,
            epsilon=100_000.0,
            neighbours="substitute-one",
            out_of_bounds="clip",
            **model,
        )
    )
