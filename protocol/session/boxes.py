"""The points of an owner as they go into a session's boxes."""

from __future__ import annotations

from hushbid.protocol import limits
from hushbid.protocol.config.boxes import attribute_rooms
from hushbid.protocol.crypto.sealing import content_bytes
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import DataError
from hushbid.protocol.session.session import Session

__all__ = ["boxed"]


def boxed(session: Session, dataset: Dataset) -> Dataset:
    """An owner's dataset with labels and identifiers packed as they travel.

    Raises:
        DataError: A point with its label and identifier does not fit into a box, or a label and an identifier
            are longer than any that may travel.
    """
    if not session.rule.sealed:
        return dataset.within(limits.MAX_ATTRIBUTES)
    columns, dtype = dataset.features.shape[1], dataset.features.dtype
    parameters = session.file.acquisition.parameters
    rooms = attribute_rooms(session.rule.name, parameters, columns, session.rule.owners)
    room = rooms.get(dtype.name, 0)
    if dataset.most_attributes <= room:
        return dataset
    labels, identifiers = dataset.attribute_lengths
    longest = int((1 + labels + identifiers).max(initial=0))
    if longest > limits.MAX_ATTRIBUTES or longest <= room:
        return dataset.within(room or limits.MAX_ATTRIBUTES)
    needed = content_bytes(columns, dtype, longest)
    raise DataError(
        f"{dataset.name}: a point with its label takes {needed} bytes, and the session's boxes hold "
        f"{session.box_bytes}.",
        advice=f"Have acquisition.box_bytes of the session file raised to {needed}, for all parties; or "
        'leave such rows out (`outside = "drop"`).',
    )
