"""A party's dataset in memory (or memory-mapped), and the checks that it must pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field
from pydantic.dataclasses import dataclass as figures

from hushbid.protocol import limits
from hushbid.protocol.data.attributes import (
    pack_pair,
    packed_length,
    packed_lengths,
    padded,
)
from hushbid.protocol.data.column import LabelKind
from hushbid.protocol.data.dialect import Dialect
from hushbid.protocol.data.names import listed
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.figures import Figures
from hushbid.protocol.names import listed as first_names
from hushbid.protocol.space.labels import LabelCode
from hushbid.protocol.space.mapped import let_go

__all__ = [
    "FEATURE_DTYPES",
    "GAP_ADVICE",
    "Allowed",
    "Changes",
    "DataColumns",
    "Dataset",
    "Filled",
    "Outside",
    "dataset_digest",
    "first_empty",
    "no_texts",
    "row_chunks",
]

Array: TypeAlias = npt.NDArray[Any]

FEATURE_DTYPES: Final = tuple(
    np.dtype(name) for name in ("uint8", "int16", "int32", "int64", "float32", "float64")
)
"""Types in which features may be held and sent. Others are widened to the next of these that holds them."""

GAP_ADVICE: Final = "Fill it in or remove the row."
"""Advice about a missing feature."""

_WIDENED: Final = {
    np.dtype(narrow): np.dtype(wide)
    for narrow, wide in (
        ("bool", "uint8"),
        ("int8", "int16"),
        ("uint16", "int32"),
        ("uint32", "int64"),
        ("float16", "float32"),
    )
}

_DIGEST_TAG: Final = b"hushbid dataset 1\0"
_CHUNK_BYTES: Final = 8 * 2**20
_PACKED_ROWS: Final = 2**14
"""Rows whose labels and identifiers are turned into Python values at a time."""
_FILLED: Final = 8
"""Number of columns whose filled gaps are told one by one."""
_LISTED: Final = 10
"""Number of left-out columns that are named."""


Outside: TypeAlias = Literal["refuse", "clip", "drop"]
"""What a party does with its own rows that do not fit what is public."""


@figures(frozen=True)
class Filled(Figures):
    """The gaps of a column that were filled.

    Attributes:
        cells: Their number in the whole file.
        value: What they were filled with, as the session's columns say it; ``"own"``: a category of its own.
    """

    cells: int
    value: bool | int | float | str

    def said(self, column: str) -> str:
        """The gaps and their value, in words."""
        count = "1 gap" if self.cells == 1 else f"{self.cells:,} gaps"
        value = "a category of its own" if self.value == "own" else str(self.value)
        return f"{count} in column {column!r} with {value}"


@figures(frozen=True)
class Changes(Figures):
    """What was changed of a party's rows, by its `Outside` or where they had gaps.

    Nobody else may see it, since it tells something of the rows.

    Attributes:
        clipped: Values set to the nearest bound, by column.
        dropped: Rows left out.
        dropped_by: The rows of these that did not fit in a column, by column: a row may count in several.
        over: The rows of these that fitted, and were more than a commitment has room for.
        filled: Gaps of the file that the session's columns fill (`missing`), by column.
    """

    clipped: Mapping[str, int]
    dropped: int
    dropped_by: Mapping[str, int] = Field(default_factory=dict)
    over: int = 0
    filled: Mapping[str, Filled] = Field(default_factory=dict)

    @property
    def outside(self) -> bool:
        """Whether values or rows did not fit; filled gaps do."""
        return bool(self.clipped or self.dropped)

    @property
    def filling(self) -> str:
        """The filled gaps, in words; empty if there are none."""
        each = [gaps.said(name) for name, gaps in self.filled.items()]
        return f"filled {first_names(each, _FILLED, rest='column')}" if each else ""

    @property
    def said(self) -> str:
        """What was changed, in words."""
        each = [
            f"{count} value{' was' if count == 1 else 's were'} clipped in column {name!r}"
            for name, count in self.clipped.items()
        ]
        rows = "1 row was" if self.dropped == 1 else f"{self.dropped} rows were"
        why = [f"{count} by column {name!r}" for name, count in self.dropped_by.items()]
        if self.over:
            why.append(f"the last {self.over}, for which a commitment has no room")
        if self.dropped:
            each.append(f"{rows} dropped ({', '.join(why)})")
        return ", ".join([*each, *filter(None, [self.filling])])


@dataclass(frozen=True)
class Allowed:
    """What a session allows of points, for rows to be clipped to or dropped by.

    Attributes:
        lower, upper: Bounds of features: one number, or one per column.
        labels: The classes or the range of labels; None: any.
        rooms: The bytes that a box has for the packed label and identifier of a point, by the name of the
            features' type; empty: points are not sealed, or these are not for sale.
        rows: How many rows a commitment has room for; None: these are not committed to.
    """

    lower: float | Sequence[float]
    upper: float | Sequence[float]
    labels: LabelCode | None = None
    rooms: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None

    def room(self, dtype: np.dtype[Any]) -> int:
        """Bytes for the packed label and identifier of a point whose features are of this type."""
        return min(limits.MAX_ATTRIBUTES, self.rooms.get(dtype.name, limits.MAX_ATTRIBUTES))


@dataclass(frozen=True)
class DataColumns:
    """Which parts of a file are features, label and identifier.

    For ``.npz``, the names of arrays; None means "features", and "labels" and "identifiers" if present. For
    tables, the names of columns; None means all numeric columns except label and identifier, no label, and no
    identifier. A ``.npy`` file holds only features.

    Raises:
        ConfigError: The label is one of the features.
    """

    features: tuple[str, ...] | None = None
    label: str | None = None
    identifier: str | None = None
    schema: Schema | None = None
    """Encodes a table's rows, if the session has columns; the arrays of other files are encoded already."""
    label_gaps: bool = False
    """Whether rows may lack a label: an empty cell, null or NaN; otherwise such a row is refused."""
    label_kind: LabelKind | None = None
    """What the session declares labels to be, by which the cells of a CSV file are read."""
    label_words: tuple[str, ...] = ()
    """Texts that the session declares to be classes: none of them is a gap."""
    identifier_kind: LabelKind | None = None
    """What the session declares identifiers to be, likewise."""
    dialect: Dialect | None = None
    """What the party says of its CSV files."""
    outside: Outside = "refuse"
    """What becomes of rows that do not fit."""
    allowed: Allowed | None = None
    """What fits, where rows that do not are not refused."""
    fractions: bool = False
    """Whether all numbers of a CSV file are float64. Else a column is of whole numbers if all its cells are,
    and labels likewise, and the type of a point that is sold tells of those that are not.
    """

    def __post_init__(self) -> None:
        if self.label in (self.features or () if self.schema is None else self.schema.names):
            raise ConfigError(
                f"Column {self.label!r} is the label, and rows are compared by it, too: a model would learn "
                "the label from itself, and be always right.",
                advice="Leave it out of the columns that rows are compared by, or name another label. "
                "[labels] gives labels a part in the choice.",
            )

    @property
    def used(self) -> frozenset[str]:
        """The columns of a table that are read; empty: all, as no feature is named."""
        features = self.features if self.schema is None else self.schema.names
        beside = [name for name in (self.label, self.identifier) if name is not None]
        return frozenset() if features is None else frozenset([*features, *beside])

    def of_one_type(self, lower: float | Sequence[float], upper: float | Sequence[float]) -> DataColumns:
        """The same, where numbers of a CSV file are of one type, if that holds all within the bounds."""
        widest = max(float(np.abs(bound).max()) for bound in (np.asarray(lower), np.asarray(upper)))
        return replace(self, fractions=widest < 2**53)

    def with_gaps(self) -> DataColumns:
        """The same, of a file in which rows may lack a label."""
        return replace(self, label_gaps=True)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of raw features with their labels and identifiers; `from_arrays` makes one.

    Attributes:
        name: The file's name without its directories, for messages.
        features: Read-only, shape (n, c), of a dtype in `FEATURE_DTYPES`; may be memory-mapped.
        labels: Read-only, shape (n,), integers, finite floats or nonempty text; or None. Meaningless where a
            row is not `labelled`.
        identifiers: Read-only, shape (n,), integers or nonempty text; or None.
        labelled: Read-only, shape (n,), bool: rows that have a label; None: all, if there are labels.
        feature_names: The c names of the feature columns, for messages, if the format has them.
        left_out: Unnamed columns of a table that are no numbers, with reasons, for messages.
        notes: What its owner alone should know of how the file was read.
        changes: What was clipped, dropped or filled, which is for its owner alone too; None: nothing.
        room: Bytes that each row's packed label and identifier fit into (`within`); None: it is not known.
    """

    name: str
    features: Array
    labels: Array | None = None
    identifiers: Array | None = None
    feature_names: tuple[str, ...] | None = None
    left_out: tuple[str, ...] = ()
    labelled: Array | None = None
    notes: tuple[str, ...] = ()
    changes: Changes | None = None
    room: int | None = None

    @classmethod
    def from_arrays(
        cls,
        name: str,
        features: Array,
        labels: Array | None = None,
        identifiers: Array | None = None,
        *,
        feature_names: tuple[str, ...] | None = None,
        left_out: tuple[str, ...] = (),
        labelled: Array | None = None,
        notes: tuple[str, ...] = (),
    ) -> Dataset:
        """Convert arrays to the form of a dataset.

        Args:
            name: The file's name without its directories.
            features: Shape (n, c), of any real dtype that `FEATURE_DTYPES` can hold.
            labels: Shape (n,), booleans, integers, finite floats or text.
            identifiers: Shape (n,), integers or text.
            labelled: Shape (n,), bool: rows that have a label; None: all. Labels of others are not looked at.

        Raises:
            DataError: An array has the wrong number of axes or rows, or an unlisted type; a label or an
                identifier is missing: NaN, or empty text; or a text has no UTF-8 encoding.
        """
        held = _as_features(name, features)
        rows = len(held)
        if labelled is not None:
            if labels is None or labelled.shape != (rows,) or labelled.dtype != np.bool_:
                raise DataError(
                    f"{name}: it is not said of each row, by true or false, whether it is labelled.",
                    advice="Save `labels` and, as booleans, `labelled`, with one entry of each for each row.",
                )
            if not labelled.any():
                labels = labelled = None
            elif labelled.all():
                labelled = None
            elif labels.shape == (rows,):
                labels = np.where(labelled, labels, labels[int(labelled.argmax())])
        return cls(
            name,
            held,
            None if labels is None else _as_attribute(name, "labels", labels, rows, "iufU"),
            None if identifiers is None else _as_attribute(name, "identifiers", identifiers, rows, "iuU"),
            feature_names,
            left_out,
            None if labelled is None else _read_only(labelled),
            notes,
        )

    def __len__(self) -> int:
        return int(self.features.shape[0])

    @property
    def known(self) -> Sequence[int | float | str | None] | Array | None:
        """The labels, None where a row has none; None: no row has one."""
        if self.labels is None or self.labelled is None:
            return self.labels
        return [
            label if has else None for label, has in zip(self.labels.tolist(), self.labelled, strict=True)
        ]

    @property
    def unlabelled(self) -> int:
        """Number of rows without a label."""
        if self.labels is None:
            return len(self)
        return 0 if self.labelled is None else int((~self.labelled).sum())

    @property
    def unidentified(self) -> int:
        """Number of rows without an identifier."""
        return len(self) if self.identifiers is None else 0

    @property
    def changed(self) -> Changes:
        """What was clipped, dropped or filled, if anything."""
        return self.changes or Changes({}, 0)

    @property
    def columns_found(self) -> str:
        """The number and names of feature columns and what was left out, for a user who expected others."""
        count = self.features.shape[1]
        said = f"{count} feature column" + ("" if count == 1 else "s")
        if self.feature_names:
            said += f" ({listed(self.feature_names)})"
        if self.left_out:
            more = len(self.left_out) - _LISTED
            said += f", with {', '.join(self.left_out[:_LISTED])}" + (f" and {more} more" if more > 0 else "")
            said += " left out,"
        return said

    @property
    def most_attributes(self) -> int:
        """Bytes that the longest label and the longest identifier take packed, in one row or in two."""
        # A msgpack array of two has one byte of head.
        return 1 + _longest_packed(self.labels) + _longest_packed(self.identifiers)

    @property
    def attribute_lengths(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Bytes of each row's packed label, and of its packed identifier, both of shape (n,)."""
        rows = len(self)
        labels = packed_lengths(self.labels, rows)
        if self.labelled is not None:
            labels = np.where(self.labelled, labels, packed_length(None))
        return labels, packed_lengths(self.identifiers, rows)

    def within(self, room: int) -> Dataset:
        """The dataset with labels and identifiers that are packed into so many bytes at most.

        Raises:
            DataError: A row needs more.
        """
        room = min(room, limits.MAX_ATTRIBUTES)
        if self.most_attributes <= room:
            return self
        # The longest label and the longest identifier may stand in different rows.
        labels, identifiers = self.attribute_lengths
        needed = int((1 + labels + identifiers).max())
        if needed > room:
            raise DataError(
                f"{self.name}: a label and an identifier take up to {needed} bytes, more than the"
                f" {room} that may travel with a point.",
                advice='Shorten the labels or identifiers, or leave such rows out (`outside = "drop"`).',
            )
        return replace(self, room=room)

    @cached_property
    def attribute_length(self) -> int:
        """Bytes of every row's packed label and identifier: the longest of each, or `room` if that is less.

        Raises:
            DataError: It is over `limits.MAX_ATTRIBUTES`.
        """
        length = self.most_attributes
        if self.room is not None:
            length = min(length, self.room)
        if length > limits.MAX_ATTRIBUTES:
            raise DataError(
                f"{self.name}: a label and an identifier take up to {length} bytes, more than the"
                f" {limits.MAX_ATTRIBUTES} that may travel with a point.",
                advice="Shorten the labels or identifiers.",
            )
        return length

    def attributes(self, row: int) -> bytes:
        """The row's label and identifier, packed to `attribute_length` bytes: for frames, which show sizes.

        Raises:
            DataError: As `attribute_length`.
        """
        [packed] = self.attributes_of([row])
        return packed

    def attributes_of(self, rows: Sequence[int]) -> list[bytes]:
        """`attributes` of rows, in order."""
        length = self.attribute_length
        return [padded(own, length) for own in self.own_attributes_of(rows)]

    def own_attributes_of(self, rows: Sequence[int]) -> list[bytes]:
        """The same in as many bytes as they take: for boxes, which have one size anyway.

        Padding would tell who opens one box how long the longest label of all rows is.
        """
        return list(self._attached(np.array(rows, dtype=np.intp), len(rows)))

    def each_own_attributes(self) -> Iterator[bytes]:
        """`own_attributes_of` every row, in order."""
        rows = len(self)
        for start in range(0, rows, _PACKED_ROWS):
            stop = min(start + _PACKED_ROWS, rows)
            yield from self._attached(slice(start, stop), stop - start)

    def _attached(self, rows: slice | npt.NDArray[np.intp], count: int) -> Iterable[bytes]:
        """The packed labels and identifiers of so many rows."""
        if self.labels is None and self.identifiers is None:
            return repeat(pack_pair(None, None), count)
        nobodys = repeat(None, count)
        labels = nobodys if self.labels is None else self.labels[rows].tolist()
        if self.labels is not None and self.labelled is not None:
            given = zip(labels, self.labelled[rows].tolist(), strict=True)
            labels = [label if has else None for label, has in given]
        identifiers = nobodys if self.identifiers is None else self.identifiers[rows].tolist()
        return map(pack_pair, labels, identifiers)


