"""The private file of one party: where its data, key and state are on its own machine.

Relative paths are relative to the file (`resolved`), as in a cluster file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, ValidationError, model_validator

from hushbid.protocol import ranges
from hushbid.protocol.config.refusal import refusal
from hushbid.protocol.config.section import FINITE, PartyName, Section
from hushbid.protocol.data import DataColumns
from hushbid.protocol.data.dataset import Outside
from hushbid.protocol.data.dialect import Dialect, declared_encoding
from hushbid.protocol.errors import DataError
from hushbid.protocol.names import MODEL
from hushbid.protocol.privacy.accounting import Budget
from hushbid.protocol.privacy.payment import Price
from hushbid.protocol.utf8_names import resolved

__all__ = [
    "FILE_OF",
    "LABEL_WEIGHT",
    "RIDGE",
    "BudgetSection",
    "ConsumerFile",
    "CuratorFile",
    "DataSection",
    "Money",
    "OwnerFile",
    "Ridge",
]

FilePath = Annotated[Path, Field(strict=False)]
Money: TypeAlias = Annotated[ranges.Money, FINITE]
Ridge: TypeAlias = Annotated[ranges.Ridge, FINITE]
RIDGE: Final = 1.0
"""The variance of φ for a kernel with k(x, x) = 1: a bought point then counts as a draw of what it stands
for. With 0 the weights would fit D_v's sampling noise.
"""
LABEL_WEIGHT: Final = 0.6
"""The best for models among 0.3 to 0.9, by little, on four datasets; others confirmed it."""


class DataSection(Section):
    """The roles of a data file's columns; None: the loader's own convention."""

    features: list[str] | None = None
    label: str | None = None
    identifier: str | None = None
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Between the cells of a CSV file; None: found by its content, as are the next two."""
    decimal: Literal[".", ","] | None = None
    """Sign before a number's fraction in a CSV file."""
    encoding: Annotated[str, AfterValidator(declared_encoding)] | None = None
    """Encoding of a CSV file, such as "latin-1"."""

    outside: Outside = "refuse"
    """What becomes of own rows that do not fit the session's public bounds, categories and labels."""

    def with_options(self, **options: object) -> Self:
        """The section with options in place of its own values; None keeps the section's value.

        Raises:
            ConfigError: An option's value cannot be.
        """
        given = {name: value for name, value in options.items() if value is not None}
        values = {**self.model_dump(), **given}
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise refusal(type(self), values, error, where="the options") from None

    def columns(self) -> DataColumns:
        features = None if self.features is None else tuple(self.features)
        dialect = Dialect(self.separator, self.decimal, self.encoding)
        return DataColumns(features, self.label, self.identifier, dialect=dialect, outside=self.outside)


class BudgetSection(Section):
    """``[budget]``: the largest (ε, δ) that a dataset may lose over its lifetime."""

    epsilon: Annotated[ranges.Epsilon, FINITE] | None = None
    """None: remove the budget, which needs `lift`."""
    delta: ranges.Delta = 1e-5
    neighbours: Literal["add-remove-one", "substitute-one"] | None = None
    """The neighbouring datasets that it compares. None: those of the recorded budget. For a first budget they
    are those of its charges: `add-remove-one` for an owner, `substitute-one` for the consumer.
    """
    lift: bool = False
    """Permits raising or lifting a recorded budget. Also permits charging rows to this ledger that were
    charged to another.
    """

    @model_validator(mode="after")
    def _says_what_shall_be(self) -> Self:
        if self.epsilon is None and not self.lift:
            raise ValueError("epsilon is missing; to have no budget any more, set lift = true")
        return self

    def budget(self) -> Budget | None:
        """The section in the form that the accountant takes; None: no budget."""
        return None if self.epsilon is None else Budget(self.epsilon, self.delta)


class _PartyFile(Section):
    """The keys common to every party's file."""

    key: FilePath | None = None
    """Secret CURVE key; None only in insecure sessions."""
    state: FilePath
    """Directory for the transcript and the party's other files."""
    durability: Literal["fsync", "flush"] = "fsync"
    """Whether a transcript record must be on disk, or only with the operating system, before its effects
    leave.
    """
    metrics: str | None = None
    """``HOST:PORT`` to serve metrics at; None: nowhere."""

    def resolved(self, base: Path) -> Self:
        """The file with its paths made absolute.

        Args:
            base: The directory of the file, from which relative paths start wherever the party does.

        Raises:
            ConfigError: One is not UTF-8.
        """
        paths = {name: value for name, value in self if isinstance(value, Path)}
        return self.model_copy(
            update={name: resolved(base / path.expanduser()) for name, path in paths.items()}
        )

    def with_options(self, **options: object) -> Self:
        """The file with command-line options in place of its own values; None keeps the file's value.

        A relative path in an option is relative to the directory of the command.
        """
        given = {name: value for name, value in options.items() if value is not None}
        return self.model_copy(
            update={
                name: resolved(value.expanduser()) if isinstance(value, Path) else value
                for name, value in given.items()
            }
        )


