"""An owner whose labels are of another kind than the session declares does not enrol."""

from __future__ import annotations

import numpy as np
import pytest

from hushbid.owner.party import owner_party
from hushbid.protocol.config.session import SessionSection
from hushbid.protocol.data import Dataset, check_labels
from hushbid.protocol.errors import DataError, ExitCode
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.session.session import open_session
from tests.simulation.harness import names, session_file

POINTS = np.full((3, 2), 0.5)
LABELS = {
    "integer": np.array([7351, 7352, 7353]),
    "number": np.array([7351.0, 7352.5, 7353.0]),
    "text": np.array(["7351", "7352", "7353"]),
}
FITS = {("integer", "integer"), ("number", "integer"), ("number", "number"), ("text", "text")}
"""(declared, the owner's)."""


def enrol(declared: str | None, labels: np.ndarray[tuple[int], np.dtype[np.generic]] | None) -> None:
    file = session_file(owners=names(1), points=3)
    section = SessionSection.model_validate({**file.session.model_dump(), "labels": declared})
    session = open_session(file.model_copy(update={"session": section}))
    owner_party(
        session,
        names(1)[0],
        Dataset.from_arrays("north.csv", np.full((3, session.file.features.columns), 0.5), labels),
        identity=None,
        noise=SimulatedNoise(1, "owner"),
        scratch=None,
        memory_limit=2**20,
    )


@pytest.mark.parametrize("own", LABELS)
@pytest.mark.parametrize("declared", LABELS)
def test_labels_are_of_the_kind_that_the_session_declares(declared: str, own: str) -> None:
    if (declared, own) in FITS:
        enrol(declared, LABELS[own])
        return
    with pytest.raises(DataError, match=f'session.labels = "{declared}"') as refusal:
        enrol(declared, LABELS[own])
    assert "north.csv: its labels are " in str(refusal.value)
    assert "735" not in str(refusal.value), "no label is told"
    assert refusal.value.exit_code is ExitCode.USAGE


def test_an_owner_without_labels_is_told_that_the_session_has_them() -> None:
    with pytest.raises(DataError, match=r"north\.csv has no labels where the session requires text"):
        enrol("text", None)


@pytest.mark.parametrize("labels", [None, *LABELS.values()])
def test_without_a_declaration_labels_are_what_they_are(
    labels: np.ndarray[tuple[int], np.dtype[np.generic]] | None,
) -> None:
    enrol(None, labels)


def test_booleans_are_whole_numbers() -> None:
    check_labels(Dataset.from_arrays("a", POINTS, np.array([True, False, True])), "integer")


def test_there_are_no_other_kinds() -> None:
    with pytest.raises(ValueError, match="labels"):
        SessionSection.model_validate({"name": "s", "points": 1, "labels": "colour"})