def _as_features(name: str, features: Array) -> Array:
    if features.ndim != 2:
        raise DataError(
            f"{name}: the features have {features.ndim} axes where rows and columns are expected.",
            advice="Save them with shape (rows, columns).",
        )
    native = features.dtype.newbyteorder("=")
    dtype = _WIDENED.get(native, native)
    if native == np.uint64:
        # Only the largest values of this type are out of reach; the first row with one is named.
        for start, stop in row_chunks(features):
            bad = (features[start:stop] > np.iinfo(np.int64).max).any(axis=1)
            if bad.any():
                raise DataError(
                    f"{name}: row {start + int(bad.argmax())} holds an integer of more than 63 bits.",
                    advice="Rescale the column, or save it as float64.",
                )
        dtype = np.dtype(np.int64)
    if dtype not in FEATURE_DTYPES:
        raise DataError(
            f"{name}: the features are of type {_type_name(features.dtype)}, which is not a real number"
            " that can be sent.",
            advice=f"Save them as one of {', '.join(d.name for d in FEATURE_DTYPES)}.",
        )
    return _read_only(features if dtype == features.dtype else features.astype(dtype))


def _as_attribute(name: str, what: str, values: Array, rows: int, kinds: str) -> Array:
    if values.shape != (rows,):
        raise DataError(
            f"{name}: the {what} have shape {values.shape} where the features have {rows} rows.",
            advice=f"Save one entry of {what} for each row.",
        )
    if values.dtype.kind == "b":
        values = values.astype(np.int8)
    if values.dtype.kind not in kinds or values.dtype == np.longdouble:
        raise DataError(
            f"{name}: the {what} are of type {_type_name(values.dtype)}, which cannot travel with a point.",
            advice="Save them as integers or text" + (", or as float64." if "f" in kinds else "."),
        )
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        raise DataError(
            f"{name}: row {int(finite.argmin())} (counted from 0) of the {what} is missing or not finite.",
            advice=f"Fill it in, remove the row, or leave the {what} out.",
        )
    if values.dtype.kind == "U" and (bad := _first_unencodable(values)) is not None:
        raise DataError(
            f"{name}: row {bad} (counted from 0) of the {what} is text that cannot be encoded.",
            advice=f"Correct it (half of a surrogate pair stands in it), or leave the {what} out.",
        )
    if values.dtype.kind == "U" and (empty := first_empty(values)) is not None:
        raise DataError(
            f"{name}: row {empty} (counted from 0) of the {what} is missing: its text is empty.",
            advice=f"Fill it in, remove the row, or leave the {what} out.",
        )
    return _read_only(values)


