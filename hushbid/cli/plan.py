"""`hushbid plan`: an estimate of a session before anybody takes part in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hushbid.cli.terminal import Terminal
from hushbid.plan.planning import PlanOptions, plan_session
from hushbid.protocol.runtime.command import JsonOption, say, takes, verb

__all__ = ["plan_command"]


@takes(PlanOptions)
@verb()
def plan_command(options: PlanOptions, as_json: JsonOption = False) -> dict[str, Any]:
    """Estimate a session before it runs: noise, error, points seen, bytes, time, and whether to run it.

    Options override the file. Without a file, --owners, --points, --validation and --epsilon are required.
    """
    from hushbid.plan.terminal import render

    plan = plan_session.of(replace(options, say=say))
    render(plan, Terminal(stderr=as_json))
    return plan.as_json()
