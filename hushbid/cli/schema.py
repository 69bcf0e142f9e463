"""`hushbid schema`: a table's columns, and the encoding of its rows as numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushbid.protocol.runtime.command import JsonResult, say, tell, verb
from hushbid.tables.options import OutsideOfTablesOption, changes_told

if TYPE_CHECKING:
    from hushbid.protocol.data.dialect import Dialect
    from hushbid.tables.schema_files import Decoded, Encoded

__all__ = ["schema_app"]

schema_app = typer.Typer(
    help="Describe named, categorical and incomplete columns in a public schema, and encode tables by it."
)

SchemaArgument = Annotated[Path, typer.Argument(help="The public schema.", metavar="SCHEMA.toml")]
LabelOption = Annotated[str | None, typer.Option(help="The label column.")]
SeparatorOption = Annotated[str | None, typer.Option(help="The delimiter of a CSV file; default: detected.")]
DecimalOption = Annotated[
    str | None, typer.Option(help="The decimal sign of a CSV file; default: detected.", metavar="'.'|','")
]
EncodingOption = Annotated[
    str | None, typer.Option(help="Encoding of a CSV file, such as latin-1; default: UTF-8, or UTF-16.")
]


def _dialect(separator: str | None, decimal: str | None, encoding: str | None) -> Dialect | None:
    """The declared CSV format, checked as in a party's file."""
    from hushbid.protocol.config.party import DataSection

    section = DataSection().with_options(separator=separator, decimal=decimal, encoding=encoding)
    return section.columns().dialect


@schema_app.command("draft")
@verb(show=lambda result: sys.stdout.write(result["schema"]), sources=("schema",))
def _draft(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file.", metavar="FILE")],
    public: Annotated[
        bool,
        typer.Option("--public", help="The file is public: read bounds and categories from it."),
    ] = False,
    label: LabelOption = None,
    fill: Annotated[
        bool,
        typer.Option(
            "--fill", help="With --public: fill gaps and keep constant columns, by a rule in the draft."
        ),
    ] = False,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
) -> dict[str, Any]:
    """Draft a schema for a table's columns, except the label column."""
    from hushbid.tables.drafting import draft

    dialect = _dialect(separator, decimal, encoding)
    return {"schema": draft(table, public=public, label=label, fill=fill, dialect=dialect)}


@schema_app.command("features")
@verb(show=lambda result: tell("\n".join(f"{name} = {value}" for name, value in result.items())))
def _features(schema: SchemaArgument) -> dict[str, Any]:
    """Print the `features` keys that a schema requires in the session file."""
    from hushbid.protocol.data.schema import Schema

    found = Schema.read(schema)
    return {"columns": found.width, "lower": list(found.lower), "upper": list(found.upper)}


def _show_encoded(result: Encoded) -> None:
    for line in changes_told(result.outside):
        say(line)
    for warning in result.warnings:
        say(f"WARNING: {warning}.")
    tell(f"{result.rows} rows written to {result.output}")


@schema_app.command("encode")
@verb(show=_show_encoded)
def _encode(
    schema: SchemaArgument,
    table: Annotated[Path, typer.Argument(help="A party's own table.", metavar="FILE")],
    output: Annotated[Path, typer.Option(help="The .npz to write.", metavar="FILE")],
    label: LabelOption = None,
    identifier: Annotated[str | None, typer.Option(help="The identifier column.")] = None,
    separator: SeparatorOption = None,
    decimal: DecimalOption = None,
    encoding: EncodingOption = None,
    outside: OutsideOfTablesOption = None,
) -> JsonResult:
    """Encode a table's rows for a session. Nothing leaves this machine."""
    from hushbid.protocol.data.schema import Schema
    from hushbid.tables.schema_files import encode_file

    return encode_file(
        Schema.read(schema),
        table,
        output,
        label=label,
        identifier=identifier,
        outside=outside,
        dialect=_dialect(separator, decimal, encoding),
    )


def _show_decoded(result: Decoded) -> None:
    from hushbid.tables.formulas import formula_line

    tell(f"{result.rows} rows written to {result.output}")
    if result.formulas:
        say(formula_line(result.formulas, result.output))


@schema_app.command("decode")
@verb(show=_show_decoded)
def _decode(
    schema: SchemaArgument,
    delivered: Annotated[Path, typer.Argument(help="The consumer's delivered.npz.", metavar="DELIVERED")],
    output: Annotated[Path, typer.Option(help="The .csv or .parquet to write.", metavar="FILE")],
    label: LabelOption = None,
) -> JsonResult:
    """Write delivered rows as a table with the schema's columns. Nothing leaves this machine."""
    from hushbid.protocol.data.schema import Schema
    from hushbid.tables.schema_files import decode_file

    return decode_file(Schema.read(schema), delivered, output, label=label or "label")
