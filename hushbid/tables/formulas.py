"""Text that a spreadsheet takes for a formula when it opens a CSV file, such as a label ``=HYPERLINK(…)``.

CSV cannot mark a cell as text: quotes do not, and a prefix would change the label. Such cells are written
unchanged, so that reading returns what was written, and the writer is warned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hushbid.protocol.data.attribute_columns import is_text

__all__ = ["formula_cells", "formula_line"]

_FORMULA: Final = r"^[=+\-@\t\r\n]"
_NUMBER: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def formula_cells(table: Any) -> dict[str, int]:
    """The columns of a pyarrow.Table with cells that a spreadsheet takes for formulas, and their number.

    These are texts that begin with =, +, -, @, a tab or a line break and are no numbers. A column's name is a
    cell too.
    """
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        cells = pa.chunked_array([pa.array([name])])
        if is_text(kind):
            cells = pa.chunked_array([*cells.chunks, *column.cast(pa.string()).chunks])
        formulas = pc.and_not(
            pc.match_substring_regex(cells, _FORMULA), pc.match_substring_regex(cells, _NUMBER)
        )
        if count := pc.sum(formulas).as_py():
            found[name] = int(count)
    return found


def formula_line(found: Mapping[str, int], path: object) -> str:
    """The warning about such cells of a file."""
    cells = ", ".join(f"{count} of {name}" for name, count in found.items())
    return (
        f"WARNING: a spreadsheet may take cells of {path} for formulas, and act on them: {cells}. They are "
        "written as they are. Import their columns as text, or write .parquet."
    )
