"""``[labels]``: the part of labels in the choice. All of it is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)

from hushbid.protocol import ranges
from hushbid.protocol.config.section import FINITE, Section
from hushbid.protocol.data.column import LabelKind
from hushbid.protocol.data.dataset import Allowed, DataColumns, Dataset
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.intervals import within
from hushbid.protocol.space.labels import LabelCode

__all__ = ["SIMILARITY", "IdentifierKind", "LabelsSection", "reading"]

SIMILARITY: Final = 0.5
"""Between 0.6 and 0.3, of which neither was better on nine datasets (docs/experiments.md has 0.5)."""
MOST_CLASSES: Final = 1_000
_OR_LEAVE: Final = "Or leave [labels] out, for all parties: points are then chosen by their features alone."

IdentifierKind: TypeAlias = Literal["integer", "text", "any"]
"""What a session may declare identifiers to be; "any": they are required, of either type."""
Amount = Annotated[float, FINITE]
Class = ranges.Int64 | Annotated[str, StringConstraints(min_length=1, max_length=200)]


class LabelsSection(Section):
    """``[labels]``: classes, or the range of amounts. If present, it is in the session's digest."""

    classes: Annotated[list[Class], Field(max_length=MOST_CLASSES)] = Field(default_factory=list)
    """Every class that an owner's or the consumer's point may have; empty: labels are amounts."""
    lower: Amount | None = None
    """Smallest amount that a label may be."""
    upper: Amount | None = None
    similarity: ranges.Similarity = SIMILARITY
    """What the kernel of two points is multiplied by where they differ in their class, or by all of the range
    (`hushbid.protocol.space.labels`). The smaller, the more labels count.
    """

    @field_validator("classes", mode="before")
    @classmethod
    def _are_whole_or_text(cls, classes: Any) -> Any:
        """Say what a class may be, in place of what each kind of it lacks."""
        for place, each in enumerate(classes if isinstance(classes, list) else ()):
            whole = isinstance(each, int) and not isinstance(each, bool) and within(ranges.Int64, each)
            if not whole and not isinstance(each, str):
                raise ValueError(
                    f"a class is a whole number of 64 bits or text, and number {place + 1} of the list is "
                    "neither: write it as it stands in the data, or give lower and upper for amounts"
                )
        return classes

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        if bool(self.classes) == (self.lower is not None or self.upper is not None):
            raise ValueError("it takes either classes, or lower and upper for amounts")
        if not self.classes and (self.lower is None or self.upper is None):
            raise ValueError("amounts need both lower and upper")
        if len({type(label) for label in self.classes}) > 1:
            raise ValueError('classes are all whole numbers or all text: 1 and "1" are two classes')
        try:
            _ = self.code
        except ConfigError as error:
            raise ValueError(f"{error.what} {error.advice}".rstrip(".")) from None
        return self

    @property
    def code(self) -> LabelCode:
        """What a feature map takes of labels."""
        return LabelCode(self.similarity, tuple(self.classes), self.lower or 0.0, self.upper or 0.0)

    def check_sold(self, dataset: Dataset) -> None:
        """Check that each row of an owner has a label of the choice.

        Raises:
            DataError: One has not; names its row, and no label.
        """
        self._check(dataset, "Name the label's column under `columns` in the party's file.")
        if dataset.labelled is not None:
            raise DataError(
                f"{dataset.name}: row {int(dataset.labelled.argmin())} (counted from 0) has no label, and "
                "labels have a part in the choice.",
                advice=f"Fill it in or remove the row. {_OR_LEAVE}",
            )

    def check_wanted(self, validation: Dataset) -> None:
        """Check that some rows of D_v have a label, and all that have one a label of the choice.

        Raises:
            DataError: Not so; names no label.
        """
        self._check(validation, "Give the validation rows their labels.")

    def _check(self, dataset: Dataset, advice: str) -> None:
        if dataset.known is None:
            raise DataError(
                f"{dataset.name} has no labels, and labels have a part in the choice ([labels] of the "
                "session file).",
                advice=f"{advice} {_OR_LEAVE}",
            )
        try:
            self.code.codes(dataset.known)
        except DataError as error:
            what = f"{error.what[:1].lower()}{error.what[1:]}"
            raise DataError(f"{dataset.name}: {what}", advice=error.advice) from None

    @model_serializer(mode="wrap")
    def _as_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in (None, [])}


def reading(
    columns: DataColumns,
    schema: Schema | None,
    kind: LabelKind | Literal["any", "optional"] | None,
    labels: LabelsSection | None,
    bounds: tuple[float | list[float], float | list[float]],
    *,
    identifiers: IdentifierKind | None = None,
    rooms: Mapping[str, int] | None = None,
    depth: int = 0,
) -> DataColumns:
    """How a party's file is read in a session: by its columns, and what it declares of labels.

    Args:
        columns: What the party says itself.
        kind: `session.labels`, which decides about labels where it is declared.
        labels: Else by ``[labels]``: its classes are whole numbers or texts, and amounts numbers.
        bounds: Lower and upper ones of features.
        identifiers: `session.identifiers`.
        rooms: What boxes hold beside a point (`attribute_rooms`), where the rows are for sale.
        depth: Of the trees by which owners commit to rows that are for sale; 0: they do not, and files are
            read as before there were any.

    Raises:
        ConfigError: The label is one of the columns that rows are compared by.
    """
    classes = () if labels is None else labels.classes
    words = tuple(each for each in classes if isinstance(each, str))
    read: LabelKind | None = None if kind == "any" or kind == "optional" else kind  # noqa: PLR1714 - mypy
    if read is None and labels is not None:
        read = "text" if words else "integer" if classes else "number"
    allowed = None
    if columns.outside != "refuse":
        code, most = None if labels is None else labels.code, 2**depth if depth else None
        allowed = Allowed(*bounds, code, rooms or {}, most)
    read_as = replace(
        columns,
        schema=schema or columns.schema,
        label_kind=read,
        label_words=words,
        identifier_kind=None if identifiers == "any" else identifiers,
        allowed=allowed,
    )
    return read_as.of_one_type(*bounds) if depth else read_as
