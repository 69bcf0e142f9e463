"""Methods that run a session: all parties' machines in this process, with simulated noise.

The noise has the distribution that the stated ε needs, but whoever knows the seed could subtract it. Unless a
method has its own rule, it uses `ask-all`, which buys the points of `sealed` and `blind` without sealing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from hushbid.cluster.evaluation import Selection
from hushbid.lab.experiments.market import DELTA, Bought, Market
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.data import Dataset, read_attributes
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.runtime.party import ensure_done
from hushbid.protocol.session.session import Session, open_session
from hushbid.simulation.simulator import Simulation, SimulationOutcome

__all__ = ["SESSIONS", "SessionMethod", "buy", "opened", "played", "selection_of"]

Keys: TypeAlias = Mapping[str, Any]

_NEIGHBOURS: Final = {"target": Neighbours.SUBSTITUTE_ONE, "summary": Neighbours.ADD_REMOVE_ONE}
_PAPERS_ROUNDS: Final[Keys] = {"batch": 1, "seed_weight": 1.0}
"""One point per round, and a seed set of full weight."""
_FIRST_STEPS: Final = 1656
"""T_init = d^1.5 of DPDS Table 1. So are the next two constants: T_subs, and the grid's spacing."""
_STEPS: Final = 5
_ETA: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class SessionMethod:
    """How a session buys: keys of its feature map, of the session, and of the rule.

    Attributes:
        target, summary: Keys of each side's release, as functions of ε and p.
        calibrated: Whether the method can be calibrated to an ε.
    """

    target: Callable[[float, int], Keys]
    summary: Callable[[float, int], Keys]
    features: Keys = field(default_factory=dict)
    session: Keys = field(default_factory=dict)
    acquisition: Keys = field(default_factory=lambda: {"rule": "ask-all"})
    calibrated: bool = True


def _at(epsilon: float, mechanism: str, side: str, keys: Keys) -> Keys:
    return {"mechanism": mechanism, "epsilon": epsilon, "neighbours": _NEIGHBOURS[side].value, **keys}


def _alike(mechanism: str, *, keys: Keys | None = None, **others: Any) -> SessionMethod:
    """The same release with the same keys on both sides."""
    return SessionMethod(
        target=lambda epsilon, _p: _at(epsilon, mechanism, "target", keys or {}),
        summary=lambda epsilon, _p: _at(epsilon, mechanism, "summary", keys or {}),
        **others,
    )


def _printed_target(_epsilon: float, _p: int) -> Keys:
    return {
        "mechanism": "mwem",
        "neighbours": _NEIGHBOURS["target"].value,
        "calibration": "published",
        "step_epsilon": 0.01,
        "steps": _FIRST_STEPS,
        "eta": _ETA,
    }


def _printed_summary(_epsilon: float, p: int) -> Keys:
    return {
        "mechanism": "mwem",
        "neighbours": _NEIGHBOURS["summary"].value,
        "calibration": "published",
        "step_epsilon": 0.01 / math.sqrt(p * _STEPS),
        "steps": _STEPS,
        "eta": _ETA,
        "first_epsilon": 0.05,
        "first_steps": _FIRST_STEPS,
    }


_TENDER: Final[Mapping[str, Keys]] = {
    "features": {"seed": None, "dimension": 1_024},
    # A box holds an image, and a message p points.
    "acquisition": {"rule": "tender", "box_bytes": 1_024},
}

_SOUND_MWEM: Final[Keys] = {"calibration": "sound", "eta": _ETA}

