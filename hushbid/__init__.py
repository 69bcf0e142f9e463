"""Buy training data without anyone showing their data first: the operator's tools, and a Python API.

`procure` and `Schema` are for notebooks and scripts; all else is the command line's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushbid.procuring import Procured, procure
    from protocol.data.schema import Column, Schema

__all__ = ["Column", "Procured", "Schema", "procure"]


def __getattr__(name: str) -> Any:
    # Imported when they are asked for, so that a verb of the command line starts quickly.
    if name in ("Procured", "procure"):
        from hushbid import procuring

        return getattr(procuring, name)
    if name in ("Column", "Schema"):
        from protocol.data import schema

        return getattr(schema, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
