"""Reading a kept `result.json`, of a run or of a party, as the record that it was made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypeAlias

from hushbid.consumer.result import ConsumerResult
from hushbid.curator.result import CuratorResult
from hushbid.owner.result import OwnerResult
from hushbid.protocol.errors import DataError
from hushbid.results.run import RunResult

__all__ = ["Result", "read_result"]

Result: TypeAlias = RunResult | ConsumerResult | CuratorResult | OwnerResult
_KINDS: Final[dict[object, type[Result]]] = {
    None: RunResult,
    "consumer": ConsumerResult,
    "curator": CuratorResult,
    "owner": OwnerResult,
}


def read_result(path: Path, *, session: str | None = None) -> Result:
    """Read the result of a run, or of one party.

    Args:
        session: The name of the session that it has to be of; None: any.

    Raises:
        DataError: The file cannot be read, is no result, or is another session's.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        found = _KINDS[values.get("role")].from_json(values)
    except OSError as error:
        raise DataError(
            f"{path}: cannot read the result: {error.strerror}.", advice="Check the path."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f"{path} is not the result of a session.",
            advice="Name a `result.json` that `hushbid run` wrote, or what a party printed with --json.",
        ) from None
    if session is not None and found.session != session:
        raise DataError(
            f"{path} is the result of {found.session}, and not of {session}.",
            advice="Name the result of this session.",
        )
    return found
