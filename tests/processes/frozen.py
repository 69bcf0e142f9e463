"""The import of the process that forks others: garbage collectors ignore what it holds by its end.

Otherwise the first collection in each fork touches, and so copies, all pages. A small session is played
first, so that what is made at first use, such as the checks of files' values, is shared too.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from pathlib import Path

from hushbid.cli.app import app
from hushbid.consumer.cli import command as consumer
from hushbid.curator.cli import command as curator
from hushbid.owner.cli import command as owner
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.runtime.command import app_of, built
from hushbid.running import forking
from hushbid.simulation.simulator import Simulation
from tests.processes.cluster import Cluster

IMPORTED = (
    *forking._IMPORTED,
    "hushbid.consumer.party",
    "hushbid.curator.party",
    "hushbid.owner.party",
    "hushbid.cli.consumer",
    "hushbid.cli.parties",
    "hushbid.cli.run",
    "hushbid.running.launcher",
    "hushbid.report.page",
    # Imported where they are needed, and seconds long: for sketches, and for the demonstration's model.
    "dp_accounting",
    "sklearn.datasets",
    "sklearn.linear_model",
    "sklearn.pipeline",
    # Small, and in every party.
    "encodings.ascii",
    "opendp._data",
    "owner",
    "curator",
    "consumer",
)
PARTY = ["--session", "session.toml", "--config", "party.toml", "--json"]
"""What nearly all parties are started with."""


def play() -> None:
    """A whole session, without a process, a connection or a thread."""
    with tempfile.TemporaryDirectory() as place:
        cluster = Cluster(Path(place))
        Simulation(
            cluster.session,
            owners={name: cluster.dataset(name) for name in cluster.owners},
            validation=cluster.dataset(CONSUMER, "validation.npz"),
            seed_set=cluster.dataset(CONSUMER, "seed.npz"),
        ).run()


forking._load(IMPORTED)  # as for a run's parties
del sys.modules[forking.__name__]  # runpy warns of a program that is imported already
built(app)
for verb in (consumer, curator, owner):
    built(app_of(verb)).make_context("party", [*PARTY])  # type: ignore[attr-defined]
play()
with one_blas_thread():
    pass  # it has looked up where all libraries are, and keeps that until more are imported
gc.collect()
gc.freeze()
