"""The errors of hushbid, and the exit code that each becomes.

::

    HushbidError                    1  the job failed
    ├── ConfigError                 4  a session, party or cluster file, a flag or a variable
    ├── DataError                   4  a data file: names the file and, where it can, row and column
    ├── Hopeless                    4  a rehearsal says that noise would choose: settings, or the data
    ├── KeyFileError                4  a key file: missing, malformed, or readable by others
    ├── ConnectionFailed            2  cannot reach, bind, or authenticate
    ├── TimedOut                    3  somebody did not answer within the session's limits
    ├── ProtocolError               1
    │   ├── LocalProtocolError      5  our own side was about to break the protocol: a bug
    │   └── RemoteProtocolError     1  the peer broke it; carries a code
    ├── Shortage                    6  the system is short of files, memory, threads or room, or a disk fails
    │   └── TranscriptUnwritable    6  a transcript cannot be written: a full or failing disk
    ├── Stopped                     1  a signal told the process to stop; what was recorded is kept
    ├── BudgetExceeded              1  a release would cost more privacy than was allowed
    ├── ReplayDivergence            1  a replay did something else than the transcript says
    ├── TranscriptDamaged           1  a transcript's chain does not hold; names the record
    └── VectorMismatch              1  another implementation's bytes are not those of a golden vector

Every error says what happened, where, and what to do about it. None carries a private value: not a
row, not a label, not a score, not a key.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any, Final

__all__ = [
    "BudgetExceeded",
    "ConfigError",
    "ConnectionFailed",
    "DataError",
    "ExitCode",
    "Hopeless",
    "HushbidError",
    "KeyFileError",
    "LocalProtocolError",
    "Offence",
    "ProtocolError",
    "RemoteProtocolError",
    "ReplayDivergence",
    "Restart",
    "Shortage",
    "Stopped",
    "TimedOut",
    "TranscriptDamaged",
    "TranscriptUnwritable",
    "VectorMismatch",
]


class ExitCode(IntEnum):
    """The exit code of a process of hushbid."""

    DONE = 0
    FAILED = 1
    CONNECTION = 2
    TIMEOUT = 3
    USAGE = 4
    BUG = 5
    SHORTAGE = 6

    @property
    def restart(self) -> Restart:
        """What a supervisor of a party should do about it."""
        return _RESTARTS[self]


class Restart(StrEnum):
    """What becomes of a party that has ended: what units, containers and manifests go by."""

    DONE = "done"
    OVER = "over"
    """The session is over for it, or it was told to stop: another start would change nothing."""
    PERSON = "a person"
    """A person has to put something right first."""
    AGAIN = "start again"
    """It goes on from its transcript."""


_RESTARTS: Final = {
    ExitCode.DONE: Restart.DONE,
    ExitCode.FAILED: Restart.OVER,
    ExitCode.CONNECTION: Restart.AGAIN,
    ExitCode.TIMEOUT: Restart.OVER,
    ExitCode.USAGE: Restart.PERSON,
    ExitCode.BUG: Restart.AGAIN,
    ExitCode.SHORTAGE: Restart.AGAIN,
}


class HushbidError(Exception):
    """The root: a job that cannot go on, for a reason that a person can act on.

    Args:
        what: What happened and where, in one sentence.
        advice: What to do next, in one sentence.
    """

    exit_code = ExitCode.FAILED

    def __init__(self, what: str, *, advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what} {self.advice}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        # As a subclass has arguments of its own, it is made again without them.
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[HushbidError], arguments: tuple[Any, ...]) -> HushbidError:
    """An unpickled error, whose attributes follow."""
    return kind.__new__(kind, *arguments)


class ConfigError(HushbidError):
    """A configuration file, a flag or an environment variable says something that cannot hold."""

    exit_code = ExitCode.USAGE


class DataError(HushbidError):
    """A data file cannot be used as it is."""

    exit_code = ExitCode.USAGE


class Hopeless(HushbidError):
    """A rehearsal says that a session would buy no better than at random: settings and data do not fit.

    Nothing was charged yet, and nothing is until the caller says that it is to go on.
    """

    exit_code = ExitCode.USAGE


class KeyFileError(HushbidError):
    """A key file is missing, malformed, or can be read by others."""

    exit_code = ExitCode.USAGE


class ConnectionFailed(HushbidError):
    """A peer cannot be reached, an address cannot be bound, or authentication failed."""

    exit_code = ExitCode.CONNECTION


class TimedOut(HushbidError):
    """Somebody did not answer within the limits that the session file sets."""

    exit_code = ExitCode.TIMEOUT


class ProtocolError(HushbidError):
    """The protocol was broken, by us or by a peer."""


class LocalProtocolError(ProtocolError):
    """Our own side was about to break the protocol: a bug, never a peer's doing."""

    exit_code = ExitCode.BUG