class CuratorFile(_PartyFile):
    """The curator's file."""

    listen: str | None = None
    """Address to bind if it is not the session's contact address."""
    revoked: list[PartyName] = Field(default_factory=list)
    """Owners on the roster that are no longer admitted; the session stays the same."""
    unit_price: Money | None = None
    """The payment for one unit of the number that owners are paid by (`hushbid.protocol.privacy.payment`);
    None: not specified.
    """
    total_price: Money | None = None
    """The amount shared among owners in proportion to the numbers they are paid by; None: not specified."""

    @model_validator(mode="after")
    def _has_one_price(self) -> Self:
        _ = self.price
        return self

    @property
    def price(self) -> Price:
        """The prices of the settlement's statement."""
        return Price(self.unit_price, self.total_price)


class _DatasetFile(_PartyFile):
    """The keys in the file of a party with private data."""

    ledger: FilePath | None = None
    """The data's lifetime ledger; None: beside the data, under their name and ``.ledger``."""
    budget: BudgetSection | None = None
    """The budget of the ledger; None: the recorded one."""
    most_rows: ranges.Count | None = None
    """The most rows that the data ever have, which anybody may know: a session's δ is compared with it. None:
    with the number of rows, which whoever proposes sessions learns by the δ that are refused.
    """

    def public_rows(self, rows: int) -> int:
        """The number that a δ is compared with, for data of so many rows.

        Raises:
            DataError: They are more than `most_rows`, whatever is proposed.
        """
        if self.most_rows is None:
            return rows
        if rows > self.most_rows:
            raise DataError(
                f"The data have more rows than most_rows, {self.most_rows:,}.",
                advice="Raise it, once and by much: how it changes tells how the data do.",
            )
        return self.most_rows


class OwnerFile(_DatasetFile):
    """An owner's file."""

    name: str
    data: FilePath
    columns: DataSection = DataSection()
    memory_limit: Annotated[int, Field(ge=2**20)] = 2 * 2**30
    """Bytes of features above which they go to a memory-mapped file."""


class ConsumerFile(_DatasetFile):
    """The consumer's file."""

    validation: FilePath
    """D_v."""
    seed_set: FilePath | None = None
    """D_init: public, disjoint from D_v; None: draw `seed_points` points."""
    seed_points: ranges.DrawnPoints | None = None
    """Number of points in a D_init drawn within the public bounds and kept in `state`; None: it is a file."""
    columns: DataSection = DataSection()
    target_file: FilePath | None = None
    """A release of D_v that `hushbid screen` made, charged and stored here, for the session to use instead of
    its own; None: the session makes its own.
    """
    test: FilePath | None = None
    """Labelled points to judge a downstream model by, if any."""
    model: str = MODEL
    """Downstream model (`hushbid.consumer.learners`)."""
    seed: ranges.ModelSeed = 0
    """Seed of the downstream model."""
    ridge: Ridge = RIDGE
    """λ of the delivered points' weights (`hushbid.consumer.matching.match`)."""
    label_weight: ranges.LabelWeight = LABEL_WEIGHT
    """Strength of labels in those weights (`hushbid.consumer.label_part`); 0: features alone."""

    @model_validator(mode="after")
    def _has_one_seed_set(self) -> Self:
        if self.seed_set is None and self.seed_points is None:
            raise ValueError("a seed set is missing: name a file (seed_set), or have one drawn (seed_points)")
        if self.seed_set is not None and self.seed_points is not None:
            raise ValueError("seed_set names a file and seed_points has one drawn: leave one of them out")
        return self

    def with_options(self, **options: object) -> Self:
        """The file with options applied, as for any party; an option's seed set goes before the file's.

        Raises:
            ConfigError: An option's value cannot be, or two of them have a seed set each.
        """
        changed = super().with_options(**options)
        seeds = {name: options.get(name) for name in ("seed_set", "seed_points")}
        if set(seeds.values()) == {None}:
            return changed
        chosen = {name: None if given is None else getattr(changed, name) for name, given in seeds.items()}
        values = changed.model_dump() | chosen
        try:
            return type(self).model_validate(values)
        except ValidationError as error:
            raise refusal(type(self), values, error, where="the options") from None


FILE_OF: Final[Mapping[str, type[CuratorFile | OwnerFile | ConsumerFile]]] = {
    "curator": CuratorFile,
    "owner": OwnerFile,
    "consumer": ConsumerFile,
}
"""The private file of each role."""
