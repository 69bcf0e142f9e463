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
from hushbid.protocol import limits
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.accounting import Cost
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.wire.arrays import ARRAY_EXT, pack_array
from hushbid.protocol.wire.codec import unpack_limited

if TYPE_CHECKING:
    from hushbid.catalogue.consumer_release import ConsumerData, Screening

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
"""Maximum count of numbers in the random directions of an entry's functions: 256 MiB. A stranger's entry of a
few bytes could otherwise ask for more than any machine has."""

Digest: TypeAlias = Annotated[bytes, Field(min_length=32, max_length=32)]


class EntryPart(BaseModel):
    """A table of an entry: strict, frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Functions(Protocol):
    """The public functions behind releases of a kind: a feature map, or hash functions."""

    @property
    def columns(self) -> int: ...
    @property
    def lower(self) -> float | list[float]: ...
    @property
    def upper(self) -> float | list[float]: ...


class EntryRelease(EntryPart):
    """A release of a dataset in an entry: the base of each kind (`hushbid.catalogue.entry.KINDS`).

    Attributes:
        SECTION: The class of its section, which has the public parameters of its functions.
        kind: Its name.
    """

    SECTION: ClassVar[type[BaseModel]]
    kind: str

    @classmethod
    def check_points(cls, section: Any, points: int) -> None:
        """Raise a ConfigError unless the kind allows this many synthetic points; no budget is spent yet."""
        if points:
            raise ConfigError(
                "Synthetic points require the feature map `paired`.",
                advice="Leave `--points` out.",
            )

    @classmethod
    @abstractmethod
    def calibration(cls, section: Any, neighbours: Neighbours, epsilon: float, delta: float) -> Any:
        """The noise of a release, with the `costs` that a ledger charges.

        Raises:
            ConfigError: ε or δ is out of range or leaves hardly any noise, or the functions are invalid.
        """

    @classmethod
    @abstractmethod
    def of(cls, dataset: Dataset, section: Any, calibration: Any, noise: NoiseSource) -> Self:
        """Release a dataset within the public bounds, after its cost was charged."""

    def with_points(self, count: int) -> Self:
        """The release with synthetic points, made by post-processing its noisy mean (`check_points`)."""
        assert count == 0, "a kind without points refuses them"
        return self

    @property
    @abstractmethod
    def section(self) -> Any:
        """The parameters of its functions."""

    @property
    def norm_bound(self) -> float:
        """Largest norm of a point in its mean (`noisy_mean`)."""
        return 1.0

    @property
    def point_count(self) -> int:
        return 0

    def point_features(self) -> npt.NDArray[np.float64] | None:
        """φ of each synthetic point, in units of φ, shape (points, d); None if there are none."""
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
        """A digest that comparable entries share, 32 bytes."""

    @abstractmethod
    def check(self, neighbours: Neighbours) -> None:
        """Recompute the functions, and raise a ConfigError unless the release fits them."""

    def check_size(self, neighbours: Neighbours, *, public: bool) -> None:
        """Raise a ConfigError if the number of points is noisy though public, exact though not, or none."""
        if public is not (neighbours is Neighbours.SUBSTITUTE_ONE):
            raise ConfigError("Its number of points is noisy where it is public, or exact where it is not.")
        if public and self.size < 1:
            raise ConfigError("Its number of points is invalid.")

    @abstractmethod
    def costs(self, neighbours: Neighbours) -> tuple[Cost, ...]:
        """The costs of the noise, recomputed from the release."""

    @abstractmethod
    def noisy_mean(self) -> NoisyMean:
        """The mean of the points' features, for a consumer's estimates."""

    @abstractmethod
    def target(self, what: Screening, consumer: ConsumerData) -> tuple[NoisyMean, dict[str, Any] | None]:
        """The consumer's mean by the same functions, and `ScreeningResult.release`."""


def _array(axes: int) -> Any:
    """An annotation for a non-empty array with this many axes."""

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
    """Raise a ConfigError for functions of more than `MAX_PROJECTION` numbers."""
    if directions * columns > MAX_PROJECTION:
        raise ConfigError(
            f"{directions} random directions of {columns} columns are more than an entry may have.",
            advice=f"The most is {MAX_PROJECTION} numbers: take fewer of them, or fewer columns.",
        )


def array_error(name: str, wanted: str) -> ValueError:
    """The error of a validator for an array that does not fit."""
    return ValueError(f"{name} is not {wanted}")


def encode_part(part: Any) -> bytes:
    """Canonical msgpack of an entry, or of a mapping of its parts."""
    return bytes(msgpack.packb(part, default=_packed, use_bin_type=True))


def decode_part(body: bytes) -> Any:
    """Decode the result of `encode_part`, models as dictionaries; raise a ValueError for anything else."""
    try:
        values = unpack_limited(body, longest=limits.MAX_COLUMNS)
    except (TypeError, RecursionError, msgpack.UnpackException) as error:
        raise ValueError("not msgpack") from error
    return _with_lists(values)


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(ARRAY_EXT, pack_array(value))
    if isinstance(value, FeatureSection):
        return value.model_dump()  # This leaves out a map's unset parameters.
    if isinstance(value, BaseModel):
        # Left out if absent, so that older entries keep their bytes.
        return {name: own for name, own in value.__dict__.items() if name != "root" or own is not None}
    raise TypeError(f"{type(value).__name__} has no place in an entry")


def _with_lists(values: Any) -> Any:
    """A body's values in the form of the models: bounds of a session file are lists."""
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
