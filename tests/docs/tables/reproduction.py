"""Tables of docs/reproduction.md, from the experiments' rows that are kept in docs/reproduction/."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from tests.conftest import ROOT
from tests.docs.tables.markers import Made

KEPT: Final = ROOT / "docs" / "reproduction"
OURS: Final = ("private", "1")
"""Ours, at the ε that it is compared at."""

Row: TypeAlias = Mapping[str, str]


def rows_of(name: str, kept: Path = KEPT) -> list[Row]:
    """The rows of an experiment, as `hushbid experiment NAME --output DIR` leaves them in rows.csv."""
    with (kept / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def shown(value: str, form: str) -> str:
    """A figure; a dash if there is none."""
    return f"{float(value):{form}}" if value else "–"


# -- purchases ----------------------------------------------------------------------------------------------


def purchases(name: str, setting: str, kept: Path = KEPT) -> str:
    """Every method's row of an experiment on purchases.

    Args:
        setting: The column that distinguishes its settings, besides p; empty: there is one.
        kept: Where the rows are.
    """
    head = [
        "p",
        "method",
        "ε",
        "seeds",
        "wanted",
        "over greedy",
        "weighted",
        "accuracy",
        "weighted",
        "eff. points",
    ]
    return table(
        [*([_TITLES[setting]] if setting else []), *head],
        (
            [
                *([shown(row[setting], "g")] if setting else []),
                row["points"],
                row["method"],
                shown(row["epsilon"], "g"),
                row["seeds"],
                shown(row["wanted"], ".0f"),
                shown(row["increase"], "+.0f") + (" %" if row["increase"] else ""),
                shown(row["increase_weighted"], "+.0f") + (" %" if row["increase_weighted"] else ""),
                shown(row["accuracy"], ".3f"),
                shown(row["accuracy_weighted"], ".3f"),
                shown(row["effective_points"], ".0f"),
            ]
            for row in rows_of(name, kept)
        ),
    )


_TITLES: Final = {"gamma": "γ", "share": "wanted share"}
_COMPARED: Final = (("insurance", ""), ("rare", "share"), ("mnist", "gamma"))


def compared(kept: Path = KEPT) -> list[tuple[str, str, Row, Row, Row | None]]:
    """For every setting ours at ε = 1, uniform and the published parameters: name, setting, and the rows."""
    found = []
    for name, setting in _COMPARED:
        groups: dict[tuple[str, str], dict[tuple[str, str], Row]] = defaultdict(dict)
        for row in rows_of(name, kept):
            said = f"{_TITLES[setting]} {float(row[setting]):g}, " if setting else ""
            groups[said, row["points"]][row["method"], row["epsilon"]] = row
        for (said, points), rows in groups.items():
            ours, uniform = rows[OURS], rows["uniform", ""]
            found.append((name, f"{said}p = {points}", ours, uniform, rows.get(("published", ""))))
    return found


def better(ours: Row, other: Row) -> list[str]:
    """The figures with weights in which ours is better."""
    names = {"accuracy_weighted": "accuracy", "effective_points": "eff. points"}
    return [said for name, said in names.items() if float(ours[name]) > float(other[name])]


def won(kept: Path = KEPT) -> str:
    """Ours at ε = 1 beside uniform and the published parameters, all with weights."""

    def pair(row: Row) -> str:
        return f"{float(row['accuracy_weighted']):.3f}, {float(row['effective_points']):.0f}"

    def said(ours: Row, other: Row | None) -> str:
        return "–" if other is None else " and ".join(better(ours, other)) or "**nothing**"

    def seeds(ours: Row, published: Row | None) -> str:
        other = "" if published is None or published["seeds"] == ours["seeds"] else published["seeds"]
        return ours["seeds"] + (f" (published: {other})" if other else "")

    head = [
        "data",
        "setting",
        "seeds",
        "ours",
        "uniform",
        "published",
        "better than uniform by",
        "than published by",
    ]
    return table(
        head,
        (
            [
                name,
                setting,
                seeds(ours, published),
                pair(ours),
                pair(uniform),
                "–" if published is None else pair(published),
                said(ours, uniform),
                said(ours, published),
            ]
            for name, setting, ours, uniform, published in compared(kept)
        ),
    )


# -- the others ---------------------------------------------------------------------------------------------


def rivals(kept: Path = KEPT) -> str:
    return table(
        ["kind", "rival", "ε", "seeds", "MMD²", "weighted", "accuracy", "weighted", "eff. points"],
        (
            [
                row["kind"],
                row["rival"],
                shown(row["epsilon"], "g"),
                row["seeds"],
                shown(row["mmd2"], ".4f"),
                shown(row["mmd2_weighted"], ".4f"),
                shown(row["accuracy"], ".3f"),
                shown(row["accuracy_weighted"], ".3f"),
                shown(row["effective_points"], ".0f"),
            ]
            for row in rows_of("rivals", kept)
        ),
    )


def privacy_utility(kept: Path = KEPT) -> str:
    """MMD² and accuracy of each release, a column for each ε."""
    rows = rows_of("privacy-utility", kept)
    epsilons = sorted({row["epsilon"] for row in rows if row["epsilon"]}, key=float)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        cell = f"{float(row['mmd2_weighted']):.4f}, {float(row['accuracy_weighted']):.3f}"
        found[row["method"]][row["epsilon"]] = cell
    nearer = ["*nearer than uniform*"]
    for each in epsilons:
        uniform = next(float(row["mmd2_weighted"]) for row in rows if row["method"] == "uniform")
        tried = {row["method"]: float(row["mmd2_weighted"]) for row in rows if row["epsilon"] == each}
        nearer.append(", ".join(name for name, mmd2 in tried.items() if mmd2 < uniform) or "none")
    return table(
        ["release", *(f"ε = {float(each):g}" for each in epsilons)],
        [
            *(
                [name, *(cells.get(each) or cells.get("", "–") for each in epsilons)]
                for name, cells in found.items()
            ),
            nearer,
        ],
    )


def scaling(kept: Path = KEPT) -> str:
    """What the curator sees by K, and its exponent; a row for each rule and b."""
    rows = rows_of("scaling", kept)
    counts = sorted({int(row["owners"]) for row in rows})
    found: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
    for row in rows:
        found[row["rule"], row["batch"]][int(row["owners"])] = row

    def cells(rule: str, batch: str, by_owners: Mapping[int, Row]) -> list[str]:
        raw = [shown(by_owners[k]["raw_per_point"], ".1f") if k in by_owners else "–" for k in counts]
        last = max(k for k, row in by_owners.items() if row["bytes_sent"])
        most = by_owners[last]
        return [
            rule,
            batch,
            *raw,
            _exponent(by_owners, "raw_per_point"),
            str(last),
            shown(most["features"], ".0f"),
            shown(most["seconds"], ".0f"),
            f"{float(most['bytes_sent']) / 1e6:.0f}",
            shown(most["memory_mb"], ".0f"),
            _exponent(by_owners, "bytes_sent"),
        ]

    head = [
        "rule",
        "b",
        *(f"K = {k}" for k in counts),
        "exponent",
        "at K",
        "features",
        "s",
        "MB sent",
        "MB",
        "exponent of bytes",
    ]
    return table(head, (cells(rule, batch, by_owners) for (rule, batch), by_owners in found.items()))


def _exponent(by_owners: Mapping[int, Row], figure: str) -> str:
    found = exponent({k: float(row[figure]) for k, row in by_owners.items() if row[figure]})
    return "–" if found is None else f"{found:.2f}"


def exponent(by_owners: Mapping[int, float]) -> float | None:
    """The slope of the logarithm of a figure over that of K, by least squares; None with fewer than two."""
    known = [(k, figure) for k, figure in by_owners.items() if figure > 0.0]
    if len(known) < 2:
        return None
    owners, values = np.log(np.array(known)).T
    return float(np.polyfit(owners, values, 1)[0])


REPRODUCTION: Final[dict[str, Made]] = {
    "won": won,
    "insurance": partial(purchases, "insurance", ""),
    "mnist": partial(purchases, "mnist", "gamma"),
    "rare": partial(purchases, "rare", "share"),
    "rivals": rivals,
    "privacy-utility": privacy_utility,
    "scaling": scaling,
}
