"""`hushbid plan` and `hushbid.plan_session`: what a session would come to, before anybody takes part."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from protocol.runtime.command import by_option, keywords_of, option
from protocol.runtime.given_tables import GivenPath, path_of

__all__ = ["PlanFlags", "PlanOptions", "plan_session"]


def _owner_count(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is no number of owners, as 5 is. How many points each has goes into --owner-points; "
        "`hushbid advise --owners` takes sizes by name."
    )


@dataclass(frozen=True, kw_only=True)
class PlanFlags:
    """What is said besides a file; None: nothing, so that the file's value holds, or what is assumed.

    Attributes:
        owners: K.
        points: p.
        validation: m = |D_v|.
        dimension: d.
        owner_points: n, points of each owner.
        seed_points: |D_init|.
        columns: c, columns of a raw point.
        epsilon_owners: ε of the owners' records, of all of the curator's releases together.
        epsilon_consumer: ε of the consumer's validation set, of its one release.
        epsilon_asks: `epsilon` of the rules that have one.
        batch, seed_weight: Of ``[session]``.
        delta: δ of every ε.
        rule: Acquisition rule.
        release: Release mechanism of both sides.
    """

    owners: int | None = option(
        int | None, parser=_owner_count, help="K, the number of owners.", metavar="INTEGER"
    )
    points: int | None = option(int | None, min=1, help="p, points to buy.")
    batch: int | None = option(int | None, min=1, help="b, points that a round buys; default: p/50.")
    seed_weight: float | None = option(
        float | None, help="s, what a point of the seed set counts for; default: 0.1."
    )
    validation: int | None = option(int | None, min=1, help="m, points of the consumer's validation set.")
    dimension: int | None = option(int | None, min=1, help="d of the feature map; default: 140.")
    owner_points: int | None = option(int | None, min=1, help="Points of each owner; default: 10,000.")
    seed_points: int | None = option(int | None, min=1, help="Points of the public seed set; default: 150.")
    columns: int | None = option(int | None, min=1, help="Columns of a point; default: 100.")
    epsilon_owners: float | None = option(float | None, help="ε of one record of one owner, over all rounds.")
    epsilon_consumer: float | None = option(float | None, help="ε of one record of the validation set.")
    epsilon_asks: float | None = option(
        float | None, help="ε of the rules that ask by one: logistic, published."
    )
    delta: float | None = option(float | None, help="δ of every ε; default: 1e-5.")
    rule: str | None = option(str | None, help="Acquisition rule; default: sealed.")
    release: str | None = option(
        str | None, help="Release mechanism of both sides; default: filtered-gaussian."
    )

    def given(self) -> dict[str, Any]:
        """What is not None, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(PlanFlags)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PlanFlags):
    """What is planned.

    Attributes:
        file: A session file or a cluster file; without one `owners`, `points`, `validation` and both ε are
            needed.
        data: Where a cluster file's dataset lies.
        wanted: Share of the owners' points that are like the target, in (0, 1].
        round_trip: Milliseconds that a frame and its answer are under way.
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
        Path | None, "--data", help="Where a cluster file's dataset lies.", envvar="HUSHBID_DATA"
    )
    wanted: float | None = option(
        float | None, help="Share of the owners' points that are like the target, in (0, 1]."
    )
    round_trip: float = option(
        float, default=100.0, min=0.0, help="Milliseconds that a frame and its answer are under way."
    )


@keywords_of(PlanOptions)
def plan_session(options: PlanOptions) -> dict[str, Any]:
    """Plan a session; arguments are the attributes of `PlanOptions`.

    Returns:
        Every figure, under the names of docs/plan.md.

    Raises:
        ConfigError: A value that is missing, unknown or out of range.
        DataError: A cluster file's data cannot be used.
    """
    from hushbid.plan.result import make_plan
    from hushbid.plan.setting import plan_setting
    from hushbid.plan.speed import measure_speed
    from protocol.runtime.party import with_one_blas_thread

    with with_one_blas_thread():  # as the parties' processes do
        setting = plan_setting(path_of(options.file), options, data=path_of(options.data))
        speed = measure_speed(setting)
        return make_plan(setting, speed, round_trip=options.round_trip / 1000.0, wanted=options.wanted)
