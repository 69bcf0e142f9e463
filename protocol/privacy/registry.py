"""The registry of release mechanisms and acquisition rules, which session files name and give keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from protocol.errors import ConfigError
from protocol.faults import faults

__all__ = ["Parameters", "Registry"]


class Parameters(BaseModel):
    """The keys that a mechanism or a rule has in the session file."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    advice: ClassVar[Mapping[str, str]] = {}
    """For keys whose value needs more than their names: what to do about a wrong one."""

    def in_force(self, *, columns: int, owners: int) -> Self:
        """The keys as the session's digest has them: with every value that holds where a key is left out.

        Args:
            columns: Feature columns of a point.
            owners: K.
        """
        return self


T = TypeVar("T")
K = TypeVar("K", bound=type[Any])


class Registry(dict[str, type[T]]):
    """Classes by the name that a session file uses; each has a `name` and the model of its `Parameters`.

    Args:
        what: They are, with an article.
        kinds: Those of the package.
        unknown: The error where there is no such `{name}`.
        wrong: What an error about a `{key}` of `{name}` begins with.
    """

    def __init__(self, what: str, kinds: Iterable[Any], *, unknown: str, wrong: str) -> None:
        super().__init__({kind.name: kind for kind in kinds})
        self._what: Final = what
        self._unknown: Final = unknown
        self._wrong: Final = wrong

    def register(self, kind: K) -> K:
        """Make a class known to sessions, plans, audits and sweeps; serves as a class decorator.

        It is known in this process, as soon as the module that calls this is imported. Every party of a
        session needs it.

        Args:
            kind: Its `name` is what a session file calls it by.

        Raises:
            ValueError: There is another one of that name.
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
        """The class of that name, and its parameters of what is given.

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
