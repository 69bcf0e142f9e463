"""D_v and the public seed set, whose sum has no noise, share no undeclared row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from hushbid.consumer.drawn_seed_set import DRAWN
from hushbid.consumer.party import check_disjoint
from hushbid.consumer.process import run_consumer
from hushbid.protocol.config.party import ConsumerFile
from hushbid.protocol.config.session import SessionSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError
from hushbid.protocol.session.guarantee import privacy_lines
from hushbid.protocol.session.session import Session, open_session
from tests.simulation.harness import names, session_file
from tests.unit.protocol.runtime.test_party import session

VALIDATION = Dataset.from_arrays("own.npz", np.arange(60.0).reshape(30, 2))
FEW = Dataset.from_arrays("own.npz", np.array([[i % 6, i // 6] for i in range(30)]))


def seeds(*rows: list[float], kind: type = np.float64) -> Dataset:
    return Dataset.from_arrays("seed.npz", np.array([[100.5, 100.5], *rows], dtype=kind))


def declared(values: int | None) -> Session:
    file = session().file
    section = file.session.model_copy(update={"column_values": values})
    return open_session(file.model_copy(update={"session": section}))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_row_of_the_validation_set_in_the_seed_set_is_refused(kind: type) -> None:
    assert check_disjoint(VALIDATION, seeds(kind=kind), column_values=None) == 0
    with pytest.raises(DataError, match=r"Rows of own\.npz are in seed\.npz too") as caught:
        check_disjoint(VALIDATION, seeds([46.0, 47.0], kind=kind), column_values=None)
    assert "46" not in str(caught.value)
    assert "column_values" in caught.value.advice


def test_a_row_that_was_saved_in_another_type_is_the_same() -> None:
    tenths = Dataset.from_arrays("own.npz", np.array([[0.1, -0.0]]))
    with pytest.raises(DataError):
        check_disjoint(tenths, seeds([0.1, 0.0], kind=np.float32), column_values=None)


def test_where_columns_take_few_values_a_tenth_may_be_the_same_and_is_counted() -> None:
    public = Dataset.from_arrays("seed.npz", np.array([[0, 0], [1, 0], [2, 0], [2, 0], [0, 5]]))
    assert check_disjoint(FEW, public, column_values=6) == 3
    more = Dataset.from_arrays("seed.npz", np.array([[0, 0], [1, 0], [2, 0], [3, 0]]))
    with pytest.raises(DataError, match=r"More than 10% of the different rows"):
        check_disjoint(FEW, more, column_values=6)


def test_a_drawn_seed_set_is_not_told_to_be_drawn() -> None:
    rows = FEW.features[::3]
    for declared in (None, 6):
        with pytest.raises(DataError) as caught:
            check_disjoint(FEW, Dataset.from_arrays(DRAWN, rows), column_values=declared)
        assert "drawn at random" not in caught.value.advice
        assert caught.value.advice.startswith("Name a file of related data (`seed_set`)")
        assert "draw fewer points" in caught.value.advice
        assert ("session.column_values" in caught.value.advice) == (declared is None), "it says so already"
    fewer = Dataset.from_arrays(DRAWN, rows[:2])
    assert check_disjoint(FEW, fewer, column_values=6) == 2, "as the advice has it"


@pytest.mark.parametrize(("own", "public"), [(VALIDATION, seeds()), (FEW, VALIDATION)])
def test_a_declaration_that_the_data_contradict_is_refused(own: Dataset, public: Dataset) -> None:
    with pytest.raises(
        DataError, match=r"own\.npz: feature column 0 .* more than the 6 different values"
    ) as e:
        check_disjoint(own, public, column_values=6)
    assert "session.column_values" in e.value.advice


@pytest.mark.parametrize("values", [1, 257, 2.0, True])
def test_a_declaration_is_a_whole_number_within_its_bounds(values: object) -> None:
    with pytest.raises(ValidationError):
        SessionSection.model_validate({"name": "s", "points": 1, "column_values": values})


def test_the_declaration_is_part_of_the_session_and_of_its_statement() -> None:
    plain, few = declared(None), declared(6)
    assert plain.identifier == session().identifier
    assert few.identifier not in (plain.identifier, declared(7).identifier)
    before, after = plain.privacy(), few.privacy()
    assert [statement.not_covered for statement in before] == ["", "", ""]
    assert [bool(statement.not_covered) for statement in after] == [False, True, False]
    assert (after[1].epsilon, after[1].why) == (before[1].epsilon, before[1].why)
    line = privacy_lines(after)[1]
    assert "not covered: rows that the public seed set has too, at most 10%" in line


def test_a_shared_row_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    file = session_file(owners=names(3), points=7, rule="ask-all")
    columns = file.features.columns
    rows = np.random.default_rng(3).random((20, columns))
    np.savez(tmp_path / "own.npz", features=rows)
    np.savez(tmp_path / "seed.npz", features=rows[4:5])
    own = ConsumerFile(
        state=tmp_path / "state", validation=tmp_path / "own.npz", seed_set=tmp_path / "seed.npz"
    )
    with pytest.raises(DataError, match=r"Rows of own\.npz are in seed\.npz too"):
        run_consumer(file, own)
    assert not list(tmp_path.glob("*.ledger"))
