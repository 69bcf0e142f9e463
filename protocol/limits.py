"""Every maximum of the protocol, in one place.

A limit bounds memory or keeps arithmetic exact. A value over its limit is refused with an error that names
the limit. Nothing is clipped silently, except for broadcast weights (see `MAX_WEIGHT`).
"""

from __future__ import annotations

from typing import Final

MAX_FRAME_BYTES: Final = 16 * 2**20
"""Longest frame, header included: also ZeroMQ's ``MAXMSGSIZE``."""

MAX_MESSAGE_BYTES: Final = 2**20
"""Longest body of a message other than a delivery; it fits a point of `MAX_COLUMNS` float64. Decoding takes
up to a hundred times a body's length in memory, so this bounds the memory that a hostile peer can use up.
"""

MAX_TARGET_BYTES: Final = 2 * 2**20
"""Longest body of a message from the consumer, whose target includes a sealed map for every owner."""

SMALL_FRAME_BYTES: Final = 2**15
"""Upper bound on a frame without its points, boxes, sealed maps and arrays of the feature map's dimension.
The curator's socket accepts no frame longer than this plus the session's allowance for those.
"""

MAX_BATCH: Final = 1024
"""Most points in one bid."""
DEEPEST_PATH: Final = 10
"""Most nodes in the path of a submitted point: log2 of `MAX_BATCH`."""

MAX_MESSAGE_FIELDS: Final = 16
"""Most fields of a message or of a part of one."""

MAX_MESSAGE_PARTS: Final = 16
"""Most maps, lists and arrays in a message other than a delivery, itself included; a body of countless tiny
ones would take seconds to decode.
"""

MAX_VERSIONS: Final = 16
"""Most versions that a hello may offer."""

MAX_ARRAY_DIMENSIONS: Final = 2
"""Most axes of an array on the wire."""

MAX_TEXT: Final = 1024
"""Longest text on the wire, in characters."""

MAX_ATTRIBUTES: Final = 4096
"""Longest packed label and identifier of a point, in bytes."""

MAX_CONTENT_BYTES: Final = 2**20 - 2**15
"""Longest content of a box, padding included: with its features and signature it fits a message."""

MAX_COMMITMENT_DEPTH: Final = 32
"""Deepest tree of an owner's rows: paths of a KiB in every box."""

MAX_BOX_BYTES: Final = MAX_CONTENT_BYTES + 48 + 20 + 32 * MAX_COMMITMENT_DEPTH
"""Longest sealed box: a content, 32 bytes of ephemeral key and 16 of authentication, and what shows that its
row was committed to (`hushbid.protocol.crypto.commitment.Opening`)."""

MAP_BOX_BYTES: Final = 136
"""Length of a sealed map: a seed and a digest of 32 bytes each, in a box between two parties
(`hushbid.protocol.crypto.sealing.BETWEEN_BYTES`)."""

MAX_OWNERS: Final = 10_000
"""Most owners of a session."""

MAX_POINTS: Final = 10_000_000
"""Most points that a session may acquire, and so most rounds."""

MAX_HERDED: Final = 2**14
"""Most points that a tender chooses: scores stay whole numbers below 2^53, which float64 adds exactly."""

MIN_DIMENSION: Final = 4
"""Fewest coordinates of a feature map: with fewer, a coordinate on the grid exceeds int16."""

MAX_DIMENSION: Final = 4096
"""Most coordinates of a session's feature map: with more, scores may be inexact in float64. With jitter, a
broadcast weight has one more.
"""

MAX_BASIS: Final = 2**18
"""Most coordinates of a basis over all its directions: half a MiB. With a sealed map for each of `MAX_OWNERS`
owners, it fits `MAX_TARGET_BYTES`.
"""

MAX_FEATURES: Final = 2**15
"""Most coordinates of a feature map outside sessions, where features are summed and nothing is scored."""

MAX_COLUMNS: Final = 100_000
"""Most feature columns of a raw point."""

MAX_WEIGHT: Final = 2.0**8
"""Largest magnitude of a broadcast weight's coordinate; larger ones are clipped, which is
post-processing of a release. With it, a score is a sum of at most `MAX_DIMENSION` products whose
partial sums stay under 2^53 grid units in any order: exact in float64."""

