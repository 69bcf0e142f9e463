"""What a party gets instead of a file: a table, which it keeps in its state directory, or a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.files.durable import in_place_of

if TYPE_CHECKING:
    from hushbid.protocol.config.party import BudgetSection
    from hushbid.protocol.data import DataColumns

__all__ = ["GivenPath", "is_path", "keep_table", "needs_ledger", "path_of", "place_of", "stated_budget"]

GivenPath = Path | str | None
"""A path, as users of Python write it."""


def path_of(given: GivenPath) -> Path | None:
    """The given path, if any."""
    return None if given is None else Path(given)


def is_path(given: object) -> TypeGuard[Path | str]:
    """Whether the given data are a file's path, and not a table (`hushbid.protocol.data.frames`)."""
    return isinstance(given, str | Path)


def place_of(given: object, state: Path, name: str) -> Path | None:
    """Where given data lie, or are kept in the state directory if they are a table; None without any."""
    if given is None:
        return None
    return Path(given) if is_path(given) else state / f"{name}.parquet"


def needs_ledger(what: str, ledger: Path | None) -> None:
    """Refuse a table without a ledger: one beside the copy would be forgotten with the session.

    Args:
        what: The argument that the table came in.

    Raises:
        ConfigError: There is none.
    """
    if ledger is None:
        raise ConfigError(
            f"`{what}` is a table, which has no place beside it for its lifetime ledger.",
            advice="Give `ledger`: one file for these rows, the same in every session.",
        )


def keep_table(table: object, path: Path, columns: DataColumns, *, what: str) -> None:
    """Write a table for its party to read, readable by its owner only, replacing an earlier one.

    Columns that the party does not use are left out, and so is an index of pandas.

    Args:
        table: As `hushbid.protocol.data.frames.as_arrow` takes it.
        path: A Parquet file; its directory is made if need be.
        columns: The columns that the party reads.

    Raises:
        DataError: It is no table.
        ConfigError: The file cannot be written; an earlier one is unchanged.
    """
    # A party that reads no table starts without pyarrow.
    import pyarrow.parquet as pq  # noqa: PLC0415

    from hushbid.protocol.data.frames import as_arrow, library_of  # noqa: PLC0415

    nameless = library_of(table) == "pandas" and not columns.used
    given = table.reset_index(drop=True) if nameless else table  # type: ignore[attr-defined]
    kept = as_arrow(given, what, columns)
    if columns.used:
        kept = kept.select([name for name in kept.column_names if name in columns.used])
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with in_place_of(path) as stream:
            pq.write_table(kept, stream)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}.",
            advice="Name a state directory that can be made, on a disk that has room.",
        ) from None


def stated_budget(
    written: BudgetSection | None, epsilon: float | None, *, lift: bool
) -> BudgetSection | None:
    """The budget that a party states for its data, by options, else by its file; `ConfigError` if invalid."""
    from hushbid.protocol.config.loading import validated  # noqa: PLC0415 - a program that begins imports little
    from hushbid.protocol.config.party import BudgetSection  # noqa: PLC0415

    if epsilon is not None:
        return validated(BudgetSection, {"epsilon": epsilon, "lift": lift}, where="--budget-epsilon")
    if lift:
        return BudgetSection(lift=True) if written is None else written.model_copy(update={"lift": True})
    return written
