"""Experiments that a reader can repeat: each is a function that returns its figures."""

from __future__ import annotations

from protocol.extras import need

need("sklearn", "An experiment")
