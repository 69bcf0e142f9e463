"""Tables of docs/data.md."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from tests.docs.tables.markers import Made
from tests.docs.tables.reproduction import table
from tests.support.public_tables import COLLECTIONS, kept_rows


def public_tables() -> str:
    """How many public tables survive a round trip, and which are refused and why."""
    rows = []
    for collection in COLLECTIONS:
        kept = [row for row in kept_rows() if row[0] == collection]
        why = [_general(row[4]) for row in kept if row[4]]
        rows.append([collection, "all", str(len(kept))])
        rows.append([collection, "bought of, and back as they were", str(len(kept) - len(why))])
        for reason in dict.fromkeys(why):
            names = [row[1].removesuffix(".csv") for row in kept if _general(row[4]) == reason]
            rows.append([collection, f"refused: {reason} ({', '.join(names)})", str(len(names))])
    return table(["package", "tables", "how many"], rows)


def left_out() -> str:
    """How many columns of all tables the drafts have, and which they leave out and why."""
    kept = kept_rows()
    counted = Counter(
        re.sub(r"\d+ different", "more than 100 different", each.partition(": ")[2])
        for row in kept
        for each in row[3].split("; ")
        if each
    )
    rows = [["drafted", str(sum(int(row[2]) for row in kept))]]
    rows += [[f"left out: {why}", str(count)] for why, count in counted.most_common()]
    return table(["columns", "how many"], rows)


def _general(why: str) -> str:
    """A reason without the table's own words."""
    said = re.sub(r"^(table|wanted|north|south|east)\.csv", "the file", why).rstrip(".")
    return re.sub(r"'[^']*'", "…", said)


DATA: Final[dict[str, Made]] = {"public tables": public_tables, "columns left out": left_out}
