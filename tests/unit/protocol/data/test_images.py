"""Image columns: the same numbers from any form of the pixels, and the same pixels back."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hushbid.protocol.data import DataColumns, load_dataset
from hushbid.protocol.data.frames import as_arrow
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.tables.frames import like, write_table

GREY = {"name": "scan", "kind": "image", "size": [3, 2]}
COLOUR = GREY | {"channels": 3}
AGE = {"name": "age", "kind": "integer", "lower": 0, "upper": 99}
SCHEMA = Schema.of([GREY, AGE])
PIXELS = np.array([[[0, 1, 2], [3, 4, 255]], [[9, 8, 7], [6, 5, 4]]], dtype=np.uint8)
"""Two images of two lines of three pixels."""

Made = Callable[[npt.NDArray[np.uint8]], Any]
HELD: dict[str, Made] = {
    "an array": lambda images: {"scan": images},
    "an array of lines of pixels of one channel": lambda images: {"scan": images[..., None]},
    "an array of all numbers": lambda images: {"scan": images.reshape(len(images), -1)},
    "floats": lambda images: {"scan": images.astype(np.float64)},
    "arrays": lambda images: {"scan": list(images)},
    "lists": lambda images: {"scan": [image.ravel().tolist() for image in images]},
    "lists of lines": lambda images: {"scan": images.tolist()},
    "bytes": lambda images: {"scan": [image.tobytes() for image in images]},
    "bytes of one length": lambda images: {
        "scan": pa.array([image.tobytes() for image in images], pa.binary(6))
    },
    "pandas, of arrays": lambda images: pd.DataFrame({"scan": list(images)}),
    "pandas, of flat arrays": lambda images: pd.DataFrame({"scan": list(images.reshape(len(images), -1))}),
    "pandas, of lists": lambda images: pd.DataFrame({"scan": images.tolist()}),
    "pandas, of bytes": lambda images: pd.DataFrame({"scan": [image.tobytes() for image in images]}),
    "polars, of arrays": lambda images: pl.DataFrame({"scan": images}),
    "polars, of lists": lambda images: pl.DataFrame({"scan": images.tolist()}),
    "polars, of bytes": lambda images: pl.DataFrame({"scan": [image.tobytes() for image in images]}),
}


def encoded(frame: Any, column: dict[str, Any] = GREY) -> npt.NDArray[np.float64]:
    return Schema.of([column]).encode(as_arrow(frame, "the owner's table"), name="the owner's table")


def refused(frame: Any, column: dict[str, Any] = GREY) -> str:
    with pytest.raises(DataError) as caught:
        encoded(frame, column)
    assert caught.value.advice
    return caught.value.what


@given(
    size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    channels=st.sampled_from([1, 3]),
    weight=st.sampled_from([1.0, 0.3, 0.01]),
    data=st.data(),
)
def test_every_image_comes_back_as_it_was(
    size: tuple[int, int], channels: int, weight: float, data: st.DataObject
) -> None:
    schema = Schema.of(
        [AGE, {"name": "scan", "kind": "image", "size": size, "channels": channels, "weight": weight}]
    )
    shape = (data.draw(st.integers(1, 4)), size[1], size[0], channels)
    images = data.draw(arrays.arrays(np.uint8, shape))
    rows = schema.encode(as_arrow({"scan": images, "age": np.arange(len(images))}, "rows"))
    assert rows.shape == (len(images), schema.width)
    assert schema.holds(rows).all()
    assert (rows >= schema.lower).all()
    assert (rows <= schema.upper).all()
    back = schema.decode(rows)
    assert back["scan"].type == pa.list_(pa.uint8(), images[0].size)
    assert back["scan"].to_pylist() == images.reshape(len(images), -1).tolist()
    # What comes back is encoded to the same numbers, in a table and in a file of it.
    assert np.array_equal(schema.encode(back), rows)
    file = io.BytesIO()
    pq.write_table(back, file)
    assert np.array_equal(schema.encode(pq.read_table(file)), rows)


@pytest.mark.parametrize("made", HELD.values(), ids=HELD.keys())
def test_the_same_numbers_come_of_whatever_holds_the_pixels(made: Made) -> None:
    table = as_arrow(made(PIXELS), "the table")
    file = io.BytesIO()
    pq.write_table(table, file)
    for each in (table, pq.read_table(file)):
        assert encoded(each).tolist() == PIXELS.reshape(2, 6).tolist()


def test_an_image_in_colour_has_its_channels_side_by_side() -> None:
    image = np.arange(18, dtype=np.uint8).reshape(1, 2, 3, 3)
    for held in (image, image.reshape(1, 18), [image[0].tobytes()]):
        assert encoded({"scan": held}, COLOUR).tolist() == [list(range(18))]
    assert "lists 2 deep" in refused({"scan": image[..., 0]}, COLOUR)


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("size", [[1, 1], [3, 2], [28, 28]], ids=str)
def test_black_and_white_are_as_far_apart_as_their_weight_says(size: list[int], weight: float) -> None:
    column = GREY | {"size": size, "weight": weight}
    schema = Schema.of([column])
    both = np.stack([np.zeros(size[::-1]), np.full(size[::-1], 255.0)])
    scaled = (encoded({"scan": both}, column) - schema.lower) / (np.array(schema.upper) - schema.lower)
    assert math.dist(*scaled) == pytest.approx(weight)


@pytest.mark.parametrize(
    "gap", ["an array", "lists", "bytes", "pandas", "all"], ids=lambda name: f"among {name}"
)
def test_a_gap_is_an_image_of_one_value_or_refused(gap: str) -> None:
    images: Any = {
        "an array": {"scan": [PIXELS[0], None]},
        "lists": {"scan": [PIXELS[0].tolist(), None]},
        "bytes": {"scan": [PIXELS[0].tobytes(), None]},
        "pandas": pd.DataFrame({"scan": [PIXELS[0], None]}),
        "all": {"scan": pa.nulls(2)},
    }[gap]
    assert encoded(images, GREY | {"missing": 7})[1].tolist() == [7.0] * 6
    assert "is missing" in refused(images)


NO_IMAGES: dict[str, tuple[Any, str]] = {
    "lines for columns": (
        PIXELS.transpose(0, 2, 1),
        "row 0 (counted from 0) is no image of 2 lines of 3 pixels",
    ),
    "how many": (PIXELS.transpose(0, 2, 1), ", and those of 1 more rows."),
    "too short": ([[1] * 6, [1] * 5], "row 1 (counted from 0) is no image of 2 lines of 3 pixels."),
    "a short line": ([[[1] * 3] * 2, [[1] * 3, [1] * 2]], "row 1 (counted from 0) is no image"),
    "no line": ([[[1] * 3] * 2, [[1] * 3, None]], "row 1 (counted from 0) is no image"),
    "another array": ([PIXELS[0], PIXELS[1].T], "row 1 (counted from 0) is no image"),
    "short bytes": (
        [PIXELS[0].tobytes(), b"77"],
        "row 1 (counted from 0) is no image of 2 lines of 3 pixels: it",
    ),
    "no pixel": ([[1] * 6, [1] * 5 + [None]], "row 1 (counted from 0) has a pixel that is missing"),
    "NaN": ([[1.0] * 6, [1.0] * 5 + [math.nan]], "row 1 (counted from 0) has a pixel that is missing"),
    "too bright": ([[1] * 6, [1] * 5 + [777]], "row 1 (counted from 0) has a pixel that is out of bounds"),
    "too dark": ([[1] * 6, [-77, *[1] * 5]], "row 1 (counted from 0) has a pixel that is out of bounds"),
    "infinite": ([[1.0] * 6, [math.inf] * 6], "row 1 (counted from 0) has a pixel that is out of bounds"),
    "a share": ([[1] * 6, [0.77] * 6], "row 1 (counted from 0) has a pixel that is no whole number"),
    "a gap": ([None, [1] * 6, [77] * 6], "row 0 (counted from 0) is missing"),
    "masked": (
        np.ma.masked_equal(np.where(PIXELS == 9, 77, PIXELS), 77),
        "row 1 (counted from 0) has a pixel that is missing",
    ),
    "masked arrays": (
        list(np.ma.masked_equal(np.where(PIXELS == 9, 77, PIXELS), 77)),
        "row 1 (counted from 0) has a pixel that is missing",
    ),
    "masked lists": (
        list(np.ma.masked_equal(np.where(PIXELS == 9, 77, PIXELS).reshape(2, 6), 77)),
        "row 1 (counted from 0) has a pixel that is missing",
    ),
    "runs": (
        pa.RunEndEncodedArray.from_arrays([2], [77]),
        "holds values of type int64, where the schema has an image",
    ),
    "one number": (77, "column 'scan' is no column of values"),
    "words": ([["77"] * 6], "has pixels of type string"),
    "a mapping": ([{"a": 77}], "holds values of a nested type, where the schema has an image"),
    "text": (["77"], "holds values of type string, where the schema has an image"),
    "numbers": ([77, 77], "holds values of type int64, where the schema has an image"),
    "too deep": ([[[[[77]]]]], "holds lists 4 deep"),
}


@pytest.mark.parametrize(("images", "says"), NO_IMAGES.values(), ids=NO_IMAGES.keys())
def test_what_is_no_image_is_named_by_column_and_row_and_no_value_is_quoted(images: Any, says: str) -> None:
    what = refused({"scan": images})
    assert "the owner's table: column 'scan'" in what
    assert says in what
    assert "77" not in what


def test_a_row_after_a_gap_keeps_its_number() -> None:
    images = [None, [1] * 6, [77] * 5]
    assert "row 2 (counted from 0) is no image" in refused({"scan": images}, GREY | {"missing": 0})


def test_numbers_that_no_image_has_are_none_of_its() -> None:
    rows = np.repeat(np.arange(6.0)[None], 5, axis=0)
    rows[1, 3], rows[2, 5], rows[3, 0], rows[4, 1] = 0.5, 256.0, -1.0, math.nan
    schema = Schema.of([GREY])
    assert schema.holds(rows)[:, 0].tolist() == [True, False, False, False, False]
    with pytest.raises(DataError, match=r"column 'scan', row 1 \(counted from 0\), are those of no image"):
        schema.decode(rows)


def test_drawn_images_have_every_value_of_a_pixel() -> None:
    drawn = SCHEMA.drawn(2_000, np.random.default_rng(0))
    assert SCHEMA.holds(drawn).all()
    assert all(set(drawn[:, place]) == set(range(256)) for place in range(6))


def test_an_npz_file_may_have_an_array_for_each_column(tmp_path: Path) -> None:
    path, columns = tmp_path / "rows.npz", DataColumns(schema=SCHEMA)
    np.savez(path, scan=PIXELS, age=np.array([3, 4]), labels=np.array(["a", "b"]))
    dataset = load_dataset(path, columns)
    assert dataset.features.tolist() == [[*range(5), 255, 3], [9, 8, 7, 6, 5, 4, 4]]
    assert dataset.labels is not None
    assert dataset.labels.tolist() == ["a", "b"]
    np.savez(path, scan=PIXELS)
    with pytest.raises(DataError, match="no array 'age'"):
        load_dataset(path, columns)
    np.savez(path, scan=PIXELS, age=np.array([3]))
    with pytest.raises(DataError, match="different numbers of rows"):
        load_dataset(path, columns)
    np.savez(path, scan=PIXELS[:, :, :2], age=np.array([3, 4]))
    with pytest.raises(DataError, match=r"rows\.npz: column 'scan': row 0 \(counted from 0\) is no image"):
        load_dataset(path, columns)


def test_a_csv_file_holds_no_images(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("scan,age\n1,2\n")
    with pytest.raises(DataError, match="holds no images, and column 'scan' has some") as caught:
        load_dataset(path, DataColumns(schema=SCHEMA))
    assert "Parquet" in str(caught.value.advice)
    rows = SCHEMA.decode(np.array([[0, 1, 2, 3, 4, 255, 3]]))
    with pytest.raises(DataError, match="holds no images, and column 'scan' has some"):
        write_table(rows, tmp_path / "bought.csv")
    assert not (tmp_path / "bought.csv").exists()
    write_table(rows, tmp_path / "bought.parquet")
    assert pq.read_table(tmp_path / "bought.parquet").to_pylist() == rows.to_pylist()


def test_images_come_back_in_the_shape_that_a_dataframe_had() -> None:
    table = SCHEMA.decode(np.array([[0, 1, 2, 3, 4, 255, 3], [9, 8, 7, 6, 5, 4, 4]]))
    given = pd.DataFrame({"scan": list(PIXELS), "age": [3, 4]})
    assert np.array_equal(np.stack(like(given, table)["scan"]), PIXELS)
    flat = pd.DataFrame({"scan": list(PIXELS.reshape(2, 6)), "age": [3, 4]})
    assert np.array_equal(np.stack(like(flat, table)["scan"]), PIXELS.reshape(2, 6))
    assert like(pl.DataFrame(given.drop(columns="scan")), table)["scan"].to_list() == PIXELS.reshape(
        2, 6
    ).tolist()  # fmt: skip
