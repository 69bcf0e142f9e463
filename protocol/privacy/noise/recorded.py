"""Recorded noise, for replay. A replay that requests other noise has diverged from its transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

import numpy.typing as npt

from hushbid.protocol.errors import ReplayDivergence
from hushbid.protocol.privacy.noise.base import Draw, check_byte_count, drawn_type

__all__ = ["RecordedNoise"]

_ADVICE: Final = (
    "Replay with the session file and the version of hushbid that the transcript was recorded with."
)

Recorded = npt.NDArray[Any] | tuple[Draw, npt.NDArray[Any]]


class RecordedNoise:
    """Returns recorded noise in the order of recording, each array once. It never draws.

    Args:
        recorded: The array of each draw, alone or with its request; read as needed. For an array without a
            request, only type and size are compared with the replay's request.
        keys: The result of each call of `random_bytes`.
        protects: Whether the source that drew the noise protects.
    """

    name = "recorded"

    def __init__(self, recorded: Iterable[Recorded], *, keys: Iterable[bytes] = (), protects: bool) -> None:
        self.protects = protects
        self._recorded = _Ahead(iter(recorded))
        self._keys = _Ahead(iter(keys))

    def check(self, request: Draw) -> None:
        """Accept any request; `draw` finds out whether it was recorded."""

    def draw(self, request: Draw) -> npt.NDArray[Any]:
        """The next array of the recording, read-only, shape (request.size,).

        Raises:
            ReplayDivergence: Something else, or nothing, was recorded here; the source is unchanged.
        """
        found = self._recorded.peek()
        if found is None:
            raise self._diverged(f"for {request}, but no more noise was recorded")
        drawn, noise = found if isinstance(found, tuple) else (None, found)
        dtype = drawn_type(request)
        if drawn not in (None, request) or noise.shape != (request.size,) or noise.dtype != dtype:
            what = drawn or f"{noise.dtype} noise of shape {noise.shape}"
            raise self._diverged(f"for {request}, but recorded was {what}")
        self._recorded.take()
        noise = noise.view()
        noise.flags.writeable = False
        return noise

    def random_bytes(self, count: int) -> bytes:
        """The next bytes of the recording.

        Raises:
            ReplayDivergence: Another number of bytes, or nothing, was recorded here; the source is unchanged.
            LocalProtocolError: `count` is less than 1.
        """
        check_byte_count(count)
        found = self._keys.peek()
        if found is None or len(found) != count:
            was = "no more were recorded" if found is None else f"recorded were {len(found)}"
            raise ReplayDivergence(
                f"The replay asks for {count} random bytes at place {self._keys.place}, but {was}.",
                advice=_ADVICE,
            )
        self._keys.take()
        return found

    def ensure_used(self) -> None:
        """Check, at the end of a replay, that all recorded noise was used.

        Raises:
            ReplayDivergence: Noise or bytes are left.
        """
        for left, what in ((self._recorded, "noise"), (self._keys, "random bytes")):
            if left.peek() is not None:
                raise ReplayDivergence(
                    f"The replay ended without the {what} that was recorded at place {left.place}.",
                    advice=_ADVICE,
                )

    def _diverged(self, what: str) -> ReplayDivergence:
        return ReplayDivergence(f"The replay asks at place {self._recorded.place} {what}.", advice=_ADVICE)


T = TypeVar("T")


class _Ahead(Generic[T]):
    def __init__(self, items: Iterator[T]) -> None:
        self.place = 0
        """Number of items taken."""
        self._items = items
        self._next: T | None = None

    def peek(self) -> T | None:
        """The next item; None after the last."""
        if self._next is None:
            self._next = next(self._items, None)
        return self._next

    def take(self) -> None:
        """Skip the item that `peek` returned."""
        self._next = None
        self.place += 1
