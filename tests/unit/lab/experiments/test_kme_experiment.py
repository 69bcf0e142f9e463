"""`hushbid experiment kme`: a quick form of its table, and the published figures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from hushbid.lab.experiments.kme import SETTINGS, KmeRow, kme
from hushbid.protocol.errors import ConfigError, DataError

RECORDS = 5_000


@pytest.fixture(scope="module")
def rows(shared_data: Callable[[str], Path]) -> list[KmeRow]:
    directory = shared_data("kme-mixture-2d.npz").parent
    settings = ["1-2d-leak-104", "1-2d-leak-977"]
    return list(
        kme(directory, settings=settings, epsilons=[0.1, 1.0], seeds=[0], simulated=True, records=RECORDS)
    )


def test_a_twentieth_of_the_records_are_released_as_well_as_their_noise_allows(rows: list[KmeRow]) -> None:
    """They have twenty times the noise of all records: ε = 1 corresponds to 0.05 in the published table."""
    found = {(row.setting, row.epsilon): row for row in rows}
    assert len(found) == 4
    assert found["1-2d-leak-104", 1.0].distance < 0.012
    assert found["1-2d-leak-104", 0.1].distance < 0.06
    assert found["1-2d-leak-977", 1.0].distance < 0.008
    for row in rows:
        assert row.noise == "simulated"
        assert row.met is not None
        assert row.projection is not None
        assert row.baseline is not None
        assert row.projection <= row.distance + 1e-9
        assert row.distance < row.baseline or row.epsilon < 1.0
        assert json.loads(json.dumps(row.as_json()))["distance"] == row.distance


def test_random_points_are_the_authors_own(shared_data: Callable[[str], Path]) -> None:
    """Another draw's projection is 0.06 off on average; taking a tenth of the records moves it by 0.001."""
    directory = shared_data("kme-mixture-5d.npz").parent
    (row,) = kme(
        directory,
        settings=["1-5d-random-977"],
        epsilons=[1.0],
        seeds=[3, 4],
        simulated=True,
        records=10_000,
    )
    assert row.projection == pytest.approx(0.3126, abs=0.003)
    assert row.baseline == pytest.approx(row.published_baseline, abs=0.003)
    assert row.distance_each[0] != row.distance_each[1]


@pytest.mark.slow
def test_algorithm_2_is_below_the_published_figures_by_simulated_noise(
    shared_data: Callable[[str], Path],
) -> None:
    directory = shared_data("kme-mixture-2d.npz").parent
    for row in kme(directory, settings=["2-2d-100"], epsilons=[0.1, 1.0], seeds=[0], simulated=True):
        assert row.met


def test_the_same_seeds_give_the_same_figures(rows: list[KmeRow], shared_data: Callable[[str], Path]) -> None:
    directory = shared_data("kme-mixture-2d.npz").parent
    said: list[str] = []
    (again,) = kme(
        directory,
        settings=["1-2d-leak-104"],
        epsilons=[0.1],
        seeds=[0],
        simulated=True,
        records=RECORDS,
        say=said.append,
    )
    assert again.distance == rows[0].distance
    assert said == ["1-2d-leak-104, ε = 0.1, seed 0"]


def test_long_settings_of_algorithm_2_are_run_with_one_seed(shared_data: Callable[[str], Path]) -> None:
    directory = shared_data("kme-mixture-2d.npz").parent
    one, every = kme(
        directory,
        settings=["2-2d-10000", "1-2d-leak-10000"],
        epsilons=[1.0],
        seeds=[0, 1],
        simulated=True,
        records=300,
    )
    assert (len(one.distance_each), len(every.distance_each)) == (1, 2)


def test_limits_are_half_where_noise_dominates_and_five_per_cent_elsewhere() -> None:
    settings = {setting.name: setting for setting in SETTINGS}
    leak = settings["1-2d-leak-977"]
    assert leak.limit(0.1) == pytest.approx(0.0127 / 2)
    assert leak.limit(1.0) == pytest.approx(0.0012)  # one unit of the last digit is more than 5 %
    assert settings["1-5d-random-977"].limit(0.1) == pytest.approx(1.05 * 0.3144)
    assert settings["2-5d-1000"].limit(0.1) == pytest.approx(0.0436)
    assert leak.limit(3.0) is None
    assert all(math.isfinite(figure) for setting in SETTINGS for figure in setting.published.values())


@pytest.mark.parametrize("missing", [{"epsilons": []}, {"seeds": []}, {"settings": ["3-7d"]}], ids=str)
def test_nothing_to_run_is_refused(missing: dict[str, list[str]], tmp_path: Path) -> None:
    arguments = {"epsilons": [1.0], "seeds": [0], "settings": []} | missing
    with pytest.raises(ConfigError):
        list(kme(tmp_path, **arguments))  # type: ignore[arg-type]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"kme-mixture-2d\.npz"):
        list(kme(tmp_path, epsilons=[1.0], seeds=[0]))
