"""The best training set for a model, as a table: labelled own rows, and bought ones with their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hushbid.consumer.delivered import free_name, owner_column

if TYPE_CHECKING:
    from hushbid.tables.frames import ArrowTable

__all__ = ["training_table"]


def training_table(
    own: ArrowTable,
    labels: npt.NDArray[Any] | None,
    bought: ArrowTable,
    weights: npt.NDArray[np.float64],
) -> ArrowTable:
    """Own rows, of weight 1, and bought rows with a training weight above 0.

    Args:
        own: Labelled own rows, without the label column: the first columns of bought rows.
        labels: Their labels; None: there are no such rows.
        bought: Bought rows: as many columns, the label, then others, among them the owner.
        weights: Their training weights.
    """
    import pyarrow as pa

    width = own.num_columns
    names = bought.column_names
    owner = owner_column(bought, width)
    kept = bought.select([*names[: width + 1], owner])
    weight = free_name("weight", kept.column_names)
    kept = kept.append_column(weight, pa.array(weights)).filter(pa.array(weights > 0.0))
    if labels is None:
        return kept
    table = own.append_column(names[width], pa.array(labels.tolist(), type=kept.column(width).type))
    table = table.append_column(owner, pa.nulls(len(table), kept.column(owner).type))
    return pa.concat_tables([table.append_column(weight, pa.array(np.ones(len(table)))), kept])
