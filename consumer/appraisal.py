"""What the consumer bought, judged by its own private data: never leaves the consumer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consumer.downstream import accuracy
from consumer.events import Delivered
from protocol.data import Dataset, read_attributes
from protocol.errors import DataError
from protocol.mmd import mmd2
from protocol.session import Session
from protocol.verification import within_bounds

__all__ = ["Appraisal", "appraise"]


@dataclass(frozen=True, slots=True)
class Appraisal:
    """How good a delivery is.

    Attributes:
        mmd2: MMD² of the delivered points, without the seed set, against D_v, by the exact kernel on scaled
            points; None if nothing was delivered, or a point lies so far outside of the public bounds that it
            cannot be worked out.
        accuracy: Of a downstream model trained on the delivered points within the public bounds, on the
            test set; None without a test set, or where there is nothing to judge
            (`consumer.downstream.accuracy`).
    """

    mmd2: float | None
    accuracy: float | None


def appraise(
    session: Session,
    delivered: Sequence[Delivered],
    *,
    validation: Dataset,
    test: Dataset | None,
    model: str,
    seed: int,
) -> Appraisal:
    """Judge a delivery, disputed points included where they can be read: they were chosen.

    Args:
        session: The session.
        delivered: What was delivered.
        validation: D_v.
        test: What to judge a downstream model by; None, or without labels: no accuracy.
        model: One of `consumer.downstream.MODELS`.
        seed: Of the model.

    Raises:
        ConfigError: There is no such model.
        DataError: The test set has other columns than the session.
    """
    candidates = [entry.candidate for entry in delivered if entry.candidate is not None]
    if not candidates:
        return Appraisal(None, None)
    space = session.space
    # Owners may hold the same columns in different number types.
    points = np.stack([np.asarray(candidate.point, dtype=np.float64) for candidate in candidates])
    with np.errstate(over="ignore"):
        bought = space.scale(points)
    distance = _distance(bought, space.scale(validation.features), space.gamma)
    if test is None or test.labels is None:
        return Appraisal(distance, None)
    # One point far away is all that a model would learn. Each is judged as its own number type.
    inside = [within_bounds(space, candidate.point[None])[0] for candidate in candidates]
    labels = [
        read_attributes(candidate.attributes).label
        for candidate, counts in zip(candidates, inside, strict=True)
        if counts
    ]
    judged = space.scale(test.features)
    return Appraisal(distance, accuracy(model, bought[inside], labels, judged, test.labels, seed=seed))


def _distance(bought: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], gamma: float) -> float | None:
    try:
        return mmd2(bought, wanted, gamma)
    except DataError:
        return None
