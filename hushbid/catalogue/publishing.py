"""Publishing: a dataset's release is charged to its lifetime ledger, made, signed and written, in order.

A crash in between wastes budget but leaks nothing. Every entry has its own noise and its own charge:
publishing twice costs twice.
"""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.catalogue.entry import KINDS, CatalogueEntry, EntryHead, signed_entry
from hushbid.catalogue.model import Functions
from hushbid.protocol import __version__
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.party import BudgetSection
from hushbid.protocol.crypto.commitment import USUAL_DEPTH, RowTree, root_name, rows_key
from hushbid.protocol.crypto.identity import Identity
from hushbid.protocol.data import DataColumns, Dataset, check_dataset, dataset_digest, load_dataset
from hushbid.protocol.data.dataset import row_chunks
from hushbid.protocol.errors import ConfigError, DataError
from hushbid.protocol.privacy.accounting import Cost, cost_to_record
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.privacy.noise import NoiseSource
from hushbid.protocol.privacy.releases import Neighbours
from hushbid.protocol.runtime.files.durable import write_new
from hushbid.protocol.runtime.ledger.known_ledgers import KnownRows
from hushbid.protocol.runtime.ledger.lifetime_ledger import LifetimeLedger
from hushbid.protocol.runtime.ledger.spending import Spending
from hushbid.race.release import stated_epsilon
from hushbid.text_files import PUBLIC

__all__ = ["Publication", "PublishedEntry", "publish", "within_bounds"]

_LEDGER_DELTA: Final = 1e-5
"""The δ at which to read a ledger if neither a budget nor the release has one."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A request to publish (see `hushbid.catalogue.publish_options`).

    Attributes:
        functions: A feature map with a public seed (`kme`), or hash functions (`race`).
        directory: Directory for the entry's file.
        ledger: The dataset's lifetime ledger.
        budget: The stated maximum of the ledger; None: the recorded one.
    """

    data: Path
    columns: DataColumns
    name: str
    functions: Functions
    neighbours: Neighbours
    epsilon: float
    delta: float
    clip: bool
    points: int
    directory: Path
    ledger: Path
    budget: BudgetSection | None


@dataclass(frozen=True)
class PublishedEntry:
    """The result of publishing. The numbers of rows are the publisher's own: they are in no entry.

    Attributes:
        entry, path: The entry and its file.
        rows, clipped: Rows of the dataset, and how many of them were moved to the bounds.
        spent: Total recorded ε at `spent_delta`, which a budget must allow.
        spent_delta: The budget's δ, or the entry's.
        spent_neighbours: The datasets that it compares.
    """

    entry: CatalogueEntry
    path: Path
    rows: int
    clipped: int
    ledger: Path
    spent: float
    spent_delta: float
    spent_neighbours: str

    def as_json(self) -> dict[str, Any]:
        return {
            "entry": str(self.path),
            **self.entry.described(),
            "rows": self.rows,
            "rows_clipped": self.clipped,
            "ledger": str(self.ledger),
            "spent": self.spent,
            "spent_delta": self.spent_delta,
            "spent_neighbours": self.spent_neighbours,
        }


