"""What `hushbid weigh` does: read delivered points, weigh them, and write them with their weights."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from consumer.appraisal import Judge, Judgement
from consumer.balance import Group, balanced_groups
from consumer.downstream import Labels, check_model
from consumer.matching import check_ridge
from consumer.store import write_arrays
from protocol.config.loading import load_toml
from protocol.config.party import RIDGE
from protocol.config.session import SessionFile
from protocol.data import DataColumns, Dataset, check_dataset, load_dataset
from protocol.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hushbid.tables.frames import ArrowTable

__all__ = ["read_delivered", "weigh"]

_ENDINGS: Final = (".npz", ".csv", ".parquet")
_BOUNDS: Final = ("gamma", "lower", "upper")
_MASKED: Final = (("labels", "labelled", "label"), ("identifiers", "identified", "identifier"))
"""Array of values, array of which of them count, and a table's column of both."""
_OF_POINTS: Final = ("labels", "labelled", "identifiers", "identified", "owners", "rounds", "weights")


def weigh(
    delivered: Path,
    validation: Path,
    *,
    columns: tuple[str | None, str | None] = (None, None),
    test: Path | None = None,
    ridge: float | None = None,
    gamma: float | None = None,
    session: Path | None = None,
    model: str = "logistic",
    seed: int = 0,
    balance: str | None = None,
    output: Path | None = None,
) -> dict[str, Any]:
    """Weigh delivered points.

    Args:
        delivered: The consumer's ``delivered.npz``.
        validation: D_v, in any format that parties read.
        columns: Feature columns (as in ``a,b,c``) and the label's, of `validation` and `test`.
        test: Held-out points, or None.
        ridge: λ; None: `RIDGE`.
        gamma: γ; None: the session's.
        session: The session file, by whose ``[[columns]]``, if any, tables are read; None: it has none, and
            `delivered` has its γ and bounds.
        model: One of `consumer.downstream.MODELS`.
        seed: Seed of the model.
        balance: One of `consumer.balance.BALANCES`; None: label shares are whatever fits best.
        output: Where to write; None: to `delivered`.

    Returns:
        The judgement (`Judgement.as_json`), with ``points``, ``gamma``, ``balance`` and ``output``.

    Raises:
        ConfigError: An option that cannot hold; or γ and the bounds are nowhere.
        DataError: A file that cannot be read or written, or points that cannot be weighed or balanced.
    """
    ridge = RIDGE if ridge is None else ridge
    check_ridge(ridge)
    check_model(model, trained=False)  # whether there are labels to judge by, is seen later
    arrays = read_delivered(delivered)
    place = output or delivered
    if any(_is_same(place, other) for other in (validation, test)):
        raise ConfigError(f"{place} would be written over.", advice="Name another file with --output.")
    if place.suffix not in _ENDINGS:
        raise ConfigError(
            f"{place}: nothing is written to files of that name.",
            advice=f"Name one that ends with {', '.join(_ENDINGS)}.",
        )
    file = None if session is None else load_toml(SessionFile, session)
    public = _public(delivered, arrays, session, file)
    width = float(public["gamma"] if gamma is None else gamma)
    if not (np.isfinite(width) and width > 0.0):
        raise ConfigError(f"γ is {width}.", advice="Give a positive number.")
    named, label = columns
    chosen = DataColumns(None if named is None else tuple(named.split(",")), label, None)
    if file is not None:
        chosen = file.reading(chosen)
    # Each was judged by its own number type when it was delivered, and may be at a bound by that.
    points = _in_bounds(arrays["features"], public)
    resembled = load_dataset(validation, chosen)
    wanted = _scaled(resembled, public, arrays)
    judged = None
    if test is not None:
        held_out = load_dataset(test, chosen)
        judged = (_scaled(held_out, public, arrays), held_out.labels)
    judge = Judge(wanted, width, test=judged, model=model, seed=seed, ridge=ridge)
    labels = _labels(arrays, len(points))
    plain = judge.quality(points, labels)
    groups: tuple[Group, ...] = ()
    if balance is not None:
        known = None if resembled.labels is None else resembled.labels.tolist()
        groups = balanced_groups(labels, balance, known)
    judgement, matching = judge.weighed(plain, points, labels, groups=groups)
    if matching is None:
        raise DataError(f"{delivered}: {judgement.why}", advice="Weigh a part of the points.")
    made = {"weights": matching.weights, "ridge": np.float64(ridge), "weights_gamma": np.float64(width)}
    return _written(place, arrays | public | made, judgement) | {"gamma": width, "balance": balance}


def _is_same(place: Path, other: Path | None) -> bool:
    return other is not None and place.exists() and other.exists() and place.samefile(other)


