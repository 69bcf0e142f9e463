"""`hushbid bench rules`: what sealing and secure noise cost, beside `ask-all` without noise, in one run."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushbid.bench.session import write_cluster
from hushbid.cluster import open_cluster
from hushbid.launcher import run_parties
from hushbid.run_directory import prepare
from protocol.names import CURATOR

__all__ = ["BOX_BYTES", "SETTINGS", "bench_rules", "with_setting"]

_RELEASE: Final = {"mechanism": "filtered-gaussian", "epsilon": 1.0}
BOX_BYTES: Final = 1024
"""Of a point of bytes, before it is sealed."""
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
"""`ask-all` and `sealed` with exact releases, and the default: sealed, filtered, secure noise, fsync."""


def bench_rules(
    *, owners: int, points: int, columns: int, rounds: int, repeats: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure rounds per second, from the first broadcast to the end of the last round.

    Sessions have CURVE and recording on, over points of bytes drawn at random. The settings take turns, so
    that the machine's moods hit them alike.

    Args:
        owners: K.
        points: Points of each owner.
        columns: Feature columns of a point.
        rounds: p.
        repeats: Sessions of each setting; their median counts.
        say: Told what is being measured.

    Returns:
        The figures under the names of the command line's JSON.
    """
    measured: dict[str, list[float]] = {name: [] for name in SETTINGS}
    with tempfile.TemporaryDirectory(prefix="hushbid-bench-") as name:
        place = Path(name)
        plain = write_cluster(place, owners=owners, points=points, columns=columns, rounds=rounds, whole=True)
        files = {setting: with_setting(plain, setting) for setting in SETTINGS}
        for _ in range(repeats):
            for setting, file in files.items():
                say(f"session, {setting}")
                ended = run_parties(prepare(open_cluster(file), place / "runs"), say=say)
                measured[setting].append(float(ended.results[CURATOR]["rounds_per_second"]))
    median = {setting: sorted(rates)[len(rates) // 2] for setting, rates in measured.items()}
    return {
        "owners": owners,
        "points": points,
        "columns": columns,
        "rounds": rounds,
        **{f"{setting}_rounds_per_second": rate for setting, rate in median.items()},
        "sealed_ratio": median["sealed"] / median["ask_all"],
        "private_ratio": median["private"] / median["ask_all"],
    }


def with_setting(plain: Path, setting: str) -> Path:
    """The cluster file of one of `SETTINGS`, beside a plain one that `write_cluster` wrote."""
    table = tomllib.loads(plain.read_text(encoding="utf-8"))
    table |= SETTINGS[setting]
    if "acquisition" in SETTINGS[setting]:
        del table["features"]["seed"]
    path = plain.with_name(f"{setting}.toml")
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path
