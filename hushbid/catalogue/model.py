"""What the parts of a catalogue entry are made of: frozen models with arrays in them."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from protocol.errors import ConfigError

__all__ = ["Digest", "EntryPart", "Matrix", "Vector", "array_error", "check_projection"]

MAX_PROJECTION: Final = 2**25
"""Most numbers of the random directions that an entry's functions are made of: 256 MiB. A stranger's entry
of a few bytes could ask for more than any machine has."""

Digest: TypeAlias = Annotated[bytes, Field(min_length=32, max_length=32)]


class EntryPart(BaseModel):
    """A table of an entry: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


def _array(axes: int) -> Any:
    """An annotation for an array of so many axes that is not empty."""

    def check(value: Any) -> npt.NDArray[Any]:
        if type(value) is not np.ndarray or value.ndim != axes or value.size == 0:
            raise PydanticCustomError("array_shape", "an array of another shape is required here")
        own = np.array(value)
        own.flags.writeable = False
        return own

    schema: Final = core_schema.no_info_plain_validator_function(check)
    return GetPydanticSchema(lambda _source, _handler: schema)


Vector: TypeAlias = Annotated[npt.NDArray[Any], _array(1)]
Matrix: TypeAlias = Annotated[npt.NDArray[Any], _array(2)]


def check_projection(directions: int, columns: int) -> None:
    """Refuse functions that take more memory than any entry needs.

    Raises:
        ConfigError: More than `MAX_PROJECTION` numbers.
    """
    if directions * columns > MAX_PROJECTION:
        raise ConfigError(
            f"{directions} random directions of {columns} columns are more than an entry may have.",
            advice=f"The most is {MAX_PROJECTION} numbers: take fewer of them, or fewer columns.",
        )


def array_error(name: str, wanted: str) -> ValueError:
    """What a validator raises of an array that does not fit."""
    return ValueError(f"{name} is not {wanted}")
