"""Tables of R and statsmodels: drafted, split over three owners, bought, and compared with the originals.

The packages are not part of the project: without them the tests skip, and say what to install.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.public_tables import COLLECTIONS, INSTALL, bought, files_of, kept_rows

PARTS = 8
SAMPLED = 100
"""Of so many tables one is looked at in quick tests."""


def check(collection: str, first: int, step: int, place: Path) -> None:
    kept = {row[1]: row for row in kept_rows() if row[0] == collection}
    found = {}
    for number, (name, content) in enumerate(files_of(collection)):
        if number % step == first:
            directory = place / str(number)
            directory.mkdir()
            found[name] = bought(content, directory).row(collection, name)
    if not found:
        pytest.skip(f"{collection} is not installed: {INSTALL}")
    assert found == {name: kept.get(name) for name in found}, "python -m tests.support.public_tables keeps it"


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_sample_comes_back_as_it_was(collection: str, tmp_path: Path) -> None:
    check(collection, 0, SAMPLED, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_every_table_comes_back_as_it_was_or_is_refused_as_the_documents_say(
    collection: str, part: int, tmp_path: Path
) -> None:
    check(collection, part, PARTS, tmp_path)
