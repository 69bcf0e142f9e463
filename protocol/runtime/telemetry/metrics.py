"""Metrics for Prometheus: a party's vitals over HTTP, off unless an address is given.

The server's threads read the loop's last picture (`hushbid.protocol.runtime.telemetry.vitals`), never the
party itself. No metric is about one owner, and none has private values; docs/operations.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hushbid.protocol.errors import ConfigError, ConnectionFailed
from hushbid.protocol.runtime.telemetry.log_events import LogEvent
from hushbid.protocol.runtime.telemetry.logs import log

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from hushbid.protocol.runtime.telemetry.vitals import Vitals

__all__ = ["COUNTERS", "GAUGES", "ROUND_SECONDS", "parse_metrics_address", "serving_metrics"]


class _Described(NamedTuple):
    help: str
    label: str | None = None
    """The label of the counts, if there are several."""


COUNTERS: Final[Mapping[str, _Described]] = {
    "rounds": _Described("Rounds that were decided since the process began."),
    "absences": _Described(
        "Rounds that owners were absent from for a reason that is logged, all owners together."
    ),
    "faults": _Described(
        "Points that did not match their bid or features, and signatures that did not hold."
    ),
    "frames_received": _Described("Frames that came."),
    "frames_sent": _Described("Frames that left."),
    "bytes_received": _Described("Bytes of the frames that came."),
    "bytes_sent": _Described("Bytes of the frames that left."),
    "frames_dropped": _Described("Frames that were not delivered.", "reason"),
    "frames_ignored": _Described("Frames that were not read.", "reason"),
    "frames_repeated": _Described("Frames that had been received before."),
    "frames_resent": _Described("Frames that were sent again, to a peer that came back."),
    "refusals": _Described("Breaches of the protocol for which a peer was refused.", "offence"),
    "connections": _Described("Connections that were made to the curator."),
    "connections_refused": _Described("Connections that were refused.", "reason"),
    "connections_cut": _Described("Connections that were cut.", "reason"),
    "transcript_records": _Described("Records of the transcript, those of earlier processes too."),
    "status_failures": _Described("Times that the status file could not be written."),
}
"""Counters by their name in `Status.counters`; their metrics are `hushbid_<name>_total`."""

GAUGES: Final[Mapping[str, _Described]] = {
    "up": _Described("1 until the party has ended."),
    "ready": _Described("1 while the party's loop runs."),
    "phase": _Described("1 for the phase that the party is in.", "phase"),
    "round": _Described("The last round that the party knows of."),
    "rounds_planned": _Described("How many rounds the session has."),
    "paused": _Described("1 while the rounds stand still for want of owners, or of a consumer that weighs."),
    "owners_connected": _Described("Owners that are here."),
    "owners": _Described("Owners of the session."),
    "connected": _Described("1 while the connection to the curator stands."),
    "beat_timestamp_seconds": _Described("When the party's loop last turned, in seconds since 1970."),
    "start_timestamp_seconds": _Described("When the process began, in seconds since 1970."),
}
"""Gauges: `hushbid_<name>`."""

ROUND_SECONDS: Final = "round_seconds"
"""The histogram of how long rounds took."""


def parse_metrics_address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``; a host with colons is in brackets.

    Raises:
        ConfigError: It has another form.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not bracketed) or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"metrics = {text!r} is not an address to serve metrics at.",
            advice='Write HOST:PORT, as in "127.0.0.1:9464" or "[::1]:9464".',
        )
    return host[1:-1] if bracketed else host, int(port)


@contextmanager
def serving_metrics(address: str | None, vitals: Vitals) -> Iterator[None]:
    """Serve a party's metrics at an address, until the end of the block; None: nowhere.

    Raises:
        ConfigError: The address is invalid.
        ConnectionFailed: It cannot be bound.
    """
    if address is None:
        yield
        return
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - 0.1 s that few need

    host, port = parse_metrics_address(address)
    registry = CollectorRegistry()
    registry.register(_Collector(vitals))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConnectionFailed(
            f"Metrics cannot be served at {address}: {error.strerror}.",
            advice="Name another address, or stop what listens there.",
        ) from None
    bound = server.server_address[1]
    log(LogEvent.METRICS_LISTENING, address=f"{address.rpartition(':')[0]}:{bound}")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Collector:
    """Makes metrics of the last picture when Prometheus asks."""

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import (  # noqa: PLC0415
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        status = self._vitals.status
        names = {"party": status.party, "role": status.role, "session": status.session}
        always = list(names.values())
        for name, described in GAUGES.items():
            value = _gauge(status, name)
            if value is None:
                continue
            more = [] if described.label is None else [described.label]
            gauge = GaugeMetricFamily(f"hushbid_{name}", described.help, labels=[*names, *more])
            gauge.add_metric([*always, *([status.phase] if more else [])], value)
            yield gauge
        for name, described in COUNTERS.items():
            count = status.counters.get(name)
            if count is None:
                continue
            more = [] if described.label is None else [described.label]
            counter = CounterMetricFamily(f"hushbid_{name}", described.help, labels=[*names, *more])
            for reason, number in count.items() if isinstance(count, Mapping) else [("", count)]:
                counter.add_metric([*always, *([reason] if more else [])], number)
            yield counter
        if status.role == "curator":
            buckets, total = self._vitals.round_times.cumulative()
            histogram = HistogramMetricFamily(
                f"hushbid_{ROUND_SECONDS}", "How long rounds took, in seconds.", labels=list(names)
            )
            histogram.add_metric(always, buckets, total)
            yield histogram


def _gauge(status: Any, name: str) -> float | None:
    """A gauge's value; None if this role has none."""
    values: dict[str, float | bool | None] = {
        "up": not status.finished,
        "ready": status.ready,
        "phase": True,
        "round": (status.round or None) if status.role == "consumer" else status.round,
        "rounds_planned": status.rounds,
        "paused": status.paused if status.role == "curator" else None,
        "owners_connected": status.owners_connected,
        "owners": status.owners,
        "connected": status.connected,
        "beat_timestamp_seconds": status.beat,
        "start_timestamp_seconds": status.started,
    }
    value = values[name]
    return None if value is None else float(value)
