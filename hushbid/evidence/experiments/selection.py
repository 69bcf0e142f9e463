"""How good a private selection is: MMD² of what is bought, for several ε, numbers of points, and seeds.

A seed deals the dataset out and draws the noise; the feature map is the same throughout. Sessions run in one
process (`hushbid.running.simulate.simulate`), where noise is simulated: it has the distribution that the
stated ε needs, but whoever has the seed could subtract it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any, Final, TypeAlias

import tomli_w

from consumer.appraisal import Quality
from hushbid.cluster.file import Cluster, open_cluster
from hushbid.running.results import RunResult
from hushbid.running.simulate import simulate
from protocol.errors import ConfigError
from protocol.privacy.releases import Neighbours

__all__ = ["DELTA", "MECHANISM", "Row", "selection"]

Say: TypeAlias = Callable[[str], None]

MECHANISM: Final = "filtered-gaussian"
DELTA: Final = 1e-5
_MAP_SEED: Final = 20190101


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting, over all seeds. MMD² is the exact kernel's, of the bought points against D_v.

    Attributes:
        dataset: Its name.
        mechanism: Release mechanism of target and summary.
        points: p.
        batch: b, the points that a round bought.
        seed_weight: s, what a point of the seed set counted for.
        jitter: N, the points' worth of jitter.
        epsilon: What each of the two was calibrated to: D_v's records (substitute one), and one record of
            one owner (add or remove one).
        delta: The δ of both.
        epsilon_owners, epsilon_consumer: What the accountant states for the noise that was drawn.
        mmd2: Mean over seeds.
        mmd2_each: For each seed, in the order in which they were given.
        mmd2_greedy, mmd2_uniform: Means of the baselines.
        accuracy: Mean of the consumer's downstream model; None without labels.
        choices: Of ``run``, ``greedy`` and ``uniform``, plain and ``weighted``: the means of ``mmd2``,
            ``mmd2_test``, ``accuracy`` and ``effective_points``; None for what no seed has.
        wall_seconds: Of all sessions, without baselines.
    """

    dataset: str
    mechanism: str
    points: int
    batch: int
    seed_weight: float
    jitter: float
    epsilon: float
    delta: float
    epsilon_owners: float
    epsilon_consumer: float
    mmd2: float
    mmd2_each: tuple[float, ...]
    mmd2_greedy: float
    mmd2_uniform: float
    accuracy: float | None
    choices: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    wall_seconds: float

    def as_json(self) -> dict[str, Any]:
        """The row under its attributes' names."""
        return asdict(self)


def selection(
    dataset: str | Path,
    data: Path | None,
    *,
    epsilons: Sequence[float],
    points: Sequence[int | None],
    seeds: Sequence[int],
    mechanism: str = MECHANISM,
    delta: float | None = None,
    batch: int | None = None,
    seed_weight: float | None = None,
    jitter: float | None = None,
    say: Say | None = None,
) -> list[Row]:
    """Run a session for each ε, number of points and seed.

    Args:
        dataset: One of `hushbid.datasets.DATASETS`, or the path of a cluster file: its parties' data, feature
            map and session, with the releases and the rule of the experiment.
        data: Where it lies; None if it needs no files.
        epsilons: ε of each protected side.
        points: p of each setting; None: as the cluster file says.
        seeds: Of the dealing, where a dataset is dealt out, and of the noise.
        mechanism: A release mechanism that takes `epsilon` and `neighbours`.
        delta: The δ of each ε; None: the cluster file's, or 1e-5.
        batch: b; None: the cluster file's, or the session's own default.
        seed_weight: s; None: likewise.
        jitter: N; None: likewise.
        say: Told what is being run.

    Returns:
        A row for each p and ε, in that order.

    Raises:
        ConfigError: Nothing to run, or a setting that cannot hold.
        DataError: The dataset's files cannot be used.
    """
    if not (epsilons and points and seeds):
        raise ConfigError(
            "An experiment needs an epsilon, a number of points and a seed at least.",
            advice="Give one of each.",
        )
    said = {"batch": batch, "seed_weight": seed_weight, "jitter": jitter, "delta": delta}
    given = {key: value for key, value in said.items() if value is not None}
    name = dataset.name if isinstance(dataset, Path) else dataset
    rows = []
    for count in points:
        for epsilon in epsilons:
            results = []
            for seed in seeds:
                if say is not None:
                    size = "" if count is None else f", p = {count}"
                    say(f"{name}{size}, ε = {epsilon:g}, seed {seed}")
                results.append(
                    simulate(_opened(dataset, data, mechanism, count, epsilon, seed=seed, given=given))
                )
            rows.append(_row(results, name, mechanism, epsilon))
    return rows


