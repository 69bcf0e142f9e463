"""A column of a public schema (`hushbid.protocol.data.schema`): its values and their encoding in numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hushbid.protocol import limits

__all__ = [
    "BRIGHTEST",
    "GAP_WORDS",
    "LISTED",
    "MEASURED",
    "MOMENTS",
    "ONE_HOT",
    "WHOLE",
    "Column",
    "Kind",
    "LabelKind",
]

Kind: TypeAlias = Literal[
    "number", "integer", "ordinal", "category", "hashed", "boolean", "date", "datetime", "image"
]
LabelKind: TypeAlias = Literal["integer", "number", "text"]
"""Kinds of labels that a session may declare."""
WHOLE: Final = 2**53
"""Up to this, float64 represents every whole number."""
MEASURED: Final = frozenset({"number", "integer", "date", "datetime"})
"""Kinds of one number between bounds."""
MOMENTS: Final[Mapping[str, str]] = {"date": "D", "datetime": "us"}
"""Kinds of dates and times, and the unit that NumPy has for their numbers."""
LISTED: Final = frozenset({"ordinal", "category"})
ONE_HOT: Final = frozenset({"category", "hashed"})
"""Kinds of a number for each value or bucket, of which one is 1 and the others 0."""
BRIGHTEST: Final = 255
"""The largest value of a pixel in one channel; the smallest is 0."""

GAP_WORDS: Final = frozenset((
    "", "NA", "N/A", "#N/A", "#N/A N/A", "#NA", "n/a", "NULL", "null", "NaN", "nan", "-NaN", "-nan", "1.#IND",
    "-1.#IND", "1.#QNAN", "-1.#QNAN",
))  # fmt: skip
"""What stands for a gap in the text of a CSV file where a column does not say it; the first is empty."""
MOST_WORDS: Final = 100

Side = Annotated[int, Field(ge=1, le=limits.MAX_COLUMNS, strict=True)]
Buckets = Annotated[int, Field(ge=2, lt=limits.MAX_COLUMNS, strict=True)]
Words = Annotated[tuple[str, ...], Field(max_length=MOST_WORDS)]


class Column(BaseModel):
    """The public description of one column of a table.

    Attributes:
        name: Its name in every party's table.
        lower, upper: Public bounds of a ``number`` or an ``integer``; of a ``date`` or a ``datetime``, as
            TOML's dates, as text (ISO 8601) or as the number of days or microseconds since 1970-01-01.
        scale: ``"log"``: a ``number`` above 0 counts by its order of magnitude.
        categories: All values of an ``ordinal`` (in order) or a ``category``: text or whole numbers.
        buckets: Of a ``hashed``: into how many its texts fall, by a public hash.
        size: Width and height of an ``image``, in pixels.
        channels: Of an ``image``: 1 if grey (the default), 3 if in colour; None for all other kinds.
        weight: The distance of its extremes, in (0, 1]; of an ``image``, of an all-black and an all-white
            one.
        missing: The meaning of a gap: None refuses it; ``"own"`` makes it a category of its own, in a
            ``category``, or a bucket, in a ``hashed``, which takes nothing else. Any other value replaces it
            (in every pixel of an ``image``), and is not told apart from a real one in delivered points.
        gaps: Words that stand for a gap in text, beside nothing at all; None: `GAP_WORDS` in CSV, and none in
            the text of other tables. A category is never one.
        true, false: Words of a ``boolean`` beside true and false, such as ``["yes"]`` and ``["no"]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    kind: Kind
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] | tuple[int, ...] | None = None
    buckets: Buckets | None = None
    size: tuple[Side, Side] | None = None
    channels: Literal[1, 3] | None = None
    scale: Literal["log"] | None = None
    weight: Annotated[float, Field(gt=0, le=1)] = 1.0
    missing: bool | int | float | str | None = None
    gaps: Words | None = None
    true: Words | None = None
    false: Words | None = None

    @model_validator(mode="before")
    @classmethod
    def _grey_unless_said(cls, given: Any) -> Any:
        """A grey image is one schema, whether or not it states its channels."""
        if isinstance(given, Mapping) and given.get("kind") == "image" and given.get("channels") is None:
            return {**given, "channels": 1}
        return given

    @model_validator(mode="before")
    @classmethod
    def _moments_as_numbers(cls, given: Any) -> Any:
        """A date is one bound, however it is written."""
        unit = MOMENTS.get(str(given.get("kind"))) if isinstance(given, Mapping) else None
        if unit is None:
            return given
        read = {key: _moment(given[key], unit) for key in ("lower", "upper", "missing") if key in given}
        return {**given, **read}

    @field_validator("missing")
    @classmethod
    def _as_one_number(cls, given: Any, info: ValidationInfo) -> Any:
        """3 and 3.0 are one schema."""
        whole = isinstance(given, int) and not isinstance(given, bool)
        if whole and info.data.get("kind") == "number" and abs(given) <= sys.float_info.max:
            return float(given)
        return given

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.kind in MEASURED:
            self._check_bounds()
        elif self.lower is not None or self.upper is not None:
            raise ValueError(f"column {self.name!r}: bounds are for numbers and integers, dates and times")
        elif self.scale is not None:
            raise ValueError(f"column {self.name!r}: scale is for numbers")
        if self.kind in LISTED:
            if not self.categories or len(set(self.categories)) != len(self.categories):
                raise ValueError(f"column {self.name!r}: categories has to list different values")
            if any(abs(value) > WHOLE for value in self.categories if isinstance(value, int)):
                raise ValueError(f"column {self.name!r}: categories are texts, or whole numbers up to 2^53")
            if len(self.categories) < 2 and self.missing != "own":
                raise ValueError(f"column {self.name!r}: one category alone tells nothing")
        elif self.categories is not None:
            raise ValueError(f"column {self.name!r}: categories are for ordinals and categories")
        if (self.buckets is None) == (self.kind == "hashed"):
            raise ValueError(f"column {self.name!r}: buckets are for hashed columns, which need them")
        self._check_image()
        self._check_words()
        if not math.isfinite(self.bounds[1] - self.bounds[0]):
            raise ValueError(f"column {self.name!r}: bounds over weight are too far apart for a number")
        self._check_missing()
        return self

    def _check_bounds(self) -> None:
        if self.lower is None or self.upper is None:
            raise ValueError(f"column {self.name!r}: lower and upper are needed, and must be public")
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper):
            raise ValueError(f"column {self.name!r}: lower has to be below upper, and both finite")
        if self.scale is not None and (self.kind != "number" or self.lower <= 0):
            raise ValueError(f'column {self.name!r}: scale = "log" is for numbers whose lower is above 0')
        if self.kind != "number" and not (
            self.lower == int(self.lower)
            and self.upper == int(self.upper)
            and max(abs(self.lower), abs(self.upper)) <= WHOLE
        ):
            if self.kind == "datetime":  # 2^53 microseconds from 1970 on either side
                raise ValueError(f"column {self.name!r}: times are from 1684-07-29 to 2255-06-05")
            raise ValueError(f"column {self.name!r}: bounds of {self.kind}s are whole numbers up to 2^53")

    def _check_image(self) -> None:
        if self.kind != "image":
            if self.size is not None or self.channels is not None:
                raise ValueError(f"column {self.name!r}: size and channels are for images")
        elif self.size is None:
            raise ValueError(f"column {self.name!r}: size is needed: an image's width and height in pixels")
        elif self.width > limits.MAX_COLUMNS:
            raise ValueError(
                f"column {self.name!r}: an image becomes {self.width} numbers, more than {limits.MAX_COLUMNS}"
            )

    def _check_words(self) -> None:
        if self.kind == "image" and self.gaps is not None:
            raise ValueError(f"column {self.name!r}: gaps are words, and images have no text")
        listed = [*(self.true or ()), *(self.false or ())]
        if listed and self.kind != "boolean":
            raise ValueError(f"column {self.name!r}: true and false are for booleans")
        both = {word.casefold() for word in self.true or ()} | {"true", "1"}
        if both & ({word.casefold() for word in self.false or ()} | {"false", "0"}):
            raise ValueError(f"column {self.name!r}: a word stands for true and for false")
        if {*listed} & {*(self.gaps or ())} or "" in listed:
            raise ValueError(f"column {self.name!r}: a word stands for a value and for a gap")

    def _check_missing(self) -> None:
        given = self.missing
        if given is None or (self.kind in ONE_HOT and given == "own"):
            return
        if self.kind == "hashed":
            raise ValueError(f'column {self.name!r}: missing of a hashed column is "own"')
        if self.kind in LISTED:
            fits = given in (self.categories or ()) and not isinstance(given, bool)
        elif self.kind == "boolean":
            fits = isinstance(given, bool)
        else:
            lower, upper = self.limits
            number = not isinstance(given, bool | str)
            fits = number and lower <= given <= upper  # type: ignore[operator]  # no text, as above
            fits = fits and (self.kind == "number" or float(given) == int(given))
        if not fits:
            raise ValueError(f"column {self.name!r}: what stands for a gap has to be a value of the column")

    def written(self) -> dict[str, Any]:
        """Its keys as people write them in a file: dates and times as text, and no defaults."""
        values = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        unit = MOMENTS.get(self.kind)
        for key in () if unit is None else ("lower", "upper", "missing"):
            if key in values:
                values[key] = str(np.array(int(values[key])).astype(f"datetime64[{unit}]"))
        return values

    def holds(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which rows of numbers encode a value, shape (rows,); all comparisons are exact.

        A number may be a bound rounded to float32, as saved data may have it.

        Args:
            numbers: Shape (rows, `width`), of any real type.
        """
        if self.kind in ONE_HOT:
            ones = numbers == 1
            return np.asarray((ones | (numbers == 0)).all(axis=1) & (ones.sum(axis=1) == 1))
        if self.kind == "image":
            with np.errstate(invalid="ignore"):
                pixels = (numbers >= 0) & (numbers <= BRIGHTEST) & (numbers == np.floor(numbers))
            return np.asarray(pixels.all(axis=1))
        values = numbers[:, 0]
        lower, upper = self.extremes
        if self.kind == "number":
            with np.errstate(over="ignore"):
                lower, upper = min(lower, float(np.float32(lower))), max(upper, float(np.float32(upper)))
            return np.asarray((values >= lower) & (values <= upper) & np.isfinite(values))
        with np.errstate(invalid="ignore"):
            return np.asarray((values >= lower) & (values <= upper) & (values == np.floor(values)))

    def encoded(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The numbers that encode these: themselves, or their order of magnitude.

        That is e + m for 2^e·(1 + m), with m from 0 to below 1: log₂ but for at most 0.09, and the same to
        the last bit on every machine, as no logarithm is. It is -∞ for what is not above 0.
        """
        if self.scale is None:
            return values
        fraction, exponent = np.frexp(values)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(values > 0, (exponent - 1) + (2.0 * fraction - 1.0), -np.inf))

    def decoded(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The inverse of `encoded`; with a scale, to 14 digits."""
        if self.scale is None:
            return numbers
        exponent = np.floor(numbers)
        exact = np.ldexp(1.0 + (numbers - exponent), exponent.astype(np.int64))
        shown = np.array([float(f"{value:.14g}") for value in exact])
        return np.asarray(np.clip(shown, *self.limits))

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest value, before it is encoded."""
        if self.lower is not None and self.upper is not None:
            return self.lower, self.upper
        return self.extremes

    @property
    def extremes(self) -> tuple[float, float]:
        """Smallest and largest number that encodes a value."""
        if self.lower is not None and self.upper is not None:
            lower, upper = (float(each) for each in self.encoded(np.array([self.lower, self.upper])))
            return lower, upper
        if self.kind == "image":
            return 0.0, float(BRIGHTEST)
        return 0.0, 1.0 if self.kind != "ordinal" else float(len(self.categories or ()) - 1)

    def gap_words(self, *, typed: bool) -> frozenset[str]:
        """Words that stand for a gap in its text.

        Args:
            typed: Whether the text is that of a table with types, which has gaps of its own: none is usual.
        """
        usual: frozenset[str] = frozenset() if typed else GAP_WORDS
        words = usual if self.gaps is None else frozenset(("", *self.gaps))
        return words.difference((*(self.categories or ()), *(self.true or ()), *(self.false or ())))

    @property
    def own_gap(self) -> bool:
        return self.kind in ONE_HOT and self.missing == "own"

    @property
    def width(self) -> int:
        """Number of numbers that encode a value."""
        if self.size is not None:
            return self.size[0] * self.size[1] * (self.channels or 1)
        if self.kind in ONE_HOT:
            return (self.buckets or len(self.categories or ())) + self.own_gap
        return 1

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of each of its numbers in the session file, which express its weight."""
        if self.kind in ONE_HOT:
            return 0.0, math.sqrt(2.0) / self.weight
        lower, upper = self.extremes
        if self.kind == "image":
            return lower, upper * math.sqrt(self.width) / self.weight
        return lower, max(upper, lower + (upper - lower) / self.weight)  # which rounds


def _moment(given: Any, unit: str) -> Any:
    """A date or a time as the number of days or microseconds since 1970-01-01; what is none stays."""
    text = given.isoformat() if hasattr(given, "isoformat") else given
    if not isinstance(text, str):
        return given
    text = text.removesuffix("Z").removesuffix("+00:00")
    try:
        if not text[:4].isdigit():  # a word such as "now" would be a moment too
            raise ValueError
        return int(np.array(text).astype(f"datetime64[{unit}]").astype(np.int64))
    except (ValueError, OverflowError):
        raise ValueError("a bound or `missing` of a date is written as 2024-12-31, without a zone") from None
