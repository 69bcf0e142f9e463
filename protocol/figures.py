"""Figures of a result as typed records: made, written as JSON, and read back by their fields alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, model_serializer, model_validator
from pydantic.dataclasses import dataclass

from hushbid.protocol.finite import finite

__all__ = ["Figures"]

_Record = TypeVar("_Record", bound="Figures")


@dataclass(frozen=True, slots=True, config=ConfigDict(validate_by_name=True, validate_by_alias=True))
class Figures:
    """The base of a result's records, which are pydantic dataclasses.

    When JSON is read unknown fields are ignored, so that an older version reads what a newer one wrote, and
    fields with a default may be missing.

    Attributes:
        FLAT: Fields that are records themselves, whose own fields stand in their place in the JSON.
        TOLD: What follows from the fields and is in the JSON too: its name there, and the property or method,
            of this record or of one in it.
    """

    FLAT: ClassVar[frozenset[str]] = frozenset()
    TOLD: ClassVar[Mapping[str, str]] = {}

    def as_json(self) -> dict[str, Any]:
        """The fields by name, of what JSON can hold: no NaN."""
        found: dict[str, Any] = finite(_adapter(type(self)).dump_python(self, mode="json", by_alias=True))
        return found

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The record from `as_json`.

        Raises:
            ValueError: A field is missing, or of another type.
        """
        return _adapter(cls).validate_python(values)

    @classmethod
    def shared(cls, *others: Figures) -> dict[str, Any]:
        """The fields of this record that others have too, the later ones first, for its constructor."""
        names = [{each.name for each in fields(other)} for other in others]
        return {
            each.name: getattr(other, each.name)
            for other, known in zip(others, names, strict=True)
            for each in fields(cls)
            if each.name in known
        }

    @model_serializer(mode="wrap")
    def _flattened(self, write: Callable[[Self], dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in write(self).items():
            found |= value if name in self.FLAT else {name: value}
        for name, attribute in self.TOLD.items():
            value = attrgetter(attribute)(self)
            value = value() if callable(value) else value
            found[name] = value.as_json() if hasattr(value, "as_json") else value
        return found

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, values: Any) -> Any:
        if not (cls.FLAT and isinstance(values, Mapping)):
            return values
        return {**values, **dict.fromkeys(cls.FLAT, values)}


_adapters: Final[dict[type[Figures], TypeAdapter[Any]]] = {}
"""Made once for each record: making one takes longer than using it."""


def _adapter(kind: type[_Record]) -> TypeAdapter[_Record]:
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
