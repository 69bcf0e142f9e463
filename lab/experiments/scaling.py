"""What a session costs and shows its curator, by the number of owners K, for every acquisition rule.

Owners draw their points with replacement from those of the digits' owners. Sessions run in one process: time
and memory count all parties together, and bytes count all frames sent.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from hushbid.cluster.data import of_partition, spread
from hushbid.datasets import Partition, Table, build
from hushbid.lab.experiments.bought_in_session import SESSIONS, opened, played, selection_of
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.market import Market
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none, refuse_unknown
from hushbid.lab.purchase_options import ScalingOptions
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.platform import peak_memory
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.runtime.driver import Outgoing

__all__ = ["ScalingRow", "scaling"]

OWNERS: Final = (4, 32, 256, 2048)
BATCHES: Final = (1, 5)
EPSILON: Final = 3.0
ASK_EPSILON: Final = {"published": 0.5, "logistic": 1.0}
"""ε of the rules that have their own: DPDS's ε_auc, and the limit on what asks reveal."""
_HIDDEN_MAP: Final = ("sealed", "blind")
_BLIND: Final = "blind"


@dataclass(frozen=True, kw_only=True)
class ScalingRow(ExperimentRow):
    """One rule with one number of owners and one batch, over all seeds: means."""

    rule: str
    owners: int
    batch: int
    points: int
    owner_points: int
    rounds: float | None
    raw_points: float | None
    features: float | None
    raw_per_point: float | None
    mmd2: float | None
    epsilon_owners: float | None
    seconds: float | None
    bytes_sent: float | None
    bytes_per_bid: float | None
    memory_mb: float | None
    seeds: int
    note: str


_FIGURES: Final = (
    "rounds",
    "raw_points",
    "features",
    "raw_per_point",
    "mmd2",
    "epsilon_owners",
    "seconds",
    "bytes_sent",
    "bytes_per_bid",
    "memory_mb",
)


def _pairs(options: ScalingOptions) -> Iterator[tuple[Configuration, int]]:
    rules, counts = options.rules or tuple(RULES), options.owners or OWNERS
    batches = options.batches or BATCHES
    refuse_none(a_rule=rules, a_number_of_owners=counts, a_batch=batches, a_seed=options.every_seed)
    refuse_unknown(rules, RULES, "acquisition rule", "Rules")
    fixed = {"points": options.points, "owner_points": options.owner_points}
    for seed in options.every_seed:
        for owners in counts:
            for rule in rules:
                for batch in [1] if RULES[rule].one_at_a_time else batches:
                    yield {**fixed, "rule": rule, "owners": owners, "batch": batch}, seed


def _said(configuration: Configuration, seed: int) -> str:
    return (
        f"{configuration['rule']}, K = {configuration['owners']}, b = {configuration['batch']}, seed {seed}"
    )


@lru_cache(maxsize=1)
def _market(owners: int, owner_points: int, seed: int) -> Market:
    dealt = build("digits", seed=seed)
    many = spread(of_partition(dealt), owners, owner_points, seed=seed).owners
    tables = {name: Table(held.features, _labels(held.labels)) for name, held in many.items()}
    partition: Partition = replace(dealt, owners=tables)
    return Market(partition, float(dealt.suggested["gamma"]), str(dealt.suggested["model"]), seed)


def _labels(labels: Any) -> Any:
    assert labels is not None, "digits have labels"
    return labels


def _measure(_options: ScalingOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    rule, owners, batch, p = (configuration[name] for name in ("rule", "owners", "batch", "points"))
    market = _market(owners, configuration["owner_points"], seed)
    hidden = {"seed": None} if rule in _HIDDEN_MAP else {}
    own = {"epsilon": ASK_EPSILON[rule]} if rule in ASK_EPSILON else {}
    method = replace(
        SESSIONS["private"],
        features=hidden,
        session={"batch": batch},
        acquisition={"rule": rule, **own},
    )
    try:
        session = opened(market, method, p, EPSILON)
    except ConfigError as error:
        return {"note": error.what}
    sent: Counter[str] = Counter()

    def count(_sender: str, _receiver: str, frame: Outgoing) -> None:
        sent["bytes"] += len(frame.data)

    _forget_peak()
    started = time.process_time()
    outcome = played(market, session, tap=count)
    spent = time.process_time() - started
    ledger, rounds = outcome.curator.ledger, outcome.curator.round
    bought = selection_of(outcome)
    return {
        "note": "",
        "rounds": rounds,
        "raw_points": ledger.points_accessed,
        "features": 0 if rule == _BLIND else ledger.candidates,
        "raw_per_point": ledger.points_accessed / max(1, len(bought)),
        "mmd2": market.mmd2(bought) if bought else None,
        "epsilon_owners": session.privacy()[0].epsilon,
        "seconds": spent,
        "bytes_sent": sent["bytes"],
        "bytes_per_bid": sent["bytes"] / (owners * max(1, rounds)),
        "memory_mb": peak_memory() / 1e6,
    }


def _forget_peak() -> None:
    """Reset the peak of resident memory (proc(5), ``clear_refs``)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _row(configuration: Configuration, measured: Sequence[Measured]) -> ScalingRow:
    known = {name: [value for each in measured if (value := each.get(name)) is not None] for name in _FIGURES}
    sizes = {name: configuration[name] for name in ("rule", "owners", "batch", "points", "owner_points")}
    figures: dict[str, Any] = {name: fmean(values) if values else None for name, values in known.items()}
    return ScalingRow(
        **sizes,
        **figures,
        seeds=len(measured),
        note=measured[0]["note"],
    )


scaling: Final = Experiment(
    options=ScalingOptions,
    title="What a session costs and shows its curator, by the number of owners",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    figure=PlottedFigure("owners", "raw_per_point", ("rule", "batch"), log_y=True),
)
