"""The consumer's own files: the delivered points, and a rehearsal's verdict on the session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hushbid.consumer.columns import column
from hushbid.consumer.events import StorePurchases
from hushbid.consumer.matching import Matching
from hushbid.consumer.verdict import NO_VERDICT, Verdict
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import FeatureSection
from hushbid.protocol.data import read_attributes
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import DataError
from hushbid.protocol.finite import finite
from hushbid.protocol.plain_files import read_plain
from hushbid.protocol.runtime.files.durable import in_place_of
from hushbid.protocol.session.session import Session

__all__ = [
    "DELIVERED_FILE",
    "RESULT_FILE",
    "SETTINGS_FILE",
    "VERDICT_FILE",
    "PurchaseFile",
    "keep_report",
    "keep_result",
    "keep_settings",
    "keep_table",
    "keep_verdict",
    "kept_verdict",
    "purchase_arrays",
    "read_settings",
    "read_verdict",
    "weight_arrays",
    "write_arrays",
]

VERDICT_FILE: Final = "verdict.json"
"""File name, in the consumer's state directory or wherever its transcript is."""

DELIVERED_FILE: Final = "delivered.npz"
"""The delivered points and their weights, beside the consumer's transcript."""
RESULT_FILE: Final = "result.json"
"""The consumer's result, in its state directory, as `--json` prints it, with the session's `identifier`."""
SETTINGS_FILE: Final = "settings.json"
"""The private file that the consumer takes part with, likewise, its paths absolute."""

_LONGEST_SETTINGS: Final = 2**24
_LONGEST_VERDICT: Final = 2**20
"""Most bytes of a verdict file, far more than any verdict has."""
_NAMES: Final = (("labels", "labelled", "label"), ("identifiers", "identified", "identifier"))
"""For each attribute: the array of values, the array of flags saying which are held, and its name."""


class PurchaseFile:
    """Writes the delivered points, without disputed ones, to an ``.npz``, in place of an earlier one.

    The arrays have one entry per point, in order of delivery:

    - ``features`` (n, columns): raw.
    - ``labels`` (n,): int64, uint64, float64 or text, whichever type most owners' labels have (`column`);
      absent if no point has a label.
    - ``labelled`` (n,): bool; False if the point's label is missing, of another type, or too long a text. Its
      entry of ``labels`` is then a meaningless filler.
    - ``identifiers`` and ``identified`` (n,): the same for identifiers.
    - ``owners`` (n,): the seller.
    - ``rounds`` (n,): the round of the choice, from 1.
    - ``weights`` (n,): matching weights with sum 1 (`hushbid.consumer.matching`); absent before the session
      is over, or if there are none. ``ridge``, ``label_weight`` and ``weights_gamma``: λ, the strength of
      labels and γ of the weights.
    - ``training_weights`` (n,): weights beside own rows of weight 1 (`hushbid.consumer.training_weights`);
    absent
      where no labels are to learn from.
    - ``gamma``, ``lower`` and ``upper``: the session's.

    One owner's malformed labels do not affect the others'. Only the file's owner can read it.
    """

    def __init__(self, path: Path, features: FeatureSection) -> None:
        self.path = path
        self._public = {
            "gamma": np.float64(features.gamma),
            "lower": np.asarray(features.lower, dtype=np.float64),
            "upper": np.asarray(features.upper, dtype=np.float64),
        }
        self._arrays: dict[str, Any] = {}
        self.purchases: StorePurchases | None = None
        """The stored points."""

    def store(self, purchases: StorePurchases) -> None:
        """Write the points. A point with garbled attributes has neither a label nor an identifier.

        Raises:
            DataError: The file cannot be written; the points are in the transcript.
        """
        self.purchases = purchases
        self._arrays = purchase_arrays(purchases) | self._public
        self._write()

    def weigh(self, matching: Matching, training: npt.NDArray[np.float64] | None) -> None:
        """Write the stored points with weights, and with training weights if any. Raises as `store` does."""
        self._arrays |= weight_arrays(matching, float(self._public["gamma"]), training)
        self._write()

    def _write(self) -> None:
        try:
            write_arrays(self.path, self._arrays)
        except OSError as error:
            raise DataError(
                f"{self.path}: the delivered points cannot be written: {error.strerror}.",
                advice="They are kept in the transcript. Make room, or name another state directory.",
            ) from None


def weight_arrays(
    matching: Matching, gamma: float, training: npt.NDArray[np.float64] | None
) -> dict[str, Any]:
    """The arrays of a delivery that say what its points weigh (`PurchaseFile`)."""
    made = {
        "weights": matching.weights,
        "ridge": np.float64(matching.ridge),
        "label_weight": np.float64(matching.label_weight),
        "weights_gamma": np.float64(gamma),
    }
    return made if training is None else made | {"training_weights": training}


