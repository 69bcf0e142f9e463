"""A rehearsal says what noise does to a choice before any ε is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from consumer.verdict import Rehearsal, Staged
from hushbid.rehearsal import FEWEST, rehearse
from protocol.errors import DataError
from protocol.session import Session, open_session
from tests.simulation.harness import names, session_file

COLUMNS = 3


def session(epsilon: float | None, points: int = 60, **changes: Any) -> Session:
    def release(neighbours: str) -> dict[str, Any]:
        if epsilon is None:
            return {"mechanism": "exact"}
        return {"mechanism": "filtered-gaussian", "epsilon": epsilon, "neighbours": neighbours}

    file = session_file(
        owners=names(3),
        points=points,
        dimension=60,
        columns=COLUMNS,
        summary=release("add-remove-one"),
        target=release("substitute-one"),
        **{"rule": "sealed", "batch": 2, "seed_weight": 0.1, "jitter": 25.0, **changes},
    )
    features = file.features.model_copy(update={"gamma": 5.0})
    return open_session(file.model_copy(update={"features": features}))


def curve(count: int, seed: int) -> npt.NDArray[np.float64]:
    """Points along a curve in the cube, which columns without each other do not tell."""
    rng = np.random.default_rng(seed)
    place = rng.random(count)
    rows = np.stack([place, place**2, 1.0 - place], axis=1) + rng.normal(0, 0.02, (count, COLUMNS))
    return np.clip(rows, 0.0, 1.0)


def test_without_noise_it_pays_where_little_of_what_is_wanted_is_there() -> None:
    found = rehearse(session(None), curve(120, 1), curve(40, 2))
    assert found.word == "good"
    assert len(found.staged) == 3
    for each in found.staged[1:]:
        assert each.bought < each.uniform
        assert each.bought_plain < each.uniform_plain
    assert [line.split("  ")[-1] for line in found.lines()[1:]] == [each.owners for each in found.staged]
    assert max(map(len, found.lines())) < 73, "with what stands before them, within a hundred columns"


def test_where_noise_chooses_a_uniform_choice_is_better_with_all_owners() -> None:
    found = rehearse(session(0.05), curve(40, 1), curve(40, 2))
    assert found.word == "hopeless"
    assert min(each.ratio for each in found.staged) > 1.2


def test_it_is_the_same_every_time_and_says_how_far_it_is() -> None:
    shares: list[float] = []
    first = rehearse(session(1.0), curve(40, 1), curve(40, 2), progress=shares.append)
    assert rehearse(session(1.0), curve(40, 1), curve(40, 2)) == first
    assert len(shares) == 6 * session(1.0).rounds
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_where_the_kernel_tells_nothing_nothing_is_played() -> None:
    shares: list[float] = []
    equal = np.repeat(curve(1, 1), 40, axis=0)
    found = rehearse(session(1.0), equal, curve(40, 2), progress=shares.append)
    assert (found.word, found.staged, shares) == ("hopeless", (), [])
    assert found.kernel == pytest.approx(1.0)
    assert rehearse(session(1.0), curve(40, 1), curve(40, 2), kernel=0.001).lines() == [
        "nothing was played: the mean kernel value of two rows is 0.001"
    ]


def test_it_is_of_the_session_and_of_no_other_rule_or_map() -> None:
    # What is bought of one owner with all points by `ask-all` is what `sealed` buys of several.
    sealed, opened = (
        rehearse(session(1.0, rule=rule), curve(40, 1), curve(40, 2)) for rule in ("sealed", "ask-all")
    )
    assert sealed == opened
    assert rehearse(session(1.0, points=30), curve(40, 1), curve(40, 2)) != sealed


@pytest.mark.parametrize(("ratios", "verdict"), [
    ((1.5, 0.5, 0.1), "good"),
    ((0.1, 0.6, 0.1), "uncertain"),
    ((1.3, 1.3, 1.1), "uncertain"),
    ((1.2, 1.3, 5.0), "hopeless"),
])  # fmt: skip
def test_verdicts(ratios: tuple[float, ...], verdict: str) -> None:
    staged = tuple(Staged("some", ratio, 1.0, 0.0, 0.0) for ratio in ratios)
    found = Rehearsal(staged, 0.5)
    assert found.word == found.as_json()["verdict"] == verdict
    assert {Rehearsal(staged, kernel).word for kernel in (0.001, 0.99)} == {"hopeless"}
    assert [each["mmd2_weighted"] for each in found.as_json()["staged"]] == list(ratios)


def test_what_is_too_little_or_too_much_is_refused() -> None:
    with pytest.raises(DataError, match="it takes 8 to 5,000 rows"):
        rehearse(session(1.0), curve(FEWEST - 1, 1), curve(40, 2))
    with pytest.raises(DataError, match=r"and 5,000 points at most"):
        rehearse(session(1.0, points=6000), curve(40, 1), curve(40, 2))


def test_an_odd_number_of_rows_is_the_target_s_own_number() -> None:
    assert rehearse(session(1.0, points=10), curve(FEWEST + 1, 1), curve(40, 2)).staged
