"""Consumers with their transcript and their own files, of tables and of images, to draw pictures of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import tomli_w

from hushbid.cluster.file import open_cluster
from hushbid.protocol.names import CONSUMER
from hushbid.running.simulate import simulate

__all__ = [
    "COLUMNS",
    "HOSTILE",
    "SCAN_IN_COLOUR",
    "SIDE",
    "VILLAGES",
    "Bought",
    "bought_images",
    "bought_rows",
    "bought_scans",
    "people",
]

HOSTILE = "</script><b>job & 'title'"
"""A column's name: the session's author's words."""
VILLAGES = 19
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 18, "upper": 90},
    {"name": "income", "kind": "number", "lower": 0, "upper": 200_000},
    {"name": HOSTILE, "kind": "category", "categories": ["clerk", "farmer", "nurse"], "missing": "own"},
    {"name": "member", "kind": "boolean"},
    {"name": "school", "kind": "ordinal", "categories": ["low", "mid", "high"]},
    {"name": "village", "kind": "category", "categories": [f"village number {i}" for i in range(VILLAGES)]},
    {"name": "children", "kind": "integer", "lower": 0, "upper": 9},
]
SCAN_IN_COLOUR = "<i>colour"
"""A column of images' name."""
SIDE = 4
"""Pixels of an image's sides are this and one more."""


@dataclass(frozen=True)
class Bought:
    """What a consumer has after a session.

    Attributes:
        transcripts: All parties', by name.
        validation: The file of D_v.
        directory: Where the consumer's files are.
    """

    transcripts: dict[str, Path]
    validation: Path
    directory: Path

    @property
    def consumer(self) -> Path:
        """The consumer's transcript."""
        return self.transcripts[CONSUMER]

    def delivered(self) -> dict[str, Any]:
        """The arrays of the delivery."""
        with np.load(self.directory / "delivered.npz") as file:
            return dict(file)


def people(count: int, nurses: float, seed: int) -> Any:
    """A table of so many people, with a column of labels that the session does not know."""
    generator = np.random.default_rng(seed)
    jobs = generator.choice(["clerk", "farmer", "nurse", ""], count, p=[0.8 - nurses, 0.1, nurses, 0.1])
    villages = generator.integers(0, VILLAGES, count)
    return pa.table(
        {
            "age": generator.integers(18, 91, count),
            "income": np.round(generator.uniform(1e3, 2e5, count), 2),
            HOSTILE: pa.array([job or None for job in jobs.tolist()], pa.string()),
            "member": (generator.random(count) < nurses).tolist(),
            "school": generator.choice(["low", "mid", "high"], count).tolist(),
            "village": [f"village number {number}" for number in villages],
            "children": generator.integers(0, 4, count),
            "paid": generator.integers(0, 2, count),
        }
    )


def bought_rows(place: Path) -> Bought:
    """A session with columns: 40 rows of two owners, beside 50 wanted ones."""
    tables = {"north": people(80, 0.7, 1), "south": people(80, 0.1, 2)}
    tables |= {"validation": people(50, 0.7, 3), "seed": people(20, 0.2, 4)}
    for name, table in tables.items():
        pacsv.write_csv(table, place / f"{name}.csv")
    paid = {"columns": {"label": "paid"}}
    owners = {name: {"data": f"{name}.csv"} | paid for name in ("north", "south")}
    sections = {"columns": COLUMNS, "owners": owners, "features": {"seed": 7, "gamma": 1.0}}
    consumer = {"validation": "validation.csv", "seed_set": "seed.csv"} | paid
    return _bought(place, sections | {"consumer": consumer}, "validation.csv")


def bought_images(place: Path) -> Bought:
    """A session of small images: 40 of two owners, beside 30 wanted ones."""
    pixels, generator = SIDE * (SIDE + 1), np.random.default_rng(1)
    for number, (name, count) in enumerate(
        {"north": 60, "south": 60, "validation": 30, "seed": 10}.items(), start=1
    ):
        levels = generator.integers(0, 8 * number, (count, pixels)).astype(np.uint8)
        np.savez(place / f"{name}.npz", features=levels)
    sections = {
        "owners": {name: {"data": f"{name}.npz"} for name in ("north", "south")},
        "features": {"seed": 7, "gamma": 1.0, "columns": pixels, "lower": 0.0, "upper": 40.0},
        "consumer": {"validation": "validation.npz", "seed_set": "seed.npz"},
    }
    return _bought(place, sections, "validation.npz")


def bought_scans(place: Path) -> Bought:
    """A session with columns, two of them images: 20 rows of two owners, beside 15 wanted ones."""
    generator = np.random.default_rng(2)
    for number, (name, count) in enumerate(
        {"north": 30, "south": 30, "validation": 15, "seed": 10}.items(), 1
    ):
        grey = generator.integers(0, 40 * number, (count, SIDE + 1, SIDE)).astype(np.uint8)
        colour = generator.integers(0, 256, (count, 2, 3, 3)).astype(np.uint8)
        ages = generator.integers(18, 91, count)
        arrays: dict[str, Any] = {"age": ages, "scan": grey, SCAN_IN_COLOUR: colour}
        np.savez(place / f"{name}.npz", **arrays)
    sections = {
        "columns": [
            COLUMNS[0],
            {"name": "scan", "kind": "image", "size": [SIDE, SIDE + 1]},
            {"name": SCAN_IN_COLOUR, "kind": "image", "size": [3, 2], "channels": 3, "weight": 0.5},
        ],
        "session": {"name": "pictures", "points": 20, "allow_nonprivate": True},
        "owners": {name: {"data": f"{name}.npz"} for name in ("north", "south")},
        "features": {"seed": 7, "gamma": 1.0},
        "consumer": {"validation": "validation.npz", "seed_set": "seed.npz"},
    }
    return _bought(place, sections, "validation.npz")


def _bought(place: Path, sections: dict[str, Any], validation: str) -> Bought:
    fixed = {
        "session": {"name": "pictures", "points": 40, "allow_nonprivate": True},
        "target": {"mechanism": "exact"},
        "summary": {"mechanism": "exact"},
        "acquisition": {"rule": "ask-all"},
    }
    path = place / "cluster.toml"
    path.write_text(tomli_w.dumps(fixed | sections))
    result = simulate(open_cluster(path), record=place / "record", report=False, models=False)
    return Bought(dict(result.transcripts), place / validation, place / "record")
