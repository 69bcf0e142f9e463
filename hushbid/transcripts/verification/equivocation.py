"""One party, two stories: two broadcasts of one round, two signed heads, or two transcripts of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from hushbid.protocol.transcript.verify import Signature, SignedHead
from hushbid.transcripts.verification.account import RecordAccount
from hushbid.transcripts.verification.shapes import BroadcastEvidence, Equivocation, Related, Several

__all__ = ["equivocations", "several_heads", "versions"]


def equivocations(accounts: Sequence[RecordAccount]) -> list[Equivocation]:
    """The rounds with several broadcasts in all files together; a curator's alone shows all it sent."""
    rounds: dict[int, dict[bytes, list[RecordAccount]]] = defaultdict(dict)
    for account in accounts:
        for number, broadcasts in account.broadcasts.items():
            for digest in broadcasts:
                rounds[number].setdefault(digest, []).append(account)
    return [
        {
            "round": number,
            "broadcasts": [
                {"digest": digest.hex(), "records": [_evidence(each, number, digest) for each in having]}
                for digest, having in sorted(rounds[number].items())
            ],
        }
        for number in sorted(rounds)
        if len(rounds[number]) > 1
    ]


def _evidence(account: RecordAccount, number: int, digest: bytes) -> BroadcastEvidence:
    told = account.broadcasts[number][digest]
    return {
        "path": str(account.path),
        "party": account.party,
        "record": told.record,
        "owners": tuple(told.owners),
    }


def several_heads(files: Iterable[tuple[Path, Sequence[SignedHead]]]) -> list[Several]:
    """The parties that signed more than one head, or told of several outcomes, in all files together.

    A file has its party's own heads, and those that it received. A head with a failed signature says nothing
    about the party that should have signed it. Only the curator reports an outcome, and only to its peers.
    """
    told: dict[str, dict[tuple[bytes, str], list[dict[str, Any]]]] = defaultdict(dict)
    for path, heads in files:
        for signed in heads:
            if signed.signature is not Signature.FAILS:
                places = told[signed.party].setdefault((signed.head, signed.outcome), [])
                places.append({"path": str(path), "record": signed.record})
    return [
        {
            "party": party,
            "heads": [
                {"head": head.hex(), "outcome": outcome, "records": records}
                for (head, outcome), records in sorted(told[party].items())
            ],
        }
        for party in sorted(told)
        if len({head for head, _ in told[party]}) > 1 or len({how for _, how in told[party] if how}) > 1
    ]


def versions(accounts: Sequence[RecordAccount]) -> list[Related]:
    """How any two files of the same party are related."""
    return [
        _related(first, second) for first, second in combinations(accounts, 2) if first.party == second.party
    ]


def _related(first: RecordAccount, second: RecordAccount) -> Related:
    shorter, longer = sorted((first, second), key=lambda account: len(account.chain))
    relation: Literal["same", "beginning", "different"] = "same"
    record = None
    if len(shorter.chain) < len(longer.chain):
        relation, record = "beginning", len(shorter.chain) - 1
    for one, other in zip(shorter.chain, longer.chain, strict=False):
        if one != other:
            relation, record = "different", shorter.chain[one]
            break
    return {
        "party": shorter.party,
        "paths": [str(shorter.path), str(longer.path)],
        "ok": relation != "different",
        "relation": relation,
        "record": record,
    }
