"""A consumer's account of a session with a blind curator: the payments and their basis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hushbid.protocol.privacy.payment import Errors
from hushbid.protocol.session.session import Session
from hushbid.protocol.session.settling import HandedOver, settle, settle_privately
from hushbid.protocol.session.statement import gain_errors, shared_gains, target_noise
from hushbid.protocol.space.grid import Weights
from hushbid.protocol.wire.blind import Account
from hushbid.protocol.wire.fields import Array
from hushbid.protocol.wire.messages import Target

__all__ = ["account_content", "account_numbers", "errors_of"]

_UNKNOWN = -1.0


def account_numbers(
    session: Session,
    target: Target,
    wins: Sequence[HandedOver],
    first_weights: Weights | None,
    noise: Sequence[Any],
) -> dict[str, Any]:
    """The fields of an account that say what points are worth, by name.

    Args:
        wins: The points that count.
        first_weights: The weights of round 1.
        noise: The noise of a private settlement; empty if the settlement is exact.
    """
    owners = session.file.owners

    def listed(numbers: Mapping[str, float]) -> Array:
        return np.array([numbers[owner] for owner in owners])

    if session.settlement is not None:
        errors = _told(owners, dict.fromkeys(owners, session.settlement.standard_error))
        none = np.zeros(len(owners))
        paid = settle_privately(wins, (), owners, first_weights, *noise)
        return {
            "settlement": listed(paid),
            "errors": errors,
            "gains": none,
            "gain_errors": none,
            "signal": -1,
        }
    weight = session.file.seed_weight
    paid = settle(wins, (), owners, target.embedding, target.seed_total, target.seed_size, weight)
    told = target_noise(session, target)
    gains, theirs = shared_gains(wins, (), owners, session, target, told)
    return {
        "settlement": listed(paid),
        "errors": _told(owners, gain_errors(wins, (), owners, target, told, weight)),
        "gains": listed(gains),
        "gain_errors": _told(owners, theirs),
        "signal": -1 if told.signal is None else int(told.signal),
    }


def account_content(account: Account) -> bytes:
    """All that an account says, as bytes that its signature is over."""
    parts = (account.settlement, account.errors, account.gains, account.gain_errors)
    floats = b"".join(np.ascontiguousarray(part, dtype="<f8").tobytes() for part in parts)
    whole = b"".join(
        np.ascontiguousarray(part, dtype="<i8").tobytes() for part in (account.sold, account.void)
    )
    return floats + whole + account.signal.to_bytes(1, "big", signed=True)


def _told(owners: Sequence[str], errors: Errors) -> Array:
    """Standard errors as an account has them: negative where one is not known."""
    known = [errors.get(owner) for owner in owners]
    return np.array([_UNKNOWN if error is None else error for error in known], dtype=np.float64)


def errors_of(owners: Sequence[str], told: Array) -> Errors:
    """The standard errors of an account, by owner; None where one is not known."""
    return {owner: None if error < 0.0 else error for owner, error in zip(owners, told.tolist(), strict=True)}
