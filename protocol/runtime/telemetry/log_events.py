"""Every line that a party logs: its name, its level, and its text with the fields that it has.

docs/operations.md has the same list in the same order, with what each line means and what to do about it. No
event has a field for anything private: not for data, labels, bids, scores or gains, and not for who was asked
or who won. Lines that name a peer show only facts about its connection.
"""

from __future__ import annotations

import string
from enum import Enum
from logging import ERROR, INFO, WARNING
from typing import Final

__all__ = ["LOG_EVENTS", "LogEvent"]


def _info(event: str, text: str) -> tuple[str, int, str]:
    return event, INFO, text


def _warning(event: str, text: str) -> tuple[str, int, str]:
    return event, WARNING, text


class LogEvent(Enum):
    """A kind of line.

    Attributes:
        text: A template of `str.format` that names every field of its own; a list shows as its first items.
    """

    def __init__(self, event: str, level: int, text: str) -> None:
        self.event, self.level, self.text = event, level, text

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, in order."""
        return tuple(name for _, name, _, _ in string.Formatter().parse(self.text) if name)

    # A party and its files.
    PHASE_BEGUN = _info("session.phase", "phase {phase} begins")
    SESSION_RESUMED = _info("session.resumed", "goes on after record {record} of {path}")
    SESSION_ENDED_BEFORE = _info(
        "session.ended-before", "the session was over for this party: {path} has how it ended"
    )
    SESSION_COMPLETE = _info("session.complete", "the session is over: {reason}")
    SESSION_GIVEN_UP = _warning("session.given-up", "the session was given up: {reason}")
    PARTY_FAILED = ("party.failed", ERROR, "{reason} {advice}")
    PARTY_STOPPED = _warning("party.stopped", "{reason} {advice}")
    TRANSCRIPT_CUT = _warning(
        "transcript.cut", "{path}: its last record was cut off by a crash ({bytes} bytes)"
    )
    TRANSCRIPT_FROM_ELSEWHERE = _warning(
        "transcript.from-elsewhere", "{path}: recorded with another numpy, BLAS or processor than this"
    )
    LEDGER_CUT = _warning(
        "ledger.cut", "{path}: a crash cut off its last line ({bytes} bytes), which paid for nothing"
    )
    LEDGER_ELSEWHERE = _warning(
        "ledger.elsewhere",
        "{path}: the same rows were charged to {other} before, and what they spent there does not count here",
    )
    LEDGER_OTHER_ROWS = _warning(
        "ledger.other-rows",
        "{path}: the rows are not those that the session {session} was told of: their root is another one",
    )
    LEDGERS_UNKNOWN = _warning(
        "ledger.list-unusable", "{path}: not known whether these rows have another ledger ({reason})"
    )
    DATA_DIALECT = _info("data.dialect", "{said}")
    DATA_CHANGED = _warning(
        "data.changed",
        "{path}: values were clipped or rows dropped that do not fit what is public; the result has how many",
    )
    SEED_SET_DRAWN = _warning(
        "seed-set.drawn",
        "{path}: a seed set of {points} points, drawn within the public bounds: mostly that is far from real "
        "data, so that clipping fits badly and noise does more harm; a file of related data is better",
    )
    SESSION_REHEARSED = _info("session.rehearsed", "the verdict before the session was {verdict}")
    STATUS_UNWRITABLE = _warning(
        "status.unwritable", "{path}: cannot be written ({reason}); the session goes on"
    )
    METRICS_LISTENING = _info("metrics.listening", "metrics are at http://{address}/metrics")
    LINES_SUPPRESSED = _warning(
        "log.suppressed", "{count} more lines of {kind} about {peer} were not written"
    )

    # The curator's connections.
    CURATOR_LISTENING = _info("curator.listening", "listening at {address}")
    PEER_HERE = _info("peer.here", "{peer} is here")
    PEER_RECONNECTED = _info(
        "peer.reconnected", "{peer} is here again, on a new connection: it was cut off or restarted"
    )
    PEER_GONE = _warning("peer.gone", "{peer} is gone; waiting {seconds:g} s for it")
    PEER_SILENT = _warning("peer.silent", "{peer} is silent; waiting {seconds:g} s for it")
    PEER_CUT = _warning("peer.cut", "a connection of {peer} was cut: {reason}; the peer may connect again")
    PEER_BACK = _info("peer.back", "{peer} is back")
    PEER_REFUSED = _warning("peer.refused", "{peer} was refused: {said}")
    PEER_REFUSED_FOR_GOOD = _warning("peer.refused-for-good", "{peer} was refused {count} times: no more")
    CONNECTION_REFUSED = _warning(
        "connection.refused",
        "refused a connection from {address}: {reason}; fingerprints that its key may have: {fingerprints}",
    )
    CONNECTIONS_REFUSED_OFTEN = _warning(
        "connection.refused-often", "{count} connections were refused: further ones are only counted"
    )
    CONNECTIONS_UNFOLLOWED = _warning(
        "connections.unfollowed", "a limit on connections failed and may be off: {reason}"
    )

    # The curator's rounds.
    ENROLMENT_OVER = _info("enrolment.over", "{enrolled} of {owners} owners take part; missing: {missing}")
    OWNER_SUBMITTED = _info(
        "owner.submitted", "{peer} has submitted, and may leave; {submitted} of {owners} have"
    )
    OWNER_ABSENT = _warning("owner.absent", "{peer} is absent from round {round} on: {reason}")
    OWNER_TAKES_PART = _info(
        "owner.takes-part", "{peer} is no longer {reason}; rounds that it missed: {rounds}"
    )
    OWNERS_SILENT_WHEN_ASKED = _warning(
        "owners.silent-when-asked",
        "{count} of the owners that were asked for a point are absent from round {round} on: none came in "
        "time",
    )
    BID_LATE = _info("bid.late", "a bid of {peer} came late")
    OWNER_MISBEHAVED = _warning("owner.misbehaved", "points of {peer} are not taken any more: {what}")
    POINT_REFUSED = _warning("point.refused", "a point was not taken: {what}")
    ROUNDS_PAUSED = _warning(
        "rounds.paused",
        "fewer than {least} owners take part: paused, for {seconds:g} s at most; connected, or done, are "
        "{connected} of {owners}; missing: {missing}",
    )
    CONSUMER_AWAITED = _warning(
        "rounds.consumer-awaited", "the consumer, which weighs, is away: paused, for {seconds:g} s at most"
    )
    CONSUMER_BACK = _info("rounds.consumer-back", "the consumer is here: the rounds go on")
    ROUNDS_GO_ON = _info("rounds.go-on", "enough owners are here: the rounds go on")
    DELIVERY_RESENT = _info("delivery.resent", "a part of the delivery was sent again to {peer}")
    DELIVERY_DISPUTED = _warning("delivery.disputed", "the consumer disputes {count} of the delivered points")

    # What the curator counted, once it ends.
    FRAMES_DROPPED = _info("frames.dropped", "frames that were not delivered: {count} ({reason})")
    FRAMES_IGNORED = _info("frames.ignored", "frames that were not read: {count} ({reason})")
    FRAMES_REPEATED = _info("frames.repeated", "frames that had been received before: {count}")
    CONNECTIONS_REFUSED = _info("connections.refused", "connections that were refused: {count} ({reason})")
    CONNECTIONS_CUT = _info("connections.cut", "connections that were cut: {count} ({reason})")

    # An owner's, and the consumer's, connection.
    CURATOR_CONNECTED = _info("curator.connected", "connected to the curator at {address}")
    SUBMISSION_TAKEN = _info(
        "submission.taken",
        "the curator has all of the submission: this owner may be stopped, and started again for the end",
    )
    HOST_UNKNOWN = _warning("host.unknown", "the host name {host} is unknown here; it is looked up again")
    CURATOR_GONE = _warning("curator.gone", "the curator is gone; waiting {seconds:g} s for it")
    CURATOR_SILENT = _warning(
        "curator.silent", "the curator is silent; connecting to it anew, for {seconds:g} s"
    )
    CURATOR_BACK = _info("curator.back", "the curator is back")


LOG_EVENTS: Final = {each.event: each for each in LogEvent}
"""All of them, by name."""
