"""A party's data: readable, valid for the session, and with privacy budget left.

No message here states the number of rows: one record more or less would change it.
"""

from __future__ import annotations

import os
from typing import Final, cast

from hushbid.consumer.learners import check_model
from hushbid.consumer.machine import ConsumerMachine
from hushbid.consumer.party import check_disjoint, consumer_machine
from hushbid.consumer.process import kept_target
from hushbid.owner.machine import OwnerMachine
from hushbid.preflight.subject import NotChecked, Subject, Warned
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.data import Dataset, check_labels
from hushbid.protocol.data.names import listed
from hushbid.protocol.errors import ConfigError, HushbidError
from hushbid.protocol.privacy.accounting.validation import check_delta_of
from hushbid.protocol.runtime.ledger.dataset_budget import DatasetBudget, dataset_budget, ledger_path
from hushbid.protocol.runtime.party import beginning
from hushbid.protocol.session.boxes import boxed
from hushbid.protocol.session.guarantee import CONSUMERS_DATA, OWNERS_DATA
from hushbid.protocol.session.session import objections

__all__ = ["boxes", "budget", "data"]

_OWN_EYES: Final = (
    "Keep that to yourself: the number of such rows reveals something about them. Check that it is intended."
)
_MANY_LOST: Final = (
    "Half of the rows or more do not fit: ask the session's initiator for columns that allow their values "
    "(`hushbid init … --categories`, `--bounds`). "
)


def data(subject: Subject) -> str | Warned:
    """Whether all files can be read and have the right columns within bounds; also the model."""
    for dataset in subject.datasets.values():
        subject.session.file.check_points(dataset, sold=dataset is not _start_of(subject))
    kind = subject.session.file.session.labels
    if subject.role == "owner":
        [dataset] = subject.datasets.values()
        subject.session.file.check_labels(dataset)
        subject.session.check_rows(len(dataset), dataset.name)
    elif isinstance(subject.file, ConsumerFile):
        test = None if subject.file.test is None else subject.datasets[subject.file.test]
        judging = test is not None and test.labels is not None
        check_model(subject.file.model, trained=judging)
        subject.session.file.check_wanted_labels(subject.validation)
        if test is not None and judging:
            check_labels(test, kind)
        values = subject.session.file.session.column_values
        check_disjoint(subject.validation, subject.seed_set, column_values=values)
    file = subject.session.file
    whose, delta = (
        (OWNERS_DATA, file.owners_delta) if subject.role == "owner" else (CONSUMERS_DATA, file.session.delta)
    )
    if all(unprotected != whose for unprotected, _ in objections(subject.session)):
        protected, *_ = subject.datasets.values()
        assert not isinstance(subject.file, CuratorFile), "it has data"
        check_delta_of(delta, subject.file.public_rows(len(protected)), "the data")
    paths = ", ".join(str(path) for path in subject.datasets)
    said = f"{paths}: {subject.session.space.columns} feature columns, all within the session's bounds"
    first, *_ = subject.datasets.values()
    if file.rows is None and first.feature_names is not None:
        order = listed(first.feature_names)
        said += f", taken in the order {order}: only the numbers can show whether it is the session's"
    notes = [note for dataset in subject.datasets.values() for note in dataset.notes]
    changed = [f"{each.name}: {each.changes.said}" for each in subject.datasets.values() if each.changes]
    said = "; ".join([said, *notes, *changed])
    if not any(each.changed.outside for each in subject.datasets.values()):
        return said
    lost = any(each.changed.dropped - each.changed.over >= len(each) for each in subject.datasets.values())
    return Warned(said, f"{_MANY_LOST if lost else ''}{_OWN_EYES}")


def _start_of(subject: Subject) -> Dataset | None:
    """Check the seed set of a consumer that has one beside D_v: nobody buys it, or matches it."""
    alone = isinstance(subject.file, ConsumerFile) and subject.seed_set is not subject.validation
    return subject.seed_set if alone else None


def boxes(subject: Subject) -> str | NotChecked:
    """Whether a point with its label fits the session's boxes."""
    if not subject.session.rule.sealed:
        return NotChecked(f"the rule {subject.session.rule.name} seals nothing")
    [dataset] = subject.datasets.values()
    _ = boxed(subject.session, dataset)
    return f"a point with its label fits into the {subject.session.box_bytes} bytes of a box"


def budget(subject: Subject, *, warn: bool = True) -> str | NotChecked | Warned:
    """Whether the session fits into the remaining budget, by the ledger; `warn` logs mere warnings."""
    try:
        _ = subject.datasets  # a ledger belongs to its rows
    except HushbidError:
        return NotChecked("only once the data can be read")
    file = cast(OwnerFile | ConsumerFile, subject.file)
    path = ledger_path(file, subject.data_files[0])
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{path}: the ledger of the data cannot be kept there.",
            advice="Name one in an existing directory that this user can write to.",
        )
    kept = _budget(subject, file)
    cap = kept.check(transcript=beginning(subject.transcript), record=False, warn=warn)
    other = kept.elsewhere()
    said = (
        "no budget is set: every session is charged to the ledger, and none is refused"
        if cap is None
        else f"the session fits into what is left of {cap}"
    )
    if other is None:
        return said
    return Warned(
        f"{said}; and the same rows were charged to {other} before, which does not count in {path}",
        "To count both together, name that ledger: `--ledger`, or `ledger` in the party's file.",
    )


def _budget(subject: Subject, file: OwnerFile | ConsumerFile) -> DatasetBudget:
    session, statements = subject.session, subject.session.privacy()
    machine: OwnerMachine | ConsumerMachine
    if subject.role == "owner":
        machine, statement = OwnerMachine(session, name=subject.name), statements[0]
    else:
        machine, statement = consumer_machine(session), statements[1]
    dataset, *_ = subject.datasets.values()
    return dataset_budget(
        session,
        file,
        subject.data_files[0],
        dataset,
        machine.charge,
        statement,
        paid_as=_paid_as(subject),
    )


def _paid_as(subject: Subject) -> str:
    """The charge on record of a release that the consumer reuses; empty if it makes a new one."""
    if not isinstance(subject.file, ConsumerFile) or subject.file.target_file is None:
        return ""
    target = subject.file.target_file
    return kept_target(subject.session, target, subject.validation, subject.seed_set).charged_as
