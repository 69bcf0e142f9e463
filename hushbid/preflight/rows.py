"""Oddities in a party's own rows that a session accepts but the party should look at; no count is stated."""

from __future__ import annotations

from collections.abc import Iterator

from hushbid.consumer.result import test_shared, test_shared_said
from hushbid.preflight.subject import Subject, Warned
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.data import Dataset
from hushbid.tables.row_faults import row_faults

__all__ = ["rows"]

_UNLABELLED = "Name the label's column (`--label`), or have the session say that labels are `optional`."


def rows(subject: Subject) -> str | Warned:
    """Whether rows repeat, columns are constant, bounds are far too wide, or labels are missing."""
    found = [*_found(subject)]
    if found:
        return Warned("; ".join(found), "Check the file and the session's columns: this may be intended.")
    file, (dataset, *_) = subject.session.file, subject.datasets.values()
    if file.labels is None and file.session.labels is None:
        if subject.role == "owner" and dataset.labels is None:
            return Warned(
                "rows have no label, and the session does not say whether it requires any: points without "
                "one teach no model",
                _UNLABELLED,
            )
        if subject.role == "consumer" and dataset.labels is not None:
            return Warned(
                "the validation set has labels, and the session requires none of owners: points may come "
                "without",
                'Have session.labels set, for all parties: "any", or "optional" if that is meant.',
            )
    if dataset.labels is None:
        return "rows have no label, and the session requires none"
    return "rows do not repeat, and every column tells some apart"


def _found(subject: Subject) -> Iterator[str]:
    file = subject.session.file
    bounds = file.features.lower, file.features.upper
    looked = _looked_at(subject)
    for dataset in looked:
        of = f"{dataset.name}: " if len(looked) > 1 else ""
        for said in row_faults(dataset, file.rows, bounds):
            yield f"{of}{said}"
    if isinstance(subject.file, ConsumerFile) and len(looked) > 1:
        if subject.file.test == subject.file.validation:
            yield "the test rows are the validation set itself: models judged by them look too good"
        elif said := test_shared_said(test_shared(*looked)):
            yield f"{said[:1].lower()}{said[1:].rstrip('.')}"


def _looked_at(subject: Subject) -> list[Dataset]:
    """An owner's rows; the consumer's D_v, and its test rows if there are any."""
    if not isinstance(subject.file, ConsumerFile):
        return [*subject.datasets.values()]
    test = subject.file.test
    return [subject.validation, *([] if test is None else [subject.datasets[test]])]
