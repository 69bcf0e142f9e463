"""Columns of images: pixels in, in any form, and pixels out; messages never quote a value.

An image is width × height × channels whole numbers from 0 to 255, line by line from the top, the channels of
a pixel side by side. A table holds it as one list, as lists of lines (of pixels, of channels), or as bytes.
Tables have no arrays of several axes, so those of NumPy become lists here. Masked elements of an array are
missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.column import BRIGHTEST, Column
from hushbid.protocol.errors import DataError

__all__ = ["arrays_as_lists", "encoded_images", "is_gap", "is_list", "table_images"]

ArrowArray: TypeAlias = Any
"""A pyarrow.Array: pyarrow has no types of its own to name."""

_PIXELS: Final = "Pixels are whole numbers from 0 to 255: multiply shares of 1 by 255, and round them."


def is_list(kind: Any) -> bool:
    """Whether a column's type is that of lists, of fixed or any length."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def encoded_images(
    column: Column, values: Any, gaps: npt.NDArray[np.bool_], where: str
) -> npt.NDArray[np.float64]:
    """The pixels of a column of images: shape (rows, width × height × channels).

    Args:
        values: A pyarrow.ChunkedArray of lists or bytes.
        gaps: Rows without an image, shape (rows,); `column.missing` fills them.

    Raises:
        DataError: The values are no images of this size, or a pixel is missing, out of bounds or no whole
            number; the first such row is named.
    """
    encoded = np.empty((len(values), column.width))
    encoded[gaps] = np.nan if column.missing is None else float(column.missing)  # a number, as was checked
    if gaps.all():
        return encoded
    held = values.filter(pa.array(~gaps)).combine_chunks()
    images = _Images(column, np.flatnonzero(~gaps), len(values), where)
    kind = values.type
    if is_list(kind):
        pixels = images.of_lists(held)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        pixels = images.of_bytes(held)
    else:
        raise DataError(
            f"{where} holds values of {'a nested type' if pa.types.is_nested(kind) else f'type {kind}'}, "
            "where the schema has an image.",
            advice="Give each image as a list of its pixels, as an array, or as bytes that are its pixels.",
        )
    encoded[~gaps] = pixels
    return encoded


def table_images(numbers: npt.NDArray[np.float64]) -> ArrowArray:
    """The images that these numbers encode, each as a list of bytes of one length.

    Args:
        numbers: Shape (rows, pixels × channels), whole numbers from 0 to 255.
    """
    pixels = np.ascontiguousarray(numbers, dtype=np.uint8)
    return pa.FixedSizeListArray.from_arrays(pa.array(pixels.reshape(-1)), pixels.shape[1])


class _Images:
    """Reads the rows with an image; `rows` are their places among all `count` rows of the table."""

    def __init__(self, column: Column, rows: npt.NDArray[np.intp], count: int, where: str) -> None:
        assert column.size is not None
        width, height = column.size
        channels = column.channels or 1
        self._rows, self._count, self._where = rows, count, where
        self._shapes = {1: (column.width,), 3: (height, width, channels)}
        if channels == 1:
            self._shapes[2] = (height, width)
        lines = f"{height} lines of {width} pixels"
        self._said = lines if channels == 1 else f"{lines} in {channels} channels"

    def of_lists(self, held: ArrowArray) -> npt.NDArray[Any]:
        """Pixels of lists of any depth, shape (images, numbers)."""
        depth, inner = 0, held.type
        while is_list(inner):
            depth, inner = depth + 1, inner.value_type
        if depth not in self._shapes:
            raise DataError(
                f"{self._where} holds lists {depth} deep, where the schema has images of {self._said}.",
                advice="Give all numbers of an image in one list, or as lines, pixels and channels.",
            )
        for length in self._shapes[depth]:
            found = pc.list_value_length(held).fill_null(-1).to_numpy(zero_copy_only=False)
            self._refuse(
                found != length, f"is no image of {self._said}", "Scale or crop it, or correct the schema."
            )
            held = held.flatten()
        return self._pixels(held)

    def of_bytes(self, held: ArrowArray) -> npt.NDArray[Any]:
        found = pc.binary_length(held).to_numpy(zero_copy_only=False)
        self._refuse(
            found != self._shapes[1][0],
            f"is no image of {self._said}: it has another number of bytes",
            "Give pixels as they are: files such as PNG and JPEG are to be unpacked first.",
        )
        pixels = np.frombuffer(b"".join(held.to_pylist()), dtype=np.uint8)
        return pixels.reshape(len(self._rows), -1)

    def _pixels(self, flat: ArrowArray) -> npt.NDArray[Any]:
        kind = flat.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            nested = pa.types.is_nested(kind)
            raise DataError(
                f"{self._where} has pixels of {'a nested type' if nested else f'type {kind}'}.",
                advice=_PIXELS,
            )
        missing = pc.is_null(flat, nan_is_null=True).to_numpy(zero_copy_only=False)
        self._refuse(missing, "has a pixel that is missing", "Fill it in, or leave the row out.")
        values = flat.to_numpy(zero_copy_only=False)
        self._refuse((values < 0) | (values > BRIGHTEST), "has a pixel that is out of bounds", _PIXELS)
        self._refuse(values != np.floor(values), "has a pixel that is no whole number", _PIXELS)
        return np.asarray(values.reshape(len(self._rows), -1))

    def _refuse(self, flags: npt.NDArray[Any], what: str, advice: str) -> None:
        """Report the first row with a flag set; all rows have equally many flags."""
        if not flags.any():
            return
        rows = self._rows[flags.reshape(len(self._rows), -1).any(axis=1)]
        others = f", and those of {len(rows) - 1} more rows" if len(rows) > 1 else ""
        raise DataError(f"{self._where}: row {rows[0]} (counted from 0) {what}{others}.", advice=advice)


# -- NumPy's arrays ---------------------------------------------------------------------------------------


def arrays_as_lists(values: Any) -> ArrowArray | None:
    """A column of arrays of two or more axes, as nested lists; None for any other column.

    Args:
        values: An array of shape (rows, …), or a sequence of arrays and gaps: None or NaN.
    """
    if isinstance(values, np.ndarray) and values.dtype != np.object_:
        return _lists(values) if values.ndim > 1 else None
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sequence | np.ndarray):
        return None
    arrays = [value for value in values if not is_gap(value)]
    masked = any(isinstance(value, np.ma.MaskedArray) for value in arrays)
    # Arrow would see through the mask of an array of one axis.
    fewest = 1 if masked else 2
    if not arrays or not all(isinstance(value, np.ndarray) and value.ndim >= fewest for value in arrays):
        return None
    if masked or len({(array.shape, array.dtype) for array in arrays}) > 1:  # one is no image then
        return pa.array([None if is_gap(value) else value.tolist() for value in values])
    places = np.cumsum([not is_gap(value) for value in values]) - 1
    rows = pa.array(places, mask=np.array([is_gap(value) for value in values]))
    return _lists(np.stack(arrays)).take(rows)


def is_gap(value: Any) -> bool:
    """Whether a value of a sequence is missing: None, or NaN, as in pandas."""
    return value is None or (isinstance(value, float) and value != value)


def _lists(array: npt.NDArray[Any]) -> ArrowArray:
    nested: ArrowArray = pa.array(array.reshape(-1))
    for length in array.shape[:0:-1]:
        nested = pa.FixedSizeListArray.from_arrays(nested, length)
    return nested
