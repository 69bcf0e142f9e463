"""docs/catalogue.md names every field that the verbs of a catalogue print."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.catalogue.entry import SUFFIX, TAG
from hushbid.catalogue.model import MAX_PROJECTION
from hushbid.catalogue.ranking import MOST_SUBSETS, SHOWN
from hushbid.cli.app import main
from hushbid.kme.privacy import COUNT_SHARE
from hushbid.protocol import limits
from hushbid.protocol.runtime.keys import write_secret
from hushbid.race.release import default_size_share
from tests.docs.pages import Page, names_in
from tests.support.catalogue_entries import key_of, points_about

PAGE = Page("docs/catalogue.md")


def parts(text: str) -> list[str]:
    """The fields of the items that a row lists."""
    return names_in(re.sub(r"\([^)]*\)|; `null`.*", "", text.partition(": ")[2]))


def test_the_fields_of_publish_and_screen_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def printed(*arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["hushbid", *arguments, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    for seed, name in enumerate(("data", "own")):
        np.save(f"{name}.npy", points_about((0.3, 0.5), 200, seed))
    write_secret(Path("north.key"), key_of("north"))
    published = printed(
        "publish", "kme", "data.npy", "--name", "north", "--neighbours", "add-remove-one", "--epsilon", "1",
        "--seed", "1", "--gamma", "1", "--lower", "0", "--upper", "1,2",
    )  # fmt: skip
    assert list(published) == PAGE.first_names("What `publish` returns")
    (verified,) = printed("publish", "verify", ".")["entries"]
    own = ["entry", "rows", "rows_clipped", "ledger", "spent", "spent_delta", "spent_neighbours"]
    assert list(verified) == ["file", *(name for name in published if name not in own)]

    (tmp_path / f"bad{SUFFIX}").write_bytes(b"")
    screened = printed("screen", ".", "--validation", "own.npy", "--epsilon", "1")
    stated = {name.strip("`"): text for name, text in PAGE.rows("What `screen` returns")}
    assert list(screened) == list(stated)
    for name, found in (
        ("release", screened["release"]),
        ("owners", screened["owners"][0]),
        ("subsets", screened["subsets"][0]),
        ("refused", screened["refused"][0]),
    ):
        assert parts(stated[name]) == list(found), name


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"| {len(TAG)} | `{TAG.decode().strip()}`" in PAGE.on_one_line
    assert f"At most {limits.MAX_ENTRY_FILE_BYTES // 2**20} MiB" in PAGE.on_one_line
    assert f"up to {MOST_SUBSETS:,}" in PAGE.on_one_line
    assert f"{COUNT_SHARE * 100:.0f} % of b² + u²" in PAGE.on_one_line
    assert SHOWN == 10
    assert (
        f"more than 2^{MAX_PROJECTION.bit_length() - 1} random numbers ({8 * MAX_PROJECTION >> 20} MiB)"
        in PAGE.on_one_line
    )
    assert default_size_share(8) == pytest.approx(1 / (1 + 2 * 2))
