"""Tables of docs/results.md, docs/catalogue.md, docs/audit.md and docs/faults.md."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from hushbid.consumer.appraisal import Judgement
from hushbid.consumer.own_figures import OwnFigures
from hushbid.consumer.result import ConsumerResult
from hushbid.consumer.verdict import Verdict
from hushbid.curator.result import CuratorResult
from hushbid.evidence.audit.faults import FAULTS
from hushbid.evidence.audit.suites import SUITES
from hushbid.evidence.sweep.invariants import INVARIANTS
from hushbid.lab.bench.records import RecordsCost
from hushbid.lab.bench.rules import SETTINGS as BENCHED
from hushbid.lab.experiments import (
    kme,
    purchases,
    race,
    regression,
    rivals,
    scaling,
    screening,
    selection,
    worth,
)
from hushbid.owner.result import OwnerResult
from hushbid.protocol.figures import Figures
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.odometer import Odometer
from hushbid.results.run import Choices, RunResult
from tests.conftest import ROOT
from tests.docs.tables.markers import Made, Table, code, codes, first_cells

_RUN: Final = RunResult(
    session="s", p=1, batch=1, seed_weight=0.1, rule="sealed", jitter=25.0, distinct=True,
    owners=1, rounds=1, wall_seconds=1.0,
    choices=Choices(),
    points_accessed_curator=0, points_delivered=0, disputed=0, m=1,
    privacy=(), odometers=(), settlement={}, settlement_terms=SettlementTerms.of(None, ""), absences={},
    faults=(),
)  # fmt: skip


def returned(*functions: str) -> Table:
    """The keys of the dictionaries that functions make: running them would take a session."""
    found = []
    for function in functions:
        path, _, name = function.partition(":")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        bodies = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        found += list(_keys(bodies[name]))
    assert len(found) > 6
    return Table([(cell,) for cell in found], ordered=False)


def _keys(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield code(key.value)
                elif isinstance(value, ast.DictComp):
                    yield from (code(f"{setting}_rounds_per_second") for setting in BENCHED)


_FLAT: Final[dict[str, Figures]] = {"judgement": Judgement(), "own": OwnFigures(), "verdict": Verdict()}


def record(kind: type[Figures]) -> Table:
    """The fields of a record in its JSON, with those of records that share its level."""
    types: dict[str, Any] = vars(kind)["__pydantic_fields__"]
    cells = [
        codes(_FLAT[name].as_json()) if name in kind.FLAT else code(field.alias or name)
        for name, field in types.items()
    ]
    return Table([(cell,) for cell in [*cells, *map(code, kind.TOLD)]], ordered=False)


def fields(row: Any) -> Table:
    """The fields of a dataclass."""
    return first_cells(field.name for field in dataclasses.fields(row))


RESULTS: Final[dict[str, Made]] = {
    "run": lambda: Table([(code(name),) for name in _RUN.as_json()], ordered=False),
    "judgement": partial(first_cells, Judgement().as_json()),
    "privacy": partial(first_cells, PrivacyStatement("", "", "", None, 1e-5, None, "", "").as_json()),
    "odometer": partial(first_cells, Odometer("", "", 1e-5, (), ()).as_json()),
    "curator": partial(record, CuratorResult),
    "owner": partial(record, OwnerResult),
    "consumer": partial(record, ConsumerResult),
    "bench rounds": partial(returned, "hushbid/lab/bench/rounds.py:bench_rounds"),
    "bench points": partial(returned, "hushbid/lab/bench/points.py:bench_points"),
    "bench peers": partial(returned, "hushbid/lab/bench/peers.py:bench_peers"),
    "bench tender": partial(returned, "hushbid/lab/bench/tender.py:bench_tender"),
    "bench rules": partial(returned, "hushbid/lab/bench/rules.py:bench_rules"),
    "bench records": partial(fields, RecordsCost),
    "bench owners": partial(returned, "hushbid/lab/bench/owners.py:bench_owners"),
    "experiment selection": partial(fields, selection.SelectionRow),
    "experiment kme": partial(fields, kme.KmeRow),
    "experiment race": partial(fields, race.RaceRow),
    "experiment regression": partial(fields, regression.RegressionRow),
}
CATALOGUE: Final[dict[str, Made]] = {"experiment screening": partial(fields, screening.ScreeningRow)}
EXPERIMENTS: Final[dict[str, Made]] = {
    "purchases": partial(fields, purchases.PurchaseRow),
    "rivals": partial(fields, rivals.RivalRow),
    "scaling": partial(fields, scaling.ScalingRow),
    "worth": partial(fields, worth.WorthRow),
}
AUDIT: Final[dict[str, Made]] = {
    "suites": lambda: Table(
        [(code(name), suite.expected) for name, suite in SUITES.items() if name not in FAULTS]
    ),
    "faults": lambda: Table([(code(name), code(fault.sound)) for name, fault in FAULTS.items()]),
}
FAULT_SWEEP: Final[dict[str, Made]] = {
    # The last two are no functions: one compares two sessions, the other is what ends one.
    "invariants": partial(first_cells, [*INVARIANTS, "same-again", "no-bug"]),
}
