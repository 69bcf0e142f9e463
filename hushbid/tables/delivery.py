"""A consumer's ``delivered.npz`` as the verbs after a session read it, and the tables used with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from hushbid.cluster.kind import kind_of
from hushbid.protocol import ranges
from hushbid.protocol.config.loading import load_toml, read_toml
from hushbid.protocol.config.session import NetworkSection, RosterSection, SessionFile
from hushbid.protocol.data import DataColumns, Dataset, check_dataset, load_dataset
from hushbid.protocol.data.arrays import UNREADABLE
from hushbid.protocol.data.dataset import GAP_ADVICE, Allowed, Changes, Outside
from hushbid.protocol.data.names import split_names
from hushbid.protocol.errors import ConfigError, DataError, HushbidError
from hushbid.protocol.intervals import within
from hushbid.protocol.names import CONSUMER
from hushbid.protocol.runtime.files.durable import in_place_of
from hushbid.protocol.runtime.files.signed_files import read_invitation
from hushbid.protocol.session.guarantee import PrivacyStatement
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.reader import TranscriptReader
from hushbid.transcripts.replay import opened_session

__all__ = [
    "MASKED",
    "NOT_OURS",
    "Columns",
    "DeliveredTables",
    "Floats",
    "gaps_told",
    "is_same",
    "read_delivered",
    "writing",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Columns: TypeAlias = tuple[str | None, str | None]
"""Feature columns of tables, as in ``a,b,c``, and the label column."""
NOT_OURS: Final = "Name a file in a directory that this user can write to."
"""The advice if a file cannot be written."""

_BOUNDS: Final = ("gamma", "lower", "upper")
MASKED: Final = (("labels", "labelled", "label"), ("identifiers", "identified", "identifier"))
"""For each attribute: the array of values, the array of flags for present ones, and its table column."""
_OF_POINTS: Final = ("labels", "labelled", "identifiers", "identified", "owners", "rounds", "weights")
_KINDS: Final = {
    **dict.fromkeys(("labelled", "identified"), "b"),
    **dict.fromkeys(("labels", "identifiers"), "fiuU"),
    "owners": "U",
    "rounds": "iu",
    "weights": "fiu",
    **dict.fromkeys(_BOUNDS, "fiu"),
}
"""Types of arrays, as letters of NumPy's kinds."""


