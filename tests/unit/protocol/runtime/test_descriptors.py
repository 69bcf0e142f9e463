"""The division of a curator's limit of open files."""

from __future__ import annotations

import pytest

from hushbid.protocol import limits, platform
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.network.descriptors import descriptors_for_strangers

OPEN = 5


@pytest.fixture
def kept_back() -> list[int]:
    """The numbers of files that were kept back."""
    return []


@pytest.fixture
def hard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kept_back: list[int]) -> int | None:
    """The system's limit of open files; five are open."""
    limit: int | None = request.param

    def keep(count: int) -> int | None:
        kept_back.append(count)
        return None if limit is None else max(0, limit - count)

    monkeypatch.setattr(platform, "open_files", lambda: OPEN)
    monkeypatch.setattr(platform, "allow_open_files", lambda: limit)
    monkeypatch.setattr(platform, "keep_files_back", keep)
    return limit


@pytest.mark.parametrize(
    ("hard", "parties", "strangers"),
    [
        (128, 3, 47),
        (128, 10, 19),
        (1_024, 3, 256),
        (1_024, 180, 235),
        (1_048_576, 10_001, 256),
        (None, 10_001, 256),
    ],
    indirect=["hard"],
)
def test_strangers_have_what_the_parties_and_the_curators_own_files_leave(
    hard: int | None, parties: int, strangers: int, kept_back: list[int]
) -> None:
    """Each party has two connections of two descriptors."""
    assert descriptors_for_strangers(parties) == strangers
    assert kept_back == ([] if hard is None else [limits.DESCRIPTORS_KEPT_BACK])
    if hard is not None and strangers < limits.MAX_UNNAMED_CONNECTIONS:
        own = OPEN + limits.CURATOR_DESCRIPTORS + limits.DESCRIPTORS_KEPT_BACK
        assert strangers + 4 * parties + own == hard


@pytest.mark.parametrize(("hard", "enough"), [(127, False), (129, True)], indirect=["hard"])
def test_a_limit_that_leaves_too_few_is_told_with_what_is_needed_and_how_to_raise_it(
    hard: int, enough: bool
) -> None:
    """Eleven parties need 129 files: 44, 5 that are open, 32 and 32 of the curator's, 16 for strangers."""
    if enough:
        assert descriptors_for_strangers(11) == limits.MIN_UNNAMED_CONNECTIONS
        return
    with pytest.raises(ConfigError, match=r"open 127 files, .* 11 other parties needs 129") as error:
        descriptors_for_strangers(11)
    for how in ("ulimit -n", "LimitNOFILE", "ulimits.nofile", "to 129 or more"):
        assert how in error.value.advice


@pytest.mark.parametrize("hard", [20, 31], indirect=True)
def test_a_limit_below_what_is_kept_back_is_told_as_it_is(hard: int, kept_back: list[int]) -> None:
    with pytest.raises(ConfigError, match=rf"open {hard} files, .* 3 other parties needs 97"):
        descriptors_for_strangers(3)
    assert not kept_back, "a process that ends has all files that the system permits"
