"""What the site's build changes in a page (an mkdocs hook, named in mkdocs.yml)."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from griffe import Module, ModuleFinder

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
STUB = Path(__file__).parent.parent / "hushbid" / "__init__.pyi"


def on_config(config: Any) -> None:
    """Have the reference read the packages that public names come from alone: the others take a second."""
    del config
    kept = set(re.findall(r"^from \.(\w+)", STUB.read_text(encoding="utf-8"), re.MULTILINE))
    found = ModuleFinder.submodules

    def submodules(self: ModuleFinder, module: Module) -> list[Any]:
        return [each for each in found(self, module) if module.path != "hushbid" or each[0][0] in kept]

    ModuleFinder.submodules = submodules  # type: ignore[method-assign]


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
