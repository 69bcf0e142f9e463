"""The console of all verbs: it prints text literally, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hushbid.protocol.printable import printable_lines

__all__ = ["Terminal"]


class Terminal(Console):
    """A console that interprets no markup and no emoji in text, and escapes unprintable characters.

    The sequences that it writes itself, for colours and moving bars, are not text.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None, highlight: bool = True) -> None:
        super().__init__(stderr=stderr, width=width, highlight=highlight, markup=False, emoji=False)

    def render_str(self, text: str, **settings: Any) -> Text:
        """As in Rich, but text is measured in its printed form."""
        return super().render_str(printable_lines(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)
