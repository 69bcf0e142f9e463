"""How a launcher words the failures of parties' processes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hushbid.protocol.errors import ExitCode
from hushbid.protocol.machine.progress import MOST_NAMED, Progress
from hushbid.running.failures import TELLING, account_of, gone_for_good, party_failed
from tests.support.session_files import load

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


ROUND = Progress(
    party="curator", phase="rounds", round=3, rounds=5, points=None, points_planned=5,
    points_per_second=None, seconds_left=None, owners_connected=1, owners=3,
)  # fmt: skip
OWNERS = ("alpha", "beta", "gamma")
IN_ROUNDS = {"session.points": 5, "session.batch": 1, "session.min_owners": 2}
TENDER = {"acquisition.rule": "tender", "summary": None, "session.min_owners": 2}
MOST = tuple(f"owner-{number}" for number in range(10))
NAMED = MOST[:MOST_NAMED]
MANY = {"roster.owners": dict.fromkeys(MOST, ""), "session.min_owners": 1}
CAPPED = IN_ROUNDS | {"wishes.caps": {"alpha": 1, "beta": 4}, "session.min_owners": 1}
"""Alpha has a turn in round 1, and beta in the other four."""


def only(**changes: Any) -> Progress:
    """Progress in the only round."""
    return replace(ROUND, round=1, rounds=1, **changes)


@pytest.mark.parametrize(
    ("session", "seen", "failed", "gone"),
    [
        pytest.param(IN_ROUNDS, ROUND, OWNERS[:2], OWNERS[:2], id="too few are left"),
        pytest.param(IN_ROUNDS, ROUND, OWNERS[:1], (), id="enough are left"),
        pytest.param(
            IN_ROUNDS, replace(ROUND, round=5), OWNERS, (), id="they may have bid in the last round"
        ),
        pytest.param(
            IN_ROUNDS,
            replace(ROUND, round=5, paused=True),
            OWNERS,
            OWNERS,
            id="it waits for them",
        ),
        pytest.param(IN_ROUNDS, replace(ROUND, phase="delivering"), OWNERS, (), id="they are not needed"),
        pytest.param(CAPPED, ROUND, ("beta",), (), id="another bids in later rounds"),
        pytest.param(
            CAPPED, replace(ROUND, paused=True), ("beta", "gamma"), ("beta", "gamma"), id="no one has a turn"
        ),
        pytest.param(TENDER, only(missing=OWNERS[1:]), OWNERS[1:], OWNERS[1:], id="they did not submit"),
        pytest.param(TENDER, only(missing=OWNERS[2:]), OWNERS, (), id="others had submitted"),
        pytest.param(TENDER, only(missing=OWNERS), OWNERS[:1], (), id="others may come back"),
        pytest.param(TENDER | MANY, only(missing=NAMED), MOST, (), id="who is not named may be done"),
        pytest.param(
            TENDER | MANY | {"session.min_owners": 3},
            only(missing=NAMED),
            MOST,
            NAMED,
            id="who is named is enough",
        ),
        pytest.param(
            TENDER | MANY, only(missing=NAMED, paused=True), MOST, MOST, id="who is not named is not"
        ),
    ],
)
def test_a_run_ends_where_a_session_waits_for_owners_in_vain(
    session: dict[str, Any], seen: Progress, failed: tuple[str, ...], gone: tuple[str, ...]
) -> None:
    assert gone_for_good(load(session), seen, failed) == list(gone)


def test_every_way_to_end_has_a_place_among_failures() -> None:
    assert set(TELLING) == set(ExitCode)