SESSIONS: Final[Mapping[str, SessionMethod]] = {
    "private": _alike("filtered-gaussian"),
    "tender": _alike("filtered-gaussian", **_TENDER),
    "tender-exact": SessionMethod(
        target=lambda _epsilon, _p: {"mechanism": "exact"},
        summary=lambda _epsilon, _p: {"mechanism": "exact"},
        **_TENDER,
        calibrated=False,
    ),
    "gaussian": _alike("gaussian"),
    "subspace": _alike("subspace", keys={"directions": 140}, features={"dimension": 512}),
    "race": _alike("race", features={"name": "lsh", "dimension": 400, "cells": 4}),
    "published-sound": SessionMethod(
        target=lambda epsilon, _p: _at(epsilon, "mwem", "target", {**_SOUND_MWEM, "steps": _FIRST_STEPS}),
        summary=lambda epsilon, _p: _at(
            epsilon, "mwem", "summary", {**_SOUND_MWEM, "steps": _STEPS, "first_steps": _FIRST_STEPS}
        ),
        features={"name": "cosine"},
        session=_PAPERS_ROUNDS,
    ),
    "published": SessionMethod(
        target=_printed_target,
        summary=_printed_summary,
        features={"name": "cosine"},
        session=_PAPERS_ROUNDS,
        acquisition={"rule": "published", "epsilon": 0.5},
        calibrated=False,
    ),
    "exact": SessionMethod(
        target=lambda _epsilon, _p: {"mechanism": "exact"},
        summary=lambda _epsilon, _p: {"mechanism": "exact"},
        session=_PAPERS_ROUNDS,
        calibrated=False,
    ),
}
"""Methods by name. `private` is what hushbid does by default, and `tender` the rule of that name; `published`
has the noise, the parameters and the auction of DPDS §4, and `published-sound` its mechanism and rounds at an
ε that holds; `exact` is the papers' greedy choice through the protocol, without noise, and `tender-exact` a
tender without noise, which is greedy by what the session looks at, labels too."""


def opened(market: Market, method: SessionMethod, p: int, epsilon: float | None) -> Session:
    """Open the session that buys p points.

    Raises:
        ConfigError: The settings contradict each other.
    """
    asked = 1.0 if epsilon is None else float(epsilon)
    sections = {
        "session": {
            "name": "experiment",
            "points": p,
            "delta": DELTA,
            # Simulated noise protects nobody, and must be allowed explicitly.
            "allow_nonprivate": True,
            **method.session,
        },
        "features": market.features(**method.features),
        "target": dict(method.target(asked, p)),
        "summary": dict(method.summary(asked, p)),
        "acquisition": dict(method.acquisition),
        "noise": {"source": "simulated", "seed": market.seed},
        "network": {"address": "tcp://127.0.0.1:*", "insecure": True},
        "roster": {"owners": dict.fromkeys(market.partition.owners, "")},
        **({} if market.choice is None else {"labels": market.choice.model_dump()}),
    }
    return open_session(validated(SessionFile, sections, where="the experiment"))


def buy(market: Market, method: SessionMethod, p: int, epsilon: float | None) -> Bought:
    """Run the session to its end.

    Raises:
        HushbidError: It did not end well.
    """
    session = opened(market, method, p, epsilon)
    started = time.process_time()
    outcome = played(market, session)
    spent = time.process_time() - started
    owners, consumer, *_ = session.privacy()
    return Bought(selection_of(outcome), owners.epsilon, consumer.epsilon, spent)


def played(
    market: Market, session: Session, tap: Callable[[str, str, Outgoing], None] | None = None
) -> SimulationOutcome:
    """Run a session to its end, with row numbers as identifiers of the points.

    Raises:
        HushbidError: It did not end well.
    """
    keep_one_blas_thread()  # The parties' processes do the same: the same sums in the same order.
    held = market.partition
    outcome = Simulation(
        session,
        owners={
            name: Dataset.from_arrays(name, table.features, table.labels, np.arange(len(table)))
            for name, table in held.owners.items()
        },
        validation=_validation(market),
        seed_set=Dataset.from_arrays("seed-set", held.seed_set.features),
        tap=tap,
    ).run()
    for finish in outcome.finishes.values():
        ensure_done(finish)
    return outcome


def _validation(market: Market) -> Dataset:
    """D_v, with labels only if the choice uses them."""
    held = market.partition.validation
    if market.choice is None:
        return Dataset.from_arrays("validation", held.features)
    return Dataset.from_arrays("validation", held.features, held.labels, labelled=market.labelled)


def selection_of(outcome: SimulationOutcome) -> Selection:
    """The bought points, in order of delivery."""
    delivered = outcome.delivered.delivered if outcome.delivered is not None else ()
    return [
        (entry.owner, _row(entry.candidate.attributes)) for entry in delivered if entry.candidate is not None
    ]


def _row(attributes: bytes) -> int:
    identifier = read_attributes(attributes).identifier
    assert isinstance(identifier, int), "every point was given its row's number"
    return identifier
