"""`hushbid plan` and `hushbid.plan_session`: estimate a session before anybody takes part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hushbid.plan.flags import PlanFlags
from hushbid.protocol import ranges
from hushbid.protocol.runtime.command import by_option, keywords_of, option
from hushbid.protocol.runtime.given_tables import GivenPath, path_of

if TYPE_CHECKING:
    from hushbid.plan.result import Plan

__all__ = ["PlanOptions", "plan_session"]


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PlanFlags):
    """A request to plan: each option's help describes it.

    Without a file, `owners`, `points`, `validation` and both ε are required.

    Attributes:
        say: Receives lines on a rehearsal's progress, for people; None: not reported.
    """

    file: GivenPath = field(
        default=None,
        kw_only=False,
        metadata=by_option(
            Annotated[
                Path | None,
                typer.Argument(help="A session file, or a cluster file.", metavar="SESSION_OR_CLUSTER.toml"),
            ]
        ),
    )
    data: GivenPath = option(
        Path | None, "--data", help="Directory of a cluster file's dataset.", envvar="HUSHBID_DATA"
    )
    outside: Literal["refuse", "clip", "drop"] | None = option(
        Literal["refuse", "clip", "drop"] | None,
        help="Treatment of rows that do not fit, in tables that a cluster file names; overrides its "
        "`outside`.",
        envvar="HUSHBID_OUTSIDE",
    )
    wanted: float | None = option(
        ranges.Share | None, help="Share of the owners' points that resemble the target."
    )
    theory: bool = option(
        bool,
        "--theory",
        default=False,
        help="Show the conditions and guarantees of the first paper's theorems.",
    )
    round_trip: float = option(
        float,
        default=100.0,
        min=0.0,
        help="Network round-trip time of a frame and its answer, in milliseconds.",
    )
    rehearsal: bool = option(
        bool,
        "--rehearsal/--no-rehearsal",
        default=True,
        help="With a cluster file's data: play the session and base the verdict on it.",
        envvar="HUSHBID_REHEARSAL",
    )
    say: Callable[[str], object] | None = None


@keywords_of(PlanOptions)
def plan_session(options: PlanOptions) -> Plan:
    """Plan a session; arguments are the attributes of `PlanOptions`.

    Returns:
        Every figure, under the names of docs/plan.md, as fields and as the keys of a mapping.

    Raises:
        ConfigError: A value is missing, unknown or out of range.
        DataError: A cluster file's data cannot be used.
    """
    from hushbid.plan.result import make_plan
    from hushbid.plan.setting import plan_setting
    from hushbid.plan.speed import measure_speed
    from hushbid.plan.tables import rounds_told
    from hushbid.plan.verdict import Rehearsing, gaps_filled
    from hushbid.plan.wanted import check_share
    from hushbid.plan.with_data import rehearsed
    from hushbid.protocol.names import CONSUMER
    from hushbid.protocol.runtime.blas_threads import one_blas_thread
    from hushbid.protocol.session.guarantee import weak_lines

    if options.wanted is not None:
        check_share(options.wanted)
    with one_blas_thread():  # as the parties' processes do
        data = path_of(options.data)
        setting = plan_setting(path_of(options.file), options, data=data, outside=options.outside)
        how = Rehearsing(wanted=options.rehearsal, say=options.say or (lambda _line: None))
        if options.file is None and (told := rounds_told(options)):
            how.say(told)
        if not setting.refusal:
            for line in weak_lines(setting.session().privacy()):
                how.say(line)
        if setting.data is not None:
            held = {name: [each] for name, each in setting.data.owners.items()}
            for line in gaps_filled({CONSUMER: setting.data.consumers, **held}):
                how.say(line)
        played = rehearsed(setting, how)
        speed = measure_speed(setting)
        return make_plan(
            setting,
            speed,
            round_trip=options.round_trip / 1000.0,
            wanted=options.wanted,
            theory=options.theory,
            played=played,
        )
