"""Reading TOML into a pydantic model.

Every function raises `ConfigError`, which names file and key: for a file that cannot be read, is not UTF-8 or
not TOML, and for values that the model does not allow.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from hushbid.protocol.config.refusal import refusal
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.plain_files import read_plain

__all__ = [
    "load_toml",
    "load_toml_text",
    "read_text",
    "read_toml",
    "read_toml_sent",
    "toml_value",
    "validated",
]

ModelT = TypeVar("ModelT", bound=BaseModel)


def validated(model: type[ModelT], values: Mapping[str, Any], *, where: str) -> ModelT:
    """The model built from `values`.

    Args:
        values: The contents of a file, a table or a set of options.
        where: Their source, for the error.

    Raises:
        ConfigError: A key is missing, unknown or of a wrong type (the message names all such keys), or the
            values belong to another kind of file.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise refusal(model, values, error, where=where) from None


def load_toml_text(model: type[ModelT], text: str, *, where: str) -> ModelT:
    """The model described by a TOML text."""
    return validated(model, _parsed(text, where=where), where=where)


def load_toml(model: type[ModelT], path: Path) -> ModelT:
    """The model described by a TOML file."""
    return validated(model, read_toml(path), where=str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file, before validation."""
    return _parsed(read_text(path), where=str(path))


def read_text(path: Path) -> str:
    """The text of a configuration file."""
    try:
        return path.read_text(encoding="utf-8-sig")  # editors of Windows write a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def read_toml_sent(path: Path, longest: int) -> dict[str, Any]:
    """The values of a TOML file of a possibly malicious author: a regular file of at most so many bytes."""
    try:
        content, _ = read_plain(path, longest)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > longest:
        raise ConfigError(
            f"{path}: longer than {longest} bytes, the most for this kind of file.",
            advice="This is not what hushbid wrote: have it sent again.",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from None
    return _parsed(text, where=str(path))


def toml_value(text: str) -> Any:
    """A TOML value; other text stands for itself, so that options need no inner quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    if isinstance(error, FileNotFoundError):
        return ConfigError(f"{path}: no such file.", advice="Check the path.")
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
    return ConfigError(f"{path}: cannot be read: {reason}.", advice="Check the file and its mode.")


_TOML: Final = "Correct the syntax there; in a draft, fill in what is marked by ?."


def _parsed(text: str, *, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # includes integers and nesting beyond Python's limits
        raise ConfigError(f"{where}: not TOML: {error}.", advice=_TOML) from None
