"""Errors of a configuration file in its author's terms: keys and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.faults import Fault, faults

__all__ = ["KINDS", "Kind", "refusal"]


class Kind(NamedTuple):
    """A kind of configuration file.

    Attributes:
        where_to: Where to give such a file.
    """

    keys: frozenset[str]
    where_to: str


_AGREED: Final = frozenset(
    {
        "session",
        "features",
        "columns",
        "target",
        "summary",
        "acquisition",
        "settlement",
        "wishes",
        "labels",
        "noise",
        "timeouts",
        "network",
    }
)
_OWN: Final = frozenset({"key", "state", "durability", "metrics"})
_OF_DATA: Final = frozenset({"columns", "ledger", "budget", "most_rows"})
_WITH_A_PARTY: Final = "It goes to a party of that role with `--config`."

KINDS: Final[Mapping[str, Kind]] = {
    "a session file": Kind(_AGREED | {"roster"}, "It goes to every party with `--session`."),
    "a cluster file": Kind(
        _AGREED | {"dataset", "owners", "consumer", "run"},
        "It goes to `hushbid run` or `hushbid simulate`; a run leaves the session file in its directory, as "
        "parties/consumer/session.toml.",
    ),
    "an invitation": Kind(
        frozenset(
            {
                "format",
                "version",
                "software",
                "signature",
                "party",
                "curator_fingerprint",
                "digest",
                "expires",
                "configuration",
            }
        ),
        "It goes to its party with `--invitation`; `weigh`, `train` and `value` take it with `--session`.",
    ),
    "a curator's file": Kind(_OWN | {"listen", "revoked", "unit_price", "total_price"}, _WITH_A_PARTY),
    "an owner's file": Kind(_OWN | _OF_DATA | {"name", "data", "memory_limit"}, _WITH_A_PARTY),
    "a consumer's file": Kind(
        _OWN
        | _OF_DATA
        | {
            "validation",
            "seed_set",
            "seed_points",
            "target_file",
            "test",
            "model",
            "seed",
            "ridge",
            "label_weight",
        },
        _WITH_A_PARTY,
    ),
}
"""All kinds of file, to recognise one given in place of another; their models are in other modules."""


def refusal(
    model: type[BaseModel], values: Mapping[str, Any], error: ValidationError, *, where: str
) -> ConfigError:
    """The error for values that a model rejects.

    Args:
        values: The contents of a file, a table or a set of flags.
        error: pydantic's error; its input, which may be private, is not repeated.
    """
    found = faults(error)
    said = _sentence("; ".join(_said(model, fault) for fault in found))
    wanted, seen = _kinds(model, values)
    if wanted is None or seen is None:
        texts = [fault.place for fault in found if fault.kind == "string_type"]
        return ConfigError(f"{where}: {said}", advice=f"Correct these keys and start again.{_quotes(texts)}")
    swapped = f"{where}: this looks like {seen} where {wanted} is asked for"
    # If all keys belong to the other kind, they need no message of their own.
    apart = KINDS[wanted].keys.isdisjoint(values)
    return ConfigError(f"{swapped}." if apart else f"{swapped}: {said}", advice=KINDS[seen].where_to)


def _kinds(model: type[BaseModel], values: Iterable[str]) -> tuple[str | None, str | None]:
    """The kind of file that the model reads, and the other kind that has more of the keys, if any."""
    keys = set(values)
    shared = {name: len(kind.keys & keys) for name, kind in KINDS.items()}
    wanted = next((name for name, kind in KINDS.items() if kind.keys == set(model.model_fields)), None)
    best = max(shared, key=shared.__getitem__)
    return wanted, best if wanted is not None and shared[best] > shared[wanted] else None


def _said(model: type[BaseModel], fault: Fault) -> str:
    where, words = ".".join(fault.place), fault.words
    if fault.kind == "extra_forbidden":
        near = get_close_matches(fault.place[-1], _fields_at(model, fault.place[:-1]), n=1)
        words += f", did you mean {near[0]!r}?" if near else ""
    return f"{where}: {words}" if where else words


def _sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _quotes(texts: Sequence[Sequence[str]]) -> str:
    """How to write text rather than a number, shown for the first key that should have been text."""
    if not texts:
        return ""
    key, place = texts[0][-1], ".".join(texts[0])
    return f""" Text is in quotes: `{key} = "…"` in a file, `--set '{place}="…"'` where there is --set."""


def _fields_at(model: type[BaseModel], names: Sequence[str]) -> list[str]:
    """The keys allowed in the table at this place; empty if unknown."""
    at: Any = model
    for name in names:
        if isinstance(at, type) and issubclass(at, BaseModel) and name in at.model_fields:
            at = _bare(at.model_fields[name].annotation)
        elif get_origin(at) is dict:
            at = _bare(get_args(at)[1])
        else:
            return []
    return list(at.model_fields) if isinstance(at, type) and issubclass(at, BaseModel) else []


def _bare(annotation: Any) -> Any:
    """A type without pydantic's annotations, and without None."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return next(_bare(each) for each in get_args(annotation) if each is not type(None))
    return annotation
