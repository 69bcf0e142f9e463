"""The options of `hushbid preflight`: those of every party."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hushbid.owner.role import Owner
from hushbid.protocol import ranges
from hushbid.protocol.runtime.command import option

__all__ = ["PartyOptions"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartyOptions(Owner):
    """The options that a party is started with: an owner's, and those of the curator and the consumer."""

    listen: str | None = option(
        str | None, help="A curator's option of the same name.", envvar="HUSHBID_LISTEN"
    )
    validation: Path | None = option(
        Path | None, help="The consumer's option of the same name.", envvar="HUSHBID_VALIDATION"
    )
    seed_set: Path | None = option(
        Path | None, help="The consumer's option of the same name.", envvar="HUSHBID_SEED_SET"
    )
    seed_points: int | None = option(
        ranges.DrawnPoints | None, help="The consumer's option of the same name."
    )
    test: Path | None = option(Path | None, help="The consumer's option of the same name.")
    offline: bool = option(
        bool, "--offline", default=False, help="Make no network requests, and bind no address."
    )
    rehearsal: bool = option(
        bool,
        "--rehearsal/--no-rehearsal",
        default=True,
        help="For the consumer: play the session with owners made from the validation set.",
        envvar="HUSHBID_REHEARSAL",
    )
    anyway: bool = option(
        bool,
        "--anyway",
        default=False,
        help="For the consumer: a hopeless session would go on.",
        envvar="HUSHBID_ANYWAY",
    )
