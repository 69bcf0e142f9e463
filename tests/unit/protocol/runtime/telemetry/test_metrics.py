"""Metrics: the last picture's values, under Prometheus' names, at a configurable address."""

from __future__ import annotations

import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hushbid.protocol.errors import ConfigError, ConnectionFailed
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.runtime.telemetry.metrics import COUNTERS, parse_metrics_address, serving_metrics
from hushbid.protocol.runtime.telemetry.status_file import Status, status_path
from hushbid.protocol.runtime.telemetry.vitals import TELLS_OF_ASKS, Seen, Vitals
from tests.processes import cluster
from tests.simulation.harness import names, session_file

SESSION = session_file(owners=names(3), points=7, rule="ask-all")
SEEN = Seen(
    "rounds",
    4,
    owners_connected=2,
    counters={"frames_received": 9, "frames_dropped": {"queue-full": 3, "peer-gone": 1}},
)


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9464", ("127.0.0.1", 9464)), ("[::1]:0", ("::1", 0)), ("localhost:1", ("localhost", 1))],
)
def test_an_address_has_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_metrics_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "::1:9464", "host:99999", "h:x"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, text: str) -> None:
    vitals = Vitals(tmp_path, party="curator", role="curator", session=SESSION)
    with (
        pytest.raises(ConfigError, match="is not an address to serve metrics at"),
        serving_metrics(text, vitals),
    ):
        pass


def test_an_address_that_is_taken_is_refused(tmp_path: Path) -> None:
    vitals = Vitals(tmp_path, party="curator", role="curator", session=SESSION)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConnectionFailed, match="in use"), serving_metrics(address, vitals):
            pass


def test_what_is_served_is_the_last_picture_until_the_end(tmp_path: Path, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}/metrics"
    threads = threading.active_count()
    vitals = Vitals(tmp_path, party="curator", role="curator", session=SESSION)
    with vitals, serving_metrics(f"127.0.0.1:{free_port}", vitals):
        assert scraped(url)["hushbid_ready", ""] == 0
        vitals.begin(lambda: SEEN)
        vitals.round_times.add(0.3)
        found = scraped(url)
    assert found["hushbid_ready", ""] == found["hushbid_up", ""] == 1
    assert found["hushbid_phase", "rounds"] == 1
    assert (found["hushbid_round", ""], found["hushbid_rounds_planned", ""]) == (4, 7)
    assert (found["hushbid_owners_connected", ""], found["hushbid_owners", ""]) == (2, 3)
    assert found["hushbid_frames_received_total", ""] == 9
    assert found["hushbid_frames_dropped_total", "queue-full"] == 3
    assert found["hushbid_round_seconds_bucket", "0.2"] == 0
    assert found["hushbid_round_seconds_bucket", "0.5"] == found["hushbid_round_seconds_count", ""] == 1
    assert ("hushbid_connected", "") not in found, "a curator has no connection to itself"
    assert threading.active_count() == threads
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=5)


def test_no_address_is_no_server(tmp_path: Path) -> None:
    threads = threading.active_count()
    with serving_metrics(None, Vitals(tmp_path, party="curator", role="curator", session=SESSION)):
        assert threading.active_count() == threads


def test_every_counter_says_what_it_counts() -> None:
    assert all(described.help.endswith(".") for described in COUNTERS.values())


@pytest.fixture
def free_port() -> int:
    return cluster.free_port()


def scraped(url: str) -> dict[tuple[str, str], float]:
    """Values by name and by the varying label; every sample names its party."""
    text = urllib.request.urlopen(url, timeout=5).read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            which = (labels.pop("party"), labels.pop("role"), labels.pop("session"))
            assert which == ("curator", "curator", SESSION.session.name)
            found[sample.name, "".join(labels.values())] = sample.value
    return found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("role", ["curator", "consumer", "owner"])
def test_no_count_tells_of_asks_where_a_rule_asks(
    tmp_path: Path, free_port: int, rule: str, role: Any
) -> None:
    """Whatever a loop counts, neither metrics nor the status file have it."""
    vitals = Vitals(
        tmp_path, party=role, role=role, session=session_file(owners=names(3), points=7, rule=rule)
    )
    counted: dict[str, Any] = {name: {} if described.label else 5 for name, described in COUNTERS.items()}
    with vitals, serving_metrics(f"127.0.0.1:{free_port}", vitals):
        vitals.begin(lambda: Seen("rounds", 4, counters=counted))
        with urllib.request.urlopen(f"http://127.0.0.1:{free_port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    served = {each.name for family in text_string_to_metric_families(text) for each in family.samples}
    told = TELLS_OF_ASKS if RULES[rule].candidate_with_bid else frozenset()
    assert Status.read(status_path(tmp_path, role)).counters.keys() & TELLS_OF_ASKS == told
    assert {f"hushbid_{name}_total" for name in TELLS_OF_ASKS} & served == {
        f"hushbid_{name}_total" for name in told
    }
    assert "hushbid_status_failures_total" in served
