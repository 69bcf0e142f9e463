"""A party's data: readable, as the session wants them, and with privacy left to spend.

Nothing here says how many rows there are: that is what one record more or less would change. One line follows
from the rows, `seed_set`: the consumer's own figure, which says so.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final, cast

from consumer.machine import ConsumerMachine
from consumer.party import check_disjoint
from consumer.process import kept_target
from consumer.seed_distance import seed_distance
from hushbid.preflight.subject import NotChecked, Subject, Warned
from owner.machine import OwnerMachine
from protocol.config.party import ConsumerFile, OwnerFile
from protocol.data import check_dataset
from protocol.errors import ConfigError, HushbidError
from protocol.machine import Charge
from protocol.runtime.cap import Cap
from protocol.runtime.dataset_budget import DatasetBudget, dataset_budget
from protocol.runtime.party import has_begun, transcript_path
from protocol.sealing import content_bytes

__all__ = ["boxes", "budget", "data", "seed_set"]

MOST_KERNEL_VALUES: Final = 10**9
"""Kernel values that are worked out for one line: some ten seconds."""

_OWN: Final = ". This follows from the validation set: keep it to yourself"
_FAR: Final = (
    "The first round is led by it, and releases are clipped about it, so that noise does more harm. Take a "
    "seed set that is more like what is wanted, of related data of your own, or see whether a drawn one "
    "(`seed_points`) lies nearer. A `session.seed_weight` of 0.1 or less limits the harm; the session has "
    "{weight:g}."
)


_DRAWN: Final = (
    "A drawn seed set is mostly far from real data, so that clipping fits badly and noise does more harm "
    "(docs/configuration.md has figures). Name a file of related data (`seed_set`) if there are any that lie "
    "nearer."
)


def data(subject: Subject) -> str:
    """Whether every file can be read, has the right columns, and holds nothing out of bounds."""
    features = subject.session.file.features
    for dataset in subject.datasets.values():
        check_dataset(dataset, columns=features.columns, lower=features.lower, upper=features.upper)
    if subject.role == "consumer":
        validation, seed_set, *_ = subject.datasets.values()
        check_disjoint(validation, seed_set, column_values=subject.session.file.session.column_values)
    paths = ", ".join(str(path) for path in subject.datasets)
    return f"{paths}: {features.columns} feature columns, all within the session's bounds"


def seed_set(subject: Subject) -> str | NotChecked | Warned:
    """How far the seed set lies from D_v, beside what chance gives: a function of D_v."""
    validation, seeds, *_ = (dataset.features for dataset in subject.datasets.values())
    if len(validation) * (len(validation) + len(seeds)) > MOST_KERNEL_VALUES:
        return NotChecked("the sets are large, and their distance takes long: the session's result has it")
    space = subject.session.space
    found = seed_distance(space.scale(validation), space.scale(seeds), space.gamma)
    if subject.drawn:
        return Warned(f"drawn within the bounds: {found.sentence()}{_OWN}", _DRAWN)
    if not found.far:
        return f"{found.sentence()}{_OWN}"
    weight = subject.session.file.seed_weight
    return Warned(f"far from the validation set: {found.sentence()}{_OWN}", _FAR.format(weight=weight))


def boxes(subject: Subject) -> str | NotChecked:
    """Whether a point with its label fits the session's boxes."""
    if not subject.session.rule.sealed:
        return NotChecked(f"the rule {subject.session.rule.name} seals nothing")
    [dataset] = subject.datasets.values()
    table = dataset.features
    subject.session.check_box(
        content_bytes(table.shape[1], table.dtype, dataset.attribute_length), dataset.name
    )
    return f"a point with its label fits into the {subject.session.box_bytes} bytes of a box"


def budget(subject: Subject) -> str | NotChecked:
    """Whether the session fits into what is left of the budget, by the ledger."""
    try:
        _ = subject.datasets  # a ledger is that of its rows
    except HushbidError:
        return NotChecked("only once the data can be read")
    file = cast(OwnerFile | ConsumerFile, subject.file)
    path = file.ledger or subject.data_files[0].with_name(f"{subject.data_files[0].name}.ledger")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{path}: the ledger of the data cannot be kept there.",
            advice="Name one in a directory that is there and that this user can write to.",
        )
    if path.exists():
        cap = _budget(subject, file, path).check(resumed=_resumed(subject), record=False)
    else:
        cap = _check_without_a_ledger(subject, file, path)
    if cap is None:
        return "no budget is set: every session is charged to the ledger, and none refused"
    return f"the session fits into what is left of {cap}"


def _check_without_a_ledger(subject: Subject, file: OwnerFile | ConsumerFile, path: Path) -> Cap | None:
    """Check against an empty ledger, in a place of its own: that of the data begins when it is charged."""
    with tempfile.TemporaryDirectory() as place:
        empty = Path(place) / "ledger"
        try:
            return _budget(subject, file, empty).check(record=False)
        except HushbidError as error:
            raise type(error)(error.what.replace(str(empty), str(path)), advice=error.advice) from None


def _budget(subject: Subject, file: OwnerFile | ConsumerFile, ledger: Path) -> DatasetBudget:
    owner = subject.role == "owner"
    statement = subject.session.privacy()[0 if owner else 1]
    kept = file.model_copy(update={"ledger": ledger})
    dataset, *_ = subject.datasets.values()
    return dataset_budget(
        subject.session,
        kept,
        subject.data_files[0],
        dataset,
        _charge(subject),
        statement,
        paid_as=_paid_as(subject),
    )


def _paid_as(subject: Subject) -> str:
    """What a release that the consumer uses again was charged as; empty if it makes its own."""
    if not isinstance(subject.file, ConsumerFile) or subject.file.target_file is None:
        return ""
    validation, seed_set, *_ = subject.datasets.values()
    return kept_target(subject.session, subject.file.target_file, validation, seed_set).charged_as


def _charge(subject: Subject) -> Charge:
    if subject.role == "owner":
        return OwnerMachine(subject.session, name=subject.name).charge
    return ConsumerMachine(subject.session).charge


def _resumed(subject: Subject) -> bool:
    return has_begun(transcript_path(subject.file.state, subject.name))
