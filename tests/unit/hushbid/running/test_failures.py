"""How a launcher words the failures of parties' processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hushbid.protocol.errors import ExitCode
from hushbid.running.failures import TELLING, account_of, party_failed

NO_ROOM = "state/curator.transcript: cannot write the transcript: No space left on device."
ADVICE = "Make room on the disk, then start this party again."
LOG = (
    "hushbid: an error of an earlier start",
    "2026-11-28T19:21:41.144Z curator INFO session.phase [delivering 1] phase delivering begins",
    f"hushbid: {NO_ROOM}",
    "         Nothing unrecorded was sent.",
    f"         {ADVICE}",
    "Exception ignored while flushing sys.stdout:",
    "         OSError: [Errno 28] No space left on device",
)


def ended(log: tuple[str, ...] = (), result: dict[str, Any] | None = None) -> Any:
    """A process that ended with code 6."""
    return SimpleNamespace(
        party=SimpleNamespace(name="curator", directory="parties/curator"),
        signal=None,
        exit_code=ExitCode.SHORTAGE,
        result=lambda: result,
        log_tail=lambda lines: list(log[-lines:]),
    )


SAID = {"error": {"what": "It said so.", "advice": "Do this."}}


@pytest.mark.parametrize(
    ("process", "what", "advice"),
    [
        pytest.param(ended(LOG, SAID), "It said so.", "Do this.", id="in its result"),
        pytest.param(ended(LOG), NO_ROOM, f"Nothing unrecorded was sent. {ADVICE}", id="in its log"),
        pytest.param(ended(LOG[2:3], {}), NO_ROOM, "See parties/curator.", id="and the log was cut off"),
        pytest.param(
            ended(LOG[1:2]),
            "its process ended with code 6 and did not say why.",
            "See parties/curator.",
            id="nowhere",
        ),
    ],
)
def test_a_failed_process_is_accounted_for_by_its_own_error(process: Any, what: str, advice: str) -> None:
    assert account_of(process) == (what, advice)
    error, said = party_failed([process])
    assert (error.what, error.advice, error.exit_code) == (f"curator: {what}", advice, ExitCode.SHORTAGE)
    assert said == (what, advice), "what need not be printed twice"


def test_every_way_to_end_has_a_place_among_failures() -> None:
    assert set(TELLING) == set(ExitCode)
