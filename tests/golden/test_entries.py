"""Catalogue entries of every format version that was ever written stay readable, to the same contents.

The files in `entries/` are never written anew: a change of the format adds a version and a file. They were
made by `tests.unit.catalogue_entries.published`, of points that follow from a seed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hushbid.catalogue.entry import encode_part, read_entry
from tests.unit.catalogue_entries import FEATURES, HASHES, key_of

ENTRIES = Path(__file__).parent / "entries"
CONTENTS = {
    "kme-1.entry": ("kme", 403, "2f34ddccfd21686ea57493e7ebb3ae7bdd741037f14f0e5a622714eae4325536"),
    "kme-points-1.entry": ("kme", 400, "4dd2acf09c7dc38b44e33f677e68ef2271b60c9928ae64a05cb9e4c1289ac53a"),
    "race-1.entry": ("race", 416, "8c43c1c0e6bbb6935d82255946a697f3fb2c2bfb4af4f2252e11e89d985a4534"),
}
"""File → kind, points as stated, and SHA-256 of what it says."""


@pytest.mark.parametrize("name", CONTENTS)
def test_a_golden_entry_reads_as_ever(name: str) -> None:
    entry = read_entry(ENTRIES / name)
    said = hashlib.sha256(encode_part(entry)).hexdigest()
    assert (entry.release.kind, round(entry.release.size), said) == CONTENTS[name]
    assert entry.key == key_of("north").public
    section = getattr(entry.release, "features", None) or getattr(entry.release, "hashes", None)
    assert section == (FEATURES if entry.release.kind == "kme" else HASHES)


def test_every_golden_entry_is_read() -> None:
    assert {path.name for path in ENTRIES.iterdir()} == set(CONTENTS)
