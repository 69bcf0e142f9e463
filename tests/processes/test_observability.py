"""What logs, statuses and metrics show of a session, and that none of it is private."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner, Result

from hushbid.cli.app import app
from hushbid.curator.connections import Ignored
from hushbid.protocol.errors import Offence
from hushbid.protocol.privacy.acquisition import RULES as RULES_BY_NAME
from hushbid.protocol.runtime.network.authentication import Rejection
from hushbid.protocol.runtime.network.connection_limits import Cut
from hushbid.protocol.runtime.network.router import Drop
from hushbid.protocol.runtime.telemetry.log_events import LOG_EVENTS
from hushbid.protocol.runtime.telemetry.metrics import COUNTERS
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.runtime.telemetry.vitals import TELLS_OF_ASKS
from hushbid.protocol.wire.codec import Direction, decode_message
from hushbid.protocol.wire.messages import unfixed
from tests.processes.cluster import SEALED, SECURE, Cluster, Ended, bodies, free_port

PROCESSES = ("curator", "consumer", "heron", "magpie")
OWNERS = ("heron", "magpie")
PACER = "ostrich"
"""An owner on the test's side, which keeps a round open while the others are looked at."""
ROUNDS = 12
MIDDLE = 6
SEEDS = {"noise.seed": 918_273_645, "features.seed": 564_738_291}
RULES: dict[str, dict[str, Any]] = {
    "ask-all": SEEDS,
    "sealed": SEALED | SECURE,
    "winner-only": SEEDS | {"acquisition.rule": "winner-only"},
    "published": SEEDS | {"acquisition.rule": "published"},
}


@dataclass
class Session:
    rule: str
    """A key of `RULES`."""
    cluster: Cluster
    ports: dict[str, int]
    statuses: dict[str, Status] = field(default_factory=dict)
    """In mid-session."""
    metrics: dict[str, str] = field(default_factory=dict)
    """In mid-session."""
    healths: dict[str, int] = field(default_factory=dict)
    """Exit codes of `hushbid health`, by when."""
    table: str = ""
    ended: dict[str, Ended] = field(default_factory=dict)

    def told(self) -> str:
        """The whole output of logs, status files and metrics."""
        files = [self.state(name).read_text(encoding="utf-8") for name in PROCESSES]
        logs = [self.cluster.log(name) for name in PROCESSES]
        statuses = [repr(status) for status in self.statuses.values()]
        return "\n".join([*files, *logs, *statuses, *self.metrics.values(), self.table])

    def state(self, name: str) -> Path:
        return status_path(self.cluster.directory(name) / "state", name)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.cluster.log(name).splitlines()]

    def start(self, *names: str) -> None:
        for name in names:
            address = f"127.0.0.1:{self.ports[name]}"
            self.cluster.start(name, HUSHBID_LOG_FORMAT="json", HUSHBID_METRICS=address)

    def look(self) -> None:
        """Collect what can be seen while a round is held open."""
        for name in PROCESSES:
            self.statuses[name] = Status.read(self.state(name))
            url = f"http://127.0.0.1:{self.ports[name]}/metrics"
            self.metrics[name] = urllib.request.urlopen(url, timeout=20).read().decode()


