"""Locality-sensitive hash families: one file for each kind, and one line of `FAMILIES` for each."""

from __future__ import annotations

from typing import Final

from hushbid.protocol.space.lsh.base import HashFamily, Points, Sampling
from hushbid.protocol.space.lsh.signed import AsymmetricFamily, SignedFamily, squared_lengths
from hushbid.protocol.space.lsh.stable import L1Family, L2Family, StableFamily

__all__ = [
    "FAMILIES",
    "AsymmetricFamily",
    "HashFamily",
    "L1Family",
    "L2Family",
    "Points",
    "Sampling",
    "StableFamily",
    "squared_lengths",
]

FAMILIES: Final[dict[str, type[HashFamily]]] = {
    L2Family.name: L2Family,
    L1Family.name: L1Family,
    SignedFamily.name: SignedFamily,
    AsymmetricFamily.name: AsymmetricFamily,
}
"""Every family, by its name."""
