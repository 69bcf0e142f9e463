"""docs/configuration.md names every key there is, with the default that the code has."""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from consumer.downstream import MODELS
from hushbid.cluster import ClusterFile, ConsumerSection, DatasetSection, OwnerSection, RunSection
from hushbid.datasets import DATASETS, PartitionOptions
from protocol.acquisition import RULES
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
from protocol.features import FEATURE_MAPS, feature_map
from protocol.noise import NOISE_SOURCES
from protocol.releases import RELEASES, Neighbours, release_mechanism
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
COMMON = {name: field for name, field in CuratorFile.model_fields.items() if name in OwnerFile.model_fields}
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
    "The cluster file": ClusterFile,
    "`[owners.NAME]`": OwnerSection,
    "`[consumer]`": ConsumerSection,
    "`[run]`": RunSection,
    **{f"`{name}`": mechanism.Parameters for name, mechanism in RELEASES.items()},
    **{f"`{name}`": rule.Parameters for name, rule in RULES.items()},
}


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
        wanted = {name: default for name, default in wanted.items() if name not in COMMON}
    assert keys(title) == wanted


@pytest.mark.parametrize("model", [CuratorFile, OwnerFile, ConsumerFile])
def test_what_all_party_files_have_is_there_with_its_default(model: type[BaseModel]) -> None:
    assert keys("In all three") == {name: defaults(model)[name] for name in COMMON}


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
        ("`[features]`", "map", FEATURE_MAPS),
        ("`[target]` and `[summary]`", "mechanism", RELEASES),
        ("`[acquisition]`", "rule", RULES),
        ("`[noise]`", "source", NOISE_SOURCES),
        ("`[dataset]`", "name", DATASETS),
        ("The consumer's file", "model", MODELS),
        ("`[consumer]`", "model", MODELS),
    ],
)
def test_what_a_key_may_name_is_what_there_is(title: str, key: str, names: dict[str, object]) -> None:
    kind = next(row[1] for row in rows(section(title)) if row[0] == f"`{key}`")
    assert set(re.findall(r"`([\w-]+)`", kind)) == set(names)


def test_every_feature_map_has_its_formula() -> None:
    assert {row[0].strip("`") for row in rows(section("Feature maps"))} == set(FEATURE_MAPS)


def test_every_variable_is_there_with_its_verbs() -> None:
    where = {
        "hushbid/cli.py": {"run", "simulate"},
        "curator/cli.py": {"curator"},
        "owner/cli.py": {"owner"},
        "consumer/cli.py": {"consumer"},
    }
    read: dict[str, set[str]] = {}
    for path, verbs in where.items():
        for name in re.findall(r'envvar="(\w+)"', (ROOT / path).read_text(encoding="utf-8")):
            read[name] = read.get(name, set()) | ({"run"} if name == "HUSHBID_DIRECTORY" else verbs)
    stated = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in rows(section("Variables"))}
    assert stated == read


def test_epsilon_of_sigma_is_what_the_code_computes() -> None:
    phi = feature_map("paired", seed=0, dimension=140, gamma=0.1, lower=0.0, upper=1.0, columns=3)
    lines = [
        line.strip("| ").split(" | ") for line in section("Choosing sigma").splitlines() if line[:1] == "|"
    ]
    deltas = [float(delta) for delta in re.findall(r"δ = (\S+)", " ".join(lines[0]))]
    assert len(lines) == 9
    for ratio, *stated in lines[2:]:
        # As the page says, ε depends on σ/√n alone: shown on a summary of n = 100 releases.
        gaussian = release_mechanism(
            "gaussian",
            {"sigma": 10.0 * float(ratio)},
            dimension=140,
            releases=100,
            norm_bound=phi.norm_bound,
        )
        found = [
            gaussian.guarantee(neighbours=Neighbours.ADD_REMOVE_ONE, delta=each).epsilon for each in deltas
        ]
        assert stated == [f"{epsilon:.4g}" for epsilon in found]
