"""`hushbid transcript diff`: the first step where two sessions differ, and similarity by kind.

It compares the meaning of steps, not their times, the salts of commitments, frame numbers or signed heads.
Two transcripts of one role are read side by side, record by record up to the first difference. For each kind,
the n-th event or effect of one file is also compared with the n-th of the other, to the end.

Equal commitments show that values removed from a file are equal. Different ones show nothing, since the salts
differ: that counts as not compared.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final, NamedTuple

from hushbid.protocol.errors import ConfigError
from hushbid.protocol.machine.machine import Received, Send, SetTimer, Started
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Record, RecordedItem
from hushbid.protocol.wire.values import Fields, Value
from hushbid.transcripts.shapes import (
    ComparedFile,
    Comparison,
    ItemDifference,
    KindCounts,
    Parting,
    SettingPair,
)
from hushbid.transcripts.values import FRAME, encoded, header_fields, shortened, shown_frame
from hushbid.transcripts.view import shown_record

__all__ = ["compare"]

_LINK: Final = frozenset({"sent", "received"})
_SIGNED: Final = frozenset({"head", "signature"})
_PASSED_OVER: Final[Mapping[str, frozenset[str]]] = {
    # Compared separately: the session file, and its digest.
    Started.KIND: frozenset({"configuration", "seeds"}),
    "hello": _LINK | {"session", "software"},
    "welcome": _LINK,
    "close": _SIGNED,
    "farewell": _SIGNED,
    "head-signed": _SIGNED,
}
"""Fields of an event, effect or message that do not describe what was done."""
_TIMES: Final[Mapping[str, frozenset[str]]] = {SetTimer.KIND: frozenset({"due"})}
_OTHER_SESSION: Final = ("session", "config_digest")
"""Header fields that differ for different session files; the rest may differ within one session."""


def compare(left: Path, right: Path, *, private: bool = False, times: bool = False) -> Comparison:
    """Compare the contents of two transcripts of one role, a and b (`Transcript.compare`).

    With private values, the summary tells frames apart by their messages.

    Returns:
        ``same``: whether nothing that could be compared differs. ``a`` and ``b``: ``{"path", "party",
        "records", "torn_bytes", "head", "redacted_fields"}``: with one head, they are of one transcript.
        ``header`` and ``configuration``: what differs in them, ``{"key", "a", "b"}`` each. ``parting``: the
        first record that differs, None if there is none: ``{"record", "differences", "within", "a", "b"}``
        with both records as `show` gives them, None past a file's end, and whether private values, which
        are not shown, tell more closely what differs; a difference is ``{"place", "a", "b", "fields"}``: 0
        for the event and n for the n-th effect, the kinds, and which fields differ. ``kinds``: for each
        kind ``{"a", "b", "equal", "different", "not_compared"}``, the first two being how many there are.
        ``not_compared``: of all kinds together.
    """
    told_apart = private and _has_messages(left) and _has_messages(right)
    with TranscriptReader(left) as a, TranscriptReader(right) as b:
        _require_one_role(a, b)
        summary = _Summary(times=times, told_apart=told_apart)
        configuration: list[SettingPair] = []
        parting: Parting | None = None
        began = 0.0, 0.0
        for first, second in zip_longest(a, b):
            if first is not None and second is not None and first.number == 0:
                began = first.now, second.now
                configuration = _configurations(first.event, second.event, private=private)
            summary.take(first, second)
            if parting is None:
                parting = _parting(first, second, private=private, times=times, began=began)
        header = _differing(header_fields(a.header), header_fields(b.header))
        other_session = any(each["key"] in _OTHER_SESSION for each in header)
        kinds = summary.result()
        return {
            "same": parting is None and not configuration and not other_session,
            "a": _file(a, summary.redacted[0]),
            "b": _file(b, summary.redacted[1]),
            "header": header,
            "configuration": configuration,
            "parting": parting,
            "kinds": kinds,
            "not_compared": sum(counts["not_compared"] for counts in kinds.values()),
        }


def _has_messages(path: Path) -> bool:
    with TranscriptReader(path) as records:
        items = (item for record in records for item in record.items)
        first = next((item for item in items if item.kind in (Received.KIND, Send.KIND)), None)
        return first is not None and shown_frame(first) is not None


def _require_one_role(a: TranscriptReader, b: TranscriptReader) -> None:
    if a.header.role != b.header.role:
        raise ConfigError(
            f"{a.path} is a transcript of role {a.header.role}, and {b.path} of role {b.header.role}.",
            advice="Compare two of one role, from two sessions. `transcript verify` compares parties of one.",
        )


def _file(reader: TranscriptReader, redacted: int) -> ComparedFile:
    return {
        "path": str(reader.path),
        "party": reader.header.party,
        "records": reader.count,
        "torn_bytes": reader.torn_bytes,
        "head": reader.head.hex(),
        "redacted_fields": redacted,
    }


# -- what an event or effect means ------------------------------------------------------------------------


class _Hidden(NamedTuple):
    commitment: bytes
    digest: bytes | None


class _Meaning(NamedTuple):
    """An event or effect, short enough to keep until its counterpart comes."""

    kind: str
    public: Mapping[str, bytes]
    private: Mapping[str, _Hidden]


class _Found(NamedTuple):
    """Names of the differing fields, and of those that could not be compared."""

    different: tuple[str, ...]
    unknown: tuple[str, ...]


def _meaning(item: RecordedItem, *, times: bool) -> _Meaning:
    public = _relevant(item.kind, item.public, times=times)
    private = _private_values(item, times=times)
    left_out = _PASSED_OVER.get(item.kind, frozenset())
    return _Meaning(
        item.kind,
        {name: _digest(value) for name, value in public.items()},
        {
            name: _Hidden(commitment, _digest(private[name]) if name in private else None)
            for name, commitment in item.commitments.items()
            if name not in left_out
        },
    )


def _private_values(item: RecordedItem, *, times: bool) -> dict[str, Value]:
    """The private fields that are present, with a frame as its message and peer."""
    values = _relevant(item.kind, item.private, times=times)
    frame = shown_frame(item)
    if frame is not None and frame.fields:
        message = _relevant(frame.message, frame.fields, times=times)
        values[FRAME] = {"peer": frame.peer, "message": frame.message, "body": message}
    return values


def _relevant(kind: str, fields: Fields, *, times: bool) -> dict[str, Value]:
    left_out = _PASSED_OVER.get(kind, frozenset())
    if not times:
        left_out |= _TIMES.get(kind, frozenset())
    return {name: value for name, value in fields.items() if name not in left_out}


def _digest(value: Value) -> bytes:
    return hashlib.sha256(encoded(value)).digest()


def _found(a: _Meaning, b: _Meaning) -> _Found:
    if a.kind != b.kind:
        return _Found(("kind",), ())
    different = [name for name in _names(a.public, b.public) if a.public.get(name) != b.public.get(name)]
    unknown = []
    for name in _names(a.private, b.private):
        first, second = a.private.get(name), b.private.get(name)
        if first is None or second is None:
            different.append(name)
        elif first.commitment == second.commitment:
            continue
        elif first.digest is None or second.digest is None:
            unknown.append(name)
        elif first.digest != second.digest:
            different.append(name)
    return _Found(tuple(different), tuple(unknown))


def _names(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    return sorted(a.keys() | b.keys())


# -- the first record that differs ------------------------------------------------------------------------


def _parting(
    a: Record | None, b: Record | None, *, private: bool, times: bool, began: tuple[float, float]
) -> Parting | None:
    """The differences between two records of the same number; None if there are none."""
    differences = list(_differences(a, b, private=private, times=times))
    if not differences:
        return None
    record = a or b
    assert record is not None
    return {
        "record": record.number,
        "differences": differences,
        "within": not private and any(_has_parts(each, a, b) for each in differences),
        "a": None if a is None else shown_record(a, private=private, began=began[0]),
        "b": None if b is None else shown_record(b, private=private, began=began[1]),
    }


def _has_parts(difference: ItemDifference, a: Record | None, b: Record | None) -> bool:
    """Whether a private field present in both differs, so that `_paths` can locate the difference."""
    if a is None or b is None or None in (difference["a"], difference["b"]):
        return False
    values = [record.items[difference["place"]].private for record in (a, b)]
    return any(all(name in private for private in values) for name in difference["fields"])


def _differences(
    a: Record | None, b: Record | None, *, private: bool, times: bool
) -> Iterator[ItemDifference]:
    pairs = zip_longest(() if a is None else a.items, () if b is None else b.items)
    for place, (first, second) in enumerate(pairs):
        fields: Sequence[str] = ()
        if first is not None and second is not None:
            fields = _found(_meaning(first, times=times), _meaning(second, times=times)).different
            if times and place == 0 and a is not None and b is not None and a.now != b.now:
                fields = ("now", *fields)
            if not fields:
                continue
            if private:
                fields = [path for name in fields for path in _paths(name, first, second, times=times)]
        yield {
            "place": place,
            "a": None if first is None else first.kind,
            "b": None if second is None else second.kind,
            "fields": list(fields),
        }


def _paths(name: str, a: RecordedItem, b: RecordedItem, *, times: bool) -> Iterator[str]:
    first, second = ({**item.public, **_private_values(item, times=times)} for item in (a, b))
    if name in first and name in second:
        return (each["key"] for each in _differing({name: first[name]}, {name: second[name]}))
    return iter((name,))


def _differing(a: Fields, b: Fields, prefix: str = "") -> list[SettingPair]:
    """Entries of two maps that differ, those of maps within them by dotted names."""
    found: list[SettingPair] = []
    for name in _names(a, b):
        first, second = a.get(name), b.get(name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            found += _differing(first, second, f"{prefix}{name}.")
        elif (name in a) != (name in b) or _digest(first) != _digest(second):
            found.append({"key": prefix + name, "a": shortened(first), "b": shortened(second)})
    return found


def _configurations(a: RecordedItem, b: RecordedItem, *, private: bool) -> list[SettingPair]:
    """The differences between two transcripts' session files; for seeds only whether they differ."""
    first, second = a.public.get("configuration"), b.public.get("configuration")
    found: list[SettingPair] = []
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        found = _differing(first, second)
    seeds = a.private.get("seeds"), b.private.get("seeds")
    if isinstance(seeds[0], Mapping) and isinstance(seeds[1], Mapping):
        differing = _differing(seeds[0], seeds[1], "seeds.")
        found += differing if private else [{"key": each["key"], "private": True} for each in differing]
    return found