MAX_EMBEDDING: Final = 2.0**16
"""Largest magnitude of a released target's coordinate; beyond it noise dominates everything."""

MAX_UNACKNOWLEDGED: Final = 8
"""Most frames that a peer may leave unacknowledged when it sends one of its own."""

MAX_HELD_PER_PEER: Final = 16
"""Most frames held for a peer that has not acknowledged them."""

MAX_EVENTS_PER_DRAIN: Final = 4096
"""Most frames taken from a socket before the journal is committed and effects leave."""

MAX_BYTES_PER_DRAIN: Final = 16 * 2**20
"""Bytes of frames after which the curator's socket is not read until these are processed; the frame that
reaches the limit is the last.
"""

DELIVERY_CHUNK_BYTES: Final = 4 * 2**20
"""Bytes of raw points per part of a delivery."""

MAX_PURCHASES: Final = 16_384
"""Most points in one part of a delivery: at 256 bytes each, the least counted for a point, they reach
`DELIVERY_CHUNK_BYTES`.
"""

MAX_REFUSALS_PER_PEER: Final = 20
"""Refusals of a peer, each on its own connection, after which its new connections are ignored."""

MAX_HELLOS_PER_PEER: Final = 10_000
"""Most connections of a peer that are listened to in one session."""

MAX_CONNECTIONS_PER_PEER: Final = 2
"""Most simultaneous connections of a peer: the one that it lost, and its replacement."""

MAX_UNNAMED_CONNECTIONS: Final = 256
"""Most simultaneous connections that have sent nothing under a key of the roster: strangers, and peers in
their handshake.
"""

MIN_UNNAMED_CONNECTIONS: Final = 16
"""This many are admitted even if their frames are long; `MAX_UNNAMED_BYTES` is then exceeded slightly. A
curator whose limit of open files leaves fewer does not start.
"""

DESCRIPTORS_PER_CONNECTION: Final = 2
"""Descriptors that a connection of a peer takes: ZeroMQ's, and a copy that shows how the connection ended."""

CURATOR_DESCRIPTORS: Final = 32
"""Descriptors for what a curator opens after its start: ZeroMQ's own, transcript, boxes, and metrics."""

DESCRIPTORS_KEPT_BACK: Final = 32
"""Descriptors that no connection gets: ZeroMQ accepts faster than a crowd is cut, and may take all others."""

MAX_UNNAMED_BYTES: Final = 32 * 2**20
"""Bytes that all unnamed connections together can make the curator hold."""

MAX_PORT: Final = 65_535
"""The last port of TCP."""

MAX_WAITING_CONNECTIONS: Final = 1024
"""Most connections waiting in the kernel to be accepted."""

PEER_QUEUE_FRAMES: Final = 64
"""Most frames waiting in ZeroMQ to be sent to a peer: all frames held for it, and signs of life."""

ARRIVED_QUEUE_FRAMES: Final = 8
"""Most frames of the curator's waiting in ZeroMQ to be read by an owner or the consumer. The protocol's turns
leave one or two in transit; the rest stays with the curator.
"""

MAX_ERROR_DETAIL: Final = 400
"""Longest explanation in a refusal, in characters."""

MAX_REQUEST_FILE_BYTES: Final = 2**14
"""Longest file of a key request: about 400 bytes, plus any notes."""

MAX_INVITATION_FILE_BYTES: Final = 8 * 2**20
"""Longest file of an invitation: the roster of `MAX_OWNERS` owners takes about 1 MB, and the bounds of
`MAX_COLUMNS` columns about 5 MB.
"""

MAX_ENTRY_FILE_BYTES: Final = 16 * 2**20
"""Longest file of a catalogue entry: a sketch of 1,000 rows and 1,000 columns takes 8 MB at most."""

MAX_TARGET_FILE_BYTES: Final = 32 * 2**20
"""Longest file of a stored release of the consumer: a sketch's release and its noise."""

MAX_RECORD_PART_BYTES: Final = 2**30
"""Longest public or private part of a transcript's record, in bytes."""
