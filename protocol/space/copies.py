"""Points held by several owners: which are copies of each other, and who sells one (DESIGN §1, "Copies").

Points of equal φ are copies. An owner may hold the same point several times, as tables do, and these count
separately. So the j-th point with a given φ from one owner is a copy of the j-th from every other owner. The
number of points to buy with that φ is the largest number that one owner has; several holders do not increase
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hushbid.protocol.space.grid import Features

__all__ = ["Copies", "lots_of"]

_TAG: Final = b"hushbid copy 1\0"
_SMALLEST: Final = 256


class Copies:
    """The copies among a pool's entries, in a session that buys a point once (`session.distinct`).

    Args:
        session: The session's identifier, 16 bytes; it affects who sells.
    """

    def __init__(self, session: bytes) -> None:
        self._session = session
        self._numbers: dict[tuple[bytes, int], int] = {}
        """(φ, place among its owner's equal points) → number of the point."""
        self._held: dict[tuple[bytes, int], int] = {}
        """(φ, owner's rank) → number of entries."""
        self._entries: list[list[int]] = []
        """For each point: its entries."""
        self._ranks: list[int] = []
        """For each entry: its owner's rank."""
        self._places: list[int] = []
        """For each point: its place among those of equal φ."""
        self._points = np.zeros(_SMALLEST, dtype=np.intp)
        """For each entry: the number of its point."""

    def extend(self, features: Features, ranks: npt.NDArray[np.intp]) -> Sequence[int]:
        """Take in the pool's next entries; returns those of points that have earlier entries.

        Args:
            features: φ, int16 of shape (n, d).
            ranks: Ranks of their owners, shape (n,).
        """
        rows = np.ascontiguousarray(features, dtype="<i2")
        whole, width = rows.tobytes(), rows.shape[1] * rows.itemsize
        numbers, held, first = self._numbers, self._held, len(self._ranks)
        points, repeated = [], []
        for row, rank in enumerate(ranks.tolist()):
            phi = whole[row * width : (row + 1) * width]
            place = held.get((phi, rank), 0)
            held[phi, rank] = place + 1
            point = numbers.setdefault((phi, place), len(self._entries))
            if point == len(self._entries):
                self._entries.append([first + row])
                self._places.append(place)
            else:
                self._entries[point].append(first + row)
                repeated.append(first + row)
            points.append(point)
        self._ranks += ranks.tolist()
        while len(self._ranks) > len(self._points):
            self._points = np.concatenate([self._points, np.zeros_like(self._points)])
        self._points[first : len(self._ranks)] = points
        return repeated

    def same_as(self, entry: int) -> Sequence[int]:
        """All entries of this entry's point, including itself."""
        return self._entries[int(self._points[entry])]

    def points(self, entries: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """For each of these entries a number that its copies share, shape (n,)."""
        return self._points[entries]

    def place(self, entry: int) -> int:
        """The place of an entry's point among the points of equal φ, from 0."""
        return self._places[int(self._points[entry])]

    def repeated(self, available: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """The available entries whose point has an earlier available entry.

        Args:
            available: Whether each entry is available, shape (n,).
        """
        if len(self._entries) == len(self._ranks):
            return np.zeros(0, dtype=np.intp)
        entries = np.flatnonzero(available)
        _, first = np.unique(self._points[entries], return_index=True)
        return np.delete(entries, first)

    def seller(self, entry: int, features: Features, available: npt.NDArray[np.bool_]) -> int:
        """Choose the entry of a point that is bought, among the available ones.

        A hash of the session, the point and the owner's rank decides, so that no data do, and no name comes
        first everywhere. An additional owner takes over a sale or leaves it unchanged.

        Args:
            entry: Any entry of the point.
            available: Whether each entry is available, shape (n,).
        """
        offered = [each for each in self.same_as(entry) if available[each]]
        if len(offered) == 1:
            return offered[0]
        ranks = [self._ranks[each] for each in offered]
        lots = lots_of(self._session, self.place(entry), features, ranks)
        return min(zip(lots, offered, strict=True))[1]


def lots_of(session: bytes, place: int, features: Features, ranks: Sequence[int]) -> list[bytes]:
    """What decides between owners that offer one point: the least sells (docs/wire.md, "Copies").

    Args:
        session: The session's identifier, 16 bytes.
        place: The point's place among those of equal φ, from 0.
        features: φ, int16 of shape (d,).
        ranks: The owners' places among the sorted names, from 0.

    Returns:
        32 bytes for each owner.
    """
    point = np.ascontiguousarray(features, dtype="<i2").tobytes()
    started = hashlib.sha256(_TAG + session + place.to_bytes(4, "big") + point)
    lots = []
    for rank in ranks:
        drawn = started.copy()
        drawn.update(rank.to_bytes(4, "big"))
        lots.append(drawn.digest())
    return lots
