"""The import of the process that forks others: garbage collectors ignore what it holds by its end.

Otherwise the first collection in each fork touches, and so copies, all pages. A small session is played
first, so that what is made at first use, such as the checks of files' values, is shared too.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

from threadpoolctl import threadpool_info

from hushbid.cli.app import app
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.command import built
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
    "typer._adapters",
    "typer._click.decorators",
)


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
built(app)
threadpool_info()  # looks up where all libraries are, and keeps that
play()
gc.collect()
gc.freeze()