def keep_table(schema: Schema, delivered: Path, *, label: str) -> Path:
    """Write a ``delivered.npz`` as Parquet beside it, readable by its owner only, and return its path.

    Args:
        schema: The session's columns.
        label: Name of the label column.

    Raises:
        DataError: The file cannot be written.
    """
    # A consumer whose session has no columns starts without pyarrow.
    import pyarrow.parquet as pq  # noqa: PLC0415

    from hushbid.consumer.delivered import delivered_table  # noqa: PLC0415

    path = delivered.with_suffix(".parquet")
    table = delivered_table(schema, delivered, label=label)
    try:
        with in_place_of(path) as stream:
            pq.write_table(table, stream)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror}.",
            advice="Make room; `hushbid schema decode` writes it later.",
        ) from None
    return path


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an ``.npz`` durably, readable by its owner only; it replaces an earlier one as a whole.

    It raises `OSError` if it cannot be written; an earlier one is unchanged.
    """
    with in_place_of(path) as stream:
        np.savez(stream, **arrays)


def keep_verdict(directory: Path, session: Session, verdict: Verdict) -> None:
    """Keep the verdict on a session, readable by its owner only; it replaces an earlier one.

    Args:
        directory: The present or future place of the consumer's transcript; created if needed.

    Raises:
        DataError: It cannot be written.
    """
    values = {"session": session.identifier.hex(), **verdict.as_json()}
    _keep(directory / VERDICT_FILE, values, failed=": what the rehearsal said cannot be kept")


def keep_settings(file: ConsumerFile) -> None:
    """Keep what a consumer takes part with in its state directory, for `hushbid results`.

    Raises:
        DataError: It cannot be written.
    """
    _keep(file.state / SETTINGS_FILE, file.model_dump(mode="json", exclude_none=True))


def read_settings(directory: Path) -> ConsumerFile | None:
    """What the consumer of a state directory took part with; None if it was not kept.

    Raises:
        DataError: The file is damaged, or of another version.
    """
    kept = directory / SETTINGS_FILE
    if not kept.is_file():
        return None
    try:
        return ConsumerFile.model_validate_json(read_plain(kept, _LONGEST_SETTINGS)[0])
    except (OSError, ValueError):
        raise DataError(
            f"{kept} is damaged, or of another version.", advice="Name the private file with --config."
        ) from None


def keep_result(directory: Path, session: Session, result: Mapping[str, object]) -> None:
    """Keep a consumer's result beside its transcript; raises as `keep_settings` does."""
    _keep(directory / RESULT_FILE, {"identifier": session.identifier.hex(), **result})


def keep_report(page: Path) -> None:
    """Name a report in the result that was kept beside it; raises as `keep_settings` does."""
    path = page.with_name(RESULT_FILE)
    _keep(path, {**json.loads(path.read_text(encoding="utf-8")), "report": str(page)})


def _keep(path: Path, values: Mapping[str, object], *, failed: str = " cannot be written") -> None:
    """Write JSON that its owner alone can read, in place of what was there."""
    text = json.dumps(finite(values), indent=2, allow_nan=False).encode()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with in_place_of(path) as stream:
            stream.writelines((text, b"\n"))
    except OSError as error:
        raise DataError(
            f"{path}{failed}: {error.strerror}.",
            advice="Make room, or name another state directory.",
        ) from None


def kept_verdict(directory: Path, session: Session) -> Verdict:
    """The verdict on this session beside the consumer's transcript, or `NO_VERDICT` if there is none."""
    return read_verdict(directory, session.identifier.hex()) or NO_VERDICT


def read_verdict(directory: Path, identifier: str) -> Verdict | None:
    """The verdict for a session identifier in hexadecimal; None if there is no file."""
    try:
        values = json.loads(read_plain(directory / VERDICT_FILE, _LONGEST_VERDICT)[0])
        return Verdict.from_json(values) if values["session"] == identifier else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def purchase_arrays(purchases: StorePurchases) -> dict[str, Any]:
    """The arrays of a delivery that say what was bought of whom and when (`PurchaseFile`)."""
    kept = [
        (entry.owner, entry.chosen_round, entry.candidate)
        for entry in purchases.delivered
        if entry.candidate is not None and not entry.dispute
    ]
    arrays: dict[str, Any] = {
        "features": np.array([candidate.point for _, _, candidate in kept]),
        "owners": np.array([owner for owner, _, _ in kept], dtype=np.str_),
        "rounds": np.array([round_number for _, round_number, _ in kept], dtype=np.int64),
    }
    attributes = [read_attributes(candidate.attributes) for _, _, candidate in kept]
    for values_name, mask_name, attribute in _NAMES:
        values, held = column(
            [getattr(entry, attribute) for entry in attributes], [owner for owner, _, _ in kept]
        )
        arrays[mask_name] = held
        if held.any():
            arrays[values_name] = values
    return arrays
