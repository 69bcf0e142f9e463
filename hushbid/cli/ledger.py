"""`hushbid ledger`: the privacy loss spent on a dataset, by session and catalogue entry."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

import typer

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import tell, verb

if TYPE_CHECKING:
    from hushbid.protocol.runtime.ledger.lifetime_ledger import LedgerOnRecord
    from hushbid.protocol.runtime.ledger.spending import Spending

__all__ = ["ledger_command"]

DELTA: Final = 1e-5
"""The δ of a total when no budget specifies one."""
_SHOWN_DIGITS: Final = 8
"""Characters of an identifier: enough to distinguish sessions of the same name."""


class _Total(TypedDict):
    """What is spent together, or may be."""

    epsilon: float
    delta: float
    neighbours: str | None


class _Charge(TypedDict):
    """A session's or an entry's; `epsilon` is None where no guarantee can be stated."""

    kind: str
    name: str
    identifier: str
    date: str
    epsilon: float | None
    delta: float
    neighbours: str


class _Ledger(TypedDict):
    """A ledger with its charges in the order of their dates."""

    file: str
    budget: _Total | None
    spent: _Total
    spendings: list[_Charge]


class _Ledgers(TypedDict):
    """The verb's result."""

    ledgers: list[_Ledger]


def _show(result: _Ledgers) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    from hushbid.cli.terminal import Terminal

    console = Terminal()
    titles = ("date", "kind", "name", "", "ε", "δ", "neighbours")
    for ledger in result["ledgers"]:
        tell(ledger["file"])
        if ledger["spendings"]:
            # Names wrap where space is short; figures and the neighbour relation stay whole.
            columns = (Column(title, overflow="fold", no_wrap=title not in ("name", "")) for title in titles)
            table = Table(*columns, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
            for row in ledger["spendings"]:
                epsilon = "no guarantee" if row["epsilon"] is None else f"{row['epsilon']:.4g}"
                name, place = row["name"], _shortened(row["identifier"])
                figures = (epsilon, f"{row['delta']:.1g}", row["neighbours"])
                table.add_row(row["date"], row["kind"], name, place, *figures)
            sys.stdout.flush()
            console.print(table)
        tell("\n".join(_totals(ledger)))


@verb(show=_show)
def ledger_command(
    files: Annotated[
        list[Path],
        typer.Argument(help="Lifetime ledgers, or the data files beside them.", metavar="FILE..."),
    ],
) -> _Ledgers:
    """Show the privacy spent on a dataset, by session and catalogue entry, and its budget.

    The ledger is neither changed nor locked: a party may be using it.
    """
    from hushbid.protocol.runtime.ledger.lifetime_ledger import read_ledger

    paths = [_ledger_of(file) for file in files]
    return {"ledgers": [_described(path, read_ledger(path)) for path in paths]}


def _ledger_of(file: Path) -> Path:
    from hushbid.protocol.runtime.ledger.lifetime_ledger import may_be_ledger

    beside = file.with_name(f"{file.name}.ledger")
    if beside.exists():
        return beside
    if not may_be_ledger(file):
        raise ConfigError(
            f"{file} is not a ledger, and {beside.name} does not lie beside it: no session that kept its "
            "ledger there was charged for these data.",
            advice="If a party's file names another place (`ledger`), name that.",
        )
    return file


def _described(path: Path, ledger: LedgerOnRecord) -> _Ledger:
    cap = ledger.cap
    delta = DELTA if cap is None else cap.budget.delta
    budget: _Total | None = None
    if cap is not None:
        budget = {"epsilon": cap.budget.epsilon, "delta": delta, "neighbours": cap.neighbours}
    return {
        "file": str(path.resolve()),
        "budget": budget,
        "spent": {"epsilon": ledger.spent(delta), "delta": delta, "neighbours": ledger.neighbours},
        "spendings": [_spent(spending) for spending in ledger.spendings],
    }


def _spent(spending: Spending) -> _Charge:
    name, _, rest = spending.identifier.partition("/")
    return {
        "kind": spending.kind,
        "name": name,
        "identifier": rest,
        "date": spending.date.isoformat(),
        "epsilon": spending.epsilon,
        "delta": spending.delta,
        "neighbours": spending.neighbours,
    }


def _shortened(identifier: str) -> str:
    """A shortened identifier that people can tell from others: long numbers are cut."""
    digits = set("0123456789abcdef")
    return " ".join(part[:_SHOWN_DIGITS] if set(part) <= digits else part for part in identifier.split("/"))


def _perfect(spending: _Charge) -> bool:
    """Whether the charge is an owner's and reveals nothing; a consumer's without ε reuses a release."""
    from hushbid.protocol.privacy.releases import Neighbours

    return spending["epsilon"] == 0.0 and spending["neighbours"] == Neighbours.ADD_REMOVE_ONE


def _totals(ledger: _Ledger) -> list[str]:
    spent, budget = ledger["spent"], ledger["budget"]
    if not ledger["spendings"]:
        lines = ["Nothing was spent."]
    elif math.isfinite(spent["epsilon"]):
        total = f"ε = {spent['epsilon']:.4g} at δ = {spent['delta']:.1g} ({spent['neighbours']})"
        lines = [f"Spent together: {total}."]
    else:
        lines = [f"Spent together: no ε can be stated ({spent['neighbours']})."]
    if free := sum(_perfect(each) for each in ledger["spendings"]):
        said = "1 session" if free == 1 else f"{free} sessions"
        lines.append(f"Nothing charged between owners: {said} in which no owner learns of another's records.")
    if budget is None:
        return [*lines, "No budget: nothing is refused."]
    allowed = f"ε = {budget['epsilon']:.4g} at δ = {budget['delta']:.1g} ({budget['neighbours']})"
    return [*lines, f"Budget: {allowed}."]
