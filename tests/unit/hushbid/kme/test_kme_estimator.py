"""`KernelMeanRelease`: its charges, its sums, its refusals, and scikit-learn's requirements."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.utils.estimator_checks import check_estimator

from hushbid.kme import KernelMeanRelease, calibrate
from hushbid.kme.mechanisms import FeatureMechanism
from hushbid.kme.privacy import COUNT_SHARE
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import epsilon_of, gaussian_sigma
from hushbid.protocol.privacy.noise import Draw, SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours

COMMON: dict[str, Any] = {
    "lower": 0.0, "upper": 1.0, "epsilon": 1.0, "delta": 1e-6, "neighbours": "substitute-one",
    "points": 30, "gamma": 20.0, "features": 200, "random_state": 0,
    "noise": partial(SimulatedNoise, 0, "kme"),
}  # fmt: skip


def estimator(**change: Any) -> KernelMeanRelease:
    return KernelMeanRelease(**(COMMON | change))


class KnownNoise(SimulatedNoise):
    """Noise that is 0, or one number, and remembers the requests."""

    def __init__(self, value: int = 0) -> None:
        super().__init__(0, "known")
        self.value = value
        self.asked: list[Draw] = []

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        self.asked.append(request)
        return np.full(request.size, self.value, dtype=np.int64)


@pytest.fixture(scope="module")
def data() -> npt.NDArray[np.float64]:
    return np.random.default_rng(0).beta(2, 5, size=(3000, 2))


both = pytest.mark.parametrize("method", ["subspace", "features"])
relations = pytest.mark.parametrize("neighbours", ["substitute-one", "add-remove-one"])


@both
@relations
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_noise_that_is_drawn_is_what_the_accountant_states(
    data: npt.NDArray[np.float64], method: str, neighbours: str, delta: float
) -> None:
    source = KnownNoise()
    fitted = estimator(method=method, neighbours=neighbours, delta=delta, noise=lambda: source).fit(data)
    privacy = fitted.release_.privacy
    assert source.asked == [privacy.draw]
    assert 0.999 < privacy.epsilon <= 1.0
    assert privacy.draw.distribution == ("discrete-gaussian" if delta else "discrete-laplace")
    if delta:
        assert epsilon_of(privacy.costs, delta) == privacy.epsilon
    again = estimator(method=method, neighbours=neighbours, delta=delta).calibration(2)
    assert again == privacy
    assert (privacy.count_unit > 0) is (neighbours == "add-remove-one")


@both
def test_the_number_of_records_is_exact_only_where_it_is_public(
    data: npt.NDArray[np.float64], method: str
) -> None:
    public = estimator(method=method).fit(data).release_
    assert public.size == 3000
    noisy = estimator(method=method, neighbours="add-remove-one").fit(data).release_
    assert noisy.size != 3000
    spread = noisy.privacy.sigma / noisy.privacy.count_unit
    assert 5 < spread < 60
    assert abs(noisy.size - 3000) < 5 * spread


@both
def test_more_privacy_means_a_release_that_is_further_away(
    data: npt.NDArray[np.float64], method: str
) -> None:
    far = []
    for epsilon in (0.02, 100.0):
        each = [
            estimator(method=method, points=100, epsilon=epsilon, noise=partial(SimulatedNoise, seed, "kme"))
            .fit(data)
            .release_.mmd(data)
            for seed in range(3)
        ]
        far.append(np.mean(each))
    assert far[1] < 0.02
    assert far[0] > 3 * far[1]


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_neighbours_differ_by_no_more_than_the_sensitivity_of_features(columns: int) -> None:
    mechanism = FeatureMechanism(
        columns, gamma=20.0, dimension=100, count=1, norm=1.0, weights="optimised",
        neighbours=Neighbours.SUBSTITUTE_ONE, epsilon=1.0, delta=1e-6, seed=0,
    )  # fmt: skip
    records = np.random.default_rng(1).uniform(size=(150, columns))
    vectors = np.stack([mechanism.totals(record[None]) for record in records]).astype(float)
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    (cost,) = mechanism.calibration.costs
    sensitivity = cost.sensitivity  # type: ignore[union-attr]
    assert np.linalg.norm(vectors, axis=1).max() <= sensitivity / 2
    assert apart.max() <= sensitivity
    # A control: kernels of random features are negative too, so that √2 would not do.
    assert apart.max() > sensitivity / math.sqrt(2.0)


def test_calibration_is_the_analytic_gaussian_and_laplace_for_the_sum_of_coordinates() -> None:
    common: dict[str, Any] = {"record_norm": 1e6, "distance": 1.5e6, "width": 50, "epsilon": 0.5}
    gaussian = calibrate(neighbours=Neighbours.SUBSTITUTE_ONE, delta=1e-6, **common)
    assert gaussian.sigma == gaussian_sigma(0.5, 1e-6, 1.5e6, 1, 50)
    assert gaussian.sigma < 1.5e6 * math.sqrt(2 * math.log(1.25e6)) / 0.5
    laplace = calibrate(neighbours=Neighbours.SUBSTITUTE_ONE, delta=0.0, **common)
    assert laplace.draw.scale == pytest.approx(math.sqrt(50) * 1.5e6 / 0.5)
    assert laplace.sigma == pytest.approx(math.sqrt(2) * laplace.draw.scale)
    assert laplace.epsilon <= 0.5
    counted = calibrate(neighbours=Neighbours.ADD_REMOVE_ONE, delta=1e-6, **common)
    length = math.hypot(1e6, counted.count_unit)
    assert (counted.count_unit / length) ** 2 == pytest.approx(COUNT_SHARE, rel=1e-4)
    assert counted.sigma == gaussian_sigma(0.5, 1e-6, length, 1, 51)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.1), (math.inf, 0.1), (math.nan, 0.1), (1.0, 1.0), (1.0, -0.1)]
)
def test_a_target_that_cannot_be_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigError, match="epsilon"):
        calibrate(
            record_norm=1.0, distance=2.0, width=5, neighbours=Neighbours.SUBSTITUTE_ONE,
            epsilon=epsilon, delta=delta,
        )  # fmt: skip


def test_rows_out_of_bounds_are_refused_with_their_number_or_clipped_and_counted(
    data: npt.NDArray[np.float64],
) -> None:
    wrong = data.copy()
    wrong[[3, 8], 0] = 1.5
    with pytest.raises(DataError, match="2 of 3000 rows") as caught:
        estimator().fit(wrong)
    assert "1.5" not in str(caught.value)
    clipped = estimator(out_of_bounds="clip").fit(wrong)
    assert clipped.n_out_of_bounds_ == 2
    assert estimator().fit(data).n_out_of_bounds_ == 0
    same = estimator().fit(np.clip(wrong, 0.0, 1.0)).release_
    assert np.array_equal(clipped.release_.points, same.points)


def test_public_points_that_are_given_are_those_of_the_release(data: npt.NDArray[np.float64]) -> None:
    released = estimator(method="subspace", points=data[:50]).fit(data).release_
    assert released.points == pytest.approx(data[:50], abs=0)
    narrow = estimator(method="subspace", points=data[:50], dtype="float32").fit(data).release_
    assert narrow.points.dtype == np.float32
    assert np.array_equal(narrow.points, data[:50].astype(np.float32))


@both
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_points_lie_within_the_bounds_whatever_their_type(
    data: npt.NDArray[np.float64], method: str, dtype: str
) -> None:
    lower, upper = np.array([0.1, 0.3]), np.array([0.7, 0.9])
    released = (
        estimator(method=method, dtype=dtype, lower=lower, upper=upper, out_of_bounds="clip")
        .fit(data)
        .release_
    )
    assert released.points.dtype == np.dtype(dtype)
    assert (released.points >= lower).all()
    assert (released.points <= upper).all()


@both
def test_the_same_seeds_give_the_same_release_and_secure_noise_another(
    data: npt.NDArray[np.float64], method: str
) -> None:
    first, second = (estimator(method=method).fit(data).release_ for _ in range(2))
    assert first.points.tobytes() == second.points.tobytes()
    assert first.weights.tobytes() == second.weights.tobytes()
    assert not first.protects
    settings = {name: value for name, value in COMMON.items() if name != "noise"}
    secure = KernelMeanRelease(**(settings | {"method": method})).fit(data).release_
    assert secure.protects
    assert secure.source == "secure"
    assert not np.array_equal(secure.weights, first.weights)


@pytest.mark.parametrize("norm", [1.0, 5.0])
@both
def test_weights_are_within_the_norm_exactly(data: npt.NDArray[np.float64], method: str, norm: float) -> None:
    released = estimator(method=method, norm=norm, epsilon=50.0).fit(data).release_
    assert math.fsum(np.abs(released.weights)) <= norm


def test_uniform_weights_are_all_alike(data: npt.NDArray[np.float64]) -> None:
    released = estimator(weights="uniform").fit(data).release_
    assert set(released.weights) == {1 / 30}
    assert released.mmd(data) < 0.1


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"neighbours": None}, "neighbours None"),
        ({"neighbours": "substitute"}, "neighbours 'substitute'"),
        ({"method": "neither"}, "method"),
        ({"method": "subspace", "weights": "uniform"}, "uniform"),
        ({"points": np.zeros((3, 2))}, "public points"),
        ({"method": "subspace", "points": np.array([[math.nan, 0.0]])}, "finite"),
        ({"points": 0}, "no points"),
        ({"gamma": 0.0}, "gamma"),
        ({"norm": -1.0}, "norm"),
        ({"dtype": "float16"}, "dtype"),
        ({"out_of_bounds": "ignore"}, "ignore"),
        ({"lower": [0.0, 0.0, 0.0]}, "bounds"),
        ({"lower": 2.0}, "bounds"),
        ({"features": 201}, "odd"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_parameters_that_cannot_be_are_refused(
    data: npt.NDArray[np.float64], change: dict[str, Any], match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        estimator(**change).fit(data)


@both
@pytest.mark.filterwarnings("ignore::hushbid.estimators.PoorReleaseWarning")  # it fits a handful of records
def test_it_is_an_estimator_as_scikit_learn_has_them(method: str) -> None:
    settings: dict[str, Any] = {"points": 4, "features": 20, "out_of_bounds": "clip"}
    check_estimator(estimator(lower=-100.0, upper=100.0, method=method, **settings), on_skip=None)
