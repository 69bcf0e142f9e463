"""docs/results.md names every field that is printed or kept only when a verb is run."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushbid.cli.app import main
from hushbid.consumer.events import Delivered, StorePurchases
from hushbid.consumer.matching import Matching
from hushbid.consumer.result import Disputed
from hushbid.consumer.store import PurchaseFile
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data.attributes import Attributes, pack_attributes
from hushbid.protocol.wire.messages import Candidate
from tests.conftest import ROOT
from tests.docs.pages import Page, names_in

PAGE = Page("docs/results.md")


def test_the_fields_of_a_dispute_are_there() -> None:
    keys = [field.name for field in fields(Disputed)]
    assert each("disputes")[0] == keys


def each(field: str) -> list[list[str]]:
    """The fields of each item of a list, for every list of that name that a table of the page has."""
    rows = re.findall(rf"^\|(?:[^|]*\|)? `{field}` \| each [^:|]*: (.*) \|$", PAGE.text, re.M)
    return [names_in(re.sub(r"\([^)]*\)", "", row.partition(". ")[0])) for row in rows]


def fields_of(verb: str) -> list[str]:
    """The fields of one of the verbs that share a table; a row without a verb belongs to the one above."""
    found: dict[str, list[str]] = {}
    for named, field, _ in PAGE.rows("`keys` and `invite`"):
        if named:
            assert named not in found, "a verb's rows stand together"
            found[named] = []
        found[list(found)[-1]] += names_in(field)
    return found[f"`{verb}`"]


def test_the_fields_of_keys_and_invite_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "configs" / "separate" / "session.toml", "session.toml")
    parties = {"curator": "curator", "consumer": "consumer", "north": "owner", "south": "owner"}

    def printed(verb: str, *arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["hushbid", *verb.split(), *arguments, "--json"])
        with pytest.raises(SystemExit) as ending:
            main()
        assert ending.value.code == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert fields_of(verb) == list(found), verb
        return found

    for name, role in parties.items():
        printed("keys new", name)
        printed("keys request", name, "--role", role)
    printed("keys show", "north.pub")
    session = ("--session", "session.toml")
    approved = printed("keys approve", *(f"{name}.request" for name in parties), *session, "--yes")
    assert each("approved") == [list(approved["approved"][0])]
    assert each("parties") == [list(printed("keys list", *session)["parties"][0])]
    printed("invite", *session, "--consumer")
    printed("keys revoke", "south", *session)


def delivered(round_number: int, label: int, identifier: str) -> Delivered:
    """A bought point with a label and an identifier."""
    features, attributes = np.zeros(8, dtype=np.int16), Attributes(label, identifier)
    candidate = Candidate(point=np.zeros(3), features=features, attributes=pack_attributes(attributes, 16))
    return Delivered("owner-1", round_number, candidate, "")


def test_the_arrays_of_a_delivery_are_there(tmp_path: Path) -> None:
    kept = PurchaseFile(tmp_path / "delivered.npz", FeatureSection(gamma=1.0, columns=3))
    kept.store(StorePurchases((delivered(1, 3, "a"), delivered(2, 4, "b"))))
    kept.weigh(Matching(np.array([0.25, 0.75]), 1.0, 0.1, 0.1, 0.0), np.array([1.0, 3.0]))
    with np.load(kept.path) as archive:
        assert sorted(PAGE.first_names("The delivered points")) == sorted(archive.files)
