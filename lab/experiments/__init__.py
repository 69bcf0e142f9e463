"""Reproducible experiments: each is a function that returns its figures."""

from __future__ import annotations

from hushbid.protocol.extras import need

need("sklearn", "An experiment")
