"""What `show` and `diff` say of transcripts, as JSON has it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

__all__ = [
    "ComparedFile",
    "Comparison",
    "ItemDifference",
    "KindCounts",
    "NotFound",
    "Parting",
    "SettingPair",
    "Shown",
    "ShownEnd",
    "ShownHeader",
    "ShownItem",
    "ShownRecord",
    "Side",
]


class ShownHeader(TypedDict):
    """What a transcript says of itself (`hushbid.protocol.transcript.record.Header`)."""

    type: Literal["header"]
    role: str
    party: str
    session: str
    config_digest: str
    software: str
    environment: Any
    noise: str
    protocol: int


class ShownItem(TypedDict):
    """An event or effect; a private field is its value, or an object of its commitment's first digits."""

    kind: str
    public: dict[str, Any]
    private: dict[str, Any]


class ShownRecord(TypedDict):
    """A record; its event is None if that was not chosen."""

    type: Literal["record"]
    record: int
    now: Any
    elapsed: Any
    event: ShownItem | None
    effects: list[ShownItem]
    digest: str


class NotFound(TypedDict):
    """What was asked for and is nowhere, with what there is: kinds, peers, or the first and last round."""

    what: Literal["kind", "peer", "round"]
    name: str
    there: list[str] | list[int]


class ShownEnd(TypedDict):
    """The last line: how many records were shown. `torn_bytes` is None if the limit came before the end."""

    type: Literal["end"]
    records: int
    torn_bytes: int | None
    missing: list[NotFound]


Shown: TypeAlias = ShownHeader | ShownRecord | ShownEnd

Side: TypeAlias = Literal["a", "b"]
"""One of two transcripts."""


class ComparedFile(TypedDict):
    """One of two transcripts: with one head, both are of one."""

    path: str
    party: str
    records: int
    torn_bytes: int
    head: str
    redacted_fields: int


class SettingPair(TypedDict):
    """A key of the headers or session files with its two values; or `private`, that there are two."""

    key: str
    a: NotRequired[Any]
    b: NotRequired[Any]
    private: NotRequired[bool]


class ItemDifference(TypedDict):
    """An event or effect of two records: its place, both kinds (None past an end), and what differs."""

    place: int
    a: str | None
    b: str | None
    fields: list[str]


class Parting(TypedDict):
    """The first record that differs, as `show` gives it from either; None past a file's end."""

    record: int
    differences: list[ItemDifference]
    within: bool
    a: ShownRecord | None
    b: ShownRecord | None


class KindCounts(TypedDict):
    """How many events or effects of a kind there are, and how many of them are compared."""

    a: int
    b: int
    equal: int
    different: int
    not_compared: int


class Comparison(TypedDict):
    """What `compare` finds."""

    same: bool
    a: ComparedFile
    b: ComparedFile
    header: list[SettingPair]
    configuration: list[SettingPair]
    parting: Parting | None
    kinds: dict[str, KindCounts]
    not_compared: int
