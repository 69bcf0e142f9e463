"""What the consumer bought, judged by its own private data: never leaves the consumer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consumer.downstream import accuracy
from protocol.data import Dataset, read_attributes
from protocol.errors import DataError
from protocol.messages import Purchase
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
    purchases: Sequence[Purchase],
    *,
    validation: Dataset,
    test: Dataset | None,
    model: str,
    seed: int,
) -> Appraisal:
    """Judge a delivery, disputed points included: they were paid for.

    Args:
        session: The session.
        purchases: What was delivered.
        validation: D_v.
        test: What to judge a downstream model by; None, or without labels: no accuracy.
        model: One of `consumer.downstream.MODELS`.
        seed: Of the model.

    Raises:
        ConfigError: There is no such model.
        DataError: The test set has other columns than the session.
    """
    if not purchases:
        return Appraisal(None, None)
    feature_map = session.feature_map
    # Owners may hold the same columns in different number types.
    points = np.stack([np.asarray(purchase.candidate.point, dtype=np.float64) for purchase in purchases])
    with np.errstate(over="ignore"):
        bought = feature_map.scale(points)
    distance = _distance(bought, feature_map.scale(validation.features), feature_map.gamma)
    if test is None or test.labels is None:
        return Appraisal(distance, None)
    # One point far away is all that a model would learn. Each is judged as its own number type.
    inside = [within_bounds(feature_map, purchase.candidate.point[None])[0] for purchase in purchases]
    labels = [
        read_attributes(purchase.candidate.attributes).label
        for purchase, counts in zip(purchases, inside, strict=True)
        if counts
    ]
    judged = feature_map.scale(test.features)
    return Appraisal(distance, accuracy(model, bought[inside], labels, judged, test.labels, seed=seed))


def _distance(bought: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], gamma: float) -> float | None:
    try:
        return mmd2(bought, wanted, gamma)
    except DataError:
        return None
