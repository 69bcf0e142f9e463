"""How well catalogue entries identify the wanted owner, and what a session with the chosen owners loses.

Owners hold MNIST's training images by groups of digits, the consumer 3s and 4s of the test images (DPDS,
appendix G). The seed distributes the data and draws the noise, which is simulated with the distribution that
the stated ε needs. Everything goes through the files that `hushbid publish` writes and `hushbid screen`
reads.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
import tomli_w

from hushbid.catalogue.consumer_release import ConsumerData, Screening
from hushbid.catalogue.publishing import Publication, publish
from hushbid.catalogue.screening import ScreeningResult, screen
from hushbid.cluster.file import Cluster, made_cluster
from hushbid.datasets import Partition
from hushbid.datasets.digit_groups import DIGIT_GROUPS, WANTED_DIGITS
from hushbid.lab.experiment_options import ScreeningOptions
from hushbid.lab.experiments.cells import Configuration, Measured
from hushbid.lab.experiments.results import ExperimentRow, PlottedFigure
from hushbid.lab.experiments.runner import Experiment, refuse_none
from hushbid.protocol.crypto.identity import simulated_identity
from hushbid.protocol.data import DataColumns, Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.roster.file import RosterFile
from hushbid.running.simulate import simulate

__all__ = ["BEST", "SETTINGS", "ScreeningRow", "screening"]

BEST: Final = 2
"""Number of owners chosen, of five."""
SETTINGS: Final[Sequence[tuple[float, int | None]]] = ((0.05, None), (1.0, 500))
"""ε of the entries, and maximum points per owner (None: all)."""
TARGET_EPSILON: Final = 1.0
"""ε of the consumer's release, and for the owners in the session."""
DELTA: Final = 1e-5
_MAP_SEED: Final = 20190101
_STATE: Final = "XDG_STATE_HOME"
RIGHT: Final = "digits-" + "".join(map(str, WANTED_DIGITS))
"""The owner with the wanted digits."""
assert WANTED_DIGITS in DIGIT_GROUPS


@dataclass(frozen=True, kw_only=True)
class ScreeningRow(ExperimentRow):
    """One setting, over all seeds."""

    epsilon: float
    owner_points: int | None
    target_epsilon: float
    delta: float
    seeds: int
    right_first: int
    right_chosen: int
    points: int | None
    mmd2_full: float | None
    mmd2_screened: float | None
    ratio: float | None
    ratio_each: tuple[float, ...]


def _pairs(options: ScreeningOptions) -> Iterator[tuple[Configuration, int]]:
    settings = SETTINGS if options.epsilon is None else [(options.epsilon, options.owner_points)]
    refuse_none(a_setting=settings, a_seed=options.every_seed)
    for epsilon, owner_points in settings:
        for seed in options.every_seed:
            yield {"epsilon": epsilon, "owner_points": owner_points, "points": options.points}, seed


def _said(configuration: Configuration, seed: int) -> str:
    return f"ε = {configuration['epsilon']:g}, N = {configuration['owner_points'] or 'all'}, seed {seed}"


def _measure(options: ScreeningOptions, configuration: Configuration, seed: int) -> dict[str, Any]:
    points = configuration["points"]
    cluster = _cluster(options.data, seed, configuration["owner_points"], points or 1)
    with tempfile.TemporaryDirectory(prefix="hushbid-screening-") as name, _own_state(Path(name)):
        result = _screened(Path(name), cluster, configuration["epsilon"], seed)
    full, screened = (None, None) if points is None else _procured(cluster, result.chosen)
    return {
        "right_first": result.ranking.owners[0].candidate.owner == RIGHT,
        "right_chosen": RIGHT in result.chosen,
        "mmd2_full": full,
        "mmd2_screened": screened,
    }


@contextmanager
def _own_state(place: Path) -> Iterator[None]:
    """A state directory of its own: repeated use of public rows must not fill the user's list of ledgers."""
    before = os.environ.get(_STATE)
    os.environ[_STATE] = str(place / "state")
    try:
        yield
    finally:
        os.environ.pop(_STATE)
        os.environ.update({} if before is None else {_STATE: before})


