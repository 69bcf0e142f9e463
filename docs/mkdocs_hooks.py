"""What the site's build changes in a page (an mkdocs hook, named in mkdocs.yml)."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files outside the documents, which are not on the site, by their paths."""

    def inside(match: re.Match[str]) -> str:
        text, link = match.groups()
        path = posixpath.normpath(
            posixpath.join(posixpath.dirname(page.file.src_uri), link.partition("#")[0])
        )
        outside = ":" not in link and path.startswith("../")
        return f"{text} (`{path.removeprefix('../')}`)" if outside else match[0]

    return LINK.sub(inside, markdown)
