"""A party gives up a curator that is gone in time, whatever it still reads from the connection."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from hushbid.owner.party import owner_party
from hushbid.protocol.config.session import TimeoutSection
from hushbid.protocol.data import Dataset
from hushbid.protocol.errors import ExitCode
from hushbid.protocol.privacy.noise import SimulatedNoise
from hushbid.protocol.runtime.driver import Driver
from hushbid.protocol.runtime.network import connection
from hushbid.protocol.runtime.network.dealer import DealerEndpoint, Happening
from hushbid.protocol.runtime.telemetry.vitals import Vitals
from hushbid.protocol.session.session import Session, open_session
from hushbid.protocol.transcript.journal import NullJournal
from hushbid.protocol.transcript.session_file import started
from hushbid.protocol.wire.codec import Frame, encode_frame, encode_message, said_to
from hushbid.protocol.wire.messages import CONTROL_SEQUENCE, PROTOCOL_VERSION, Welcome
from tests.simulation.harness import names, session_file
from tests.unit.protocol.wire.test_wire import FRAMES

OWNER = names(1)[0]
ENROLMENT = 8.0
ABANDON = 0.3


class Scripted(DealerEndpoint):
    """An endpoint whose frames and events follow a script, turn by turn.

    Nobody listens where it really connects to.
    """

    script: deque[tuple[list[bytes], list[Happening]]]

    def receive(self, limit: int, *, wait_ms: int = 0) -> list[bytes]:
        return self.script[0][0] if self.script else super().receive(limit, wait_ms=wait_ms)

    def happenings(self) -> list[Happening]:
        return self.script.popleft()[1] if self.script else super().happenings()


def welcome(session: Session) -> bytes:
    """The frame with which a session's curator welcomes."""
    assert session.public_map is not None
    message = Welcome(version=PROTOCOL_VERSION, feature_map=session.public_map.digest, sent=0, received=0)
    return encode_frame(Frame(session.identifier, CONTROL_SEQUENCE, 0, encode_message(message)))


@pytest.mark.parametrize("read", ["nothing", "a beat", "a welcome"])
def test_a_frame_of_a_connection_that_has_ended_is_no_sign_that_the_curator_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    file = session_file(
        owners=(OWNER,), points=3, timeouts=TimeoutSection(enrolment=ENROLMENT, abandon=ABANDON, beat=0.05)
    )
    session = open_session(file)
    frames = {"nothing": [], "a beat": [FRAMES["beat"]], "a welcome": [welcome(session)]}
    monkeypatch.setattr(connection, "DealerEndpoint", Scripted)
    monkeypatch.setattr(connection, "LOOK_SECONDS", 0.0)
    Scripted.script = deque([([], [Happening.CONNECTED]), (frames[read], [Happening.DISCONNECTED])])
    rows = Dataset.from_arrays(OWNER, np.full((1, file.features.columns), 0.5))
    machine, numerics = owner_party(
        session, OWNER, rows, identity=None, noise=SimulatedNoise(0, OWNER), scratch=None, memory_limit=2**30
    )
    driver = Driver(machine, numerics, NullJournal(), session=session.identifier, direction=said_to(OWNER))
    vitals = Vitals(tmp_path, party=OWNER, role="owner", session=file)
    with connection.Connection(file, None) as way:
        finish = way.run(driver, machine, started(file), vitals, ahead=numerics.ahead)
    assert not Scripted.script
    assert finish.code is ExitCode.TIMEOUT
    assert driver.seconds < ENROLMENT
