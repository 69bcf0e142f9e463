"""Buy training data without anyone showing their data first: the operator's tools, and a Python API.

`procure` and `Schema` are for notebooks and scripts; `Owner`, `Consumer` and `Curator` take part in real
sessions; `open_cluster`, `simulate`, `run`, `train`, `plan_session`, `audit_machines`, `Catalogue`,
`Transcript` and `verify_transcripts` are what verbs do. All errors are a `HushbidError`.

The public names and their modules are listed in `__init__.pyi`.
"""

from __future__ import annotations

import lazy_loader

# Each name is imported when it is asked for, so that a verb of the command line starts quickly.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
