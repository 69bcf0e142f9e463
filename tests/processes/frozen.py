"""Imported last by the process that forks others: what it holds by then, no collector of theirs looks at.

Else the first collection in each of them touches, and so copies, all pages.
"""

from __future__ import annotations

import gc

from hushbid.cli.app import app
from protocol.runtime.command import built

built(app)
gc.collect()
gc.freeze()
