"""Find a catalogue's entries that are comparable with each other and a session; explain refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hushbid.catalogue.entry import SUFFIX, CatalogueEntry, read_entry
from hushbid.catalogue.estimates import NoisyMean
from hushbid.protocol.errors import DataError

__all__ = ["CatalogueCandidate", "Exclusion", "candidates", "entry_files", "too_small"]

LEAST_SIZES: Final = 2.0
"""A noisy number of points below this many standard deviations may belong to an empty dataset."""


@dataclass(frozen=True, eq=False)
class CatalogueCandidate:
    """An entry in the comparison.

    Attributes:
        path: Its file.
        entry: Its checked contents.
        mean: Its dataset's mean embedding.
    """

    path: Path
    entry: CatalogueEntry
    mean: NoisyMean

    @property
    def owner(self) -> str:
        return self.entry.name


@dataclass(frozen=True)
class Exclusion:
    """An entry excluded from the comparison.

    Attributes:
        file: Its file.
        why: The reason.
    """

    file: str
    why: str


def entry_files(paths: Iterable[Path]) -> list[Path]:
    """The files of a catalogue: the named ones, and those in named directories, sorted by name.

    Raises:
        DataError: A directory cannot be read.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        try:
            files |= dict.fromkeys(sorted(each for each in path.iterdir() if each.name.endswith(SUFFIX)))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}.", advice="Check its mode.") from None
    return list(files)


def candidates(
    files: Sequence[Path],
    *,
    functions: bytes | None,
    keys: Mapping[str, str],
    allow_simulated: bool,
    columns: Sequence[str] | None = None,
) -> tuple[list[CatalogueCandidate], list[Exclusion]]:
    """Read entries, and keep the comparable ones: one for each owner, sorted by name.

    Args:
        functions: The session's feature map (`KmeRelease.functions`); None: the one shared by most of the
            entries.
        keys: Keys of a session's roster, by owner; an empty or missing key is not checked.
        allow_simulated: Whether to include entries whose noise protects nobody.
        columns: Names of D_v's columns, if it has any: an entry with these in another order is refused.

    Raises:
        DataError: No entry is left; the error says why they were refused. Or, without `functions`, most
            entries share no map or hash functions.
    """
    refused: list[Exclusion] = []
    read: list[CatalogueCandidate] = []
    for path in files:
        try:
            entry = read_entry(path)
        except DataError as error:
            refused.append(
                Exclusion(
                    str(path),
                    error.what.removeprefix(f"{path}: this entry is refused. ").removeprefix(f"{path}: "),
                )
            )
            continue
        each = CatalogueCandidate(path, entry, entry.release.noisy_mean())
        why = _objection(each, keys, allow_simulated=allow_simulated, columns=columns)
        if why:
            refused.append(Exclusion(str(path), why))
        else:
            read.append(each)
    for step in (_of_one_key, lambda left: _of_functions(left, functions), _one_for_each):
        read, out = step(read)
        refused += out
    if not read:
        reasons = "; ".join(f"{each.file}: {each.why}" for each in refused[:10])
        raise DataError(
            f"No entry is left to screen. {reasons}" if reasons else "There is no entry to screen.",
            advice=f"Name the files of entries (*{SUFFIX}), or a directory of them.",
        )
    return sorted(read, key=lambda each: each.owner), refused


def too_small(entry: CatalogueEntry) -> bool:
    """Whether an entry's stated number of points is compatible with an empty dataset."""
    return entry.release.size < max(1.0, LEAST_SIZES * entry.release.size_deviation)


def _objection(
    candidate: CatalogueCandidate,
    keys: Mapping[str, str],
    *,
    allow_simulated: bool,
    columns: Sequence[str] | None,
) -> str:
    entry, mean = candidate.entry, candidate.mean
    if columns and entry.columns and entry.columns != (*columns,) and {*entry.columns} == {*columns}:
        return f"it has the columns in the order {', '.join(entry.columns)}, D_v in {', '.join(columns)}"
    if entry.noise == "simulated" and not allow_simulated:
        return "its noise is simulated: nothing protects its owner's data"
    if keys.get(entry.name) not in (None, "", entry.owner):
        return f"its key is not the one that the session's roster gives to {entry.name}"
    if too_small(entry):
        return "its number of points cannot be told from none"
    # One such mean would dominate all others in the best mixture.
    if mean.square > mean.largest_square(entry.release.norm_bound):
        return "its mean lies farther out than any points' mean can"
    return ""


def _of_one_key(read: list[CatalogueCandidate]) -> tuple[list[CatalogueCandidate], list[Exclusion]]:
    """Refuse two keys under one name: nobody here can tell which is meant."""
    by_name: dict[str, set[str]] = {}
    for each in read:
        by_name.setdefault(each.owner, set()).add(each.entry.owner)
    why = "another entry has its name and another key: name the file of the right one alone"
    return _split(read, {id(each): why for each in read if len(by_name[each.owner]) > 1})


def _of_functions(
    read: list[CatalogueCandidate], wanted: bytes | None
) -> tuple[list[CatalogueCandidate], list[Exclusion]]:
    if not read:
        return [], []
    own = {id(each): each.entry.release.functions() for each in read}
    whose = "the session's"
    if wanted is None:
        (wanted, most), *others = Counter(own[id(each)] for each in read).most_common(2)
        if others and others[0][1] == most:
            raise DataError(
                f"There are {most} entries by one feature map or hash functions, and as many by "
                "another; none are by more.",
                advice="Name the files of those to compare, or give a session file with a public map.",
            )
        whose = "those of most other entries"
    why = f"its feature map, bounds or hash functions are not {whose}"
    return _split(read, {key: why for key, found in own.items() if found != wanted})


def _one_for_each(read: list[CatalogueCandidate]) -> tuple[list[CatalogueCandidate], list[Exclusion]]:
    best: dict[str, CatalogueCandidate] = {}
    for each in read:
        held = best.setdefault(each.owner, each)
        if (each.mean.variance, str(each.path)) < (held.mean.variance, str(held.path)):
            best[each.owner] = each
    kept = {id(each) for each in best.values()}
    why = "another entry of this owner has less noise, and is taken in its place"
    return _split(read, {id(each): why for each in read if id(each) not in kept})


def _split(
    read: list[CatalogueCandidate], why: Mapping[int, str]
) -> tuple[list[CatalogueCandidate], list[Exclusion]]:
    kept = [each for each in read if id(each) not in why]
    return kept, [Exclusion(str(each.path), why[id(each)]) for each in read if id(each) in why]
