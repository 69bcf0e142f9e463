"""The version that archives get, by `[tool.hatch.version]`; a tree that lost its links builds none.

The packages at the top of the repository are in `hushbid` by links. Some archives, and git on some systems,
put files in their place, and an archive of such a tree would lack whole packages.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LINKS = ("protocol", "curator", "owner", "consumer", "lab", "configs")


def version() -> str:
    """`__version__` of `hushbid.protocol`.

    Raises:
        RuntimeError: A link is lost; says how to get it back.
    """
    if lost := [name for name in LINKS if not (ROOT / "hushbid" / name).is_dir()]:
        raise RuntimeError(
            f"hushbid/{lost[0]} is no folder: this copy of hushbid has lost its links. "
            "Clone it with them: git -c core.symlinks=true clone."
        )
    text = (ROOT / "hushbid" / "protocol" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__[^=]*= "([^"]+)"', text, re.MULTILINE)
    assert found is not None, "hushbid.protocol says its version"
    return found[1]