@dataclass(frozen=True, eq=False)
class DeliveredTables:
    """Delivered points, and the tables used with them.

    Attributes:
        path: The consumer's ``delivered.npz``.
        arrays: Its arrays (`read_delivered`).
        session: The given session file; None: none was given.
        public: The session's ``gamma``, ``lower`` and ``upper``, the last two () or (columns,).
        columns: How tables are read.
        changed: What was clipped or dropped in the tables read, by their files.
        amounts: Whether labels are amounts, by the session's ``[labels]``; None: unknown.
    """

    path: Path
    arrays: dict[str, Any]
    session: Path | None
    public: dict[str, npt.NDArray[Any]]
    columns: DataColumns
    amounts: bool | None = None
    file: SessionFile | None = None
    changed: dict[Path, Changes] = field(default_factory=dict)

    def privacy(self) -> tuple[PrivacyStatement, ...]:
        """The session's guarantees, by the consumer's transcript, or else by its file, if there is one."""
        session = _recorded(self.path.parent / f"{CONSUMER}.transcript")
        if session is None and self.file is not None:
            with suppress(HushbidError):  # a file that says only how tables are read
                session = open_session(self.file)
        return () if session is None else session.privacy()

    @classmethod
    def read(
        cls,
        delivered: Path | str,
        session: Path | str | None,
        columns: Columns | DataColumns,
        outside: Outside | None = None,
    ) -> Self:
        """Read a delivery, and the file of its session if one is named.

        Args:
            columns: Names of feature columns and of the label column; or how a party reads its tables.
            outside: Treatment of table rows that do not fit; None: they are refused.
            session: A session file, a cluster file or an invitation. Its ``[[columns]]``, if any, determine
                how tables are read, and its ``[labels]``, if any, whether labels are amounts or classes.

        Raises:
            ConfigError: The session's file cannot be used; or γ and the bounds are missing.
            DataError: The delivery cannot be used, or a cluster file's dataset.
        """
        path, named = Path(delivered), None if session is None else Path(session)
        arrays = read_delivered(path)
        file = None if named is None else _session_of(named)
        chosen = columns
        if not isinstance(chosen, DataColumns):
            features, label = chosen
            chosen = DataColumns(split_names(features), label, None, outside=outside or "refuse")
        public = _public_of(path, arrays, named, file)
        if file is not None:
            chosen = file.reading(chosen)
        else:
            chosen = replace(chosen, allowed=Allowed(public["lower"].tolist(), public["upper"].tolist()))
        amounts = None if file is None else file.labels_are_amounts
        return cls(path, arrays, named, public, chosen, amounts, file)

    @property
    def points(self) -> Floats:
        """The points scaled to [0, 1], shape (n, columns)."""
        return self._within(self.arrays["features"])

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Which points have a label, if any has one."""
        every = np.ones(len(self.arrays["features"]), dtype=np.bool_)
        held: npt.NDArray[np.bool_] = self.arrays.get("labelled", every)
        return held

    @property
    def known(self) -> list[int | float | str | None]:
        """The label of each point; None where it has none."""
        if "labels" not in self.arrays:
            return [None] * len(self.points)
        values = self.arrays["labels"].tolist()
        return [value if has else None for value, has in zip(values, self.labelled, strict=True)]

    @property
    def bounds(self) -> Floats:
        """Lower and upper bounds of every column, shape (2, columns)."""
        columns = self.arrays["features"].shape[1]
        return np.stack([np.broadcast_to(self.public[name], (columns,)) for name in ("lower", "upper")])

    def gamma(self, given: float | None) -> float:
        """γ: the given one, or the session's.

        Raises:
            ConfigError: It is not positive.
        """
        gamma = float(self.public["gamma"] if given is None else given)
        if not within(ranges.Gamma, gamma):
            raise ConfigError(f"γ is {gamma}.", advice="Give a positive number.")
        return gamma

    def table(self, path: Path | str, *, label_gaps: bool = False) -> tuple[Dataset, Floats]:
        """A table in any format that parties read, and its features scaled to [0, 1], shape (n, columns).

        Args:
            label_gaps: Whether rows may lack a label.

        Raises:
            DataError: It cannot be read, has other columns than the delivered points, or a value is missing
                or out of bounds.
        """
        with gaps_told(self.session):
            dataset = load_dataset(Path(path), self.columns.with_gaps() if label_gaps else self.columns)
        if dataset.changes is not None:
            self.changed[Path(path)] = dataset.changes
        lower, upper = self.bounds
        columns = len(lower)
        if dataset.features.shape[1] != columns:
            raise DataError(
                f"{dataset.name} has {dataset.columns_found} where the delivered points have {columns}.",
                advice=f"Name the {columns} columns of the session with `--features a,b,c`, and a label with "
                "`--label`; or, if the session has `[[columns]]`, its file with `--session`.",
            )
        check_dataset(dataset, columns=columns, lower=tuple(lower), upper=tuple(upper))
        return dataset, self._within(dataset.features)

    @property
    def outside(self) -> dict[str, Changes]:
        """Changes to the tables read, by their files' names, as in results.

        A file with the same name as an earlier one is listed by its whole path.
        """
        found: dict[str, Changes] = {}
        for path, changes in self.changed.items():
            found[str(path) if path.name in found else path.name] = changes
        return found

    def _within(self, features: npt.NDArray[Any]) -> Floats:
        lower, upper = self.public["lower"], self.public["upper"]
        return np.asarray((features - lower) / (upper - lower), dtype=np.float64)


def _recorded(transcript: Path) -> Session | None:
    """The session of a transcript; None if there is none, or it cannot be read."""
    if not transcript.is_file():
        return None
    try:
        with TranscriptReader(transcript) as reader:
            first = next(reader, None)
            return None if first is None else opened_session(transcript, reader.header, first)
    except HushbidError:
        return None


def _session_of(path: Path) -> SessionFile:
    """The session file, or that of a cluster file or of an invitation."""
    kind = kind_of(read_toml(path))
    if kind == "invitation":
        return read_invitation(path).configuration
    if kind == "session":
        return load_toml(SessionFile, path)
    from hushbid.cluster.file import open_cluster  # which few sessions need

    cluster = open_cluster(path)
    roster = RosterSection(owners=dict.fromkeys(cluster.owners, ""))
    return cluster.session_file(roster, NetworkSection(address="tcp://127.0.0.1:*", insecure=True))


@contextmanager
def gaps_told(session: Path | None) -> Iterator[None]:
    """Add to an error about a gap in a table how columns can fill it, if no session file was named."""
    try:
        yield
    except DataError as error:
        if session is None and error.advice == GAP_ADVICE:
            error.advice = (
                f"{GAP_ADVICE[:-1]}; or name a session or cluster file with --session, if its [[columns]] "
                "say by `missing` what a gap stands for."
            )
        raise


def read_delivered(delivered: Path) -> dict[str, Any]:
    """The arrays of a ``delivered.npz`` with at least one point (`hushbid.consumer.store.PurchaseFile`).

    Raises:
        DataError: It cannot be read, is not a delivery, or has no points.
    """
    what = DataError(
        f"{delivered} is not a file of delivered points, or is damaged.",
        advice="Name the `delivered.npz` of the consumer's state directory.",
    )
    if not os.path.exists(delivered):
        raise DataError(f"{delivered} is not there.", advice=what.advice)
    if not os.path.isfile(delivered):  # opening a pipe would block
        raise what
    try:
        with np.load(delivered, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except MemoryError:
        raise DataError(
            f"{delivered} does not fit in memory, or is damaged.",
            advice="Give the process more memory, or save the points again.",
        ) from None
    except (*UNREADABLE, OSError, TypeError, AttributeError):
        raise what from None
    features = arrays.get("features")
    if features is None or features.ndim != 2 or not _agree(arrays, *features.shape):
        raise what
    Dataset.from_arrays(delivered.name, features)
    if not len(features):
        raise DataError(f"{delivered.name} has no points.", advice="Name a file with points.")
    return arrays


def _agree(arrays: dict[str, Any], count: int, columns: int) -> bool:
    """Whether all arrays are of one delivery, in shape and in type."""
    of_points = [arrays[name].shape == (count,) for name in _OF_POINTS if name in arrays]
    masked = [mask in arrays for values, mask, _ in MASKED if values in arrays]
    # Numbers in place of a mask would select points by position.
    kinds = [arrays[name].dtype.kind in allowed for name, allowed in _KINDS.items() if name in arrays]
    bounds = [arrays[name].shape in ((), (columns,)) for name in ("lower", "upper") if name in arrays]
    width = arrays["gamma"].shape == () if "gamma" in arrays else True
    return all([*of_points, *masked, *kinds, *bounds, width]) and _can_hold(arrays)


def _can_hold(arrays: dict[str, Any]) -> bool:
    """Whether no weight is negative, γ is positive and lower bounds are below upper ones; all are finite."""
    if not all(np.isfinite(arrays[name]).all() for name in ("weights", *_BOUNDS) if name in arrays):
        return False
    weights = "weights" not in arrays or bool((arrays["weights"] >= 0).all())
    positive = "gamma" not in arrays or bool(arrays["gamma"] > 0)
    both = "lower" in arrays and "upper" in arrays
    return weights and positive and (not both or bool(np.all(arrays["lower"] < arrays["upper"])))


def _public_of(
    delivered: Path, arrays: dict[str, Any], session: Path | None, file: SessionFile | None
) -> dict[str, npt.NDArray[Any]]:
    """γ and bounds by the session file, or else by the delivery; the two must agree."""
    there = all(name in arrays for name in _BOUNDS)
    if file is not None:
        features = file.features
        public = {name: np.asarray(getattr(features, name), dtype=np.float64) for name in _BOUNDS}
        if there and not all(_same(public[name], arrays[name]) for name in _BOUNDS):
            raise ConfigError(
                f"{session} has another γ or other bounds than the session of {delivered}.",
                advice="Leave --session out: the file has them. Use --gamma for another γ.",
            )
        return public
    if not there:
        raise ConfigError(
            f"{delivered} does not state its session's bounds and γ.",
            advice="Name the session file (`--session`).",
        )
    return {name: np.asarray(arrays[name], dtype=np.float64) for name in _BOUNDS}


def _same(stated: npt.NDArray[Any], kept: npt.NDArray[Any]) -> bool:
    """Whether two bounds are equal: one number for all columns equals as many equal ones."""
    if stated.ndim and kept.ndim:
        return np.array_equal(stated, kept)
    return bool(np.all(stated == kept))


def is_same(place: Path, other: Path | None) -> bool:
    """Whether an output file is also an input file."""
    return other is not None and os.path.exists(place) and os.path.exists(other) and place.samefile(other)


@contextmanager
def writing(
    path: Path, *, what: str = "", advice: str = "Make room, or name another place."
) -> Iterator[BinaryIO]:
    """A file readable by its owner only; it replaces an earlier one as a whole when the block ends.

    Raises:
        DataError: It cannot be written.
    """
    try:
        with in_place_of(path) as stream:
            yield stream
    except OSError as error:
        said = f"{path}: {what}" if what else f"{path}"
        raise DataError(f"{said} cannot be written: {error.strerror}.", advice=advice) from None
