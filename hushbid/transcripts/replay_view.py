"""The work and the output of `hushbid transcript replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from hushbid.consumer.buying.blind import BlindBuying
from hushbid.curator.machine import CuratorMachine
from hushbid.owner.machine import OwnerMachine
from hushbid.protocol import __version__
from hushbid.protocol.config.loading import load_toml
from hushbid.protocol.config.party import FILE_OF, OwnerFile
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.blas_threads import one_blas_thread
from hushbid.protocol.session.session import Session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.protocol.transcript.record import Header
from hushbid.transcripts.recompute import Recomputation, recomputation
from hushbid.transcripts.replay import Replayed, replayed
from hushbid.transcripts.view import mark, named, say

__all__ = ["render_replays", "replay_all"]


@one_blas_thread()  # as in the parties' processes: the same sums in the same order
def replay_all(files: Sequence[Path], config: Path | None) -> dict[str, Any]:
    """Replay transcripts, one after the other, up to the first that diverges.

    Args:
        config: The party's own file, to recompute from its data what the replay takes from the record.

    Raises:
        ConfigError: There are several parties' transcripts to recompute, or the file belongs to another
            party.
        HushbidError: As `hushbid.transcripts.replay.replayed`.
    """
    if config is not None:
        _require_one_party(files, config)
    return {"identical": True, "transcripts": [_replay(path, config) for path in files]}


def _require_one_party(files: Sequence[Path], config: Path) -> None:
    """Check that all transcripts are one party's, and that the file fits its role."""
    parties: dict[str, tuple[Path, Header]] = {}
    for path in files:
        with TranscriptReader(path) as reader:
            parties.setdefault(reader.header.party, (path, reader.header))
    told = [f"{path} is {named(header.role, header.party)}'s" for path, header in parties.values()]
    if len(parties) > 1:
        raise ConfigError(
            f"--recompute {config} is one party's file, and there are several parties: {', '.join(told)}.",
            advice="Give one party's transcripts, with that party's own file.",
        )
    for _, header in parties.values():
        try:
            load_toml(FILE_OF.get(header.role, OwnerFile), config)
        except ConfigError as error:
            raise ConfigError(
                f"--recompute {config}: {told[0]}, and this is no {printable(header.role)}'s file: "
                f"{error.what}",
                advice=f"Give the file that {named(header.role, header.party)} was started with.",
            ) from None


def _replay(path: Path, config: Path | None) -> dict[str, Any]:
    made: list[Recomputation] = []

    def check(session: Session, header: Header) -> Recomputation:
        assert config is not None
        made.append(recomputation(path, config)(session, header))
        return made[-1]

    found = replayed(path, check=check if config is not None else None)
    return _told(path, found) | ({"recomputed": _recomputed(made[0])} if made else {})


def _told(path: Path, found: Replayed) -> dict[str, Any]:
    header = found.header
    return {
        "path": str(path),
        "role": header.role,
        "party": header.party,
        "session": header.session,
        "records": found.records,
        "rounds": _rounds(found),
        "finished": found.finished,
        "torn_bytes": found.torn_bytes,
        "seconds": found.seconds,
        "recorded_seconds": found.recorded_seconds,
        "speedup": found.recorded_seconds / found.seconds if found.seconds > 0 else None,
        "software": {"recorded": header.software, "here": __version__},
        "environment": found.environment,
    }


def _rounds(found: Replayed) -> int | None:
    """Number of rounds in which the party took part; None for a consumer that sees no rounds."""
    machine = found.machine
    if isinstance(machine, OwnerMachine):
        return machine.rounds
    sees_rounds = isinstance(machine, CuratorMachine) or isinstance(machine.buying, BlindBuying)
    return machine.round if sees_rounds else None


def _recomputed(made: Recomputation) -> dict[str, Any]:
    return {
        "compared": dict(made.compared),
        "skipped": dict(made.skipped),
        "largest_differences": dict(made.largest),
    }


def render_replays(result: Mapping[str, Any], console: Console) -> None:
    """Print what `replay_all` returns, a few lines for each file."""
    for found in result["transcripts"]:
        who, seconds = named(found["role"], found["party"]), found["seconds"]
        identical = f"{found['records']} records replayed identically in {seconds:.2f} s"
        pace = f" ({found['rounds'] / seconds:,.0f} rounds/s)" if found["rounds"] and seconds > 0 else ""
        mark(console, "✓", "green", f"{printable(found['path'])}: {who}, {identical}{pace}")
        for note in _notes(found):
            say(console, f"  {note}", "yellow")
        if "recomputed" in found:
            say(console, f"  {_recomputation_line(found['recomputed'])}")


def _notes(found: dict[str, Any]) -> list[str]:
    notes = []
    if found["torn_bytes"]:
        notes.append(f"its last record was not written wholly: {found['torn_bytes']} bytes are left of it")
    if not found["finished"]:
        notes.append("the party had not ended: it can be started again, and goes on from here")
    if found["software"]["recorded"] != found["software"]["here"]:
        notes.append(f"recorded by hushbid {found['software']['recorded']}, replayed by {__version__}")
    if found["environment"]:
        notes.append(f"recorded in another environment: {', '.join(found['environment'])}")
    return notes


def _recomputation_line(made: dict[str, Any]) -> str:
    compared = ", ".join(f"{count} {kind}" for kind, count in sorted(made["compared"].items()))
    largest = ", ".join(f"{name} {value:g}" for name, value in sorted(made["largest_differences"].items()))
    skipped = ", ".join(f"{count} {kind}" for kind, count in sorted(made["skipped"].items()))
    parts = [f"recomputed and the same: {compared or 'nothing'}"]
    parts += [f"largest differences: {largest}"] if largest else []
    parts += [f"cannot be recomputed, as the sealed boxes are gone: {skipped}"] if skipped else []
    return "; ".join(parts)
