"""The base of the parts of a catalogue entry, and the common interface of releases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Protocol, Self, TypeAlias

import msgpack
import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from hushbid.catalogue.estimates import NoisyMean
from protocol import limits
from protocol.config.session import FeatureSection
from protocol.data import Dataset
from protocol.errors import ConfigError
from protocol.privacy.accounting import Cost
from protocol.privacy.noise import NoiseSource
from protocol.privacy.releases import Neighbours
from protocol.wire.arrays import ARRAY_EXT, pack_array, unpack_extension

if TYPE_CHECKING:
    from hushbid.catalogue.screening import Consumer, Screening

__all__ = [
    "Digest",
    "EntryPart",
    "EntryRelease",
    "Functions",
    "Matrix",
    "Vector",
    "array_error",
    "check_projection",
    "decode_part",
    "encode_part",
]

MAX_PROJECTION: Final = 2**25
"""Most numbers of the random directions that an entry's functions are made of: 256 MiB. A stranger's entry
of a few bytes could ask for more than any machine has."""

Digest: TypeAlias = Annotated[bytes, Field(min_length=32, max_length=32)]


class EntryPart(BaseModel):
    """A table of an entry: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Functions(Protocol):
    """What releases of a kind are made with, all public: a feature map, or hash functions."""

    @property
    def columns(self) -> int: ...
    @property
    def lower(self) -> float | list[float]: ...
    @property
    def upper(self) -> float | list[float]: ...


class EntryRelease(EntryPart):
    """A release of a dataset in an entry. Each kind derives from it (`hushbid.catalogue.entry.KINDS`).

    Attributes:
        SECTION: What says with which functions it is made.
        kind: Its name.
    """

    SECTION: ClassVar[type[BaseModel]]
    kind: str

    @classmethod
    def check_points(cls, section: Any, points: int) -> None:
        """Refuse synthetic points that cannot be had, before budget is spent on them.

        Raises:
            ConfigError: The kind has none, or not so many.
        """
        if points:
            raise ConfigError(
                "Synthetic points are made for the feature map `paired` alone.",
                advice="Leave `--points` out.",
            )

    @classmethod
    @abstractmethod
    def calibration(cls, section: Any, neighbours: Neighbours, epsilon: float, delta: float) -> Any:
        """The noise of a release, whose `costs` are what a ledger charges.

        Raises:
            ConfigError: ε or δ outside of its range, or functions that cannot be made.
        """

    @classmethod
    @abstractmethod
    def of(cls, dataset: Dataset, section: Any, calibration: Any, noise: NoiseSource) -> Self:
        """Release a dataset within the public bounds. What it costs has been charged already."""

    def with_points(self, count: int) -> Self:
        """The release with so many synthetic points, which cost nothing (`check_points`)."""
        assert count == 0, "a kind without points refuses them"
        return self

    @property
    @abstractmethod
    def section(self) -> Any:
        """The functions that it was made with."""

    @property
    def norm_bound(self) -> float:
        """Largest norm of a point in its mean (`noisy_mean`)."""
        return 1.0

    @property
    def point_count(self) -> int:
        """How many synthetic points it has."""
        return 0

    def point_features(self) -> npt.NDArray[np.float64] | None:
        """φ of each of these, in units of φ, shape (points, d); None: there are none."""
        return None

    @property
    @abstractmethod
    def size(self) -> float:
        """The number of points of the dataset, noisy or not."""

    @property
    @abstractmethod
    def size_deviation(self) -> float:
        """Standard deviation of the noise on `size`; 0 where the number is public."""

    @abstractmethod
    def functions(self) -> bytes:
        """A digest that comparable entries have in common, 32 bytes."""

    @abstractmethod
    def check(self, neighbours: Neighbours) -> None:
        """Work the functions out again, and compare them with what the entry says of them.

        Raises:
            ConfigError: They cannot be made, or something of the release does not fit them.
        """

    def check_size(self, neighbours: Neighbours, *, public: bool) -> None:
        """Refuse a number of points that is noisy where it is public, exact where it is not, or none.

        Raises:
            ConfigError: It is.
        """
        if public is not (neighbours is Neighbours.SUBSTITUTE_ONE):
            raise ConfigError("Its number of points is noisy where it is public, or exact where it is not.")
        if public and self.size < 1:
            raise ConfigError("Its number of points is invalid.")

    @abstractmethod
    def costs(self, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The costs of the noise, recomputed from the release."""

    @abstractmethod
    def noisy_mean(self) -> NoisyMean:
        """The mean of the points' features, as a consumer estimates it."""

    @abstractmethod
    def target(self, what: Screening, consumer: Consumer) -> tuple[NoisyMean, dict[str, Any] | None]:
        """The consumer's mean by the same functions, and what was released of D_v for it, or None."""


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


def encode_part(part: Any) -> bytes:
    """Canonical msgpack of an entry, or of something made of its parts."""
    return bytes(msgpack.packb(part, default=_packed, use_bin_type=True))


def decode_part(body: bytes) -> Any:
    """What `encode_part` made, models as dictionaries.

    Raises:
        ValueError: It is something else.
    """
    try:
        values = msgpack.unpackb(
            body,
            ext_hook=unpack_extension,
            use_list=False,
            raw=False,
            strict_map_key=True,
            max_map_len=limits.MAX_MESSAGE_FIELDS,
            max_array_len=limits.MAX_COLUMNS,
        )
    except (TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ValueError("not msgpack") from error
    return _with_lists(values)


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    if isinstance(value, FeatureSection):
        # Without what is not set of one map's own parameters.
        return value.model_dump()
    if isinstance(value, BaseModel):
        return value.__dict__
    raise TypeError(f"{type(value).__name__} has no place in an entry")


def _with_lists(values: Any) -> Any:
    """The values of a body as the models take them: bounds of a session file are lists."""
    release = values.get("release") if isinstance(values, Mapping) else None
    if not isinstance(release, Mapping):
        return values
    own = {
        name: {key: list(each) if isinstance(each, tuple) else each for key, each in table.items()}
        if isinstance(table, Mapping)
        else table
        for name, table in release.items()
    }
    return {**values, "release": own}
