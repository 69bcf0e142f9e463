"""The judgement of a purchase in two sentences, which everything that tells of one begins with."""

from __future__ import annotations

from collections.abc import Iterable

from hushbid.consumer.model_figures import ModelFigures
from hushbid.protocol.session.guarantee import PrivacyStatement, protection

__all__ = ["judged"]


def judged(model: ModelFigures, privacy: Iterable[PrivacyStatement]) -> tuple[str, str]:
    """Whether the model got better than with own rows; and what protects whom, at what ε.

    Args:
        privacy: The session's; none: it is not known.
    """
    return model.alone(), protection(privacy)
