"""Unusable input for a party: it says so and ends with the right code, before it joins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hushbid.protocol.runtime.keys import new_keypair
from tests.processes.cluster import COLUMNS, Cluster, Ended

Prepare = Callable[[Cluster], None]
SECRET = 0.4711131719
"""A value of the data that no message may repeat."""


@dataclass(frozen=True)
class Case:
    """A party with wrong input.

    Args:
        prepare: Makes the input wrong.
        named: What the error names.
        code: The exit code.
    """

    party: str
    prepare: Prepare
    named: tuple[str, ...]
    code: int = 4


def data(value: float | None = None, *, rows: int = 20, columns: int = COLUMNS) -> Prepare:
    def prepare(cluster: Cluster) -> None:
        features = np.full((rows, columns), SECRET)
        if value is not None:
            features[7, 1] = value
        np.savez(cluster.directory("heron") / "data.npz", features=features)

    return prepare


def garbled(cluster: Cluster) -> None:
    (cluster.directory("heron") / "data.npz").write_bytes(b"0.4711131719,no archive")


def missing(name: str, file: str) -> Prepare:
    return lambda cluster: (cluster.directory(name) / file).unlink()


def unreadable(cluster: Cluster) -> None:
    (cluster.directory("heron") / "data.npz").chmod(0)


def text_cell(cluster: Cluster) -> None:
    rows = "a,b,c\n0.1,0.2,0.3\n0.1,0.4711131719x,0.3\n"
    (cluster.directory("heron") / "data.csv").write_text(rows)
    cluster.change("heron", {"data": "data.csv", "columns.features": ["a", "b", "c"]}, file="party.toml")


def session(name: str, changes: dict[str, Any]) -> Prepare:
    return lambda cluster: cluster.change(name, changes)


def party(name: str, changes: dict[str, Any]) -> Prepare:
    return lambda cluster: cluster.change(name, changes, file="party.toml")


def no_toml(cluster: Cluster) -> None:
    (cluster.directory("heron") / "session.toml").write_text("[session\nname = 'birds'")


def open_key(cluster: Cluster) -> None:
    (cluster.directory("heron") / "secret.key").chmod(0o644)


def other_key(name: str) -> Prepare:
    return lambda cluster: cluster.use_key(name, new_keypair())


def left_behind(cluster: Cluster) -> None:
    state = cluster.directory("heron") / "state"
    state.mkdir(mode=0o700)
    (state / "heron.transcript").write_bytes(b"of an earlier session")


OPEN_TO_OTHERS = {"network.address": "tcp://0.0.0.0:5790", "network.insecure": True}
ELSEWHERE = {"network.address": "tcp://192.0.2.1:5790", "network.insecure": True}

CASES = {
    "NaN": Case("heron", data(float("nan")), ("data.npz", "row 7", "column 1")),
    "infinite": Case("heron", data(float("inf")), ("data.npz", "row 7", "column 1")),
    "beyond the public bounds": Case("heron", data(1.5), ("data.npz", "row 7", "column 1")),
    "wrong dimension": Case("heron", data(columns=5), ("data.npz", "5", str(COLUMNS))),
    "empty": Case("heron", data(rows=0), ("data.npz",)),
    "garbled": Case("heron", garbled, ("data.npz",)),
    "missing": Case("heron", missing("heron", "data.npz"), ("data.npz", "does not exist")),
    "text among numbers": Case("heron", text_cell, ("data.csv", "row 1", "b")),
    "consumer's missing": Case("consumer", missing("consumer", "validation.npz"), ("validation.npz",)),
    "session: unknown key": Case("heron", session("heron", {"session.budget": 3}), ("session.budget",)),
    "session: missing key": Case(
        "curator", session("curator", {"features.gamma": None}), ("features.gamma",)
    ),
    "session: wrong type": Case(
        "consumer", session("consumer", {"session.points": "20"}), ("session.points",)
    ),
    "session: unknown mechanism": Case(
        "curator", session("curator", {"summary.mechanism": "magic"}), ("magic",)
    ),
    "session: unprotected": Case(
        "curator", session("curator", {"session.allow_nonprivate": False}), ("allow_nonprivate",)
    ),
    "session: no TOML": Case("heron", no_toml, ("session.toml",)),
    "party: unknown key": Case("heron", party("heron", {"colour": "grey"}), ("colour",)),
    "party: missing key": Case("heron", party("heron", {"data": None}), ("data",)),
    "party: wrong type": Case("curator", party("curator", {"durability": 1}), ("durability",)),
    "party: not on the roster": Case("heron", party("heron", {"name": "stork"}), ("stork",)),
    "key: none": Case("heron", party("heron", {"key": None}), ("key",)),
    "key: others may read it": Case("heron", open_key, ("secret.key",)),
    "key: not the roster's": Case("heron", other_key("heron"), ("secret.key", "heron")),
    "key: curator's not the roster's": Case("curator", other_key("curator"), ("secret.key", "curator")),
    "state: a transcript is there": Case("heron", left_behind, ("heron.transcript",)),
    "insecure: curator open to others": Case("curator", session("curator", OPEN_TO_OTHERS), ("0.0.0.0",)),
    "insecure: curator elsewhere": Case("heron", session("heron", ELSEWHERE), ("192.0.2.1",)),
    "no port to connect to": Case(
        "heron", session("heron", {"network.address": "tcp://127.0.0.1:*"}), ("tcp://127.0.0.1:*",)
    ),
}
if os.geteuid() != 0:  # root reads everything
    CASES["unreadable"] = Case("heron", unreadable, ("data.npz", "cannot be read"))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Cluster, Ended]]]:
    """Every case's party, all started together; none needs another party."""
    with ExitStack() as stack:
        clusters = {}
        for name, case in CASES.items():
            cluster = stack.enter_context(Cluster(tmp_path_factory.mktemp("case")))
            case.prepare(cluster)
            cluster.start(case.party)
            clusters[name] = cluster
        yield {name: (c, c.end(CASES[name].party)[CASES[name].party]) for name, c in clusters.items()}


@pytest.mark.parametrize("name", CASES)
def test_it_ends_with_the_right_code_and_says_what_and_what_to_do(
    cases: dict[str, tuple[Cluster, Ended]], name: str
) -> None:
    (_, ended), case = cases[name], CASES[name]
    assert ended.code == case.code, ended.err
    error = ended.error
    assert [word for word in case.named if word not in error["what"] + error["advice"]] == [], error
    assert error["advice"].endswith("."), "every error says what to do"
    assert "Traceback" not in ended.err
    assert str(SECRET)[:6] not in ended.out + ended.err


@pytest.mark.parametrize("name", CASES)
def test_it_leaves_no_transcript_of_a_session_that_it_never_joined(
    cases: dict[str, tuple[Cluster, Ended]], name: str
) -> None:
    # Else it would be refused, for the transcript that is there, once what was wrong is put right.
    cluster, _ = cases[name]
    left = [path.name for path in (cluster.place / "parties").rglob("*.transcript")]
    assert left == (["heron.transcript"] if CASES[name].prepare is left_behind else [])
