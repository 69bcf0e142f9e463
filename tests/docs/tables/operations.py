"""Tables of docs/operations.md, docs/deploy.md and docs/commands.md."""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import Final

from hushbid.curator.connections import Ignored
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.runtime.network.authentication import Rejection
from hushbid.protocol.runtime.network.connection_limits import Cut
from hushbid.protocol.runtime.network.router import Drop
from hushbid.protocol.runtime.telemetry.log_events import LOG_EVENTS
from hushbid.protocol.runtime.telemetry.metrics import COUNTERS, GAUGES, ROUND_SECONDS
from tests.conftest import ROOT
from tests.docs.tables.markers import OWN, Made, Table, code, codes

_REASONS: Final = {"dropped": Drop, "ignored": Ignored, "refused": Rejection, "cut": Cut}


def events(first: str | None, after: str | None) -> Table:
    """Lines of the log from one to another, in order of declaration."""
    begin, end = (list(LOG_EVENTS).index(name) if name else None for name in (first, after))
    return Table(
        [
            (code(event.event), logging.getLevelName(event.level).lower(), codes(event.fields))
            for event in list(LOG_EVENTS.values())[begin:end]
        ]
    )


def reasons() -> Table:
    """Why frames and connections are dropped or refused."""
    return Table([(of, code(reason)) for of, found in _REASONS.items() for reason in found], keys=2)


def metrics() -> Table:
    """The metrics that Prometheus is served."""
    labels = {name: described.label for name, described in GAUGES.items()}
    labels[ROUND_SECONDS] = "le"
    labels |= {f"{name}_total": described.label for name, described in COUNTERS.items()}
    return Table(
        [(code(f"hushbid_{name}"), OWN, code(label) if label else "") for name, label in labels.items()]
    )


def variables() -> Table:
    """Variables of docker-compose, with their defaults."""
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in (".env", "docker-compose.yml"))
    found = set(re.findall(r"\$\{(\w+):-(.*?)\}", text))
    read = dict(sorted(found))
    assert len(read) == len(found), "a variable has two defaults"
    # Without a directory of data the setup is given one that it has no use for.
    read["HUSHBID_DATA"] = read["HUSHBID_DATA"].removeprefix("./configs")
    rows = [(code(name), code(default) if default else "none") for name, default in read.items()]
    return Table(rows, ordered=False)


OPERATIONS: Final[dict[str, Made]] = {
    "events at every party": partial(events, None, "curator.listening"),
    "events at the curator": partial(events, "curator.listening", "curator.connected"),
    "events at an owner and the consumer": partial(events, "curator.connected", None),
    "reasons": reasons,
    "metrics": metrics,
}
DEPLOY: Final[dict[str, Made]] = {"variables": variables}
COMMANDS: Final[dict[str, Made]] = {
    "exit codes": lambda: Table(
        [*((str(int(each)), str(each.restart)) for each in ExitCode), ("130", ""), ("129, 143", "")], keys=1
    ),
}
