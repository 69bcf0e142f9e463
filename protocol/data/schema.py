"""A public schema: the columns of a table, and the numbers that every party makes of them.

A session knows matrices within public bounds. A schema turns rows of a table into rows of such a matrix and
back, with the same numbers on every machine:

- ``number``, ``integer``: the value itself, within its bounds.
- ``boolean``: 0 or 1.
- ``ordinal``: the place of the value among its categories, from 0.
- ``category``: a column for each category, 1 in that of the value and 0 in the others.
- ``hashed``: a column for each bucket, likewise; a text's bucket follows from a public hash.
- ``image``: each pixel's value in each channel, 0 to 255, line by line from the top.

A column's weight w is the distance of its extremes, relative to other columns. The feature map scales a
column by its bounds, so bounds 1/w times as wide give it weight w. Two categories are also w apart: they
differ in two numbers, each of weight w/√2. Each of the n numbers of an image has weight w/√n: a black and a
white one are w apart, however many pixels they have.

Messages name a column and a row, counted from 0, and never quote a value.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from hushbid.protocol import limits
from hushbid.protocol.data.column import ONE_HOT, Column
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.faults import faults as words_of

if TYPE_CHECKING:
    from hushbid.protocol.data.frames import Frame
    from hushbid.protocol.data.table_faults import ColumnFault

__all__ = ["Schema"]

ArrowTable: TypeAlias = Any
"""A pyarrow.Table: pyarrow has no types of its own to name."""


_SHOWN = 6
"""Columns that a short form names."""


class Schema(BaseModel):
    """The columns of a table, in order: at least one, with distinct names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Annotated[tuple[Column, ...], Field(min_length=1)]

    def __repr__(self) -> str:
        shown = [f"{column.name} {column.kind}" for column in self.columns[:_SHOWN]]
        more = len(self.columns) - len(shown)
        return f"<Schema: {', '.join(shown)}{f' and {more} more' if more else ''}>"

    def _repr_html_(self) -> str:
        rows = []
        for column in self.columns:
            written = column.written()
            more = ", ".join(f"{key} {written[key]}" for key in written if key not in ("name", "kind"))
            cells = (column.name, column.kind, more)
            rows.append("".join(f"<td>{escape(each)}</td>" for each in cells))
        head = "<th>column</th><th>kind</th><th>what is public of it</th>"
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    @model_validator(mode="after")
    def _fit(self) -> Self:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("two columns have one name")
        if self.width > limits.MAX_COLUMNS:
            raise ValueError(f"they become {self.width} numbers, more than {limits.MAX_COLUMNS}")
        return self

    @classmethod
    def of(cls, columns: Iterable[Column | dict[str, Any]]) -> Self:
        """A schema of these columns.

        Raises:
            ConfigError: They are no schema; the message names the column.
        """
        if isinstance(columns, str | Mapping) or not isinstance(columns, Iterable):
            raise ConfigError(
                f"The schema: columns are a list, not {type(columns).__name__}.",
                advice="Give one entry for each column.",
            )
        return cls._validated({"columns": list(columns)}, "the schema")

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read the ``[[columns]]`` of a TOML file, such as a session file or an invitation.

        Raises:
            ConfigError: The file cannot be read, or has no schema.
        """
        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read: {error.strerror}.", advice="Correct the path."
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path} is not TOML: {error}.", advice="Correct it; in a draft, fill in what is marked by ?."
            ) from None
        invited = values.get("configuration")  # of an invitation
        held = invited if "columns" not in values and isinstance(invited, dict) else values
        return cls._validated({"columns": held.get("columns", [])}, str(path))

    @classmethod
    def _validated(cls, values: dict[str, Any], where: str) -> Self:
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = words_of(error)[0]
            place = ".".join(part for part in first.place if "[" not in part)
            raise ConfigError(
                f"{where}: {f'{place}: ' if place else ''}{first.words}.",
                advice="docs/python.md says what a column has.",
            ) from None

    @cached_property
    def width(self) -> int:
        """Number of numbers that encode a row: ``features.columns`` of the session file."""
        return sum(column.width for column in self.columns)

    @cached_property
    def lower(self) -> tuple[float, ...]:
        """``features.lower`` of the session file."""
        return tuple(column.bounds[0] for column in self.columns for _ in range(column.width))

    @cached_property
    def upper(self) -> tuple[float, ...]:
        """``features.upper`` of the session file."""
        return tuple(column.bounds[1] for column in self.columns for _ in range(column.width))

    def encode(self, table: Frame, *, name: str = "the table") -> npt.NDArray[np.float64]:
        """The numbers of a table's rows, shape (rows, `width`); other columns than the schema's are left out.

        Args:
            table: A DataFrame of pandas or polars, a pyarrow.Table, or whatever else
                `hushbid.protocol.data.frames.as_arrow` takes.

        Raises:
            DataError: It is no table; a column is missing or of another type; a value is missing, out of
                bounds or of no category. All such columns are named, each with its first such row.
        """
        import pyarrow as pa  # noqa: PLC0415 - as in `fitted`

        from hushbid.protocol.data.encoding import plain_types  # noqa: PLC0415

        if isinstance(table, pa.Table):  # CSV cells among them, which keep what they are marked with
            table = plain_types(table)
        else:
            from hushbid.protocol.data.dataset import DataColumns  # noqa: PLC0415
            from hushbid.protocol.data.frames import as_arrow  # noqa: PLC0415

            table = as_arrow(table, name, DataColumns(schema=self))
        encoded, faults = self.fitted(table)
        if faults:
            from hushbid.protocol.data.csv_files import source_of  # noqa: PLC0415 - as in `fitted`
            from hushbid.protocol.data.table_faults import refusal  # noqa: PLC0415

            raise refusal(faults, name, table.column_names, source_of(table))
        return encoded

    def fitted(
        self, table: ArrowTable, filled: dict[str, int] | None = None
    ) -> tuple[npt.NDArray[np.float64], list[ColumnFault]]:
        """The numbers of a table's rows, and all that does not fit; rows with a fault have no meaning.

        Args:
            filled: Receives the number of filled gaps of each column that has any.
        """
        # pyarrow is slow to import.
        from hushbid.protocol.data.csv_files import source_of  # noqa: PLC0415
        from hushbid.protocol.data.encoding import encoded_column  # noqa: PLC0415
        from hushbid.protocol.data.table_faults import ABSENT, NAMES_ADVICE, ColumnFault  # noqa: PLC0415

        encoded = np.zeros((table.num_rows, self.width))
        faults: list[ColumnFault] = []
        first, source, names = 0, source_of(table), table.column_names
        for column in self.columns:
            if (count := names.count(column.name)) != 1:
                what = "is there several times" if count else ABSENT
                faults.append(ColumnFault(column.name, what, NAMES_ADVICE))
            else:
                part = encoded[:, first : first + column.width]
                part[:], found = encoded_column(column, table.column(column.name), source, filled)
                faults += found
            first += column.width
        return encoded, faults

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Where each column's numbers begin in a row."""
        ends = [0]
        for column in self.columns:
            ends.append(ends[-1] + column.width)
        return tuple(ends[:-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def images(self) -> tuple[str, ...]:
        """Names of the columns of images, which text cannot hold."""
        return tuple(column.name for column in self.columns if column.kind == "image")

    def holds(self, encoded: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which of these numbers encode a value: shape (rows, number of columns).

        Args:
            encoded: Shape (rows, `width`), of any real type.
        """
        found = np.empty((len(encoded), len(self.columns)), dtype=np.bool_)
        for place, (column, numbers) in enumerate(self._parts(encoded)):
            found[:, place] = column.holds(numbers)
        return found

    def _parts(self, encoded: npt.NDArray[Any]) -> Iterator[tuple[Column, npt.NDArray[Any]]]:
        first = 0
        for column in self.columns:
            yield column, encoded[:, first : first + column.width]
            first += column.width

    def decode(self, encoded: npt.NDArray[Any]) -> ArrowTable:
        """The rows that these numbers encode; filled gaps stay filled.

        Args:
            encoded: Shape (rows, `width`).

        Returns:
            A pyarrow.Table with the schema's columns.

        Raises:
            DataError: The numbers encode no row; column and first row are named.
        """
        from hushbid.protocol.data.encoding import table_of  # noqa: PLC0415 - as above

        encoded = np.asarray(encoded, dtype=np.float64)
        if encoded.ndim != 2 or encoded.shape[1] != self.width:
            raise DataError(
                f"An array of shape {encoded.shape} has no rows of {self.width} numbers, as the schema has.",
                advice="Use the schema that the session was made with.",
            )
        held = self.holds(encoded)
        if not held.all():
            row, place = (int(index) for index in np.argwhere(~held)[0])
            column = self.columns[place]
            raise DataError(
                f"The numbers of column {column.name!r}, row {row} (counted from 0), are those of no "
                f"{column.kind} of the schema.",
                advice="Use the schema that the session was made with.",
            )
        return table_of(self._parts(encoded))

    def drawn(self, count: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
        """Rows drawn uniformly from all possible ones: a public start for a choice."""
        parts = [_drawn(column, count, generator) for column in self.columns]
        return np.concatenate(parts, axis=1)


def _drawn(column: Column, count: int, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    lower, upper = column.extremes
    if column.kind == "number":
        return generator.uniform(lower, upper, size=(count, 1))
    if column.kind in ONE_HOT:
        return np.eye(column.width)[generator.integers(column.width, size=count)]
    whole = generator.integers(int(lower), int(upper), size=(count, column.width), endpoint=True)
    return np.asarray(whole, dtype=np.float64)
