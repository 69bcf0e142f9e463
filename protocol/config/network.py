"""Tables of a session file that affect no computation: the curator's address, and how long parties wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from hushbid.protocol import ranges
from hushbid.protocol.config.section import FINITE, Section, matches

__all__ = ["NetworkSection", "TimeoutSection"]

Seconds = Annotated[ranges.Seconds, FINITE]


class TimeoutSection(Section):
    """``[timeouts]``: how long a party waits, in seconds."""

    enrolment: Seconds = 60.0
    """For owners, the consumer and its target to arrive."""
    round: Seconds = 10.0
    """For an owner's answer; an owner without one is absent."""
    pause: Seconds = 300.0
    """For enough owners to return."""
    delivery: Seconds = 300.0
    """For the consumer's receipt of a part."""
    comeback: Seconds = 10.0
    """For a peer whose connection is lost, before the round continues without it."""
    closing: Seconds = 10.0
    """For the farewells."""
    beat: Seconds = 0.5
    """Between signs of life."""
    silence: Seconds = 3.0
    """Until a silent peer counts as gone."""
    abandon: Seconds = 60.0
    """Until an owner or consumer gives up on a silent curator."""


class NetworkSection(Section):
    """``[network]``: the curator's address."""

    address: Annotated[
        str,
        StringConstraints(max_length=300),
        matches(r"tcp://.+:(\d+|\*)", "not an address: tcp://HOST:PORT"),
    ]
    insecure: bool = False
    """Disables CURVE; on loopback only."""
