"""Writing an invitation, for `hushbid invite` and `hushbid again`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomli_w

from hushbid.protocol.config.invitation import invitation
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data.column import MOMENTS, Column
from hushbid.text_files import write_new_file

__all__ = ["with_dates", "write_invitation"]


def write_invitation(
    path: Path, session: SessionFile, party: str, key: Identity, *, expires: str
) -> dict[str, Any]:
    """Write a party's invitation to a new file; returns its values (`invitation`, whose errors it raises)."""
    values = invitation(session, party, key, expires=expires)
    head = f"# An invitation to a session, for {party}. Nothing in it is secret.\n"
    write_new_file(path, head + with_dates(tomli_w.dumps(values), session.columns))
    return values


def with_dates(text: str, columns: Iterable[Column]) -> str:
    """The text with the bounds of dates and times beside their numbers, for whoever has to agree to them."""
    for column in columns:
        if column.kind not in MOMENTS:
            continue
        said = {key: value for key, value in column.written().items() if key in ("lower", "upper", "missing")}
        comment = "# " + ", ".join(f"{key} {value}" for key, value in said.items())
        line = f"kind = {tomli_w.dumps({'': column.kind}).partition('= ')[2]}"
        name = tomli_w.dumps({"name": column.name})
        text = text.replace(name + line, f"{name}{line.rstrip()}  {comment}\n", 1)
    return text