def _written(place: Path, arrays: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
    if place.suffix == ".npz":
        try:
            write_arrays(place, arrays)
        except OSError as error:
            raise DataError(
                f"{place}: the points cannot be written: {error.strerror}.",
                advice="Name a file in a directory that this user can write to.",
            ) from None
    else:
        from hushbid.tables.frames import write_table  # of use here alone, and half of what this verb imports

        write_table(_table(arrays), place)
    older = place.with_suffix(".parquet")
    return {
        "points": len(arrays["features"]),
        **judgement.as_json(),
        "output": str(place.resolve()),
        "older": str(older) if older != place and older.exists() else None,
    }


def read_delivered(delivered: Path) -> dict[str, Any]:
    """The arrays of a consumer's ``delivered.npz`` (`consumer.store.PurchaseFile`), at least one point's.

    Raises:
        DataError: It cannot be read, is not a delivery, or has no points.
    """
    what = DataError(
        f"{delivered} is no file of delivered points, or a damaged one.",
        advice="Name the `delivered.npz` of the consumer's state directory.",
    )
    try:
        with np.load(delivered, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise DataError(f"{delivered} is not there.", advice=what.advice) from None
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        raise what from None
    features = arrays.get("features")
    if features is None or features.ndim != 2 or not _agree(arrays, *features.shape):
        raise what
    Dataset.from_arrays(delivered.name, features)
    if not len(features):
        raise DataError(f"{delivered.name} has no points to weigh.", advice="Name a file that has some.")
    return arrays


def _agree(arrays: dict[str, Any], count: int, columns: int) -> bool:
    """Whether what goes with the points is of as many points, and bounds are of their columns."""
    of_points = [arrays[name].shape == (count,) for name in _OF_POINTS if name in arrays]
    masked = [mask in arrays for values, mask, _ in _MASKED if values in arrays]
    numbers = [arrays[name].dtype.kind in "fiu" for name in _BOUNDS if name in arrays]
    bounds = [arrays[name].shape in ((), (columns,)) for name in ("lower", "upper") if name in arrays]
    width = arrays["gamma"].shape == () if "gamma" in arrays else True
    return all([*of_points, *masked, *numbers, *bounds, width])


def _public(
    delivered: Path, arrays: dict[str, Any], session: Path | None, file: SessionFile | None
) -> dict[str, npt.NDArray[Any]]:
    there = all(name in arrays for name in _BOUNDS)
    if file is not None:
        features = file.features
        public = {name: np.asarray(getattr(features, name), dtype=np.float64) for name in _BOUNDS}
        if there and not all(np.array_equal(public[name], arrays[name]) for name in _BOUNDS):
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
    return {name: arrays[name] for name in _BOUNDS}


def _scaled(
    dataset: Dataset, public: dict[str, npt.NDArray[Any]], arrays: dict[str, Any]
) -> npt.NDArray[np.float64]:
    columns = arrays["features"].shape[1]
    if dataset.features.shape[1] != columns:
        raise DataError(
            f"{dataset.name} has {dataset.columns_found} where the delivered points have {columns}.",
            advice=f"Name the {columns} columns of the session with `--features a,b,c`, and a label with "
            "`--label`; or, if the session has `[[columns]]`, its file with `--session`.",
        )
    lower, upper = (np.broadcast_to(public[name], (columns,)) for name in ("lower", "upper"))
    check_dataset(dataset, columns=columns, lower=tuple(lower), upper=tuple(upper))
    return _in_bounds(dataset.features, public)


def _in_bounds(features: npt.NDArray[Any], public: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Columns scaled by the bounds to [0, 1]."""
    scaled = (features - public["lower"]) / (public["upper"] - public["lower"])
    return np.asarray(scaled, dtype=np.float64)


def _labels(arrays: dict[str, Any], count: int) -> Labels:
    if "labels" not in arrays:
        return [None] * count
    held = arrays.get("labelled", np.ones(count, dtype=np.bool_))
    return [value if is_one else None for value, is_one in zip(arrays["labels"].tolist(), held, strict=True)]


def _table(arrays: dict[str, Any]) -> ArrowTable:
    """One row per point; no value where a point has no label or identifier."""
    import pyarrow as pa

    features = arrays["features"]
    columns: dict[str, Any] = {f"x{number}": features[:, number] for number in range(features.shape[1])}
    for name, mask, column in _MASKED:
        if name in arrays:
            columns[column] = pa.array(arrays[name], mask=~arrays[mask])
    for name, column in (("owners", "owner"), ("rounds", "round"), ("weights", "weight")):
        if name in arrays:
            columns[column] = pa.array(arrays[name])
    return pa.table(columns)