def _session(seed: int, points: int) -> dict[str, Any]:
    release = {"mechanism": "filtered-gaussian", "epsilon": TARGET_EPSILON}
    return {
        # Simulated noise protects nobody, and must be allowed explicitly.
        "session": {"name": "screening", "points": points, "delta": DELTA, "allow_nonprivate": True},
        "features": {"map": "paired", "dimension": 140, "gamma": 0.01, "seed": _MAP_SEED},
        "target": {**release, "neighbours": Neighbours.SUBSTITUTE_ONE.value},
        "summary": {**release, "neighbours": Neighbours.ADD_REMOVE_ONE.value},
        # It buys the same points as `sealed`, without sealing.
        "acquisition": {"rule": "ask-all"},
        "noise": {"source": "simulated", "seed": seed},
    }


def _cluster(data: Path, seed: int, owner_points: int | None, points: int) -> Cluster:
    dataset: dict[str, Any] = {"name": "mnist", "seed": seed}
    if owner_points is not None:
        dataset["owner_points"] = owner_points
    return made_cluster({**_session(seed, points), "dataset": dataset}, of="screening", data=data)


def _partition(cluster: Cluster) -> Partition:
    if cluster.partition is None:
        raise ConfigError("The cluster has no dataset.")
    return cluster.partition


def _screened(place: Path, cluster: Cluster, epsilon: float, seed: int) -> ScreeningResult:
    """Publish every owner's entry, and screen them."""
    partition, features = _partition(cluster), cluster.features
    for name, table in partition.owners.items():
        path = place / f"{name}.npy"
        np.save(path, table.features)
        what = Publication(
            data=path,
            columns=DataColumns(),
            name=name,
            functions=features,
            neighbours=Neighbours.ADD_REMOVE_ONE,
            epsilon=epsilon,
            delta=DELTA,
            clip=False,
            points=0,
            directory=place,
            ledger=place / f"{name}.ledger",
            budget=None,
        )
        publish(what, simulated_identity(bytes(32), seed, name), SimulatedNoise(seed, name))
    session = _session(seed, cluster.file.session.points)
    session["features"] = features.model_dump(exclude_none=True)
    session["roster"] = {"owners": dict.fromkeys(partition.owners, "")}
    session["network"] = {"address": "tcp://127.0.0.1:5790", "insecure": True}
    path = place / "session.toml"
    path.write_text(tomli_w.dumps(session), encoding="utf-8")
    consumer = ConsumerData(
        validation=Dataset.from_arrays("validation", partition.validation.features),
        seed_set=Dataset.from_arrays("seed-set", partition.seed_set.features),
        target=place / "target",
        ledger=place / "validation.ledger",
        budget=None,
    )
    what_for = Screening(
        catalogue=[place],
        session=RosterFile(path),
        epsilon=None,
        delta=DELTA,
        best=BEST,
        unaccounted=False,
        allow_simulated=True,
    )
    return screen(what_for, consumer)


def _procured(cluster: Cluster, chosen: Sequence[str]) -> tuple[float, float]:
    """MMD² of purchases from all owners and from the chosen, with the noise of the release that chose."""
    partition = _partition(cluster)
    kept = {name: table for name, table in partition.owners.items() if name in chosen}
    fewer = replace(cluster, partition=replace(partition, owners=kept), owners=tuple(sorted(kept)))
    full, screened = (simulate(each, models=False).mmd2 for each in (cluster, fewer))
    if full is None or screened is None:
        raise ConfigError("A session bought nothing.", advice="Ask for more points.")
    return full, screened


def _row(configuration: Configuration, measured: Sequence[Measured]) -> ScreeningRow:
    bought = [(each["mmd2_full"], each["mmd2_screened"]) for each in measured if configuration["points"]]
    full, screened = (fmean(values) for values in zip(*bought, strict=True)) if bought else (None, None)
    return ScreeningRow(
        **configuration,
        target_epsilon=TARGET_EPSILON,
        delta=DELTA,
        seeds=len(measured),
        right_first=sum(each["right_first"] for each in measured),
        right_chosen=sum(each["right_chosen"] for each in measured),
        mmd2_full=full,
        mmd2_screened=screened,
        ratio=None if full is None or screened is None else screened / full,
        ratio_each=tuple(fewer / all_owners for all_owners, fewer in bought),
    )


screening: Final = Experiment(
    options=ScreeningOptions,
    title="Screening: how often catalogue entries rank the right owner first",
    pairs=_pairs,
    measure=_measure,
    row=_row,
    said=_said,
    figure=PlottedFigure("epsilon", "right_first", ("owner_points",)),
)
