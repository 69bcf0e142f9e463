"""A party's data: readable, as the session wants them, and with privacy left to spend.

Nothing here says how many rows there are: that is what one record more or less would change. One line follows
from the rows, `seed_set`: the consumer's own figure, which says so.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final, cast

import numpy as np

from consumer.machine import ConsumerMachine
from consumer.party import check_disjoint
from consumer.process import kept_target
from consumer.seed_distance import seed_distance
from hushbid.preflight.subject import NotChecked, Subject, Warned
from hushbid.rehearsal import ALIKE, FEWEST, MOST, UNLIKE, mean_kernel, rehearse
from owner.machine import OwnerMachine
from protocol.accounting.validation import check_delta_of
from protocol.config.party import ConsumerFile, OwnerFile
from protocol.data import check_dataset, check_labels
from protocol.errors import ConfigError, HushbidError
from protocol.machine import Charge
from protocol.runtime.cap import Cap
from protocol.runtime.dataset_budget import DatasetBudget, dataset_budget
from protocol.runtime.party import has_begun, transcript_path
from protocol.sealing import content_bytes
from protocol.session import CONSUMERS_DATA, OWNERS_DATA

__all__ = ["boxes", "budget", "data", "kernel", "rehearsal", "seed_set"]

MOST_KERNEL_VALUES: Final = 10**9
"""Kernel values that are worked out for one line: some ten seconds."""

_OWN: Final = ". This follows from the validation set: keep it to yourself"
_FAR: Final = (
    "The first round is led by it, and releases are clipped about it, so that noise does more harm. Take a "
    "seed set that is more like what is wanted, of related data of your own, or see whether a drawn one "
    "(`seed_points`) lies nearer. A `session.seed_weight` of 0.1 or less limits the harm; the session has "
    "{weight:g}."
)


_ALIKE: Final = (
    "Whatever is bought will seem to fit. Take bounds (`features.lower`, `features.upper`) that are about as "
    "wide as the data are, or a larger `features.gamma`, which is {gamma:g}: one over the median squared "
    "distance of two rows, on columns scaled to [0, 1], is a good start."
)
_UNLIKE: Final = (
    "Noise is all that is compared. Take a smaller `features.gamma`: one over the median squared distance of "
    "two rows, on columns scaled to [0, 1], is a good start."
)
_REHEARSED: Final = {
    "kernel": "These figures say nothing: put right what `kernel` says first.",
    "uncertain": (
        "It depends on what owners have. Where they have much of what is wanted, buy at random and weigh "
        "(`hushbid weigh`); more rows of validation data, or a larger epsilon, make noise less."
    ),
    "hopeless": (
        "The noise chooses. Take more rows of validation data or a larger epsilon, or buy at random and "
        "weigh (`hushbid weigh`), which was better with all of these owners."
    ),
}
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
    kind = subject.session.file.session.labels
    if subject.role == "owner":
        [dataset] = subject.datasets.values()
        check_labels(dataset, kind)
    elif isinstance(subject.file, ConsumerFile):
        test = None if subject.file.test is None else subject.datasets[subject.file.test]
        if test is not None and test.labels is not None:
            check_labels(test, kind)
        values = subject.session.file.session.column_values
        check_disjoint(subject.validation, subject.seed_set, column_values=values)
    whose = OWNERS_DATA if subject.role == "owner" else CONSUMERS_DATA
    if all(unprotected != whose for unprotected, _ in subject.session.objections()):
        protected, *_ = subject.datasets.values()
        check_delta_of(subject.session.file.session.delta, len(protected), "the data")
    paths = ", ".join(str(path) for path in subject.datasets)
    return f"{paths}: {features.columns} feature columns, all within the session's bounds"


def seed_set(subject: Subject) -> str | NotChecked | Warned:
    """How far the seed set lies from D_v, beside what chance gives: a function of D_v."""
    validation, seeds = subject.validation.features, subject.seed_set.features
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


def kernel(subject: Subject) -> str | NotChecked | Warned:
    """Whether γ and the bounds let rows of D_v differ, and not too much: a function of D_v."""
    validation, *_ = (dataset.features for dataset in subject.datasets.values())
    m = len(validation)
    if not 1 < m <= MOST:
        return NotChecked(f"it is for 2 to {MOST:,} rows")
    mean = mean_kernel(subject.session, validation)
    said = f"the mean kernel value of two rows of the validation set is {mean:.3g}"
    if mean > ALIKE:
        gamma = subject.session.space.gamma
        return Warned(f"all rows are alike to the session: {said}{_OWN}", _ALIKE.format(gamma=gamma))
    if mean < UNLIKE:
        return Warned(f"no two rows are alike to the session: {said}{_OWN}", _UNLIKE)
    return f"{said}{_OWN}"


def rehearsal(subject: Subject) -> str | NotChecked | Warned:
    """What the session would buy of owners made of D_v: a function of D_v."""
    rule, points = subject.session.rule, subject.session.file.session.points
    validation, seeds, *_ = (dataset.features for dataset in subject.datasets.values())
    if not subject.rehearse:
        return NotChecked("it was to be left out")
    if not rule.exact:
        return NotChecked(f"the rule {rule.name} buys other points than are rehearsed")
    if len(validation) < FEWEST or max(points, len(validation)) > MOST:
        return NotChecked(f"it is for {FEWEST} to {MOST:,} rows, and up to {MOST:,} points")
    found = rehearse(subject.session, validation.astype(np.float64), seeds.astype(np.float64))
    if found.verdict == "good":
        return f"{found.sentence()}{_OWN}"
    alike = not UNLIKE <= found.kernel <= ALIKE
    fix = _REHEARSED["kernel" if alike else found.verdict]
    return Warned(f"{found.verdict}: {found.sentence()}{_OWN}", fix)


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


def budget(subject: Subject, *, warn: bool = True) -> str | NotChecked:
    """Whether the session fits into what is left of the budget, by the ledger.

    Args:
        subject: The party.
        warn: Whether to log what does not stand against it.
    """
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
        cap = _budget(subject, file, path).check(resumed=_resumed(subject), record=False, warn=warn)
    else:
        cap = _check_without_a_ledger(subject, file, path, warn=warn)
    if cap is None:
        return "no budget is set: every session is charged to the ledger, and none refused"
    return f"the session fits into what is left of {cap}"


def _check_without_a_ledger(
    subject: Subject, file: OwnerFile | ConsumerFile, path: Path, *, warn: bool
) -> Cap | None:
    """Check against an empty ledger, in a place of its own: that of the data begins when it is charged."""
    with tempfile.TemporaryDirectory() as place:
        empty = Path(place) / "ledger"
        try:
            return _budget(subject, file, empty).check(record=False, warn=warn)
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
    target = subject.file.target_file
    return kept_target(subject.session, target, subject.validation, subject.seed_set).charged_as


def _charge(subject: Subject) -> Charge:
    if subject.role == "owner":
        return OwnerMachine(subject.session, name=subject.name).charge
    return ConsumerMachine(subject.session).charge


def _resumed(subject: Subject) -> bool:
    return has_begun(transcript_path(subject.file.state, subject.name))
