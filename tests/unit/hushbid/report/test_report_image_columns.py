"""The pictures of a session with image columns."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from hushbid.cluster.file import open_cluster
from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.data import DataColumns
from hushbid.protocol.errors import ConfigError
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.own_rows import ConsumerRows, Image, own_rows
from hushbid.report.page import page_of
from hushbid.report.sources import open_sources
from tests.support.picture_sessions import SCAN_IN_COLOUR, SIDE, Bought, bought_scans
from tests.unit.hushbid.report.test_report_page import Elements
from tests.unit.hushbid.report.test_report_pictures import pixels


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Bought:
    return bought_scans(tmp_path_factory.mktemp("scans"))


def figures(of: Bought, image: Image | None = None) -> ReportFigures:
    sources = open_sources([of.consumer])
    wanted = ConsumerRows(validation=of.validation, columns=DataColumns(), image=image)
    return figures_of(sources, rows=own_rows(sources, wanted))


@pytest.fixture(scope="module")
def drawn(scans: Bought) -> ReportFigures:
    return figures(scans)


def delivered(of: Bought) -> dict[str, Any]:
    file = open_cluster(of.validation.with_name("cluster.toml")).schema
    assert file is not None
    table: dict[str, Any] = delivered_table(file, of.directory / "delivered.npz").to_pydict()
    return table


def test_images_are_drawn_of_each_column_without_being_asked_for(scans: Bought, drawn: ReportFigures) -> None:
    found, page = drawn.pictures, page_of(drawn)
    assert found is not None
    images = re.findall(r'<img src="data:image/png;base64,([^"]+)"', page)
    shown = [pixels(text).reshape(-1) for text in images]
    bought = delivered(scans)
    with np.load(scans.validation) as file:
        held = {name: file[name].reshape(15, -1) for name in ("scan", SCAN_IN_COLOUR)}
    expected = [np.concatenate([held[name], np.array(bought[name])]) for name in held]
    assert len(shown) == 2 * (15 + 20)
    np.testing.assert_array_equal(np.stack(shown[:35]), expected[0])
    np.testing.assert_array_equal(np.stack(shown[35:]), expected[1])
    assert {(sheet.column, sheet.image) for sheet in found.sheets} == {
        ("scan", Image(SIDE, SIDE + 1)),
        (SCAN_IN_COLOUR, Image(3, 2, 3)),
    }
    assert found.image is None  # no whole row is one
    assert [column.name for column in found.columns] == ["age"]


def test_the_page_names_the_columns_and_each_sheet(drawn: ReportFigures) -> None:
    found = Elements(page_of(drawn))
    assert found.unbalanced == []
    text = " ".join(found.text)
    assert (
        f"The images of scan, by round Images of {SIDE} × {SIDE + 1} pixels, black is 0 and white 255."
        in text
    )
    assert f"The images of {SCAN_IN_COLOUR}, by round Images of 3 × 2 pixels, in colour." in text
    named = [value for name, value in found.attributes if name == "aria-labelledby"]
    identifiers = [value for name, value in found.attributes if name == "id"]
    assert all(identifiers.count(value) == 1 for value in named)


def test_a_size_besides_is_refused(scans: Bought) -> None:
    numbers = 1 + SIDE * (SIDE + 1) + 18
    with pytest.raises(ConfigError, match="other bounds for one column"):
        figures(scans, Image(numbers, 1))


def test_delivered_images_are_those_of_their_owners(scans: Bought) -> None:
    bought = delivered(scans)
    offered = {}
    for name in ("north", "south"):
        with np.load(scans.validation.with_name(f"{name}.npz")) as file:
            rows = zip(file["age"].tolist(), file["scan"].reshape(30, -1).tolist(), strict=True)
            offered[name] = list(rows)
    assert len(bought["scan"]) == 20
    for owner, age, scan in zip(bought["owner"], bought["age"], bought["scan"], strict=True):
        assert (age, scan) in offered[owner]
