"""The pictures of a consumer's report: they show its own rows as they are, to nobody else."""

from __future__ import annotations

import base64
import json
import re
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pytest
from PIL import Image as PixelImage
from scipy.spatial.distance import cdist

from hushbid.cli.app import app
from hushbid.consumer.delivered import delivered_table
from hushbid.protocol.data import DataColumns
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.transcript.redaction import redact
from hushbid.report import pictures as pictures_module
from hushbid.report.figures import ReportFigures, figures_of
from hushbid.report.own_rows import ConsumerRows, Image, own_rows, read_image
from hushbid.report.page import page_of
from hushbid.report.pictures import BARS, MOST_WORDS, Pictures
from hushbid.report.sources import open_sources
from hushbid.running.report import write_report
from tests.support.picture_sessions import (
    COLUMNS,
    HOSTILE,
    SIDE,
    VILLAGES,
    Bought,
    bought_images,
    bought_rows,
)
from tests.unit.hushbid.report.test_report_page import Elements, unplotted

IMAGE = Image(SIDE, SIDE + 1)
SECTION = "Wanted rows and bought points"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Bought:
    return bought_rows(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Bought:
    return bought_images(tmp_path_factory.mktemp("images"))


def wanted(of: Bought, image: Image | None = None) -> ConsumerRows:
    label = "paid" if of.validation.suffix == ".csv" else None
    return ConsumerRows(validation=of.validation, columns=DataColumns(label=label), image=image)


def figures(of: Bought, image: Image | None = None) -> ReportFigures:
    sources = open_sources([of.consumer])
    return figures_of(sources, rows=own_rows(sources, wanted(of, image)))


def pictures(of: Bought) -> Pictures:
    """The content of the pictures."""
    found = figures(of).pictures
    assert found is not None
    return found


def drawn(of: Bought) -> tuple[Pictures, str]:
    """The content of the pictures, and the page's words."""
    found = figures(of)
    assert found.pictures is not None
    return found.pictures, " ".join(Elements(unplotted(found)).text)


@pytest.fixture(scope="module")
def of_table(table: Bought) -> Pictures:
    return pictures(table)


@pytest.fixture(scope="module")
def page(table: Bought) -> str:
    return page_of(figures(table))


@pytest.fixture(scope="module")
def sheets(images: Bought) -> tuple[Pictures, str]:
    """The content of the pictures of images, and the page."""
    made = figures(images, IMAGE)
    assert made.pictures is not None
    return made.pictures, page_of(made)


def report(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ending:
        app(["report", *map(str, arguments)], standalone_mode=False)
    return int(str(ending.value.code))


# -- what they show -----------------------------------------------------------------------------------------


def test_shares_of_words_are_those_of_the_tables(table: Bought, of_table: Pictures) -> None:
    rows = pacsv.read_csv(table.validation).to_pydict()
    bought = delivered_table(Schema.of(COLUMNS), table.directory / "delivered.npz").to_pydict()
    names = {"": "(gap)", None: "(gap)", True: "yes", False: "no"}
    for column in of_table.columns:
        if column.values is None:
            continue
        for place, word in enumerate(column.values[: len(column.values) - (column.others > 0)]):
            own = [names.get(value, value) == word for value in rows[column.name]]
            theirs = np.array([names.get(value, value) == word for value in bought[column.name]])
            assert column.wanted[place] == pytest.approx(np.mean(own))
            assert column.bought[place] == pytest.approx(theirs.mean())
            assert column.weighted is not None
            assert column.weighted[place] == pytest.approx(np.array(bought["weight"])[theirs].sum(), abs=1e-8)


def test_shares_of_numbers_are_those_of_the_tables(table: Bought, of_table: Pictures) -> None:
    rows = pacsv.read_csv(table.validation)
    delivered = table.delivered()
    by_name = {column.name: column for column in of_table.columns}
    children = by_name["children"]
    assert children.edges == (-0.5, 0.5, 1.5, 2.5, 3.5)
    counts = np.bincount(rows["children"].to_numpy(), minlength=4)
    assert children.wanted == pytest.approx(counts / 50)
    income, column = by_name["income"], rows["income"].to_numpy()
    assert income.edges is not None
    assert len(income.edges) == BARS + 1
    bought, weights = delivered["features"][:, 1], delivered["weights"]
    assert income.means == pytest.approx((column.mean(), bought.mean(), weights @ bought))
    # The tails are in the outermost bars.
    assert sum(income.wanted) == pytest.approx(1.0)
    assert income.bought[-1] == pytest.approx((bought >= income.edges[-2]).mean())
    assert income.apart == pytest.approx(np.abs(np.subtract(income.wanted, income.bought)).sum() / 2)


def test_of_many_words_the_most_wanted_have_bars(table: Bought, of_table: Pictures) -> None:
    villages = pacsv.read_csv(table.validation)["village"].to_pylist()
    (column,) = (each for each in of_table.columns if each.name == "village")
    assert column.values is not None
    assert (len(column.values), column.others) == (MOST_WORDS, VILLAGES - MOST_WORDS + 1)
    least = min(villages.count(word) for word in column.values[:-1])
    assert least >= max(villages.count(word) for word in set(villages) - set(column.values))
    assert sum(column.wanted) == pytest.approx(1.0)


def test_of_many_columns_those_that_differ_most_are_drawn(
    table: Bought, of_table: Pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = of_table.columns
    assert [column.name for column in every] == [column["name"] for column in COLUMNS]
    monkeypatch.setattr(pictures_module, "MOST_COLUMNS", 2)
    found, text = drawn(table)
    furthest = sorted(every, key=lambda column: -column.apart)[:2]
    assert found.columns == tuple(column for column in every if column in furthest)
    assert found.columns_left_out == len(COLUMNS) - 2
    assert "differ most, and leave 5 out." in text


def test_the_map_is_that_of_the_kernel_s_largest_eigenvectors(images: Bought) -> None:
    """Centred kernel values by hand; each axis may be the other way round."""
    found = pictures(images).map
    assert found is not None
    with np.load(images.validation) as file:
        points = np.concatenate([file["features"], images.delivered()["features"]]) / 40.0
    kernel = np.exp(-cdist(points, points, "sqeuclidean"))
    centre = np.eye(len(points)) - 1.0 / len(points)
    values, vectors = np.linalg.eigh(centre @ kernel @ centre)
    places = np.array([*found.wanted, *found.bought])
    for axis in (0, 1):
        expected = vectors[:, -1 - axis] * np.sqrt(values[-1 - axis])
        assert abs(expected @ places[:, axis]) == pytest.approx(values[-1 - axis], rel=1e-6)
        assert found.explained[axis] == pytest.approx(values[-1 - axis] / values.sum(), rel=1e-6)


def test_offered_points_lie_on_the_map_where_bought_ones_do(images: Bought) -> None:
    """Bought points were offered, and lie at the same place by the same components."""
    without = pictures(images)
    files = tuple(images.validation.with_name(f"{owner}.npz") for owner in ("north", "south"))
    sources = open_sources([images.consumer])
    given = ConsumerRows(validation=images.validation, columns=DataColumns(), offered=files)
    made = figures_of(sources, rows=own_rows(sources, given))
    found, text = made.pictures, " ".join(Elements(unplotted(made)).text)
    assert found is not None
    assert found.map is not None
    assert without.map is not None
    assert (found.map.wanted, found.map.bought) == (without.map.wanted, without.map.bought)
    assert (without.offered, without.map.offered, found.offered) == (None, None, 120)
    assert found.map.offered is not None
    gaps = cdist(np.array(found.map.bought), np.array(found.map.offered)).min(axis=1)
    assert gaps.max() < 1e-6
    assert cdist(np.array(found.map.wanted), np.array(found.map.offered)).min(axis=1).max() > 1e-3
    assert "120 offered points, bought ones among them, lie on the same components" in text
    assert "In a session between machines the consumer has no such files." in text
    assert "it is for whoever runs all parties, and not for the consumer" in text
    assert "No picture shows points that the consumer did not buy" not in text


def test_offered_points_that_are_none_of_the_session_are_refused(images: Bought, tmp_path: Path) -> None:
    np.savez(tmp_path / "others.npz", features=np.full((3, 20), 41.0))
    options = ("--validation", images.validation, "--offered", tmp_path / "others.npz")
    page = tmp_path / "page.html"
    assert report(images.consumer, *options, "--output", page) == 4
    assert report(images.consumer, *options[2:], "--output", page) == 4
    assert not page.exists()


def test_a_large_map_is_thinned_and_says_so(images: Bought, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures_module, "MAP_POINTS", 5)
    found, text = drawn(images)
    assert found.map is not None
    assert (len(found.map.wanted), len(found.map.bought)) == (5, 5)
    assert "5 wanted rows and 5 bought points" in text
    assert "evenly spaced in their order" in text


def test_weights_and_effective_points_are_those_beside_the_transcript(
    table: Bought, of_table: Pictures
) -> None:
    found, weights = of_table.weights, table.delivered()["weights"]
    assert found is not None
    assert found.effective == pytest.approx(1.0 / (weights**2).sum())
    assert sum(found.points) == len(weights) == 40
    assert found.edges[-1] == pytest.approx(40 * weights.max())
    assert found.hardly == (weights * 40 < 0.01).sum()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (None, "no delivered.npz that can be read"),
        ({"weights": None}, "has none"),
        ({"weights": np.full(40, 0.5)}, "are no weights"),
        ({"weights": np.full(40, "a")}, "no delivered.npz that can be read"),
        ({"features": np.zeros((40, 20))}, "has other points"),
    ],
    ids=["no file", "none", "no sum of 1", "text", "other points"],
)
def test_no_weights_but_those_of_the_points_are_shown(
    images: Bought, tmp_path: Path, changes: dict[str, Any] | None, why: str
) -> None:
    shutil.copy(images.consumer, tmp_path / "consumer.transcript")
    if changes is not None:
        arrays = images.delivered() | changes
        np.savez(
            tmp_path / "delivered.npz", **{name: each for name, each in arrays.items() if each is not None}
        )
    copy = Bought({CONSUMER: tmp_path / "consumer.transcript"}, images.validation, tmp_path)
    if changes is None:
        found, text = drawn(copy)
        assert f"The report shows no weights: {found.no_weights}." in text
    else:  # the page says what was found
        found = pictures(copy)
    assert found.weights is None
    assert why in found.no_weights


def test_images_on_the_page_are_the_rows_by_round(images: Bought, sheets: tuple[Pictures, str]) -> None:
    found, page = sheets
    shown = np.array([pixels(text) for text in re.findall(r'<img src="data:image/png;base64,([^"]+)"', page)])
    delivered = images.delivered()
    with np.load(images.validation) as file:
        rows = np.concatenate([file["features"], delivered["features"]])  # in the order of rounds
    np.testing.assert_array_equal(shown.reshape(70, -1), np.rint(255.0 * rows / 40.0))
    assert [sheet.rounds for sheet in found.sheets[:2]] == [None, (1, 5)]
    for sheet in found.sheets[1:]:
        assert sheet.rounds is not None
        first, last = sheet.rounds
        assert sheet.points == ((delivered["rounds"] >= first) & (delivered["rounds"] <= last)).sum()
    assert sum(sheet.points for sheet in found.sheets) == 70
    assert found.columns == ()


def pixels(text: str) -> np.ndarray[Any, Any]:
    """The pixels of a PNG in base64, of (height, width) or (height, width, 3)."""
    return np.asarray(PixelImage.open(BytesIO(base64.b64decode(text))))


# -- the page -----------------------------------------------------------------------------------------------


def test_the_page_says_what_it_holds_and_what_each_picture_shows(page: str) -> None:
    found = Elements(page)
    assert found.unbalanced == []
    text = " ".join(found.text)
    private = "This page shows rows of the consumer's validation set"
    assert text.index(private) < text.index(SECTION) < text.rindex(private) < text.index("Column by column")
    assert "No picture shows points that the consumer did not buy" in text
    pictured = [value for name, value in found.attributes if name == "role" and value == "img"]
    named = [value for name, value in found.attributes if name == "aria-labelledby"]
    identifiers = [value for name, value in found.attributes if name == "id"]
    assert len(pictured) == len(named) >= len(COLUMNS) + 2
    assert all(identifiers.count(value) == 1 for value in named)


def test_names_of_columns_stay_text(page: str) -> None:
    assert HOSTILE in Elements(page).text
    assert "</script><b>" not in page
    assert Elements(page).seen["b"] == 0


def test_the_same_files_give_the_same_bytes(images: Bought, sheets: tuple[Pictures, str]) -> None:
    assert page_of(figures(images, IMAGE)) == sheets[1]


def test_the_verb_draws_them(
    table: Bought, page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "page.html"
    assert report(table.consumer, "--validation", table.validation, "--label", "paid", "--output", made,
                  "--json") == 0  # fmt: skip
    found = json.loads(capsys.readouterr().out)["figures"]["pictures"]
    assert found == figures(table).as_json()["pictures"]
    assert "pixels" not in found
    assert made.read_text() == page
    assert made.stat().st_mode & 0o777 == 0o600


# -- who gets none ------------------------------------------------------------------------------------------


def test_a_report_that_was_not_asked_for_them_has_none(table: Bought, page: str) -> None:
    held = (SECTION, "rivate rows", "village number 1")
    assert all(words in page for words in held)
    for parties in ((CONSUMER,), tuple(table.transcripts)):
        made = figures_of(open_sources([table.transcripts[party] for party in parties]))
        assert made.as_json()["pictures"] is None
        assert not any(words in page_of(made) for words in held)


@pytest.mark.parametrize("parties", [[CURATOR], ["north"], [CONSUMER, CURATOR], [CONSUMER, "south"]], ids=str)
def test_no_other_party_s_report_has_them(
    table: Bought, tmp_path: Path, capsys: pytest.CaptureFixture[str], parties: list[str]
) -> None:
    files = [table.transcripts[party] for party in parties]
    page = tmp_path / "page.html"
    assert report(*files, "--validation", table.validation, "--label", "paid", "--output", page) == 4
    assert "Give the consumer's transcript alone" in " ".join(capsys.readouterr().err.split())
    assert not page.exists()


def test_a_redacted_report_has_none(table: Bought, tmp_path: Path) -> None:
    copy = tmp_path / "redacted.transcript"
    with copy.open("wb") as file:
        redact(table.consumer, file.write)
    with pytest.raises(ConfigError, match="is redacted"):
        write_report([copy], tmp_path / "page.html", wanted=wanted(table))
    assert not (tmp_path / "page.html").exists()


def test_rows_that_were_not_wanted_are_refused(images: Bought, tmp_path: Path) -> None:
    with np.load(images.validation) as file:
        rows = file["features"]
    for number, other in enumerate((rows[:-1], np.concatenate([rows[:-1], [rows[-1] + 1]]))):
        np.savez(tmp_path / f"{number}.npz", features=other.astype(np.uint8))
        of = ConsumerRows(validation=tmp_path / f"{number}.npz", columns=DataColumns())
        with pytest.raises(DataError, match="not the validation set of this session"):
            write_report([images.consumer], tmp_path / "page.html", wanted=of)


@pytest.mark.parametrize(
    ("image", "session", "why"),
    [
        (Image(5, 5), "images", "25 pixels, and a row of the session 20"),
        (Image(7, 4), "table", "other bounds for one column than for another"),
    ],
    ids=["other size", "a table"],
)
def test_rows_that_are_no_such_images_are_refused(
    request: pytest.FixtureRequest, image: Image, session: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        figures(request.getfixturevalue(session), image)


@pytest.mark.parametrize("text", ["", "28", "28x", "0x28", "28×28", "-2x4", "28x28x3", "999999x1"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="WIDTHxHEIGHT"):
        read_image(text)


def test_an_image_without_rows_is_refused(
    table: Bought, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_image("8x16") == Image(8, 16)
    assert report(table.consumer, "--image", "8x8", "--output", tmp_path / "page.html") == 4
    assert "--validation" in capsys.readouterr().err
