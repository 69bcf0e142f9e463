"""Catalogue entries of every format version ever written stay readable, with the same contents.

The files in `entries/` are never rewritten: a change of the format adds a version and a file.
`tests.support.catalogue_entries.published` made them, from points that follow from a seed. Version 1 is gone:
one more record could change what others contributed to it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hushbid.catalogue.entry import read_entry
from hushbid.catalogue.model import encode_part
from tests.support.catalogue_entries import FEATURES, HASHES, key_of

ENTRIES = Path(__file__).parent / "entries"
CONTENTS = {
    "kme-2.entry": ("kme", 403, "7e4d836f2a656aef6d8c3a51794a1e9fbc9153a55c41f93bbb2ca916cedcf3c2"),
    "kme-points-2.entry": ("kme", 401, "e631172b87d3f7ecd3c7bc0be8bdf302fbcec410c8b3489a986e7d970861a84e"),
    "race-2.entry": ("race", 378, "27fae5b95439a460f897dd9f79898348cbcd802924b1b2f26ce1ee4757ae08b3"),
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
