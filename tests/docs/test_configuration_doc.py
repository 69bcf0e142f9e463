"""docs/configuration.md names every key there is, with the default that the code has."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from consumer.downstream import MODELS
from hushbid.cli import app
from hushbid.cluster import ClusterFile, ConsumerSection, DatasetSection, OwnerSection, RunSection
from hushbid.datasets import DATASETS, PartitionOptions
from protocol.acquisition import RULES
from protocol.acquisition.logistic import Logistic, LogisticParameters
from protocol.config import (
    ConsumerFile,
    CuratorFile,
    DataSection,
    FeatureSection,
    MechanismSection,
    NetworkSection,
    NoiseSection,
    OwnerFile,
    RosterSection,
    RuleSection,
    SessionFile,
    SessionSection,
    TimeoutSection,
)
from protocol.config.party import BudgetSection
from protocol.features import FEATURE_SPACES
from protocol.noise import NOISE_SOURCES
from protocol.releases import (
    RELEASES,
    FilteredGaussianRelease,
    GaussianRelease,
    Neighbours,
    Setting,
    release_mechanism,
)
from protocol.runtime.lifetime_ledger import LifetimeLedger
from protocol.runtime.spending import Spending, SpendingKind
from protocol.sealing import default_content_size
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
COMMON = CuratorFile.model_fields.keys() & OwnerFile.model_fields.keys()
"""Keys of all three party files."""
OF_DATA = (OwnerFile.model_fields.keys() & ConsumerFile.model_fields.keys()) - COMMON - {"columns"}
"""Keys of the files of parties with private data."""
SECTIONS: dict[str, type[BaseModel]] = {
    "The session file": SessionFile,
    "`[session]`": SessionSection,
    "`[features]`": FeatureSection,
    "`[target]` and `[summary]`": MechanismSection,
    "`[acquisition]`": RuleSection,
    "`[noise]`": NoiseSection,
    "`[timeouts]`": TimeoutSection,
    "`[network]`": NetworkSection,
    "`[roster]`": RosterSection,
    "The curator's file": CuratorFile,
    "An owner's file": OwnerFile,
    "The consumer's file": ConsumerFile,
    "`columns`": DataSection,
    "`budget`": BudgetSection,
    "The cluster file": ClusterFile,
    "`[owners.NAME]`": OwnerSection,
    "`[consumer]`": ConsumerSection,
    "`[run]`": RunSection,
    **{f"`{name}`": mechanism.Parameters for name, mechanism in RELEASES.items()},
    **{f"`{name}`": rule.Parameters for name, rule in RULES.items()},
}


CONFIGURED_SOURCES = set(get_args(NoiseSection.model_fields["source"].annotation))
"""Sources that a session file may name: the others are for replays."""


def section(title: str) -> str:
    """The text under a heading, up to the next heading of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if re.match(r"\| `", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def keys(title: str) -> dict[str, str]:
    """Key → default, as a section of the page has them."""
    default = 1 if title in ("The session file", "The cluster file") else 2
    return {row[0].strip("`"): row[default] for row in rows(section(title))}


@cache
def defaults(model: type[BaseModel]) -> dict[str, str]:
    """Key → default, as the page is to have them."""
    return {
        name: shown(field.get_default(call_default_factory=True))
        for name, field in model.model_fields.items()
    }


def shown(default: object) -> str:
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if isinstance(default, BaseModel):
        return "its own defaults"
    return "empty" if default == {} else f"`{json.dumps(default)}`"


@pytest.mark.parametrize("title", SECTIONS)
def test_every_key_is_there_with_its_default(title: str) -> None:
    wanted = defaults(SECTIONS[title])
    if title.endswith(" file") and SECTIONS[title].__name__ in ("CuratorFile", "OwnerFile", "ConsumerFile"):
        wanted = {name: default for name, default in wanted.items() if name not in COMMON | OF_DATA}
    assert keys(title) == wanted


@pytest.mark.parametrize("model", [CuratorFile, OwnerFile, ConsumerFile])
def test_what_all_party_files_have_is_there_with_its_default(model: type[BaseModel]) -> None:
    assert keys("In all three") == {name: defaults(model)[name] for name in COMMON}


@pytest.mark.parametrize("model", [OwnerFile, ConsumerFile])
def test_what_the_files_of_parties_with_data_have_is_there_with_its_default(model: type[BaseModel]) -> None:
    stated = keys("In an owner's and the consumer's")
    assert stated == {name: defaults(model)[name] for name in OF_DATA}
    assert stated.keys() == {"ledger", "budget"}


def test_a_dataset_s_keys_and_options_are_there() -> None:
    options = {field.name: shown(field.default) for field in dataclasses.fields(PartitionOptions)}
    assert keys("`[dataset]`") == defaults(DatasetSection) | options


@pytest.mark.parametrize("model", [SessionFile, ClusterFile])
def test_the_address_without_a_network_section_is_there(model: type[BaseModel]) -> None:
    assert f"`{model.model_fields['network'].default.address}`" in section("`[network]`")


def test_a_default_that_is_another_would_be_noticed() -> None:
    class Changed(TimeoutSection):
        round: float = 11.0

    assert keys("`[timeouts]`") != defaults(Changed)


@pytest.mark.parametrize(
    ("title", "key", "names"),
    [
        ("`[features]`", "map", FEATURE_SPACES),
        ("`[target]` and `[summary]`", "mechanism", RELEASES),
        ("`[acquisition]`", "rule", RULES),
        ("`[noise]`", "source", CONFIGURED_SOURCES),
        ("`[dataset]`", "name", DATASETS),
        ("The consumer's file", "model", MODELS),
        ("`[consumer]`", "model", MODELS),
    ],
)
def test_what_a_key_may_name_is_what_there_is(title: str, key: str, names: Iterable[str]) -> None:
    kind = next(row[1] for row in rows(section(title)) if row[0] == f"`{key}`")
    assert set(re.findall(r"`([\w-]+)`", kind)) == set(names)


def test_a_source_that_a_session_file_may_name_is_one_that_there_is() -> None:
    assert set(NOISE_SOURCES) > CONFIGURED_SOURCES


def test_every_feature_map_has_its_formula() -> None:
    assert {row[0].strip("`") for row in rows(section("Feature maps"))} == set(FEATURE_SPACES)


def test_what_neighbours_may_be_is_what_there_is() -> None:
    stated = {row[0].strip("`") for row in rows(section("Neighbours"))}
    assert stated == {each.value for each in Neighbours}


@pytest.mark.parametrize("mechanism", [name for name, found in RELEASES.items() if found.private])
def test_neighbours_are_required_wherever_a_mechanism_is_private(mechanism: str) -> None:
    assert keys(f"`{mechanism}`")["neighbours"] == "required"


@pytest.mark.parametrize("columns", [3, 56, 784])
def test_the_size_that_a_box_has_by_itself_is_the_one_stated(columns: int) -> None:
    stated = re.search(r"8 bytes a column and (\d+), rounded up to a multiple of (\d+)", section("`sealed`"))
    assert stated
    spare, step = int(stated[1]), int(stated[2])
    assert -(-(8 * columns + spare) // step) * step == default_content_size(columns)


def verbs_below(command: Any) -> Iterator[Any]:
    """A verb and those below it, as `hushbid keys` has some."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from verbs_below(each)


def test_every_variable_is_there_with_its_verbs() -> None:
    read: dict[str, set[str]] = {}
    for verb, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for parameter in (each for below in verbs_below(command) for each in below.params):
            if variable := getattr(parameter, "envvar", None):
                read.setdefault(variable, set()).add(verb)
    stated = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows(section("Variables"))}
    assert stated == read


def gaussian(
    delta: float, *, name: str = "gaussian", releases: int = 1, **parameters: float
) -> GaussianRelease | FilteredGaussianRelease:
    """Gaussian noise on d = 140 coordinates of paired features, every release charged."""
    setting = Setting(dimension=140, releases=releases, norm_bound=1.0, delta=delta)
    made = release_mechanism(name, {"neighbours": "add-remove-one", **parameters}, setting)
    assert isinstance(made, GaussianRelease | FilteredGaussianRelease)
    return made


@pytest.mark.parametrize("name", ["gaussian", "filtered-gaussian"])
def test_epsilon_of_sigma_is_what_the_code_computes(name: str) -> None:
    lines = [
        line.strip("| ").split(" | ") for line in section("Choosing sigma").splitlines() if line[:1] == "|"
    ]
    deltas = [float(delta) for delta in re.findall(r"δ = (\S+)", " ".join(lines[0]))]
    assert len(lines) == 9
    for ratio, *stated in lines[2:]:
        # As the page says, ε depends on σ/√n alone: shown on n = 100 releases.
        found = [
            gaussian(delta, name=name, releases=100, sigma=10.0 * float(ratio)).guarantee(
                neighbours=Neighbours.ADD_REMOVE_ONE, delta=delta
            )
            for delta in deltas
        ]
        assert stated == [f"{each.epsilon:.4g}" for each in found]


def test_sigma_of_epsilon_is_what_the_code_computes() -> None:
    text = section("Choosing sigma")
    stated = re.findall(r"ε = ([\d.]+) takes σ/√n = ([\d.]+)", text)
    assert len(stated) == 3
    for epsilon, ratio in stated:
        assert f"{gaussian(1e-5, epsilon=float(epsilon)).sigma:.4g}" == ratio
    one = float(dict(stated)["1"])
    assert f"{one:.3g}·√999 ≈ {one * math.sqrt(999):.0f}" in text


def test_the_middle_ranks_of_logistic_are_what_the_code_computes() -> None:
    lines = [
        line.strip("| ").split(" | ")
        for line in section("`logistic`").splitlines()
        if re.match(r"\| \d", line)
    ]
    assert len(lines) == 3
    for epsilon, *stated in lines:
        found = [
            Logistic(
                LogisticParameters(epsilon=float(epsilon)), owners=10_000, rounds=rounds, delta=1e-5
            ).middle
            for rounds in (100, 1000)
        ]
        assert stated == [f"{middle:.0f}" for middle in found]


def test_a_lifetime_ledger_has_the_lines_that_the_page_describes(tmp_path: Path) -> None:
    path = tmp_path / "data.npz.ledger"
    relation, day = "add-remove-one", date(2026, 3, 1)
    spending = Spending(
        kind="session", identifier="s/1/2", date=day, neighbours=relation, epsilon=1.0, delta=1e-5
    )
    with LifetimeLedger.open(
        path, budget=BudgetSection(epsilon=3.0), neighbours=relation, rows=None
    ) as ledger:
        ledger.charge(spending)
    LifetimeLedger.open(path, budget=BudgetSection(epsilon=2.0), neighbours=relation, rows=None).close()
    header, spent, changed = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    text = section("The lifetime ledger")
    assert [row[0].strip("`") for row in rows(text)] == [*header, *spent]
    assert (header["format"], header["version"]) == ("hushbid-lifetime-ledger", 2)
    assert f"| `format` | `{header['format']}` |" in text
    assert f"| `version` | {header['version']} |" in text
    assert list(changed) == ["kind", "budget", "neighbours", "lifted"]
    assert '`{"kind": "budget", "budget": …, "neighbours": …, "lifted": …}`' in text
    assert set(re.findall(r"`(\w+)`", rows(text)[4][1])) == set(get_args(SpendingKind))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