class Offence(StrEnum):
    """How a peer can break the protocol. The code travels in a refusal and is kept in transcripts."""

    MAGIC = "magic"
    """The frame is not one of hushbid's."""
    VERSION = "version"
    """No common version of the protocol."""
    OVERSIZED = "oversized"
    """A frame, array or collection over its limit."""
    MALFORMED = "malformed"
    """The frame cannot be decoded, or not into a message that this direction allows."""
    NOT_CANONICAL = "not-canonical"
    """The frame decodes, but encodes to other bytes: a duplicate key, a padded integer."""
    SESSION = "session"
    """The frame belongs to another session."""
    SEQUENCE = "sequence"
    """Something was acknowledged that was never sent, or never what was answered; or a number is none."""
    OUT_OF_TURN = "out-of-turn"
    """A well-formed message at a moment that does not allow it."""
    CONFIGURATION = "configuration"
    """The peer's session file, or its feature map, is not ours."""
    UNKNOWN_PEER = "unknown-peer"
    """The key, or the role it claims, is not on the roster."""
    STATE_LOST = "state-lost"
    """The peer's record of the session and ours do not go together: one is older, or lost."""
    DUPLICATE = "duplicate"
    """Another process has said hello as the peer since: the newer one counts."""
    MISMATCH = "mismatch"
    """A point, its features and its bid do not belong together."""

    @property
    def said(self) -> str:
        """The code for people. Where it is not known whose fault it is, that is said, too."""
        if self is Offence.STATE_LOST:
            why = "its record and the curator's differ: one of them lost its state, or has an older copy"
            return f"{self.value} ({why})"
        return self.value


class RemoteProtocolError(ProtocolError):
    """A peer broke the protocol.

    Args:
        offence: Which rule was broken; `code` is its wire form.
        what: What happened, naming the field but never its value.
        advice: What the peer's operator should do.
    """

    def __init__(self, offence: Offence, what: str, *, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.offence = offence

    @property
    def code(self) -> str:
        """The offence as it travels in a refusal."""
        return self.offence.value


class Shortage(HushbidError):
    """The system is short of something that a process needs; with more of it the same thing works."""

    exit_code = ExitCode.SHORTAGE


class Stopped(HushbidError):
    """A signal told the process to stop, and it did in good order: not a failure, but not done either."""


class BudgetExceeded(HushbidError):
    """A release would cost more privacy than its dataset's owner allowed; it was not made."""


class ReplayDivergence(HushbidError):
    """A machine, fed a transcript's events, did something else than the transcript says.

    Args:
        what: Where, and what was expected and what was done: kinds and names of fields, never values.
        record: Number of the record; None where it is the noise that differs.
        expected: The recorded value.
        actual: What the replay did.
    """

    def __init__(
        self,
        what: str,
        *,
        advice: str = "",
        record: int | None = None,
        expected: str = "",
        actual: str = "",
    ) -> None:
        super().__init__(what, advice=advice)
        self.record = record
        self.expected = expected
        self.actual = actual


class VectorMismatch(HushbidError):
    """Bytes of another implementation, or a file of vectors, are not what this version computes."""


class TranscriptDamaged(HushbidError):
    """A transcript's chain does not hold.

    Args:
        record: Number of the first record that cannot be trusted, counted from 0; -1 for the header.
    """

    def __init__(self, what: str, *, record: int, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.record = record


class TranscriptUnwritable(Shortage):
    """A transcript cannot be written: the disk is full, or fails.

    The pending records are kept, and the records before them stand: committing again goes on from there.
    """
