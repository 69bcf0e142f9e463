"""`hushbid bench rules`: the cost of sealing and secure noise relative to `ask-all` without noise."""

from __future__ import annotations

import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median_high
from typing import Any, Final

import tomli_w

from hushbid.cluster.file import open_cluster
from hushbid.lab.bench.random_cluster import write_cluster
from hushbid.protocol.machine.progress import Progress
from hushbid.running.directory import prepare
from hushbid.running.launcher import run_parties
from hushbid.running.simulate import AfterRound, Follow

__all__ = ["BOX_BYTES", "SETTINGS", "bench_rules", "with_setting"]

_RELEASE: Final = {"mechanism": "filtered-gaussian", "epsilon": 1.0}
BOX_BYTES: Final = 1024
"""Size of a point of bytes before sealing."""
_SEALED: Final = {"rule": "sealed", "box_bytes": BOX_BYTES}
SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "ask_all": {"run": {"durability": "flush"}},
    "sealed": {"acquisition": _SEALED, "run": {"durability": "flush"}},
    "private": {
        "acquisition": _SEALED,
        "target": {**_RELEASE, "neighbours": "substitute-one"},
        "summary": {**_RELEASE, "neighbours": "add-remove-one"},
        "run": {"durability": "fsync"},
    },
}
"""`ask-all` and `sealed` with exact releases, and a private session: filtered, secure noise, fsync."""
_WITH_BLIND: Final[Mapping[str, Mapping[str, Any]]] = {
    **SETTINGS,
    "blind": {**SETTINGS["private"], "acquisition": {**_SEALED, "rule": "blind"}},
}
"""`SETTINGS`, and the default with a blind curator, for rounds that buy many points."""


def bench_rules(
    *,
    owners: int,
    points: int,
    columns: int,
    rounds: int,
    repeats: int,
    say: Callable[[str], None],
    progress: AfterRound | None = None,
) -> dict[str, Any]:
    """Measure rounds per second, from the first broadcast to the end of the last round.

    Sessions have CURVE and recording on, over points of random bytes. The settings alternate, so that changes
    in the machine's speed affect them alike.

    Args:
        repeats: Sessions per setting; the median counts.
        say: Also called with an estimate of the remaining time.
        progress: Called with the rounds run so far over all sessions, and their total.
    """
    measured: dict[str, list[float]] = {name: [] for name in SETTINGS}
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        plain = write_cluster(place, owners=owners, points=points, columns=columns, rounds=rounds, whole=True)
        files = {setting: with_setting(plain, setting) for setting in SETTINGS}
        turns = [setting for _ in range(repeats) for setting in files]
        took: dict[str, float] = {}
        for number, setting in enumerate(turns):
            left = _left(turns[number:], took)
            say(f"session {number + 1} of {len(turns)}, {setting}{left}")
            began = time.monotonic()
            ended = run_parties(
                prepare(open_cluster(files[setting]), place / "runs"),
                None if progress is None else _counted(progress, number * rounds, len(turns) * rounds),
                say,
            )
            took[setting] = time.monotonic() - began
            measured[setting].append(ended.curator.rounds / ended.curator.wall_seconds)
    median = {setting: median_high(rates) for setting, rates in measured.items()}
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "rounds": rounds,
        **{f"{setting}_rounds_per_second": rate for setting, rate in median.items()},
        "sealed_ratio": median["sealed"] / median["ask_all"],
        "private_ratio": median["private"] / median["ask_all"],
    }


def _counted(progress: AfterRound, before: int, total: int) -> Follow:
    """A progress callback for a session, which adds the rounds of earlier sessions."""

    def follow(found: Progress) -> None:
        if found.round:
            progress(before + found.round, total)

    return follow


def _left(turns: Sequence[str], took: Mapping[str, float]) -> str:
    """An estimate of the remaining time from earlier sessions, in words; empty if there were none."""
    if not took:
        return ""
    mean = sum(took.values()) / len(took)
    return f"; about {sum(took.get(setting, mean) for setting in turns):.0f} s left"


def with_setting(plain: Path, setting: str) -> Path:
    """Write the cluster file of one of `SETTINGS`, or "blind", beside a plain one from `write_cluster`."""
    table = tomllib.loads(plain.read_text(encoding="utf-8"))
    table |= _WITH_BLIND[setting]
    if "acquisition" in _WITH_BLIND[setting]:
        del table["features"]["seed"]
    path = plain.with_name(f"{setting}.toml")
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path
