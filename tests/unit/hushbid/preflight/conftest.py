"""Parties whose preflight is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.preflight_party import Party


@pytest.fixture
def party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    for name in [name for name in os.environ if name.startswith("HUSHBID_")]:
        monkeypatch.delenv(name)

    def of(role: str = "owner") -> Party:
        made = Party(tmp_path, role, monkeypatch)
        made._capture = capsys
        return made

    return of