def publish(what: Publication, key: Identity, noise: NoiseSource) -> PublishedEntry:
    """Publish a dataset's release as a catalogue entry, signed by the owner's key.

    Raises:
        DataError: The data cannot be used, or have rows outside of the bounds and are not to be clipped.
        ConfigError: A parameter that cannot hold, a δ that is no guarantee for so many rows, or a file that
            cannot be written.
        BudgetExceeded: The dataset's budget does not allow it; nothing was charged.
    """
    kind = next(each for each in KINDS if isinstance(what.functions, each.SECTION))
    kind.check_points(what.functions, what.points)
    # Read as in a session with commitments, so that the entry's root stands for the same rows.
    columns = what.columns.of_one_type(what.functions.lower, what.functions.upper)
    whole = load_dataset(what.data, columns)
    if noise.protects:
        check_delta_of(what.delta, len(whole), "the data")
    dataset, clipped = within_bounds(whole, what.functions, clip=what.clip)
    calibration = kind.calibration(what.functions, what.neighbours, what.epsilon, what.delta)
    costs: tuple[Cost, ...] = calibration.costs
    delta = what.delta
    token = os.urandom(8).hex()
    now = datetime.datetime.now(datetime.UTC).date()
    epsilon = stated_epsilon(costs, delta)
    spending = Spending(
        kind="catalogue",
        identifier=f"{what.name}/{kind.model_fields['kind'].default}/{token}",
        date=now,
        neighbours=what.neighbours.value,
        epsilon=epsilon if noise.protects else None,
        delta=delta,
        costs=costs if noise.protects else (),
    )
    head = validated(
        EntryHead,
        {
            "name": what.name,
            "owner": key.public.text,
            "identifier": spending.identifier,
            "date": now.isoformat(),
            "software": __version__,
            "columns": dataset.feature_names,
            "out_of_bounds": "clip" if what.clip else "refuse",
            "neighbours": what.neighbours.value,
            "epsilon": epsilon,
            "delta": delta,
            "costs": tuple(map(cost_to_record, costs)),
            "noise": "secure" if noise.protects else "simulated",
            "root": _root(whole, key),
        },
        where="The entry",
    )
    _make_directory(what.directory)
    with LifetimeLedger.open(
        what.ledger, budget=what.budget, neighbours=what.neighbours.value, rows=KnownRows(whole)
    ) as ledger:
        ledger.warn()
        ledger.charge(spending)
        at = ledger.cap.budget.delta if ledger.cap is not None else delta or _LEDGER_DELTA
        spent, of = ledger.spent(at), ledger.neighbours
    release = kind.of(dataset, what.functions, calibration, noise)
    entry = CatalogueEntry(**head.__dict__, release=release.with_points(what.points))
    path = what.directory / entry.file_name()
    write_new(path, signed_entry(entry, key), PUBLIC)
    return PublishedEntry(entry, path, len(dataset), clipped, what.ledger, spent, at, of)


def _root(dataset: Dataset, key: Identity) -> str | None:
    """The owner's commitment to these data; None for more rows than the usual tree holds."""
    if len(dataset) > 2**USUAL_DEPTH:
        return None
    tree_key = rows_key(key.seed, dataset_digest(dataset))
    tree = RowTree(dataset.features, dataset.each_own_attributes(), key=tree_key, depth=USUAL_DEPTH)
    return root_name(tree.root, USUAL_DEPTH)


def within_bounds(dataset: Dataset, functions: Functions, *, clip: bool) -> tuple[Dataset, int]:
    """The dataset within the public bounds, and the number of clipped rows.

    Raises:
        DataError: It has a wrong number of columns, a non-finite value, or rows out of bounds that are not to
            be clipped; the error counts them.
    """
    columns, lower, upper = functions.columns, functions.lower, functions.upper
    outside = _rows_outside(dataset, lower, upper) if dataset.features.shape[1] == columns else 0
    if outside and not clip:
        raise DataError(
            f"{outside} of the {len(dataset)} rows of {dataset.name} lie outside of the public bounds.",
            advice="Give `--clip` to clip them to the bounds; or choose wider bounds, which are public "
            "and must not follow from the data.",
        )
    if outside:
        check_dataset(
            dataset, columns=columns, lower=-np.inf, upper=np.inf
        )  # Non-finite values are still refused.
        clipped = np.clip(dataset.features.astype(np.float64), lower, upper)
        clipped.flags.writeable = False
        dataset = replace(dataset, features=clipped)
    check_dataset(dataset, columns=columns, lower=lower, upper=upper)
    return dataset, outside


def _rows_outside(dataset: Dataset, lower: npt.ArrayLike, upper: npt.ArrayLike) -> int:
    """Rows with a finite value out of bounds; compared as in `check_dataset`."""
    features = dataset.features
    dtype = features.dtype if features.dtype.kind == "f" else np.dtype(np.float64)
    low, high = np.asarray(lower, dtype=dtype), np.asarray(upper, dtype=dtype)

    def outside(rows: npt.NDArray[Any]) -> int:
        return int((((rows < low) | (rows > high)) & np.isfinite(rows)).any(axis=1).sum())

    return sum(outside(features[start:stop]) for start, stop in row_chunks(features))


def _make_directory(directory: Path) -> None:
    """Create the directory if needed, before budget is spent on what cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        writable = os.access(directory, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        raise ConfigError(
            f"{directory}: this user cannot create the directory or write entries to it.",
            advice="Name another with `--output`. Nothing was charged.",
        )
