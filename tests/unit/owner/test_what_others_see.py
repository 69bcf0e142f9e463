"""Dropped rows do not change what others see of a party, nor do an owner's unsold rows.

docs/privacy.md, "What taking part tells": with `outside = "drop"`, and commitments to rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hushbid.protocol.config.party import OwnerFile
from hushbid.protocol.data import Dataset, load_dataset
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.driver import Outgoing
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.wire.codec import decode_frame
from hushbid.simulation.simulator import Simulation
from tests.support.session_files import load

RULES = ("sealed", "tender", "blind")
NAME, OTHERS = "alpha", ("beta", "gamma")
COMMITS = {"commitment_depth": 4, "box_bytes": 160}
PRIVATE = {"mechanism": "gaussian", "epsilon": 30.0}
HEADS = ("close", "farewell")
"""Frames with the head of a transcript, which follows from salts and times."""
FAR = "99,99,99"
"""A point that is far from what the consumer wants: it is not bought."""
DROPPED: Mapping[str, str] = {
    "out of bounds": "101,99,99,no,50\n",
    "a fraction out of bounds": "101.5,99,99,no,51\n",
    "infinite": "inf,99,99,no,52\n",
    "a gap": ",99,99,no,53\n",
    "not a number": "nan,99,99,no,54\n",
    "a word": "many,99,99,no,55\n",
    "a whole number that no float holds": "9007199254740993,99,99,no,56\n",
    "no label": f"{FAR},,57\n",
    "no identifier": f"{FAR},no,\n",
    "a label that fits into no box": f"{FAR},{'n' * 200},58\n",
    "a label that cannot travel": f"{FAR},{'n' * 5000},59\n",
    "more rows than the tree has room for": "50,50,50,no,60\n" * 9,
}
"""By what is wrong: rows after those that are good."""
ROOM = ("a label that fits into no box", "more rows than the tree has room for")
"""Of these D_v needs none."""
UNSOLD: Mapping[str, str] = {
    "a fraction": "99,99,99.5,no,50\n",
    "a long label": f"{FAR},{'n' * 60},50\n",
    "a long identifier": f"{FAR},no,123456789012345\n",
    "a copy of itself": f"{FAR},no,50\n{FAR},no,50\n",
}
SIZE = 12
"""Good rows."""


class View(NamedTuple):
    """What others see of an owner, and what they open.

    Attributes:
        frames: Sender, receiver, kind, length and body of frames from and to it, without heads.
        sold: For each bought point: type, numbers, label and identifier as in the box.
        ends: Exit codes.
    """

    frames: list[tuple[str, str, str, int, bytes]]
    sold: dict[bytes, tuple[str, bytes]]
    ends: dict[str, int]


def rows(seed: int, size: int, low: int = 40, high: int = 60) -> str:
    rng = np.random.default_rng(seed)
    return "".join(
        f"{','.join(map(str, rng.integers(low, high, 3)))},{('yes', 'no')[row % 2]},{row + 1}\n"
        for row in range(size)
    )


@cache
def session(rule: str) -> Session:
    batch, submission = (6, 12) if rule == "tender" else (2, None)
    return open_session(
        load(
            {
                "session.points": 4,
                "session.batch": batch,
                "session.submission": submission,
                "session.jitter": 0.0,
                "features.seed": None,
                "features.lower": 0.0,
                "features.upper": 100.0,
                "target": PRIVATE | {"neighbours": "substitute-one"},
                "summary": PRIVATE | {"neighbours": "add-remove-one"},
                "acquisition": {"rule": rule, **COMMITS},
            }
        )
    )


def read(place: Path, name: str, text: str, rule: str) -> Dataset:
    """As an owner's process reads its file."""
    path = place / f"{name}.csv"
    path.write_text(f"a,b,c,y,id\n{text}")
    columns = {"features": ["a", "b", "c"], "label": "y", "identifier": "id", "outside": "drop"}
    file = OwnerFile.model_validate({"name": NAME, "state": place, "data": path, "columns": columns})
    sold = name in (NAME, *OTHERS)
    return load_dataset(path, session(rule).file.reading(file.columns.columns(), sold=sold))


