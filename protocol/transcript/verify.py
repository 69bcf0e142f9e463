"""Checking a transcript's chain without keeping it in memory."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from protocol.transcript.reader import iterate
from protocol.transcript.record import Header

__all__ = ["Verification", "verify"]


class Verification(NamedTuple):
    """What checking a transcript found, when it found no damage.

    Args:
        header: What the transcript says about itself.
        records: Whole records, all of which hold.
        head: The chain's digest after the last of them: two copies with one head hold the same public
            parts, redacted or not.
        torn_bytes: Bytes at the end that are no whole record.
        private_fields: Private fields that were committed to.
        redacted_fields: Those of them whose values were taken out.
    """

    header: Header
    records: int
    head: bytes
    torn_bytes: int
    private_fields: int
    redacted_fields: int

    @property
    def torn(self) -> bool:
        """Whether the last record was being written when the party stopped."""
        return self.torn_bytes > 0


def verify(path: Path) -> Verification:
    """Check every digest of a transcript, and every commitment whose value is present.

    Raises:
        DataError: No transcript, or of a newer version.
        TranscriptDamaged: Something does not hold; it names the record.
    """
    private = redacted = 0
    with iterate(path) as reader:
        for record in reader:
            for item in record.items:
                private += len(item.commitments)
                redacted += len(item.commitments) - len(item.private)
        return Verification(reader.header, reader.count, reader.head, reader.torn_bytes, private, redacted)
