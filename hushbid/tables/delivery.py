"""A consumer's ``delivered.npz`` as the verbs that follow a session read it, and tables that go with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consumer.downstream import Labels
from protocol.config.invitation import Invitation
from protocol.config.loading import load_toml, read_toml
from protocol.config.session import NetworkSection, RosterSection, SessionFile
from protocol.data import DataColumns, Dataset, check_dataset, load_dataset
from protocol.data.arrays import UNREADABLE
from protocol.data.dataset import GAP_ADVICE
from protocol.errors import ConfigError, DataError
from protocol.runtime.files.signed_files import read_invitation

__all__ = [
    "MASKED",
    "columns_named",
    "gaps_told",
    "in_bounds",
    "is_same",
    "labels_of",
    "public_of",
    "read_delivered",
    "read_table",
    "scaled",
    "session_of",
]

_BOUNDS: Final = ("gamma", "lower", "upper")
MASKED: Final = (("labels", "labelled", "label"), ("identifiers", "identified", "identifier"))
"""For each attribute: the array of values, the array of flags saying which are held, and its table column."""
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


def session_of(session: Path | None) -> SessionFile | None:
    """The session file, if one is named, or that of a cluster file or of an invitation.

    Raises:
        ConfigError: It cannot be read, or an invitation's signature does not hold.
        DataError: A cluster file's dataset cannot be used, which says the columns.
    """
    if session is None:
        return None
    values = read_toml(session)
    if values.get("format") == Invitation.FORMAT:
        return read_invitation(session).configuration
    if "roster" in values or not ("owners" in values or "dataset" in values):
        return load_toml(SessionFile, session)
    from hushbid.cluster.file import open_cluster  # which few sessions need

    cluster = open_cluster(session)
    roster = RosterSection(owners=dict.fromkeys(cluster.owners, ""))
    return cluster.session_file(roster, NetworkSection(address="tcp://127.0.0.1:*", insecure=True))


@contextmanager
def gaps_told(session: Path | None) -> Iterator[None]:
    """Say of a gap in a table how it can be filled by columns, where no session file says them.

    Args:
        session: The session file that was named; None: none was.
    """
    try:
        yield
    except DataError as error:
        if session is None and error.advice == GAP_ADVICE:
            error.advice = (
                f"{GAP_ADVICE[:-1]}; or name a session or cluster file with --session, if its [[columns]] "
                "say by `missing` what a gap stands for."
            )
        raise


def read_table(path: Path, columns: DataColumns, session: Path | None) -> Dataset:
    """A table that goes with a delivery, in any format that parties read.

    Args:
        path: The file.
        columns: How it is read (`columns_named`).
        session: The session file that was named; None: none was.

    Raises:
        DataError: It cannot be used.
    """
    with gaps_told(session):
        return load_dataset(path, columns)


def columns_named(columns: tuple[str | None, str | None], file: SessionFile | None) -> DataColumns:
    """How tables are read: feature columns as in ``a,b,c``, and the label's, by the session's schema."""
    named, label = columns
    chosen = DataColumns(None if named is None else tuple(named.split(",")), label, None)
    return chosen if file is None else file.reading(chosen)


def read_delivered(delivered: Path) -> dict[str, Any]:
    """The arrays of a consumer's ``delivered.npz`` (`consumer.store.PurchaseFile`), at least one point's.

    Raises:
        DataError: It cannot be read, is not a delivery, or has no points.
    """
    what = DataError(
        f"{delivered} is not a file of delivered points, or is damaged.",
        advice="Name the `delivered.npz` of the consumer's state directory.",
    )
    if not delivered.exists():
        raise DataError(f"{delivered} is not there.", advice=what.advice)
    if not delivered.is_file():  # a pipe would be waited for
        raise what
    try:
        with np.load(delivered, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (*UNREADABLE, OSError, TypeError, AttributeError, MemoryError):
        raise what from None
    features = arrays.get("features")
    if features is None or features.ndim != 2 or not _agree(arrays, *features.shape):
        raise what
    Dataset.from_arrays(delivered.name, features)
    if not len(features):
        raise DataError(f"{delivered.name} has no points.", advice="Name a file that has some.")
    return arrays


def _agree(arrays: dict[str, Any], count: int, columns: int) -> bool:
    """Whether all arrays are of one delivery, in shape and in type."""
    of_points = [arrays[name].shape == (count,) for name in _OF_POINTS if name in arrays]
    masked = [mask in arrays for values, mask, _ in MASKED if values in arrays]
    # Numbers in the place of a mask would choose points by their places.
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


def public_of(
    delivered: Path, arrays: dict[str, Any], session: Path | None, file: SessionFile | None
) -> dict[str, npt.NDArray[Any]]:
    """The session's γ and bounds: ``gamma``, ``lower`` and ``upper``, the last two () or (columns,).

    Raises:
        ConfigError: They are nowhere, or the session file has others than the delivery.
    """
    there = all(name in arrays for name in _BOUNDS)
    if file is not None:
        features = file.features
        public = {name: np.asarray(getattr(features, name), dtype=np.float64) for name in _BOUNDS}
        if there and not all(_same(public[name], arrays[name]) for name in _BOUNDS):
            raise ConfigError(
                f"{session} has another γ or other bounds than the session that {delivered} is of.",
                advice="Leave --session out: the file has them. For another γ there is --gamma.",
            )
        return public
    if not there:
        raise ConfigError(
            f"{delivered} does not say which bounds and which γ its session has.",
            advice="Name the session file (`--session`).",
        )
    return {name: np.asarray(arrays[name], dtype=np.float64) for name in _BOUNDS}


def _same(stated: npt.NDArray[Any], kept: npt.NDArray[Any]) -> bool:
    """Whether two bounds are: one number for all columns says what as many equal ones do."""
    if stated.ndim and kept.ndim:
        return np.array_equal(stated, kept)
    return bool(np.all(stated == kept))


def scaled(
    dataset: Dataset, public: dict[str, npt.NDArray[Any]], arrays: dict[str, Any]
) -> npt.NDArray[np.float64]:
    """A table's features scaled to [0, 1], shape (n, columns), once they are seen to be of the session.

    Raises:
        DataError: It has other columns than the delivered points, or a value that is missing or out of
            bounds.
    """
    columns = arrays["features"].shape[1]
    if dataset.features.shape[1] != columns:
        raise DataError(
            f"{dataset.name} has {dataset.columns_found} where the delivered points have {columns}.",
            advice=f"Name the {columns} columns of the session with `--features a,b,c`, and a label with "
            "`--label`; or, if the session has `[[columns]]`, its file with `--session`.",
        )
    lower, upper = (np.broadcast_to(public[name], (columns,)) for name in ("lower", "upper"))
    check_dataset(dataset, columns=columns, lower=tuple(lower), upper=tuple(upper))
    return in_bounds(dataset.features, public)


def in_bounds(features: npt.NDArray[Any], public: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Columns scaled by the bounds to [0, 1]."""
    within = (features - public["lower"]) / (public["upper"] - public["lower"])
    return np.asarray(within, dtype=np.float64)


def labels_of(arrays: dict[str, Any], count: int) -> Labels:
    """The label of each of so many delivered points; None where one has none."""
    if "labels" not in arrays:
        return [None] * count
    held = arrays.get("labelled", np.ones(count, dtype=np.bool_))
    return [value if is_one else None for value, is_one in zip(arrays["labels"].tolist(), held, strict=True)]


def is_same(place: Path, other: Path | None) -> bool:
    """Whether a file that is to be written is one that is read."""
    return other is not None and place.exists() and other.exists() and place.samefile(other)
