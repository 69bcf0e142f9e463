"""The first import of the process that forks others: BLAS, which is loaded later, is to begin no threads.

A fork ends them and begins them anew, and they wait for each other in loops. A run's own fork server has one.
"""

from __future__ import annotations

import os

from hushbid.running.fork_server import _ONE_THREAD

os.environ.update(_ONE_THREAD)
