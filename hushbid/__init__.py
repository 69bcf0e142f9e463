"""Buy training data without anyone showing their data first: the operator's tools, and a Python API.

`procure` and `Schema` are for notebooks and scripts; `Owner`, `Consumer` and `Curator` take part in real
sessions; `open_cluster`, `simulate`, `run`, `train`, `plan_session`, `audit_machines`, `Catalogue`,
`Transcript` and `verify_transcripts` are what verbs do. Errors are those of `protocol.errors`, all of them a
`HushbidError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from consumer.role import ConsumerResult
    from curator.role import Curator, CuratorResult
    from hushbid.catalogue.api import Catalogue, ScreenOptions
    from hushbid.catalogue.publish_options import PublishKme, PublishRace
    from hushbid.cli.consumer import Consumer
    from hushbid.cluster.file import Cluster, open_cluster
    from hushbid.evidence.audit.machines import audit_machines
    from hushbid.plan.planning import plan_session
    from hushbid.procuring import Procured, procure
    from hushbid.running.launcher import run
    from hushbid.running.results import RunResult
    from hushbid.running.simulate import simulate
    from hushbid.tables.training import Trained, train
    from hushbid.transcripts.api import Transcript, verify_transcripts
    from owner.role import Owner, OwnerResult
    from protocol.data.column import Column
    from protocol.data.schema import Schema
    from protocol.errors import (
        BudgetExceeded,
        ConfigError,
        ConnectionFailed,
        DataError,
        Hopeless,
        HushbidError,
        KeyFileError,
        LocalProtocolError,
        ProtocolError,
        RemoteProtocolError,
        ReplayDivergence,
        Stopped,
        TimedOut,
        TranscriptDamaged,
        TranscriptUnwritable,
        VectorMismatch,
    )
    from protocol.machine.progress import Progress

__all__ = [
    "BudgetExceeded",
    "Catalogue",
    "Cluster",
    "Column",
    "ConfigError",
    "ConnectionFailed",
    "Consumer",
    "ConsumerResult",
    "Curator",
    "CuratorResult",
    "DataError",
    "Hopeless",
    "HushbidError",
    "KeyFileError",
    "LocalProtocolError",
    "Owner",
    "OwnerResult",
    "Procured",
    "Progress",
    "ProtocolError",
    "PublishKme",
    "PublishRace",
    "RemoteProtocolError",
    "ReplayDivergence",
    "RunResult",
    "Schema",
    "ScreenOptions",
    "Stopped",
    "TimedOut",
    "Trained",
    "Transcript",
    "TranscriptDamaged",
    "TranscriptUnwritable",
    "VectorMismatch",
    "audit_machines",
    "open_cluster",
    "plan_session",
    "procure",
    "run",
    "simulate",
    "train",
    "verify_transcripts",
]

_MODULES: Final = {
    "Catalogue": "hushbid.catalogue.api",
    "Cluster": "hushbid.cluster.file",
    "Column": "protocol.data.schema",
    "Consumer": "hushbid.cli.consumer",
    "ConsumerResult": "consumer.role",
    "Curator": "curator.role",
    "CuratorResult": "curator.role",
    "Owner": "owner.role",
    "OwnerResult": "owner.role",
    "Procured": "hushbid.procuring",
    "Progress": "protocol.machine.progress",
    "PublishKme": "hushbid.catalogue.publish_options",
    "PublishRace": "hushbid.catalogue.publish_options",
    "RunResult": "hushbid.running.results",
    "Schema": "protocol.data.schema",
    "ScreenOptions": "hushbid.catalogue.api",
    "Trained": "hushbid.tables.training",
    "Transcript": "hushbid.transcripts.api",
    "audit_machines": "hushbid.evidence.audit.machines",
    "open_cluster": "hushbid.cluster.file",
    "plan_session": "hushbid.plan.planning",
    "procure": "hushbid.procuring",
    "run": "hushbid.running.launcher",
    "simulate": "hushbid.running.simulate",
    "train": "hushbid.tables.training",
    "verify_transcripts": "hushbid.transcripts.api",
}
"""The module of each name but those of `protocol.errors`."""


def __getattr__(name: str) -> Any:
    # Imported when it is asked for, so that a verb of the command line starts quickly.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "protocol.errors")), name)