def _opened(
    dataset: str | Path,
    data: Path | None,
    mechanism: str,
    points: int | None,
    epsilon: float,
    *,
    seed: int,
    given: Mapping[str, float],
) -> Cluster:
    protection = _protection(mechanism, epsilon, seed)
    if isinstance(dataset, Path):
        return open_cluster(
            dataset,
            data=data,
            sections=lambda values: _sections(dataset, values, protection, points, seed, given),
        )
    with tempfile.TemporaryDirectory(prefix="hushbid-selection-") as place:
        table = _cluster(dataset, protection, points, seed, {"delta": DELTA, **given})
        path = Path(place) / "cluster.toml"
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
        return open_cluster(path, data=data)


def _sections(
    path: Path,
    values: Mapping[str, Any],
    protection: Mapping[str, Any],
    points: int | None,
    seed: int,
    given: Mapping[str, float],
) -> dict[str, Any]:
    """What the experiment has in place of a cluster file's sections."""
    if "roster" in values:
        raise ConfigError(
            f"{path} is a session file, which says nothing of anybody's data.",
            advice="Give a cluster file: the same sections without the roster, and every party's data "
            "(docs/configuration.md).",
        )
    count = {} if points is None else {"points": points}
    session, features, dataset = (values.get(name, {}) for name in ("session", "features", "dataset"))
    if points is not None and isinstance(session, Mapping):
        # The file's own batch is for the file's own p.
        session = {key: value for key, value in session.items() if key != "batch"}
    changed = {
        **protection,
        "settlement": {},
        "session": {**session, **count, **given, "allow_nonprivate": True},
        "features": {"seed": _MAP_SEED, **features},
    }
    return changed | ({"dataset": {**dataset, "seed": seed}} if dataset else {})


def _cluster(
    dataset: str,
    protection: Mapping[str, Any],
    points: int | None,
    seed: int,
    given: Mapping[str, float],
) -> dict[str, Any]:
    return {
        **protection,
        # Simulated noise protects nobody, and has to be allowed.
        "session": {
            "name": "selection",
            "points": points,
            "allow_nonprivate": True,
            **given,
        },
        "dataset": {"name": dataset, "seed": seed},
        "features": {"map": "paired", "seed": _MAP_SEED},
    }


def _protection(mechanism: str, epsilon: float, seed: int) -> dict[str, Any]:
    """The sections by which anybody is protected, whoever's the data are."""
    # `ask-all` buys the same points as `sealed` and seals nothing; owners learn the same of each other.
    return {
        "target": _release(mechanism, epsilon, Neighbours.SUBSTITUTE_ONE),
        "summary": _release(mechanism, epsilon, Neighbours.ADD_REMOVE_ONE),
        "acquisition": {"rule": "ask-all"},
        "noise": {"source": "simulated", "seed": seed},
    }


def _release(mechanism: str, epsilon: float, neighbours: Neighbours) -> dict[str, Any]:
    return {"mechanism": mechanism, "epsilon": float(epsilon), "neighbours": neighbours.value}


def _row(results: Sequence[RunResult], dataset: str, mechanism: str, epsilon: float) -> Row:
    stated = {
        statement.neighbours: statement.epsilon
        for statement in reversed(results[0].privacy)
        if statement.epsilon is not None
    }
    accuracies = [result.accuracy for result in results if result.accuracy is not None]
    return Row(
        dataset=dataset,
        mechanism=mechanism,
        points=results[0].p,
        epsilon=float(epsilon),
        delta=results[0].privacy[0].delta,
        batch=results[0].batch,
        seed_weight=results[0].seed_weight,
        jitter=results[0].jitter,
        epsilon_owners=stated[Neighbours.ADD_REMOVE_ONE.value],
        epsilon_consumer=stated[Neighbours.SUBSTITUTE_ONE.value],
        mmd2=fmean(_known(result.mmd2) for result in results),
        mmd2_each=tuple(_known(result.mmd2) for result in results),
        mmd2_greedy=fmean(_known(result.greedy.plain.mmd2) for result in results),
        mmd2_uniform=fmean(_known(result.uniform.plain.mmd2) for result in results),
        accuracy=fmean(accuracies) if accuracies else None,
        choices={
            name: {
                "plain": _means([judgement.plain for judgement in judged]),
                "weighted": _means([each.weighted.quality for each in judged if each.weighted is not None]),
            }
            for name, judged in (
                ("run", [result.chosen for result in results]),
                ("greedy", [result.greedy for result in results]),
                ("uniform", [result.uniform for result in results]),
            )
        },
        wall_seconds=sum(result.wall_seconds for result in results),
    )


def _means(qualities: Sequence[Quality]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for field in fields(Quality):
        if field.name == "accuracy_interval":
            continue  # of one session's test points; seeds have a spread of their own
        values = [getattr(quality, field.name) for quality in qualities]
        known = [value for value in values if isinstance(value, float)]
        found[field.name] = fmean(known) if known else None
    return found


def _known(value: float | None) -> float:
    """NaN for a figure that nobody could work out: where nothing was bought."""
    return float("nan") if value is None else value
