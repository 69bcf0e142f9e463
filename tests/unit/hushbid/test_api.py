"""The package's Python API: its names, its import cost, and that verbs and functions are one."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hushbid
import hushbid.kme
import hushbid.race
from hushbid.catalogue.api import ScreenOptions
from hushbid.cli.app import app
from hushbid.evidence.audit.machines import AuditOptions
from hushbid.plan.planning import PlanOptions
from hushbid.protocol import errors
from hushbid.protocol.runtime.command import built
from hushbid.protocol.runtime.keys import new_keypair, write_secret

OPTIONS: dict[str, Any] = {
    "owner": hushbid.Owner,
    "consumer": hushbid.Consumer,
    "curator": hushbid.Curator,
    "plan": PlanOptions,
    "audit": AuditOptions,
    "screen": ScreenOptions,
    "publish kme": hushbid.PublishKme,
    "publish race": hushbid.PublishRace,
}
VERBS_ALONE = {"_quiet", "as_json", "log_format", "log_level", "progress_fd", "help", "catalogue", "out"}
PYTHONS_ALONE = {"progress", "say", "_control"}


@pytest.mark.parametrize("name", hushbid.__all__)
def test_every_name_is_there(name: str) -> None:
    assert name == "__version__" or getattr(hushbid, name).__name__ == name


def test_every_error_is_there() -> None:
    kinds = {
        name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)
    }
    assert kinds <= set(hushbid.__all__)


@pytest.mark.parametrize("nothing", [[], {}, iter(())], ids=["list", "mapping", "iterator"])
def test_no_transcripts_are_not_all_right(nothing: Any) -> None:
    with pytest.raises(hushbid.ConfigError, match="There is no transcript"):
        hushbid.verify_transcripts(nothing)


@pytest.mark.parametrize(
    "named", [str, lambda path: {"curator": path}, lambda path: [path]], ids=["text", "mapping", "list"]
)
def test_transcripts_may_be_one_or_a_mapping(tmp_path: Path, named: Any) -> None:
    found = hushbid.verify_transcripts(named(tmp_path / "curator.transcript"))
    assert not found["ok"]
    assert "curator.transcript" in str(found)


def test_importing_it_loads_nothing_that_takes_long() -> None:
    heavy = ("numpy", "zmq", "pydantic", "pyarrow", "sklearn", "typer")
    code = f"import sys, hushbid; print([name for name in {heavy} if name in sys.modules])"
    made: Any = built(app)
    code += (
        "; from hushbid.cli.app import app; from hushbid.protocol.runtime.command import built"
        f"; verbs = len([*built(app).commands.values()]); assert verbs == {len(made.commands)}"
        f"; print([name for name in {heavy[:-1]} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]", "[]"]


def test_the_command_line_reads_what_is_installed_only_for_verbs_of_evidence() -> None:
    code = "import sys, hushbid.cli.app; print('importlib.metadata' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False"]


@pytest.mark.parametrize(
    "module", ["hushbid.kme", "hushbid.race", "hushbid.catalogue.publishing", "hushbid.catalogue.screening"]
)
def test_private_releases_load_scikit_learn_only_for_its_estimators(module: str) -> None:
    """It takes a second, brings pandas and half of SciPy, and `publish` and `screen` need none of it."""
    heavy = ("sklearn", "pandas", "scipy.stats")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]"]


@pytest.mark.parametrize("package", [hushbid.kme, hushbid.race], ids=["kme", "race"])
def test_all_names_of_estimators_packages_are_there(package: Any) -> None:
    assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Sketched'"):
        _ = package.Sketched


def test_estimators_packages_keep_the_names_that_others_import() -> None:
    """Whatever a class is called in its own module."""
    assert {"Calibration", "Estimate", "Release"} <= {*hushbid.kme.__all__}
    assert {"Calibration", "Counts", "Sketch"} <= {*hushbid.race.__all__}
    assert hushbid.kme.Calibration.__module__ == "hushbid.kme.privacy"
    assert hushbid.race.Calibration.__module__ == "hushbid.race.release"


@pytest.mark.parametrize("verb", OPTIONS)
def test_a_verb_takes_what_its_dataclass_has_and_its_defaults(verb: str) -> None:
    command: Any = built(app)
    for word in verb.split():
        command = command.commands[word]
    options = {each.name: each for each in command.params if each.name not in VERBS_ALONE}
    has = {each.name: each for each in fields(OPTIONS[verb]) if each.name not in PYTHONS_ALONE}
    assert set(options) == set(has)
    for name, option in options.items():
        if not option.required:
            assert option.default == has[name].default, name


@pytest.mark.parametrize(
    ("function", "options"), [(hushbid.plan_session, PlanOptions), (hushbid.audit_machines, AuditOptions)]
)
def test_a_function_takes_what_its_dataclass_has(function: Any, options: Any) -> None:
    assert inspect.signature(function) == inspect.signature(options)
    with pytest.raises(TypeError, match="seeds"):
        function(seeds=1)


def test_a_catalogue_publishes_and_reads_entries(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(3).random((200, 2)))
    write_secret(tmp_path / "north.key", new_keypair())
    catalogue = hushbid.Catalogue(tmp_path / "entries")
    wanted = hushbid.PublishKme(
        tmp_path / "rows.npy",
        name="north",
        neighbours="add-remove-one",
        epsilon=2.0,
        seed=1,
        gamma=1.0,
        lower="0",
        upper="1",
        key=tmp_path / "north.key",
        simulated=4,
    )
    made = catalogue.publish(wanted)
    assert {path: entry.name for path, entry in catalogue.entries().items()} == {made.path: "north"}
    with pytest.raises(hushbid.ConfigError, match="no neighbours 'others'"):
        catalogue.publish(replace(wanted, neighbours="others"))
    with pytest.raises(hushbid.ConfigError, match="needs a place"):
        hushbid.Catalogue()


def printed(*arguments: str) -> dict[str, Any]:
    ended = CliRunner().invoke(app, [*arguments, "--json"])
    assert ended.exit_code == 0, ended.output
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_a_plan_is_the_verb_s_but_for_this_machine_s_speed() -> None:
    said = {"owners": 3, "points": 40, "validation": 60, "epsilon_owners": 1.0, "epsilon_consumer": 2.0}
    plan = hushbid.plan_session(**said, wanted=0.1)  # type: ignore[arg-type]
    planned = plan.as_json()
    assert dict(plan) == planned, "which it was before it was a record"
    assert repr(plan) == f"<Plan of 'plan': {plan.called}, 40 points of 3 owners>"
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in said.items()]
    shown = printed("plan", *flags, "--wanted=0.1")
    for figures in (planned, shown):
        for measured in ("speed", "seconds", "batches"):
            assert figures.pop(measured)
    assert json.loads(json.dumps(planned)) == shown
    with pytest.raises(hushbid.ConfigError, match="Neither a file"):
        hushbid.plan_session(points=40)


def test_an_audit_is_the_verb_s() -> None:
    told: list[tuple[str, int, int]] = []
    [found] = hushbid.audit_machines(
        ["gaussian"], trials=40, jobs=1, seed=3, progress=lambda *step: told.append(step)
    )
    shown = printed("audit", "gaussian", "--trials", "40", "--jobs", "1", "--seed", "3")
    assert [found.as_json()] == shown["suites"]
    assert told[-1][0] == "gaussian"
    assert told[-1][1] == told[-1][2]
    with pytest.raises(hushbid.ConfigError, match="no suite"):
        hushbid.audit_machines(["none"])
