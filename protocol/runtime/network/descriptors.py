"""How many strangers a curator can let in, by the limit of files that it may open (RLIMIT_NOFILE)."""

from __future__ import annotations

from hushbid.protocol import limits, platform
from hushbid.protocol.errors import ConfigError

__all__ = ["descriptors_for_strangers"]


def descriptors_for_strangers(parties: int) -> int:
    """Raise the limit of open files as far as the system permits, and divide what may be opened.

    `DESCRIPTORS_KEPT_BACK` are for this process's own files alone (`platform.keep_files_back`). Of the others
    those that are open, `CURATOR_DESCRIPTORS`, and two connections of each party are set aside.

    Args:
        parties: Number of parties that may connect.

    Returns:
        How many unnamed connections there may be: `MIN_UNNAMED_CONNECTIONS` to `MAX_UNNAMED_CONNECTIONS`.

    Raises:
        ConfigError: Fewer are left. The text names the limit, what is needed, and how to raise it.
    """
    hard = platform.allow_open_files()
    if hard is None:
        return limits.MAX_UNNAMED_CONNECTIONS
    allowed = hard - limits.DESCRIPTORS_KEPT_BACK
    each = limits.MAX_CONNECTIONS_PER_PEER * limits.DESCRIPTORS_PER_CONNECTION
    taken = platform.open_files() + limits.CURATOR_DESCRIPTORS + each * parties
    if allowed - taken < limits.MIN_UNNAMED_CONNECTIONS:
        needed = taken + limits.MIN_UNNAMED_CONNECTIONS + limits.DESCRIPTORS_KEPT_BACK
        raise ConfigError(
            f"The system lets this process open {hard} files, and a curator of {parties} other parties needs "
            f"{needed}: {each} for each of them, and the others for its own files and for connections that "
            "have not said yet whose they are.",
            advice=f"Raise the hard limit to {needed} or more: by `ulimit -n` in the shell that starts it, "
            "LimitNOFILE= in a unit of systemd, or ulimits.nofile in a compose file.",
        )
    platform.keep_files_back(limits.DESCRIPTORS_KEPT_BACK)
    return min(limits.MAX_UNNAMED_CONNECTIONS, allowed - taken)