def seen(place: Path, rule: str, text: str, validation: str = "", *, of: str = NAME) -> View:
    frames: list[tuple[str, str, str, int, bytes]] = []

    def tap(sender: str, receiver: str, frame: Outgoing) -> None:
        if of in (sender, receiver):
            body = b"" if frame.kind in HEADS else decode_frame(frame.data).body
            frames.append((sender, receiver, frame.kind, len(frame.data), body))

    def data(name: str, text: str) -> Dataset:
        return read(place, name, text, rule)

    simulation = Simulation(
        session(rule),
        owners={NAME: data(NAME, text), **{each: data(each, rows(2, SIZE, 0, 20)) for each in OTHERS}},
        validation=data("validation", rows(3, SIZE) + validation),
        seed_set=data("seed-set", rows(4, SIZE, 0, 100)),
        tap=tap,
    )
    outcome = simulation.run()
    assert outcome.delivered is not None
    sold = {}
    for entry in outcome.delivered.delivered:
        held: Any = entry.candidate
        if entry.owner == NAME and held is not None:
            sold[held.point.astype(np.float64).tobytes()] = held.point.dtype.str, held.attributes
    return View(frames, sold, {name: finish.code.value for name, finish in outcome.finishes.items()})


@pytest.mark.parametrize("rule", RULES)
def test_rows_that_are_dropped_change_no_byte_that_others_see(tmp_path: Path, rule: str) -> None:
    without = seen(tmp_path, rule, rows(1, SIZE) + "50,50,50,no,60\n" * (16 - SIZE))
    assert without.sold, "it sells something"
    assert seen(
        tmp_path, rule, rows(1, SIZE) + "50,50,50,no,60\n" * (16 - SIZE) + "".join(DROPPED.values())
    ) == (without)


@pytest.mark.parametrize("rule", RULES)
def test_rows_of_the_consumer_that_are_dropped_change_no_byte_either(tmp_path: Path, rule: str) -> None:
    """The target states how many rows are left, here the same number."""
    unfit = "".join(text for name, text in DROPPED.items() if name not in ROOM)
    without, beside = (seen(tmp_path, rule, rows(1, SIZE), text, of=CONSUMER) for text in ("", unfit))
    assert beside.frames == without.frames
    assert beside.ends == without.ends


@pytest.mark.parametrize("name", DROPPED)
def test_each_of_them_is_dropped_by_itself(tmp_path: Path, name: str) -> None:
    good = rows(1, SIZE) + "50,50,50,no,60\n" * (16 - SIZE)
    alone, beside = (read(tmp_path, NAME, text, "sealed") for text in (good, good + DROPPED[name]))
    assert beside.changed.dropped == DROPPED[name].count("\n")
    assert beside.features.dtype == alone.features.dtype
    assert beside.features.tolist() == alone.features.tolist()
    assert beside.known is not None
    assert alone.known is not None
    assert list(beside.known) == list(alone.known)
    assert beside.identifiers is not None
    assert alone.identifiers is not None
    assert beside.identifiers.tolist() == alone.identifiers.tolist()


@pytest.mark.parametrize("name", UNSOLD)
@pytest.mark.parametrize("rule", RULES)
def test_a_point_that_is_sold_tells_nothing_of_one_that_is_not(tmp_path: Path, rule: str, name: str) -> None:
    """Neither its type, nor the packing of label and identifier, nor frame sizes do."""
    without, beside = (seen(tmp_path, rule, rows(1, SIZE) + text) for text in ("", UNSOLD[name]))
    assert [frame[:4] for frame in beside.frames] == [frame[:4] for frame in without.frames]
    assert beside.ends == without.ends
    both = without.sold.keys() & beside.sold.keys()
    assert both, "some points are bought of either"
    assert {point: beside.sold[point] for point in both} == {point: without.sold[point] for point in both}
