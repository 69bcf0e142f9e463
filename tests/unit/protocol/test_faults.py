"""Faults of values, in their author's terms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hushbid.protocol.faults import faults


class Values(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    count: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5
    sure: bool = True
    kind: Literal["one", "other"] = "one"
    name: Annotated[str, Field(min_length=1, pattern="^[a-z]*$")] = "a"
    names: Annotated[list[str], Field(min_length=1)] = ["a"]
    place: Path = Path()
    table: dict[str, int] = {}


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("count", "3", "should be a whole number"),
        ("count", 2.5, "should be a whole number"),
        ("count", 0, "should be greater than or equal to 1"),
        ("count", 10, "should be less than or equal to 9"),
        ("share", "much", "should be a number"),
        ("share", float("nan"), "is nan, which is no number"),
        ("share", float("inf"), "should be a number that is neither infinite nor nan"),
        ("share", 0.0, "should be greater than 0"),
        ("sure", 1, "should be true or false"),
        ("kind", "none", "should be 'one' or 'other'"),
        ("name", 3, "should be text"),
        ("name", "", "should have at least 1 character"),
        ("name", "A", "should match pattern '^[a-z]*$'"),
        ("names", "a", "should be a list"),
        ("names", [], "should have at least 1 item, not 0"),
        ("table", 3, "should be a table"),
        ("other", 3, "unknown key"),
    ],
)
def test_a_fault_is_said_without_python_and_without_the_value(key: str, given: Any, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Values.model_validate({key: given})
    (fault,) = faults(caught.value)
    assert (fault.place, fault.words) == ((key,), words)
