"""`hushbid.Transcript` and `hushbid.verify_transcripts`: what the verbs of `hushbid transcript` do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hushbid.protocol.errors import ConfigError

if TYPE_CHECKING:
    from hushbid.transcripts.export import Exported
    from hushbid.transcripts.verification.shapes import Verified

__all__ = ["Transcript", "verify_transcripts"]


class Transcript:
    """A party's transcript. Each method reads it again; nothing of it is kept in memory.

    Args:
        path: The file.

    Raises:
        DataError: It is not a transcript, or has a newer version.
        TranscriptDamaged: Its header does not hold.
    """

    def __init__(self, path: Path | str) -> None:
        from hushbid.protocol.transcript.reader import TranscriptReader

        self.path = Path(path)
        with TranscriptReader(self.path) as reader:
            self.role = reader.header.role
            """``curator``, ``owner`` or ``consumer``, according to the file."""
            self.party = reader.header.party
            """The party's name."""
            self.session = reader.header.session
            """The session's identifier, in hexadecimal."""

    def __repr__(self) -> str:
        return f"Transcript({str(self.path)!r})"

    def show(
        self,
        rounds: range | int | None = None,
        *,
        peer: str | None = None,
        kind: str | None = None,
        private: bool = False,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the header, each chosen record, and an end (`hushbid.transcripts.view.show`).

        Args:
            rounds: Only records of these rounds, or of this round.
            peer: Only frames between the party and this peer; requires `private`.
            kind: Only events and effects of this kind.
            private: Show the values of private fields, too: points, noise.
            limit: Maximum number of records to show.

        Raises:
            ConfigError: A peer is given without `private`.
            TranscriptDamaged: One of the records read does not hold.
        """
        from hushbid.transcripts.view import RecordSelection, show

        chosen = range(rounds, rounds + 1) if isinstance(rounds, int) else rounds
        choice = RecordSelection(chosen, peer, kind)
        shown = show(self.path, private=private, choice=choice, limit=limit)
        return cast("Iterator[dict[str, Any]]", shown)

    def compare(
        self, other: Transcript | Path | str, *, private: bool = False, times: bool = False
    ) -> dict[str, Any]:
        """Find the first difference from another transcript of the same role (docs/transcripts.md).

        Args:
            private: Show private values, too.
            times: Compare times, too.

        Raises:
            ConfigError: Their roles differ.
            DataError, TranscriptDamaged: One of them cannot be read.
        """
        from hushbid.transcripts.diff import compare

        there = other.path if isinstance(other, Transcript) else Path(other)
        return cast("dict[str, Any]", compare(self.path, there, private=private, times=times))

    def export(
        self,
        output: Path | str,
        *,
        redact: bool = False,
        format: Literal["transcript", "jsonl", "parquet"] | str = "transcript",
    ) -> Exported:
        """Write a copy for others, who can check it against the same head.

        Args:
            output: A file that does not exist yet.
            redact: Leave every private value out. The result is not differentially private.
            format: ``transcript``, which takes `redact`; ``jsonl`` or ``parquet``.

        Raises:
            ConfigError: There is no such format, the file exists, or the output would be a plain copy.
            DataError, TranscriptDamaged, TranscriptUnwritable: It cannot be read or written.
        """
        from hushbid.transcripts.export import ExportFormat, export

        if format not in list(ExportFormat):
            raise ConfigError(
                f"--format {format}: there is no such format.",
                advice=f"Give one of {', '.join(ExportFormat)}.",
            )
        return export(self.path, Path(output), form=ExportFormat(format), redacted=redact)

    def replay(self, recompute: Path | str | None = None) -> dict[str, Any]:
        """Feed the recorded events to the same machine again.

        Args:
            recompute: The party's own file: features, releases and bids are also recomputed from its data.

        Returns:
            The entry for one of `transcripts` in docs/transcripts.md.

        Raises:
            ReplayDivergence: The machine does something else.
            HushbidError: It cannot be read.
        """
        from hushbid.transcripts.replay_view import replay_all

        found = replay_all([self.path], None if recompute is None else Path(recompute))
        return dict(found["transcripts"][0])


def verify_transcripts(
    paths: Iterable[Transcript | Path | str] | Mapping[str, Transcript | Path | str],
) -> Verified:
    """Check transcripts of one session and any of its parties: each alone, and all against each other.

    Args:
        paths: The transcripts, redacted or not; or a mapping to them, as `Procured.transcripts` is.

    Returns:
        A dict with ``ok``, and the findings.

    Raises:
        ConfigError: There are no transcripts.
        DataError: They belong to different sessions.
    """
    from hushbid.transcripts.verification.whole_session import verify_all

    given: Any = paths
    if isinstance(given, Transcript | Path | str):
        given = [given]
    elif isinstance(given, Mapping):
        given = given.values()
    found = [each.path if isinstance(each, Transcript) else Path(each) for each in given]
    if not found:
        raise ConfigError("There is no transcript to check.", advice="Name one at least.")
    return verify_all(found)
