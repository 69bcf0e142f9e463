"""One party, two stories: two broadcasts of one round, two signed heads, or two transcripts of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hushbid.transcripts.verification.account import Account
from protocol.transcript.verify import Signature, SignedHead

__all__ = [
    "Equivocation",
    "Evidence",
    "Heads",
    "Versions",
    "equivocations",
    "several_heads",
    "versions",
]


class Evidence(NamedTuple):
    """Where a file has a broadcast.

    Args:
        path: The file.
        record: Number of the first record that has it.
        owners: Whom it was sent to; none in an owner's own file.
    """

    path: str
    party: str
    record: int
    owners: tuple[str, ...]


@dataclass(frozen=True)
class Equivocation:
    """A round with more than one broadcast in the files.

    Attributes:
        round: The round.
        broadcasts: By SHA-256 of the body, the records that have it.
    """

    round: int
    broadcasts: Mapping[str, tuple[Evidence, ...]]

    def as_json(self) -> dict[str, Any]:
        return {
            "round": self.round,
            "broadcasts": [
                {"digest": digest, "records": [each._asdict() for each in records]}
                for digest, records in self.broadcasts.items()
            ],
        }


@dataclass(frozen=True)
class Heads:
    """A party that signed more than one head, or told of more than one outcome.

    Attributes:
        party: The party.
        heads: By head and outcome, the files and records that have it. Only the curator reports an outcome,
            and only to its peers.
    """

    party: str
    heads: Mapping[tuple[bytes, str], tuple[tuple[str, int], ...]]

    def as_json(self) -> dict[str, Any]:
        return {
            "party": self.party,
            "heads": [
                {
                    "head": head.hex(),
                    "outcome": outcome,
                    "records": [{"path": path, "record": record} for path, record in records],
                }
                for (head, outcome), records in self.heads.items()
            ],
        }


@dataclass(frozen=True)
class Versions:
    """Two files of one party.

    Attributes:
        party: The party.
        paths: The files; where one is the beginning of the other, it comes first.
        relation: "same" chain, redacted or not; one is the "beginning" of the other; or "different".
        record: The first record in which they differ; None if they are the same.
    """

    party: str
    paths: tuple[str, str]
    relation: Literal["same", "beginning", "different"]
    record: int | None

    @property
    def ok(self) -> bool:
        """Whether one party can have recorded both."""
        return self.relation != "different"

    def as_json(self) -> dict[str, Any]:
        return {
            "party": self.party,
            "paths": list(self.paths),
            "ok": self.ok,
            "relation": self.relation,
            "record": self.record,
        }


def equivocations(accounts: Sequence[Account]) -> list[Equivocation]:
    """The rounds with more than one broadcast in all the files together.

    A file's own rounds count too: the curator's shows what it sent to each owner.
    """
    rounds: dict[int, dict[bytes, list[Account]]] = defaultdict(dict)
    for account in accounts:
        for number, broadcasts in account.broadcasts.items():
            for digest in broadcasts:
                rounds[number].setdefault(digest, []).append(account)
    return [
        Equivocation(
            number,
            {
                digest.hex(): tuple(_evidence(account, number, digest) for account in having)
                for digest, having in sorted(rounds[number].items())
            },
        )
        for number in sorted(rounds)
        if len(rounds[number]) > 1
    ]


def several_heads(files: Iterable[tuple[Path, Sequence[SignedHead]]]) -> list[Heads]:
    """The parties that signed more than one head, or told of several outcomes, in all files together.

    Args:
        files: Each file, and the signed heads that it has: its party's own, and those that it received. Those
            with a signature that fails say nothing of who should have signed them.
    """
    told: dict[str, dict[tuple[bytes, str], list[tuple[str, int]]]] = defaultdict(dict)
    for path, heads in files:
        for signed in heads:
            if signed.signature is not Signature.FAILS:
                places = told[signed.party].setdefault((signed.head, signed.outcome), [])
                places.append((str(path), signed.record))
    return [
        Heads(party, {each: tuple(places) for each, places in sorted(told[party].items())})
        for party in sorted(told)
        if len({head for head, _ in told[party]}) > 1 or len({how for _, how in told[party] if how}) > 1
    ]


def versions(accounts: Sequence[Account]) -> list[Versions]:
    """How files of the same party are related, two by two."""
    return [
        _related(first, second) for first, second in combinations(accounts, 2) if first.party == second.party
    ]


def _evidence(account: Account, number: int, digest: bytes) -> Evidence:
    told = account.broadcasts[number][digest]
    return Evidence(str(account.path), account.party, told.record, tuple(told.owners))


def _related(first: Account, second: Account) -> Versions:
    shorter, longer = sorted((first, second), key=lambda account: len(account.chain))
    paths = (str(shorter.path), str(longer.path))
    for one, other in zip(shorter.chain, longer.chain, strict=False):
        if one != other:
            return Versions(shorter.party, paths, "different", shorter.chain[one])
    if len(shorter.chain) == len(longer.chain):
        return Versions(shorter.party, paths, "same", None)
    return Versions(shorter.party, paths, "beginning", len(shorter.chain) - 1)
