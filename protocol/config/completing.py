"""What a session file leaves out and follows from what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hushbid.protocol.data.column import Column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.privacy.acquisition import herds
from hushbid.protocol.privacy.releases import Neighbours

__all__ = ["SECONDS_TO_CHOOSE", "completed", "features_of", "summary_like", "with_columns"]

SECONDS_TO_CHOOSE: Final = 60.0
"""`timeouts.round` under `tender` where the file does not set it: an owner goes over its rows p times."""


def with_columns(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file's tables, with ``[features]`` completed from ``[[columns]]`` where it says nothing."""
    columns, features = values.get("columns"), values.get("features")
    if not columns or not isinstance(columns, list) or not isinstance(features, Mapping):
        return values
    read = Schema.model_validate({"columns": columns}).columns
    return {**values, "columns": list(read), "features": features_of(read) | dict(features)}


def features_of(columns: Sequence[Column]) -> dict[str, Any]:
    """The keys of ``[features]`` about columns: the number of encoded columns, and their bounds."""
    schema = Schema(columns=tuple(columns))
    return {"columns": schema.width, "lower": list(schema.lower), "upper": list(schema.upper)}


def summary_like(target: Mapping[str, Any]) -> dict[str, Any]:
    """``[summary]`` where it is left out: the mechanism and the ε of ``[target]``, for owners' records."""
    same = {key: value for key, value in target.items() if key != "epsilon_curator"}
    return {**same, **({"neighbours": Neighbours.ADD_REMOVE_ONE.value} if "neighbours" in same else {})}


def completed(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file's tables, with ``[summary]`` as ``[target]`` has it, and under `tender` with time to choose."""
    target, acquisition = values.get("target"), values.get("acquisition")
    summary = values.get("summary", {})
    if isinstance(summary, Mapping) and "mechanism" not in summary and isinstance(target, Mapping):
        values = {**values, "summary": summary_like(target) | dict(summary)}
    rule = str(acquisition.get("rule")) if isinstance(acquisition, Mapping) else ""
    timeouts = values.get("timeouts", {})
    if herds(rule) and isinstance(timeouts, Mapping):
        values = {**values, "timeouts": {"round": SECONDS_TO_CHOOSE, **timeouts}}
    return values
