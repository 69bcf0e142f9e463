"""The registry of release mechanisms and acquisition rules, which session files select by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.faults import faults

__all__ = ["Parameters", "Registry"]


class Parameters(BaseModel):
    """The keys of a mechanism or a rule in the session file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    advice: ClassVar[Mapping[str, str]] = {}
    """For keys that need more than their names: advice about a wrong value."""

    def in_force(self, *, columns: int, owners: int) -> Self:
        """The keys as the session's digest includes them, with defaults filled in.

        The defaults may follow from the feature columns of a point, and from K.
        """
        return self


T = TypeVar("T")
K = TypeVar("K", bound=type[Any])


class Registry(dict[str, type[T]]):
    """Classes by the name that a session file uses; each has a `name` and the model of its `Parameters`.

    Args:
        what: Description of its members, with an article.
        kinds: The package's own classes.
        unknown: The error if there is no such `{name}`.
        wrong: The beginning of an error about a `{key}` of `{name}`.
    """

    def __init__(self, what: str, kinds: Iterable[Any], *, unknown: str, wrong: str) -> None:
        super().__init__({kind.name: kind for kind in kinds})
        self._what: Final = what
        self._unknown: Final = unknown
        self._wrong: Final = wrong

    def register(self, kind: K) -> K:
        """Register a class with sessions, plans, audits and sweeps; also a class decorator.

        The registration holds in this process, once the calling module is imported. Every party of a session
        needs it.

        Args:
            kind: The class; its `name` is its name in session files.

        Raises:
            ValueError: Another class has that name.
        """
        known: object = self.setdefault(kind.name, kind)
        if known is not kind:
            raise ValueError(f"There is {self._what} named {kind.name!r} already.")
        return kind

    def known(self, name: str) -> type[T]:
        """The class of that name.

        Raises:
            ConfigError: There is none.
        """
        if name not in self:
            raise ConfigError(self._unknown.format(name=name), advice=f"Choose one of: {', '.join(self)}.")
        return self[name]

    def chosen(self, name: str, given: Mapping[str, Any]) -> tuple[type[T], Any]:
        """The class with that name, and its parameters built from the given keys.

        Raises:
            ConfigError: An unknown name, or a key that is unknown, missing, of a wrong type or out of range.
        """
        kind: Any = self.known(name)
        try:
            return kind, kind.Parameters.model_validate(dict(given))
        except ValidationError as error:
            first = faults(error)[0]
            key = ".".join(first.place) or "parameters"
            keys = ", ".join(kind.Parameters.model_fields) or "none"
            raise ConfigError(
                f"{self._wrong.format(name=name, key=key)}: {first.words}.",
                advice=kind.Parameters.advice.get(key, f"The keys of {name} are: {keys}."),
            ) from None
