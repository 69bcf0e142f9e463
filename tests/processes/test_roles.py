"""One party on this machine, as people start it: by options, variables, or `hushbid`; and its output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.processes.cluster import Cluster, Ended

ROUNDS = 10


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, dict[str, Ended]]]:
    changes = {"session.points": ROUNDS, "network.address": "tcp://127.0.0.1:1"}
    with Cluster(tmp_path_factory.mktemp("roles"), ("heron", "magpie"), changes=changes) as cluster:
        address = f"tcp://127.0.0.1:{cluster.port}"
        for name in ("consumer", "heron", "magpie"):
            cluster.change(name, {"network.address": address})
        # A flag goes before a variable, and a variable before the file: port 1 would be refused.
        by_variables = {"HUSHBID_SESSION": "session.toml", "HUSHBID_CONFIG": "party.toml"}
        listen = {"HUSHBID_LISTEN": "tcp://127.0.0.1:2"}
        cluster.run(
            "curator", ["-m", "hushbid", "curator", "--listen", address, "--json"], by_variables | listen
        )
        cluster.change("heron", {"data": "nowhere.npz"}, file="party.toml")
        cluster.run("heron", ["-m", "owner", "--json"], by_variables | {"HUSHBID_DATA": "data.npz"})
        cluster.run("magpie", ["-m", "owner"], by_variables)
        cluster.run("consumer", ["-m", "hushbid", "consumer", "--json"], by_variables)
        ended = cluster.end()
        assert {name: end.code for name, end in ended.items()} == dict.fromkeys(cluster.names, 0)
        yield cluster, ended


def test_the_curator_prints_what_was_acquired_from_whom(session: tuple[Cluster, dict[str, Ended]]) -> None:
    cluster, ended = session
    result = ended["curator"].json
    seconds = {name: result.pop(name) for name in ("wall_seconds", "rounds_per_second")}
    assert all(value > 0 for value in seconds.values())
    settlement = result.pop("settlement")
    assert set(settlement) == {"heron", "magpie"}
    assert set(result.pop("settlement_standard_error").values()) == {0.0}, "nothing has noise"
    paid = result.pop("settlement_paid")
    assert set(paid["owners"]) == {"heron", "magpie"}
    assert paid["sum"] == sum(line["paid"] for line in paid["owners"].values())
    assert result.pop("settlement_terms")["disclosure"].startswith("not to be disclosed to owners")
    assert [statement["epsilon"] for statement in result.pop("privacy")] == [None, None, None]
    assert result == {
        "role": "curator",
        "session": "birds",
        "rounds": ROUNDS,
        "points_accessed": 2 * ROUNDS,
        "points_delivered": ROUNDS,
        "absences": {},
        "faults": [],
        "disputes": [],
        "bill": None,
        "refusals": [],
        "transcript": str(cluster.transcript_path("curator")),
    }


def test_an_owner_prints_what_it_handed_over_and_nothing_of_what_it_won(
    session: tuple[Cluster, dict[str, Ended]],
) -> None:
    cluster, ended = session
    result = ended["heron"].json
    assert result.pop("wall_seconds") > 0
    assert all(statement["why"] for statement in result.pop("privacy"))
    assert (cluster.directory("heron") / result.pop("ledger")).is_file()
    assert result == {
        "role": "owner",
        "session": "birds",
        "owner": "heron",
        "points": 40,
        "root": None,
        "handed_over": ROUNDS,
        "unlabelled": 0,
        "unidentified": 0,
        "outside": {"clipped": {}, "dropped": 0, "dropped_by": {}, "over": 0, "filled": {}},
        "rounds": ROUNDS,
        "transcript": str(cluster.transcript_path("heron")),
    }


def test_the_consumer_prints_how_good_the_delivery_is_and_where_it_lies(
    session: tuple[Cluster, dict[str, Ended]],
) -> None:
    cluster, ended = session
    result = ended["consumer"].json
    assert result["points_delivered"] == ROUNDS
    assert result["m"] == 40
    assert 0 <= result["mmd2"] < 1
    assert result["accuracy"] is None, "there is no test set"
    path = cluster.directory("consumer") / Path(result["data"])
    with np.load(path) as delivered:
        assert {str(name).rpartition("-")[0] for name in delivered["identifiers"]} <= {"heron", "magpie"}


def test_without_json_people_are_told_what_came_of_it_and_what_protects_nobody(
    session: tuple[Cluster, dict[str, Ended]],
) -> None:
    cluster, ended = session
    told = ended["magpie"].out.splitlines()
    assert told[0] == f"magpie: {ROUNDS} of 40 points were handed over in {ROUNDS} rounds."
    assert sum("no guarantee" in line for line in told) == 2
    assert sum(line.startswith("Owners trust the curator and the consumer") for line in told) == 1
    assert told[-1] == f"Transcript: {cluster.transcript_path('magpie')}"
    assert "listening at" in ended["curator"].err