def hushbid(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


def health(session: Session, name: str, *options: str) -> int:
    return hushbid("health", "--state", str(session.state(name).parent), *options).exit_code


PARAMETERS = [pytest.param(rule, marks=pytest.mark.slow if rule == "published" else ()) for rule in RULES]


@pytest.fixture(scope="module", params=PARAMETERS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session in which an owner is killed and restarted."""
    changes = {"session.points": ROUNDS, **RULES[request.param]}
    with Cluster(tmp_path_factory.mktemp("seen"), changes=changes) as cluster:
        session = Session(request.param, cluster, {name: free_port() for name in PROCESSES})
        pacer = cluster.puppet(PACER)
        pacer.hold_bids_from(MIDDLE)
        session.start(*PROCESSES)
        cluster.until(lambda: pacer.held, "the middle of the session")
        cluster.until(lambda: Status.read(session.state("curator")).round == MIDDLE, "the status of it")
        cluster.until(lambda: Status.read(session.state("heron")).round == MIDDLE, "heron's status of it")
        session.look()
        if request.param == "ask-all":
            look_by_verbs(session)
        cluster.signal("heron", signal.SIGKILL)
        cluster.until(lambda: "peer.gone" in cluster.log("curator"), "heron's loss")
        first = cluster.log("heron")
        session.start("heron")
        cluster.until(lambda: "peer.reconnected" in cluster.log("curator"), "heron's return")
        pacer.let_go()
        session.ended = cluster.end()
        assert {name: end.code for name, end in session.ended.items()} == dict.fromkeys(PROCESSES, 0)
        session.table += first
        yield session


def look_by_verbs(session: Session) -> None:
    session.table = hushbid("status", *(str(session.state(name).parent) for name in PROCESSES)).stdout
    session.healths["running"] = health(session, "heron", "--ready")
    session.cluster.signal("heron", signal.SIGSTOP)
    session.cluster.until(lambda: health(session, "heron", "--max-age", "2") == 1, "a hang to show")
    session.cluster.signal("heron", signal.SIGCONT)
    session.cluster.until(lambda: health(session, "heron", "--max-age", "2") == 0, "its end to show")


only_ask_all = pytest.mark.parametrize("session", ["ask-all"], indirect=True)


REASONS = {
    "refusals": Offence,
    "frames_dropped": Drop,
    "frames_ignored": Ignored,
    "connections_refused": Rejection,
    "connections_cut": Cut,
}


@only_ask_all
def test_what_has_not_happened_is_counted_too_so_that_an_alert_sees_the_first(session: Session) -> None:
    for party, counters in (
        ("curator", REASONS),
        ("consumer", {"frames_dropped": REASONS["frames_dropped"]}),
    ):
        found = {
            (sample.name, label): sample.value
            for family in text_string_to_metric_families(session.metrics[party])
            for sample in family.samples
            for name, label in sample.labels.items()
            if name in ("reason", "offence")
        }
        assert found.keys() == {
            (f"hushbid_{name}_total", reason.value)
            for name, reasons in counters.items()
            for reason in reasons
        }
        assert 0 in found.values(), "most of it has not happened"


def test_an_owner_counts_nothing_that_rises_when_it_is_asked(session: Session) -> None:
    counted = {"connections", "frames_dropped", "frames_repeated", "status_failures"} - untold(session)
    assert session.statuses["heron"].counters.keys() == counted
    names = {family.name for family in text_string_to_metric_families(session.metrics["heron"])}
    assert {f"hushbid_{name}" for name in COUNTERS} & names == {f"hushbid_{name}" for name in counted}


def untold(session: Session) -> frozenset[str]:
    return frozenset() if RULES_BY_NAME[session.rule].candidate_with_bid else TELLS_OF_ASKS


def test_no_party_counts_what_rises_with_an_ask_where_a_rule_asks(session: Session) -> None:
    for name in PROCESSES:
        assert not session.statuses[name].counters.keys() & untold(session)
        told = {family.name for family in text_string_to_metric_families(session.metrics[name])}
        assert not told & {f"hushbid_{each}" for each in untold(session)}


@only_ask_all
def test_statuses_and_metrics_show_a_session_while_it_runs(session: Session) -> None:
    curator, heron = session.statuses["curator"], session.statuses["heron"]
    assert (curator.phase, curator.round, curator.rounds, curator.ready) == ("rounds", MIDDLE, ROUNDS, True)
    assert (curator.owners_connected, curator.owners) == (3, 3)
    assert (heron.round, heron.connected, heron.ready) == (MIDDLE, True, True)
    values = {
        name: {
            (sample.name, sample.labels.get("phase", "")): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        for name, text in session.metrics.items()
    }
    assert values["curator"]["hushbid_rounds_total", ""] == MIDDLE - 1
    assert values["curator"]["hushbid_round_seconds_count", ""] == MIDDLE - 1
    assert values["curator"]["hushbid_phase", "rounds"] == 1
    assert values["curator"]["hushbid_frames_received_total", ""] > 3 * MIDDLE - 3
    assert all(value["hushbid_ready", ""] == 1 for value in values.values())
    for name in ("consumer", "heron"):
        assert values[name]["hushbid_connected", ""] == 1
        assert not any("frames_sent" in key for key, _ in values[name]), (
            "it tells how often an owner was asked"
        )
    for name in PROCESSES:
        assert name in session.table
    assert f"{MIDDLE} of {ROUNDS}" in session.table


@only_ask_all
def test_health_is_that_of_a_loop_that_turns_or_has_ended_well_and_not_of_one_that_hangs(
    session: Session,
) -> None:
    assert session.healths == {"running": 0}
    assert [health(session, name, "--ready") for name in PROCESSES] == [0] * len(PROCESSES)
    ends = [Status.read(session.state(name)) for name in PROCESSES]
    assert [(status.finished, status.exit_code, status.phase) for status in ends] == [(True, 0, "done")] * 4


def test_every_line_is_an_event_of_the_list_with_its_fields(session: Session) -> None:
    for name in PROCESSES:
        for line in session.lines(name):
            assert line["party"] == name
            assert set(LOG_EVENTS[line["event"]].fields) <= line.keys()
    curator = [(line["event"], line.get("peer")) for line in session.lines("curator")]
    for expected in (
        ("curator.listening", None),
        *(("peer.here", name) for name in (*session.cluster.owners, "consumer")),
        ("enrolment.over", None),
        ("peer.gone", "heron"),
        ("peer.reconnected", "heron"),
        ("session.complete", None),
    ):
        assert expected in curator
    gone = next(line for line in session.lines("curator") if line["event"] == "peer.gone")
    told = None if session.rule in ("winner-only", "published") else MIDDLE
    assert (gone["phase"], gone.get("round")) == ("rounds", told)
    assert "session.resumed" in [line["event"] for line in session.lines("heron")]
    assert "session.complete" in [line["event"] for line in session.lines("consumer")]


def private_values(cluster: Cluster) -> dict[str, list[str]]:
    """Values that nobody may read in logs, statuses and metrics, in all notations."""
    data = {owner: cluster.dataset(owner) for owner in cluster.owners}
    data["D_v"] = cluster.dataset("consumer", "validation.npz")
    rows = np.concatenate([np.asarray(each.features, dtype=np.float64) for each in data.values()])
    sent = bodies(cluster.records("curator"), "curator")
    bids = [
        decode_message(Direction.OWNER_TO_CURATOR, body)
        for owner in cluster.owners
        for body in sent[owner, "curator", "bid"]
    ]
    scores = {unfixed(bid.score) for bid in bids}  # type: ignore[attr-defined]
    session = cluster.values
    return {
        "identifiers": [f"{owner}-{row:04d}" for owner in cluster.owners for row in range(len(data[owner]))],
        # Eight decimals, cut and not rounded: among as many times and coordinates six meet by chance.
        "coordinates": [f"{value:.12f}"[:-4] for value in rows.ravel()],
        "rows": [row.tobytes().hex() for row in rows],
        "bids": [str(score) for score in scores if abs(score) > 10**7],
        "scores": [f"{score * 2.0**-37:.12f}"[:-4] for score in scores if abs(score) > 10**7],
        "secrets": [
            text
            for pair in cluster.keys.values()
            for text in (pair.secret, pair.seed.hex(), pair.curve_secret.decode())
        ],
        "seeds": [
            str(session[part].get("seed")) for part in ("noise", "features") if session[part].get("seed")
        ],
    }


def found_in(told: str, private: dict[str, list[str]]) -> dict[str, int]:
    return {kind: sum(value in told for value in values) for kind, values in private.items()}


def test_nothing_private_is_told(session: Session) -> None:
    private = private_values(session.cluster)
    told = session.told()
    assert all(values for kind, values in private.items() if kind != "seeds")
    assert found_in(told, private) == dict.fromkeys(private, 0)
    # The control: each of them would be found, in a line of its own.
    for kind, values in private.items():
        if values:
            line = json.dumps({"event": "peer.here", "peer": "heron", "more": values[-1]})
            assert found_in(f"{told}\n{line}", private)[kind] > 0


def test_no_line_and_no_metric_is_about_who_was_asked_or_won(session: Session) -> None:
    """Owners are named only by lines about their connection, and about bids that all owe."""
    naming = {
        line["event"]
        for line in session.lines("curator")
        if any(owner in str(value) for owner in session.cluster.owners for value in line.values())
    }
    assert naming >= {"peer.here", "peer.gone", "peer.reconnected"}
    assert naming <= {"owner.absent", "owner.takes-part", "bid.late"} | {
        name for name in LOG_EVENTS if name.startswith("peer.")
    }
    assert not any(owner in session.metrics["curator"] for owner in session.cluster.owners)
    told = session.state("curator").read_text(encoding="utf-8")
    assert not any(owner in told for owner in session.cluster.owners)
