"""The session file in a transcript's first event, by which a transcript can be read without other files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from hushbid.protocol.config.meaning import BEFORE_THERE_WERE_KEYS, version_1_digest
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.faults import faults
from hushbid.protocol.machine.machine import Started
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.transcript.record import RecordedItem
from hushbid.protocol.wire.messages import PROTOCOL_VERSION, VERSIONS

__all__ = ["check_same_start", "check_version", "recorded_digest", "recorded_session", "started"]

_SEEDED = ("features", "noise")
"""Sections of the session file with a seed, which a redacted transcript hides."""
_HIDDEN = 0
"""Stands for a removed seed, so that the session's other facts can be shown."""


def started(file: SessionFile, data: bytes = b"") -> Started:
    """The first event of a party.

    Args:
        file: The session file; its seeds become private.
        data: Digest of the party's data; empty if it has none.
    """
    configuration: dict[str, Any] = file.in_force()
    seeds = {name: configuration[name].pop("seed", None) for name in _SEEDED}
    return Started(configuration, seeds, data)


def check_same_start(recorded: RecordedItem, now: Started) -> None:
    """Refuse to continue a transcript with other time limits or data.

    Args:
        now: The first event that the party would have now.

    Raises:
        ConfigError: `[timeouts]` differs; it names the keys.
        DataError: The data differ.
    """
    there, here = recorded.public.get("configuration"), now.configuration
    before = there.get("timeouts") if isinstance(there, Mapping) else None
    if isinstance(before, Mapping):
        changed = [key for key, value in here["timeouts"].items() if before.get(key) != value]
        if changed:
            listed = ", ".join(f"{key} = {before.get(key)}" for key in changed)
            raise ConfigError(
                "The session was begun with other timeouts than the session file has now.",
                advice=f"Put back, under [timeouts]: {listed}. A session goes on as it was begun.",
            )
    if recorded.private.get("data") != now.data:
        raise DataError(
            "The data are not those that the session was begun with.",
            advice="Put the files back as they were, labels and order of rows included, and start again.",
        )


def recorded_session(event: RecordedItem) -> SessionFile:
    """The session file of a transcript's first event; the seeds are 0 if the transcript is redacted.

    Raises:
        DataError: The event has no session file, or one that this version cannot read.
    """
    configuration = event.public.get("configuration")
    if event.kind != Started.KIND or not isinstance(configuration, Mapping):
        raise DataError(
            "The transcript does not begin with the session file.",
            advice="It was recorded by hushbid 0.1 or by a test; its records can be shown and verified.",
        )
    try:
        values = _plain(configuration)
        for name, seed in _seeds(event, values).items():
            if seed is not None:
                values[name]["seed"] = seed
        # Transcripts of sessions before there were such keys do without them.
        values["session"] = BEFORE_THERE_WERE_KEYS | values["session"]
        # As from JSON: tuples and lists are one there.
        return SessionFile.model_validate(values, strict=False)
    except ValidationError as error:
        first = faults(error)[0]
        where = f"{'.'.join(first.place)}: {first.words}"
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        where = f"it is no session file ({type(error).__name__})"
    raise DataError(
        f"The transcript's session file cannot be read: {where}.",
        advice="Read it with the version of hushbid that recorded it.",
    )


def recorded_digest(event: RecordedItem, version: int) -> bytes:
    """The session's digest, from a transcript's first event, by a version of the protocol.

    Args:
        event: The first event, with its seeds.

    Raises:
        DataError: The event has no session file, or one that this version cannot read; or the version is
            later than ours.
    """
    if version > max(VERSIONS):
        raise DataError(
            f"The transcript is of protocol version {version}; this hushbid knows {max(VERSIONS)}.",
            advice="Read it with the version of hushbid that recorded it.",
        )
    file = recorded_session(event)
    # All have the same digests. The first transcripts of `blind` named 2, although their parties spoke 3.
    if version in VERSIONS:
        return file.digest()
    configuration = event.public["configuration"]
    values: dict[str, Any] = _plain(configuration)
    for name, seed in _seeds(event, values).items():
        values[name]["seed"] = seed
    return version_1_digest(values)


def check_version(version: int) -> None:
    """Raise `DataError` for a transcript of another version of the protocol, which cannot be replayed."""
    if version not in VERSIONS:
        raise DataError(
            f"The transcript was recorded under version {version} of the protocol, and this is version "
            f"{PROTOCOL_VERSION}: its feature map was another one, and so was the digest of a session.",
            advice="`hushbid transcript verify`, `show` and `export` read it; replay it with the version of "
            "hushbid that recorded it.",
        )


def _seeds(event: RecordedItem, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    seeds = event.private.get("seeds")
    if isinstance(seeds, Mapping):
        return seeds
    rule = RULES.get(configuration["acquisition"]["rule"])
    secret = rule is not None and rule.sealed
    return {
        "features": None if secret else _HIDDEN,
        "noise": None if configuration["noise"]["source"] == "secure" else _HIDDEN,
    }


def _plain(value: Any) -> Any:
    """The value with mutable containers, like a file's."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
