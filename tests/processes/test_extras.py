"""A party's machine has what a session needs, without what the extra `operator` adds."""

from __future__ import annotations

import os
from pathlib import Path

from hushbid.protocol.extras import PACKAGES
from tests.conftest import ROOT
from tests.processes.cluster import Cluster

BLOCKED = (*PACKAGES, "narwhals")
"""With what these bring along, and nothing else needs."""
BY_VARIABLES = {"HUSHBID_SESSION": "session.toml", "HUSHBID_CONFIG": "party.toml"}


def without_extra(place: Path) -> dict[str, str]:
    """Variables of a process that finds nothing of the extra."""
    place.mkdir()
    lines = ["import sys", *(f"sys.modules[{name!r}] = None" for name in BLOCKED)]
    (place / "sitecustomize.py").write_text("\n".join(lines))
    return {"PYTHONPATH": os.pathsep.join((str(place), str(ROOT)))}


def test_a_session_needs_none_of_it_but_to_judge_points(tmp_path: Path) -> None:
    poor = without_extra(tmp_path / "poor")
    with Cluster(tmp_path, ("heron",)) as cluster:
        cluster.run("curator", ["-m", "hushbid", "curator", "--json"], BY_VARIABLES | poor)
        cluster.run("heron", ["-m", "hushbid", "owner", "--json"], BY_VARIABLES | poor)
        # With test points a model would be trained: that is said at the start, not when all is paid for.
        cluster.change("consumer", {"test": "validation.npz"}, file="party.toml")
        cluster.run("consumer", ["-m", "consumer", "--json"], BY_VARIABLES | poor)
        error = cluster.end("consumer")["consumer"].error
        assert (error["exit_code"], "scikit-learn" in error["what"]) == (4, True)
        assert "pip install 'hushbid[operator]'" in error["advice"]
        assert not cluster.transcript_path("consumer").exists()
        cluster.change("consumer", {"test": None}, file="party.toml")
        cluster.run("consumer", ["-m", "hushbid", "consumer", "--json"], BY_VARIABLES | poor)
        ended = cluster.end()
        assert [end.code for end in ended.values()] == [0, 0, 0], ended
        assert ended["consumer"].json["points_delivered"] == 20
