"""docs/configuration.md states limits, figures and files that the code has; its tables are generated."""

from __future__ import annotations

import json
import math
import re
import stat
from datetime import date
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from hushbid.cluster.file import ClusterFile
from hushbid.protocol.config.party import BudgetSection, ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.config.session import NoiseSection, SessionFile, TimeoutSection
from hushbid.protocol.crypto.sealing import default_content_size
from hushbid.protocol.privacy.noise import NOISE_SOURCES
from hushbid.protocol.privacy.releases import RELEASES
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending, SpendingKind
from tests.docs.pages import Page, names_in
from tests.docs.tables.configuration import COMMON, OF_DATA, PARAMETERS, epsilon_of_sigma, gaussian, keys

PAGE = Page("docs/configuration.md")


@pytest.mark.parametrize("model", [CuratorFile, ConsumerFile])
def test_what_all_party_files_have_is_the_same_in_each(model: type[BaseModel]) -> None:
    assert keys(model, COMMON) == keys(OwnerFile, COMMON)


def test_what_the_files_of_parties_with_data_have_is_the_same_in_both() -> None:
    assert keys(ConsumerFile, OF_DATA) == keys(OwnerFile, OF_DATA)
    assert OF_DATA == ["ledger", "budget", "most_rows"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_mechanism_and_rule_has_its_keys_in_its_section(name: str) -> None:
    marked = f"<!-- generated: keys of {name} -->" if PARAMETERS[name].model_fields else "No keys."
    assert marked in PAGE.section(f"`{name}`")


@pytest.mark.parametrize("model", [SessionFile, ClusterFile])
def test_the_address_without_a_network_section_is_there(model: type[BaseModel]) -> None:
    assert f"`{model.model_fields['network'].default.address}`" in PAGE.section("`[network]`")


def test_a_default_that_is_another_would_be_noticed() -> None:
    class Changed(TimeoutSection):
        round: float = 11.0

    assert keys(Changed) != keys(TimeoutSection)


def test_a_source_that_a_session_file_may_name_is_one_that_there_is() -> None:
    assert set(NOISE_SOURCES) > set(get_args(NoiseSection.model_fields["source"].annotation))


@pytest.mark.parametrize("mechanism", [name for name, found in RELEASES.items() if found.private])
def test_neighbours_are_required_wherever_a_mechanism_is_private(mechanism: str) -> None:
    assert RELEASES[mechanism].Parameters.model_fields["neighbours"].is_required()


@pytest.mark.parametrize("columns", [3, 56, 784])
def test_the_size_that_a_box_has_by_itself_is_the_one_stated(columns: int) -> None:
    stated = re.search(
        r"8 bytes a column and (\d+), rounded up to a multiple of (\d+)", PAGE.section("`sealed`")
    )
    assert stated
    spare, step = int(stated[1]), int(stated[2])
    assert -(-(8 * columns + spare) // step) * step == default_content_size(columns)


def test_epsilon_of_sigma_is_the_same_for_both_mechanisms() -> None:
    assert epsilon_of_sigma("gaussian") == epsilon_of_sigma("filtered-gaussian")


def test_sigma_of_epsilon_is_what_the_code_computes() -> None:
    text = PAGE.section("Choosing sigma")
    stated = re.findall(r"ε = ([\d.]+) takes σ/√n = ([\d.]+)", text)
    assert len(stated) == 3
    for epsilon, ratio in stated:
        assert f"{gaussian(1e-5, epsilon=float(epsilon)).sigma:.4g}" == ratio
    one = float(dict(stated)["1"])
    assert f"{one:.3g}·√999 ≈ {one * math.sqrt(999):.0f}" in text


def test_a_lifetime_ledger_has_the_lines_that_the_page_describes(tmp_path: Path) -> None:
    path = tmp_path / "data.npz.ledger"
    relation, day = "add-remove-one", date(2026, 3, 1)
    spending = Spending(
        kind="session", identifier="s/1/2", date=day, neighbours=relation, epsilon=1.0, delta=1e-5,
        transcript="ab" * 32,
    )  # fmt: skip
    with LifetimeLedger.open(
        path, budget=BudgetSection(epsilon=3.0), neighbours=relation, rows=None
    ) as ledger:
        ledger.charge(spending)
    LifetimeLedger.open(path, budget=BudgetSection(epsilon=2.0), neighbours=relation, rows=None).close()
    header, spent, changed = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    text, rows = PAGE.section("The lifetime ledger"), PAGE.rows("The lifetime ledger")
    assert PAGE.first_names("The lifetime ledger") == [*header, *spent]
    assert (header["format"], header["version"]) == ("hushbid-lifetime-ledger", 2)
    assert f"| `format` | `{header['format']}` |" in text
    assert f"| `version` | {header['version']} |" in text
    assert list(changed) == ["kind", "budget", "neighbours", "lifted"]
    assert '`{"kind": "budget", "budget": …, "neighbours": …, "lifted": …}`' in text
    assert set(names_in(rows[4][1])) == set(get_args(SpendingKind))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
