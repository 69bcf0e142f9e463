"""`hushbid bench records`: what transcripts cost to verify, report and resume, by p."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomli_w

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.names import CURATOR
from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
from hushbid.transcripts.replay import replayed

__all__ = ["RULES", "RecordsCost", "bench_records"]

RULES: Final = ("sealed", "tender")
_SEED: Final = 1
_DIMENSION: Final = 32
_COLUMNS: Final = 16
_VALIDATION_POINTS: Final = 380
_SEED_POINTS: Final = 150
_OWNERS: Final = ("north", "south")
_MOST_POINTS: Final = 10_000
_RELEASE: Final = {"mechanism": "filtered-gaussian", "epsilon": 3.0}


@dataclass(frozen=True, slots=True)
class RecordsCost:
    """What the transcripts of one session cost, in processor seconds.

    Attributes:
        points: p; `sealed` buys them in as many rounds, and each owner has as many rows.
        session_seconds: Of all parties in one process, with the start of Python.
        transcript_bytes: Of all parties.
        verify_seconds: Of `hushbid transcript verify` with all transcripts, with the start of Python.
        report_seconds: Of `hushbid report`, likewise.
        curator_seconds, owner_seconds: Of the replay by which a curator resumes, or an owner.
    """

    rule: str
    points: int
    session_seconds: float
    transcript_bytes: int
    verify_seconds: float
    report_seconds: float
    curator_seconds: float
    owner_seconds: float


def bench_records(
    *, rules: Sequence[str], points: Sequence[int], say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure sessions of several sizes, and by what power of p each cost grows between the two largest.

    Args:
        points: p of each session; at least two sizes.

    Raises:
        ConfigError: No such rule, or sizes of which no power follows.
    """
    rules, sizes = list(dict.fromkeys(rules)), sorted(set(points))
    if unknown := sorted(set(rules) - set(RULES)):
        raise ConfigError(
            f"{', '.join(unknown)}: no rule of this benchmark", advice=f"Choose of {', '.join(RULES)}."
        )
    if len(sizes) < 2 or not 1 <= sizes[0] <= sizes[-1] <= _MOST_POINTS:
        raise ConfigError(
            f"{', '.join(map(str, sizes))} points are no two sizes from 1 to {_MOST_POINTS:,}",
            advice="Give --points twice or more.",
        )
    keep_one_blas_thread()
    rows = []
    for rule in rules:
        for size in sizes:
            say(f"{rule}, {size:,} points")
            rows.append(_measured(rule, size))
    return {
        "owners": len(_OWNERS),
        "dimension": _DIMENSION,
        "rows": [asdict(row) for row in rows],
        "powers": {rule: _powers([row for row in rows if row.rule == rule]) for rule in rules},
    }


def _measured(rule: str, points: int) -> RecordsCost:
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        transcripts = place / "transcripts"
        cluster = _write_cluster(place, rule, points)
        session = _spent(["simulate", cluster, "--no-rehearsal", "--output", transcripts, "--quiet"])
        verified = _spent(["transcript", "verify", transcripts, "--quiet"])
        reported = _spent(["report", transcripts, "--output", place / "report.html", "--quiet"])
        return RecordsCost(
            rule=rule,
            points=points,
            session_seconds=session,
            transcript_bytes=sum(path.stat().st_size for path in transcripts.glob("*.transcript")),
            verify_seconds=verified,
            report_seconds=reported,
            curator_seconds=_resuming(transcripts / f"{CURATOR}.transcript"),
            owner_seconds=_resuming(transcripts / f"{_OWNERS[0]}.transcript"),
        )


def _write_cluster(place: Path, rule: str, points: int) -> Path:
    generator = np.random.Generator(np.random.PCG64(_SEED))
    rows = dict.fromkeys(_OWNERS, points) | {"validation": _VALIDATION_POINTS, "seed-set": _SEED_POINTS}
    for name, count in rows.items():
        np.save(place / f"{name}.npy", generator.random((count, _COLUMNS)))
    table = {
        "session": {"name": "records", "points": points, **({"batch": 1} if rule == "sealed" else {})},
        "features": {
            "dimension": _DIMENSION, "gamma": 0.5, "columns": _COLUMNS, "lower": 0.0, "upper": 1.0
        },
        "target": {**_RELEASE, "neighbours": "substitute-one"},
        **({"summary": {**_RELEASE, "neighbours": "add-remove-one"}} if rule == "sealed" else {}),
        "acquisition": {"rule": rule},
        "owners": {name: {"data": f"{name}.npy"} for name in _OWNERS},
        "consumer": {"validation": "validation.npy", "seed_set": "seed-set.npy"},
    }  # fmt: skip
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def _spent(arguments: Iterable[object]) -> float:
    """Processor seconds of a verb in a process of its own."""
    before = os.times()
    command = [sys.executable, "-m", "hushbid", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(f"hushbid {command[3]} ended with {done.returncode}: {done.stderr[-500:]}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _resuming(transcript: Path) -> float:
    replayed(transcript)  # the first in a process imports what a replay needs
    began = time.process_time()
    replayed(transcript)
    return time.process_time() - began


def _powers(rows: Sequence[RecordsCost]) -> dict[str, float]:
    """The slopes of logarithms between the two largest sessions."""
    fewer, more = map(asdict, rows[-2:])
    by = math.log(more["points"] / fewer["points"])
    costs = [name for name in more if name.endswith(("_seconds", "_bytes"))]
    return {name: math.log(more[name] / fewer[name]) / by for name in costs}
