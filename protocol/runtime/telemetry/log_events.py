"""Every line that a party logs, by name: its level, and its text with the fields that it has.

docs/operations.md has the same list in the same order, with what each line means and what to do about it. No
event has a field for anything private: not for data, labels, bids, scores or gains, and not for who was asked
or who won. Lines that name a peer show only facts about its connection.
"""

from __future__ import annotations

import logging
import string
from dataclasses import dataclass
from functools import cached_property
from typing import Final

__all__ = [
    "BID_LATE",
    "CONNECTIONS_CUT",
    "CONNECTIONS_REFUSED",
    "CONNECTIONS_REFUSED_OFTEN",
    "CONNECTIONS_UNFOLLOWED",
    "CONNECTION_REFUSED",
    "CONSUMER_AWAITED",
    "CONSUMER_BACK",
    "CURATOR_BACK",
    "CURATOR_CONNECTED",
    "CURATOR_GONE",
    "CURATOR_LISTENING",
    "CURATOR_SILENT",
    "DELIVERY_DISPUTED",
    "DELIVERY_RESENT",
    "ENROLMENT_OVER",
    "FRAMES_DROPPED",
    "FRAMES_IGNORED",
    "FRAMES_REPEATED",
    "HOST_UNKNOWN",
    "LEDGERS_UNKNOWN",
    "LEDGER_CUT",
    "LEDGER_ELSEWHERE",
    "LINES_SUPPRESSED",
    "LOG_EVENTS",
    "METRICS_LISTENING",
    "OWNERS_SILENT_WHEN_ASKED",
    "OWNER_ABSENT",
    "OWNER_MISBEHAVED",
    "OWNER_TAKES_PART",
    "PARTY_FAILED",
    "PARTY_STOPPED",
    "PEER_BACK",
    "PEER_GONE",
    "PEER_HERE",
    "PEER_RECONNECTED",
    "PEER_REFUSED",
    "PEER_REFUSED_FOR_GOOD",
    "PEER_SILENT",
    "PHASE_BEGUN",
    "POINT_REFUSED",
    "ROUNDS_GO_ON",
    "ROUNDS_PAUSED",
    "SEED_SET_DRAWN",
    "SESSION_COMPLETE",
    "SESSION_ENDED_BEFORE",
    "SESSION_GIVEN_UP",
    "SESSION_REHEARSED",
    "SESSION_RESUMED",
    "STATUS_UNWRITABLE",
    "TRANSCRIPT_CUT",
    "TRANSCRIPT_FROM_ELSEWHERE",
    "LogEvent",
]


@dataclass(frozen=True)
class LogEvent:
    """A kind of line."""

    name: str
    level: int
    text: str
    """A template of `str.format` that names every field of its own; a list shows as its first items."""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, in order."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.text) if name)


LOG_EVENTS: Final[dict[str, LogEvent]] = {}
"""All of them, by name."""


def _event(name: str, level: int, text: str) -> LogEvent:
    event = LOG_EVENTS[name] = LogEvent(name, level, text)
    return event


_info, _warning = logging.INFO, logging.WARNING

# A party and its files.
PHASE_BEGUN: Final = _event("session.phase", _info, "phase {phase} begins")
SESSION_RESUMED: Final = _event("session.resumed", _info, "goes on after record {record} of {path}")
SESSION_ENDED_BEFORE: Final = _event(
    "session.ended-before", _info, "the session was over for this party: {path} has how it ended"
)
SESSION_COMPLETE: Final = _event("session.complete", _info, "the session is over: {reason}")
SESSION_GIVEN_UP: Final = _event("session.given-up", _warning, "the session was given up: {reason}")
PARTY_FAILED: Final = _event("party.failed", logging.ERROR, "{reason} {advice}")
PARTY_STOPPED: Final = _event("party.stopped", _warning, "{reason} {advice}")
TRANSCRIPT_CUT: Final = _event(
    "transcript.cut", _warning, "{path}: its last record was cut off by a crash ({bytes} bytes)"
)
TRANSCRIPT_FROM_ELSEWHERE: Final = _event(
    "transcript.from-elsewhere", _warning, "{path}: recorded with another numpy, BLAS or processor than this"
)
LEDGER_CUT: Final = _event(
    "ledger.cut",
    _warning,
    "{path}: a crash cut off its last line ({bytes} bytes), which paid for nothing",
)
LEDGER_ELSEWHERE: Final = _event(
    "ledger.elsewhere",
    _warning,
    "{path}: the same rows were charged to {other} before, and what they spent there does not count here",
)
LEDGERS_UNKNOWN: Final = _event(
    "ledger.list-unusable", _warning, "{path}: not known whether these rows have another ledger ({reason})"
)
SEED_SET_DRAWN: Final = _event(
    "seed-set.drawn",
    _warning,
    "{path}: a seed set of {points} points, drawn within the public bounds: mostly that is far from real "
    "data, so that clipping fits badly and noise does more harm; a file of related data is better",
)
SESSION_REHEARSED: Final = _event("session.rehearsed", _info, "a rehearsal of the session was {verdict}")
STATUS_UNWRITABLE: Final = _event(
    "status.unwritable", _warning, "{path}: cannot be written ({reason}); the session goes on"
)
METRICS_LISTENING: Final = _event("metrics.listening", _info, "metrics are at http://{address}/metrics")
LINES_SUPPRESSED: Final = _event(
    "log.suppressed", _warning, "{count} more lines of {kind} about {peer} were not written"
)

