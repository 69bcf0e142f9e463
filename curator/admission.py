"""Checks of a hello before the welcome, and of commitments and a target before their use."""

from __future__ import annotations

from typing import Final

import numpy as np

from hushbid.protocol import limits
from hushbid.protocol.errors import Offence, RemoteProtocolError
from hushbid.protocol.machine.participant import CURATOR_LACKS
from hushbid.protocol.privacy.releases.prior import LARGEST_TOTAL
from hushbid.protocol.session.points import signs_rows
from hushbid.protocol.session.session import Session
from hushbid.protocol.space.grid import FEATURE_UNIT
from hushbid.protocol.wire.link import Link
from hushbid.protocol.wire.messages import Commitment, Hello, NestedTarget, SubspaceTarget, Target

__all__ = ["check_commitment", "check_hello", "check_target"]

_THE_FILE: Final = "Get the curator's session file. If it is that already, the peer's release is older:"
_SAME_RELEASE: Final = "use the same release of hushbid on both sides"
_NUMBERED: Final = ", or `session.numbered = false` in the session file of all parties"


def check_hello(peer: str, role: str, session: Session, hello: Hello, link: Link | None) -> None:
    """Check a hello against the roster, our version, our session file, and the earlier exchange.

    Args:
        peer: The roster name that goes with the connection's key, with its `role` there.
        link: The frames exchanged in this session, if any.

    Raises:
        RemoteProtocolError: `UNKNOWN_PEER`, `VERSION`, `CONFIGURATION` or `STATE_LOST`.
    """
    if hello.name != peer or hello.role != role:
        raise RemoteProtocolError(
            Offence.UNKNOWN_PEER,
            f"The key is that of the {role} {peer}, the hello says {hello.role} {hello.name}.",
            advice="Use the key that the roster names for this party.",
        )
    # Who offers a later version has a release that knows ours: its session file asks for the other one.
    is_later = max(hello.versions) > session.protocol_version and hello.session != session.digest
    if session.protocol_version not in hello.versions and not is_later:
        raise RemoteProtocolError(
            Offence.VERSION,
            f"No common version: with the rule {session.rule.name} the curator speaks "
            f"{session.protocol_version}, the peer {list(hello.versions)}.",
            advice=f"{_THE_FILE} {_SAME_RELEASE}{_NUMBERED if session.file.numbered else ''}.",
        )
    if hello.session != session.digest:
        raise RemoteProtocolError(
            Offence.CONFIGURATION,
            "The session file of the peer is not the curator's: their digests differ.",
            advice="Get the curator's session file and start again.",
        )
    _check_state(hello, link or Link())


def _check_state(hello: Hello, link: Link) -> None:
    """Check that neither side has forgotten anything: only then can both resend what the other lacks."""
    resendable_from = link.held[0][0] - 1 if link.held else link.sent
    if hello.received > link.sent:
        raise RemoteProtocolError(
            Offence.STATE_LOST,
            f"{CURATOR_LACKS} {hello.received} frames of this session; by our record it was sent "
            f"{link.sent}.",
            advice="The curator was started again without its transcript. Start it with the state directory "
            "that has it, or start a new session.",
        )
    if hello.sent < link.received or hello.received < resendable_from:
        raise RemoteProtocolError(
            Offence.STATE_LOST,
            f"The peer has sent {hello.sent} and received {hello.received} frames; "
            f"by our record it is {link.received} and {resendable_from} to {link.sent}.",
            advice="It was started again without its transcript, or runs twice. Start it with the state "
            "directory that has it.",
        )


def check_commitment(owner: str, commitment: Commitment, session: Session) -> None:
    """Raise `RemoteProtocolError` (`MISMATCH`) unless an owner signed the root of its rows."""
    if not signs_rows(session, owner, commitment):
        raise RemoteProtocolError(
            Offence.MISMATCH,
            "An owner's commitment to its rows is not signed by it.",
            advice="Use the key that the roster names for this party.",
        )


def check_target(target: Target, session: Session) -> None:
    """Raise `RemoteProtocolError` (`MALFORMED`) unless a target's shapes and seed total are possible."""
    space = session.space
    dimension = space.dimension
    if target.embedding.shape != (dimension,) or target.seed_total.shape != (dimension,):
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The target's embeddings do not have {dimension} coordinates."
        )
    finer = target.finer if isinstance(target, NestedTarget) else None
    if (finer is not None) is not (session.nested is not None):
        raise RemoteProtocolError(
            Offence.MALFORMED, "The target has a release for the curator alone, or lacks it."
        )
    if finer is not None and finer.shape != (dimension,):
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The curator's release does not have {dimension} coordinates."
        )
    largest = max(float(np.abs(each).max()) for each in (target.embedding, finer) if each is not None)
    if largest > limits.MAX_EMBEDDING:
        raise RemoteProtocolError(
            Offence.MALFORMED, f"A coordinate of the target is over the limit of {limits.MAX_EMBEDDING:.0f}."
        )
    bound = min(target.seed_size * space.coordinate_bound / FEATURE_UNIT, LARGEST_TOTAL)
    # The maximum and minimum are checked separately: -2^63 has no absolute value in int64.
    if max(int(target.seed_total.max()), -int(target.seed_total.min())) > bound:
        raise RemoteProtocolError(Offence.MALFORMED, "The seed set's total is larger than its size allows.")
    basis = target.basis.size if isinstance(target, SubspaceTarget) else 0
    if basis != session.directions * dimension:
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"The target has {basis} numbers of a basis; those of {session.directions} directions were due.",
        )
    if target.noise != session.noise_name(session.target):
        raise RemoteProtocolError(
            Offence.MALFORMED,
            f"The target's noise is not called {session.noise_name(session.target)}, as the session's is.",
        )
    boxes = limits.MAP_BOX_BYTES * len(session.file.owners) if session.rule.sealed else 0
    if len(target.maps) != boxes:
        raise RemoteProtocolError(
            Offence.MALFORMED, f"The feature map is sealed in {len(target.maps)} bytes; {boxes} were due."
        )
