"""The pinned output of `--json`: fields, types, and values where nothing is drawn. It may only gain.

``python -m tests.golden.test_results`` records new results; existing ones stay, unless their file was
deleted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from hushbid.cli.app import app
from hushbid.consumer.result import ConsumerResult
from hushbid.curator.result import CuratorResult
from hushbid.owner.result import OwnerResult
from hushbid.protocol.figures import Figures
from hushbid.results.run import RunResult
from hushbid.tables.training import Trained
from hushbid.tables.valuing import Worth
from hushbid.tables.weighing import WeighedTables
from tests.conftest import ROOT

SHAPES: Final = Path(__file__).parent / "results"
CLUSTER: Final = str(ROOT / "configs" / "digits" / "cluster.toml")
RUNS: Final = ("run", "consumer", "curator", "owner")
"""Verbs of real processes with secret noise, of which names and types are pinned, and no values."""
OTHERS: Final = ("simulate", "plan", "advise", "train", "weigh", "value")
RECORDS: Final[dict[str, type[Figures]]] = {
    "run": RunResult,
    "simulate": RunResult,
    "consumer": ConsumerResult,
    "curator": CuratorResult,
    "owner": OwnerResult,
    "train": Trained,
    "weigh": WeighedTables,
    "value": Worth,
}
VOLATILE: Final = frozenset(
    {
        "wall_seconds",
        "rounds_per_second",
        "seconds",
        "speed",
        "transcripts",
        "data",
        "directory",
        "report",
        "replay",
    }
    | {"output", "batches", "gap"}
)
"""Fields that depend on the machine or on where the tests write."""
OWNER: Final = re.compile(r"(digits|owner)-\d+")


def _call(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def of_processes(place: Path) -> dict[str, dict[str, Any]]:
    """The results of a run and of its parties."""
    found = _call("run", CLUSTER, "--directory", str(place), "--replay")
    parties = place / "digits-1" / "parties"
    of = {"consumer": "consumer", "curator": "curator", "owner": "digits-01"}
    return {"run": found} | {
        verb: json.loads((parties / party / "result.json").read_text(encoding="utf-8"))
        for verb, party in of.items()
    }


def of_one_process(place: Path) -> dict[str, dict[str, Any]]:
    """The results of verbs that start no process, on one simulated session."""
    from hushbid.cluster.file import open_cluster
    from hushbid.consumer.store import write_arrays

    data = open_cluster(Path(CLUSTER)).load()
    tables = {"validation": data.validation, "seed": data.seed_set, "test": data.test}
    for name, table in tables.items():
        assert table is not None
        arrays = {"features": table.features} | ({} if table.labels is None else {"labels": table.labels})
        write_arrays(place / f"{name}.npz", arrays)
    validation, seeds, test = (str(place / f"{name}.npz") for name in tables)
    record = place / "record"
    found = {"simulate": _call("simulate", CLUSTER, "--record", str(record))}
    delivered = str(record / "delivered.npz")
    found["plan"] = _call(
        *("plan", "--owners", "5", "--points", "200", "--validation", "66"),
        *("--epsilon-consumer", "3", "--epsilon-owners", "1", "--theory", "--wanted", "0.5"),
    )
    found["advise"] = _call(
        *("advise", validation, "--lower", "0", "--upper", "16", "--owners", "300,300", "--epsilon", "1"),
        "--no-rehearsal",
    )
    found["train"] = _call(
        "train", delivered, "--validation", validation, "--test", test, "--without-weights"
    )
    found["weigh"] = _call(
        "weigh", delivered, "--validation", validation, "--output", str(place / "weights.npz")
    )
    found["value"] = _call("value", delivered, "--validation", validation, "--seed-set", seeds)
    return found


def _general(values: dict[str, Any]) -> dict[str, Any]:
    """Fields by name; those of owners are merged, as it is open which owners sell."""
    return {"owner-*" if OWNER.fullmatch(name) else name: value for name, value in values.items()}


def losses(recorded: Any, found: Any, path: str, *, exact: bool) -> Iterator[str]:
    """What a result lacks of the recorded one: fields, types, and values if it is `exact`."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        recorded, found = (recorded, found) if exact else (_general(recorded), _general(found))
        for name, value in recorded.items():
            if name in found:
                yield from losses(value, found[name], f"{path}.{name}", exact=exact and name not in VOLATILE)
            elif name != "owner-*":
                yield f"{path}.{name} is gone"
    elif isinstance(recorded, list) and isinstance(found, list):
        if exact and len(recorded) != len(found):
            yield f"{path} has {len(found)} entries, and not {len(recorded)}"
        for number, (value, other) in enumerate(zip(recorded, found, strict=False)):
            yield from losses(value, other, f"{path}[{number}]", exact=exact)
    elif type(recorded) is not type(found):
        if exact or (recorded is not None and found is not None):
            yield f"{path} is {found!r}, and was {recorded!r}"
    elif exact and not _same(recorded, found):
        yield f"{path} is {found!r}, and was {recorded!r}"


def _same(recorded: Any, found: Any) -> bool:
    if isinstance(recorded, float):  # the last bits are the BLAS's
        return math.isclose(recorded, found, rel_tol=1e-5, abs_tol=1e-9)
    return bool(recorded == found)


def _recorded(verb: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHAPES / f"{verb}.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return of_one_process(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def of_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return of_processes(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("verb", OTHERS)
def test_what_a_verb_prints_for_programs_only_gains(verb: str, quiet: dict[str, dict[str, Any]]) -> None:
    assert list(losses(_recorded(verb), quiet[verb], verb, exact=True)) == []


@pytest.mark.processes
@pytest.mark.parametrize("verb", RUNS)
def test_what_processes_print_for_programs_only_gains(verb: str, of_run: dict[str, dict[str, Any]]) -> None:
    assert list(losses(_recorded(verb), of_run[verb], verb, exact=False)) == []


@pytest.mark.parametrize("verb", RECORDS)
def test_what_is_recorded_is_read_back_as_a_record(verb: str) -> None:
    """Every recorded field; there may be more by now."""
    recorded = _recorded(verb)
    again = RECORDS[verb].from_json(recorded).as_json()
    assert list(losses(recorded, again, verb, exact=True)) == []


def test_a_loss_is_found() -> None:
    """The control: a missing field, another type, and another value."""
    was = {"a": 1, "b": {"digits-01": 0.5}, "c": None, "wall_seconds": 1.5}
    assert list(losses(was, {**was, "new": 1, "wall_seconds": 2.5}, "verb", exact=True)) == []
    assert (
        list(
            losses(was, {"a": 1, "b": {"digits-34": 0.25}, "c": 7, "wall_seconds": 1.0}, "verb", exact=False)
        )
        == []
    )
    lost = {"a": 1.0, "b": {}, "c": None, "wall_seconds": 1}
    assert len(list(losses(was, lost, "verb", exact=True))) == 3
    assert len(list(losses(was, {**was, "a": 2}, "verb", exact=True))) == 1
    assert len(list(losses(was, {}, "verb", exact=False))) == 4


def record() -> None:
    """Write the results that are not recorded yet."""
    SHAPES.mkdir(exist_ok=True)
    with TemporaryDirectory() as place:
        for name, values in {**of_one_process(Path(place)), **of_processes(Path(place))}.items():
            path = SHAPES / f"{name}.json"
            if not path.exists():
                text = json.dumps(values, ensure_ascii=False, allow_nan=False).replace(place, "/place")
                path.write_text(
                    json.dumps(json.loads(text), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
                )


if __name__ == "__main__":
    record()
