"""Check the transcripts of one session, each alone and all together; the results are JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from hushbid.protocol.errors import DataError, TranscriptDamaged
from hushbid.protocol.names import CONSUMER, CURATOR, listed
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.verify import Contradiction, Verification
from hushbid.protocol.wire.values import pack_value
from hushbid.transcripts.verification.account import RecordAccount, account_of
from hushbid.transcripts.verification.agreement import compare
from hushbid.transcripts.verification.equivocation import equivocations, several_heads, versions
from hushbid.transcripts.verification.shapes import AwardFile, Pair, TranscriptFile, Verified

__all__ = ["verify_all"]

_ADVICE_FAULT: Final = (
    "The chain holds, so this is no disk error: the file was recorded or rewritten this way. Compare it with "
    "others' files."
)


class _Opened(NamedTuple):
    path: Path
    session: str
    party: str
    configuration: Mapping[str, Any]


class _Checked(NamedTuple):
    verification: Verification
    account: RecordAccount

    @property
    def faults(self) -> list[Contradiction]:
        return sorted([*self.verification.faults, *self.account.faults])


def verify_all(paths: Sequence[Path]) -> Verified:
    """Check transcripts; a bad one does not prevent checking the others.

    Args:
        paths: Transcripts of one session, from any of its parties.

    Raises:
        DataError: The files are of different sessions.
    """
    opened = [found for found in map(_opened, paths) if found is not None]
    _require_one_session(opened)
    transcripts: list[TranscriptFile] = []
    checked: list[_Checked] = []
    for path in paths:
        try:
            found = _Checked(*account_of(path))
        except (DataError, TranscriptDamaged) as error:
            transcripts.append(_bad(path, error))
            continue
        transcripts.append(_described(path, found))
        checked.append(found)
    accounts = [each.account for each in checked]
    pairs = _pairs(checked)
    equivocating = equivocations(accounts)
    heads = several_heads((each.account.path, each.verification.signed) for each in checked)
    related = versions(accounts)
    awards = _awards(accounts)
    agreed = (
        not any(each["others"] for each in awards)
        and all(pair["ok"] is not False for pair in pairs)
        and all(each["ok"] for each in related)
    )
    return {
        "ok": all(each["ok"] for each in transcripts) and agreed and not equivocating and not heads,
        "transcripts": transcripts,
        "awards": awards,
        "pairs": pairs,
        "equivocations": equivocating,
        "heads": heads,
        "versions": related,
        "missing": _missing(opened),
    }


def _opened(path: Path) -> _Opened | None:
    """A file's session; None if it cannot be read, which the check will report."""
    try:
        with TranscriptReader(path) as reader:
            first = next(reader, None)
            configuration = first.event.public.get("configuration") if first is not None else None
            known = configuration if isinstance(configuration, Mapping) else {}
            return _Opened(path, reader.header.session, reader.header.party, known)
    except (DataError, TranscriptDamaged):
        return None


def _require_one_session(opened: Sequence[_Opened]) -> None:
    for other in opened[1:]:
        first = opened[0]
        if other.session == first.session:
            continue
        ours, theirs = _settings(first.configuration), _settings(other.configuration)
        names = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        raise DataError(
            f"{first.path} is of session {first.session}, {other.path} of session {other.session}: their "
            f"session files differ in {listed(names, 8) or 'their private parts, such as seeds'}.",
            advice="Give transcripts of one session.",
        )


def _settings(configuration: Mapping[str, Any], prefix: str = "") -> dict[str, bytes]:
    """The configuration's values, encoded, by their dotted names."""
    found: dict[str, bytes] = {}
    for name, value in configuration.items():
        if isinstance(value, Mapping):
            found |= _settings(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = pack_value(value)
    return found


def _bad(path: Path, error: DataError | TranscriptDamaged) -> TranscriptFile:
    record = error.record if isinstance(error, TranscriptDamaged) else None
    return {"path": str(path), "ok": False, "record": record, "error": error.what, "advice": error.advice}


def _described(path: Path, found: _Checked) -> TranscriptFile:
    verification, faults = found.verification, found.faults
    described: TranscriptFile = {
        "path": str(path),
        "ok": not faults,
        "role": verification.header.role,
        "party": verification.header.party,
        "session": verification.header.session,
        "records": verification.records,
        "head": verification.head.hex(),
        "torn_bytes": verification.torn_bytes,
        "private_fields": verification.private_fields,
        "redacted_fields": verification.redacted_fields,
        "signature": verification.signature.value,
        "signed_heads": [
            signed._asdict() | {"head": signed.head.hex(), "signature": signed.signature.value}
            for signed in verification.signed
        ],
    }
    if faults:
        first, more = faults[0], len(faults) - 1
        where = "the header" if first.record < 0 else f"record {first.record}"
        others = f" ({more} more such places)" if more else ""
        described["record"] = first.record
        described["error"] = f"{path}: {where} does not hold: {first.what}{others}."
        described["advice"] = _ADVICE_FAULT
    return described


def _pairs(checked: Sequence[_Checked]) -> list[Pair]:
    curators = [each for each in checked if each.account.party == CURATOR]
    peers = [each for each in checked if each.account.party != CURATOR]
    return [
        compare(curator.account, peer.account, curator.verification.signed, peer.verification.signed)
        for curator in curators
        for peer in peers
    ]


def _awards(accounts: Sequence[RecordAccount]) -> list[AwardFile]:
    """Awards in blind curators' files, with the boxes that the first consumer's file calls void."""
    void = next((account.void for account in accounts if account.void is not None), None)
    return [
        {
            "path": str(account.path),
            "checked": account.awards.checked,
            "others": account.awards.others,
            "void": None if void is None else account.awards.void(void),
            "faults": None if void is None else account.awards.faults(void),
        }
        for account in accounts
        if account.awards is not None
    ]


def _missing(opened: Sequence[_Opened]) -> list[str]:
    """Parties on the roster, if a file has it, without a file here."""
    here = {found.party for found in opened}
    for found in opened:
        roster = found.configuration.get("roster")
        owners = roster.get("owners") if isinstance(roster, Mapping) else None
        if isinstance(owners, Mapping):
            return [name for name in (CURATOR, CONSUMER, *sorted(map(str, owners))) if name not in here]
    return []