# The curator's connections.
CURATOR_LISTENING: Final = _event("curator.listening", _info, "listening at {address}")
PEER_HERE: Final = _event("peer.here", _info, "{peer} is here")
PEER_RECONNECTED: Final = _event(
    "peer.reconnected", _info, "{peer} is here again, on a new connection: it was cut off or restarted"
)
PEER_GONE: Final = _event("peer.gone", _warning, "{peer} is gone; waiting {seconds:g} s for it")
PEER_SILENT: Final = _event("peer.silent", _warning, "{peer} is silent; waiting {seconds:g} s for it")
PEER_BACK: Final = _event("peer.back", _info, "{peer} is back")
PEER_REFUSED: Final = _event("peer.refused", _warning, "{peer} was refused: {offence}")
PEER_REFUSED_FOR_GOOD: Final = _event(
    "peer.refused-for-good", _warning, "{peer} was refused {count} times: no more"
)
CONNECTION_REFUSED: Final = _event(
    "connection.refused",
    _warning,
    "refused a connection from {address}: {reason}; fingerprints that its key may have: {fingerprints}",
)
CONNECTIONS_REFUSED_OFTEN: Final = _event(
    "connection.refused-often", _warning, "{count} connections were refused: further ones are only counted"
)
CONNECTIONS_UNFOLLOWED: Final = _event(
    "connections.unfollowed", _warning, "a limit on connections failed and may be off: {reason}"
)

# The curator's rounds.
ENROLMENT_OVER: Final = _event(
    "enrolment.over", _info, "the rounds begin with {enrolled} of {owners} owners; missing: {missing}"
)
OWNER_ABSENT: Final = _event("owner.absent", _warning, "{peer} is absent from round {round} on: {reason}")
OWNER_TAKES_PART: Final = _event(
    "owner.takes-part", _info, "{peer} is no longer {reason}; rounds that it missed: {rounds}"
)
OWNERS_SILENT_WHEN_ASKED: Final = _event(
    "owners.silent-when-asked",
    _warning,
    "{count} of the owners that were asked for a point are absent from round {round} on: none came in time",
)
BID_LATE: Final = _event("bid.late", _info, "a bid of {peer} came late")
OWNER_MISBEHAVED: Final = _event(
    "owner.misbehaved", _warning, "points of {peer} are not taken any more: {what}"
)
POINT_REFUSED: Final = _event("point.refused", _warning, "a point was not taken: {what}")
ROUNDS_PAUSED: Final = _event(
    "rounds.paused",
    _warning,
    "fewer than {least} owners are here: paused, for {seconds:g} s at most; connected are {connected} of "
    "{owners}; missing: {missing}",
)
CONSUMER_AWAITED: Final = _event(
    "rounds.consumer-awaited",
    _warning,
    "the consumer, which weighs, is away: paused, for {seconds:g} s at most",
)
CONSUMER_BACK: Final = _event("rounds.consumer-back", _info, "the consumer is here: the rounds go on")
ROUNDS_GO_ON: Final = _event("rounds.go-on", _info, "enough owners are here: the rounds go on")
DELIVERY_RESENT: Final = _event("delivery.resent", _info, "a part of the delivery was sent again to {peer}")
DELIVERY_DISPUTED: Final = _event(
    "delivery.disputed", _warning, "the consumer disputes {count} of the delivered points"
)

# What the curator counted, once it ends.
FRAMES_DROPPED: Final = _event("frames.dropped", _info, "frames that were not delivered: {count} ({reason})")
FRAMES_IGNORED: Final = _event("frames.ignored", _info, "frames that were not read: {count} ({reason})")
FRAMES_REPEATED: Final = _event("frames.repeated", _info, "frames that had been received before: {count}")
CONNECTIONS_REFUSED: Final = _event(
    "connections.refused", _info, "connections that were refused: {count} ({reason})"
)
CONNECTIONS_CUT: Final = _event("connections.cut", _info, "connections that were cut: {count} ({reason})")

# An owner's, and the consumer's, connection.
CURATOR_CONNECTED: Final = _event("curator.connected", _info, "connected to the curator at {address}")
HOST_UNKNOWN: Final = _event(
    "host.unknown", _warning, "the host name {host} is unknown here; it is looked up again"
)
CURATOR_GONE: Final = _event("curator.gone", _warning, "the curator is gone; waiting {seconds:g} s for it")
CURATOR_SILENT: Final = _event(
    "curator.silent", _warning, "the curator is silent; connecting to it anew, for {seconds:g} s"
)
CURATOR_BACK: Final = _event("curator.back", _info, "the curator is back")