def _first_unencodable(texts: Array) -> int | None:
    """The first row whose text has no UTF-8 encoding."""
    bad = _unencodable(texts)
    return int(bad.argmax()) if bad.any() else None


def _unencodable(texts: Array) -> npt.NDArray[np.bool_]:
    """Which texts have no UTF-8 encoding, such as half of a surrogate pair."""
    codes = np.ascontiguousarray(texts, dtype=texts.dtype.newbyteorder("=")).view(np.uint32)
    bad = ((codes >= 0xD800) & (codes <= 0xDFFF)) | (codes > 0x10FFFF)
    if not bad.any():
        return np.zeros(len(texts), dtype=np.bool_)
    return np.asarray(bad.reshape(len(texts), -1).any(axis=1))


def _empty(texts: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(np.strings.str_len(np.strings.strip(texts)) == 0)


def first_empty(texts: Array) -> int | None:
    """The first row whose text is empty or only white space: a gap, as NaN is among numbers."""
    empty = _empty(texts)
    return int(empty.argmax()) if empty.any() else None


def no_texts(texts: Array) -> npt.NDArray[np.bool_]:
    """Which texts can be no label or identifier: shape (n,)."""
    bad = _unencodable(texts)
    return bad | _empty(np.where(bad, "x", texts))


def _type_name(dtype: np.dtype[Any]) -> str:
    # A structured type's full name lists its fields, which for a file without a header may be data.
    return "a structure" if dtype.names else str(dtype.name)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.setflags(write=False)
    return view


def _longest_packed(values: Array | None) -> int:
    if values is None or len(values) == 0:
        return packed_length(None)
    if values.dtype.kind == "U":
        # A head's size only grows with the text's, so the longest text packs longest.
        longest = int(np.strings.str_len(np.strings.encode(values, "utf-8")).max())
        return packed_length("x" * longest)
    if values.dtype.kind == "f":
        return packed_length(0.0)
    # An integer's size grows with its distance from zero, on either side.
    return max(packed_length(int(values.min())), packed_length(int(values.max())))


def row_chunks(features: Array) -> list[tuple[int, int]]:
    """Row ranges of about 8 MiB each in float64, so that memory-mapped data is never held whole."""
    rows, columns = features.shape
    step = max(1, _CHUNK_BYTES // (8 * max(1, columns)))
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def dataset_digest(*datasets: Dataset) -> bytes:
    """SHA-256 of a party's data, 32 bytes: features, labels and identifiers, row by row and in their types.

    Which rows have a label is part of it where some have none.

    It confirms a guess of the data, so it is as private as they are.
    """
    digest = hashlib.sha256(_DIGEST_TAG)
    for dataset in datasets:
        arrays = [dataset.features, dataset.labels, dataset.identifiers]
        for array in arrays if dataset.labelled is None else [*arrays, dataset.labelled]:
            described = "none" if array is None else f"{array.dtype.str} {array.shape}"
            digest.update(f"{described}\0".encode())
            if array is not None:
                for start, stop in row_chunks(dataset.features):
                    digest.update(np.ascontiguousarray(array[start:stop]).tobytes())
                    let_go(array)
    return digest.digest()
