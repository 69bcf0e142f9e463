"""Buy training data without anyone showing their data first: the operator's tools, and a Python API.

`procure` and `Schema` are for notebooks and scripts; `open_cluster`, `simulate` and `run` are what verbs do.
Errors are those of `protocol.errors`, all of them a `HushbidError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hushbid.cluster import Cluster, open_cluster
    from hushbid.launcher import run
    from hushbid.procuring import Procured, procure
    from hushbid.results import RunResult
    from hushbid.simulation import simulate
    from protocol.data.schema import Column, Schema
    from protocol.errors import Hopeless, HushbidError

__all__ = [
    "Cluster",
    "Column",
    "Hopeless",
    "HushbidError",
    "Procured",
    "RunResult",
    "Schema",
    "open_cluster",
    "procure",
    "run",
    "simulate",
]

_MODULES: Final = {
    "Cluster": "cluster",
    "open_cluster": "cluster",
    "run": "launcher",
    "Procured": "procuring",
    "procure": "procuring",
    "RunResult": "results",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    # Imported when they are asked for, so that a verb of the command line starts quickly.
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name in ("Column", "Schema"):
        from protocol.data import schema

        return getattr(schema, name)
    if name in ("Hopeless", "HushbidError"):
        from protocol import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
