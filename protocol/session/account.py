"""A consumer's account of a session with a blind curator: the payments and their basis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from protocol.privacy.payment import Errors
from protocol.wire.blind import Account
from protocol.wire.fields import Array

__all__ = ["account_content", "errors_of", "told_errors"]

_UNKNOWN = -1.0


def account_content(account: Account) -> bytes:
    """All that an account says, as bytes that its signature is over."""
    parts = (account.settlement, account.errors, account.gains, account.gain_errors)
    floats = b"".join(np.ascontiguousarray(part, dtype="<f8").tobytes() for part in parts)
    whole = b"".join(
        np.ascontiguousarray(part, dtype="<i8").tobytes() for part in (account.sold, account.void)
    )
    return floats + whole + account.signal.to_bytes(1, "big", signed=True)


def told_errors(owners: Sequence[str], errors: Errors) -> Array:
    """Standard errors as an account has them: negative where one is not known."""
    known = [errors.get(owner) for owner in owners]
    return np.array([_UNKNOWN if error is None else error for error in known], dtype=np.float64)


def errors_of(owners: Sequence[str], told: Array) -> Errors:
    """The standard errors of an account, by owner; None where one is not known."""
    return {owner: None if error < 0.0 else error for owner, error in zip(owners, told.tolist(), strict=True)}