# -- the summary by kind ----------------------------------------------------------------------------------


@dataclass
class _Count:
    """One kind's events and effects: their number, comparison, and those waiting for their counterparts."""

    a: int = 0
    b: int = 0
    equal: int = 0
    different: int = 0
    not_compared: int = 0
    waiting: deque[_Meaning] = field(default_factory=deque)
    """Unmatched records of the file that has more of them so far."""


class _Summary:
    """Pairs the n-th event or effect of a kind in one file with the n-th in the other."""

    def __init__(self, *, times: bool, told_apart: bool) -> None:
        self._times, self._told_apart = times, told_apart
        self.redacted = [0, 0]
        self._counts: defaultdict[str, _Count] = defaultdict(_Count)

    def take(self, a: Record | None, b: Record | None) -> None:
        for record, is_a in ((a, True), (b, False)):
            for item in () if record is None else record.items:
                self.redacted[not is_a] += len(item.redacted)
                self._take(item, is_a=is_a)

    def result(self) -> dict[str, KindCounts]:
        """The counts by kind. A record in one file only is neither equal nor different."""
        return {
            kind: {
                "a": count.a,
                "b": count.b,
                "equal": count.equal,
                "different": count.different,
                "not_compared": count.not_compared,
            }
            for kind, count in sorted(self._counts.items())
        }

    def _take(self, item: RecordedItem, *, is_a: bool) -> None:
        frame = shown_frame(item) if self._told_apart else None
        count = self._counts[item.kind if frame is None else f"{item.kind} {frame.message}"]
        meaning = _meaning(item, times=self._times)
        behind = count.a < count.b if is_a else count.b < count.a
        if is_a:
            count.a += 1
        else:
            count.b += 1
        if not behind:
            count.waiting.append(meaning)
            return
        found = _found(meaning, count.waiting.popleft())
        count.different += bool(found.different)
        count.not_compared += bool(found.unknown and not found.different)
        count.equal += not (found.different or found.unknown)
