"""A finished session in containers: its parties' files, and the events in their transcripts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.containers.compose import Deployment

__all__ = ["Session"]


@dataclass(frozen=True)
class Session:
    """A finished session whose containers still exist."""

    deployment: Deployment
    files: Path
    """Copies of every party's volumes, as PARTY/VOLUME."""

    def transcript(self, party: str) -> Path:
        return self.files / party / "state" / f"{party}.transcript"

    def events(self, party: str) -> list[tuple[str, str]]:
        """Every event in a party's transcript: its kind or message, and its peer or timer."""
        return list(_events_in(self.transcript(party)))

    def verified(self) -> bool:
        """Whether all transcripts hold, and agree with each other."""
        paths = [str(self.transcript(party)) for party in self.deployment.parties]
        found = json.loads(hushbid("transcript", "verify", "--json", *paths))
        assert len(found["transcripts"]) == len(paths)
        assert {each["signature"] for each in found["transcripts"]} == {"holds"}
        return bool(found["ok"])


@cache
def _events_in(transcript: Path) -> tuple[tuple[str, str], ...]:
    shown = hushbid("transcript", "show", str(transcript), "--private", "--json")
    events = [json.loads(line).get("event") for line in shown.splitlines()]
    return tuple(_kind_and_whose(event) for event in events if event is not None)


def _kind_and_whose(event: Mapping[str, Any]) -> tuple[str, str]:
    fields = {**event["public"], **event["private"]}
    if event["kind"] == "received":
        return fields["frame"]["message"], fields["frame"]["peer"]
    return event["kind"], fields.get("peer") or fields.get("name", "")


def hushbid(*arguments: str) -> str:
    """The output of a verb that succeeds."""
    done = subprocess.run(
        [sys.executable, "-m", "hushbid", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr}\n{done.stdout}"
    return done.stdout
