"""`hushbid plan`: what a session would come to, before anybody takes part in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from protocol.runtime.command import run_verb

__all__ = ["plan_command"]


def _owner_count(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is no number of owners, as 5 is. How many points each has goes into --owner-points; "
        "`hushbid advise --owners` takes sizes by name."
    )


def plan_command(
    file: Annotated[
        Path | None,
        typer.Argument(help="A session file, or a cluster file.", metavar="SESSION_OR_CLUSTER.toml"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Where a cluster file's dataset lies.", envvar="HUSHBID_DATA"),
    ] = None,
    owners: Annotated[
        int | None, typer.Option(parser=_owner_count, help="K, the number of owners.", metavar="INTEGER")
    ] = None,
    points: Annotated[int | None, typer.Option(min=1, help="p, points to buy.")] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="b, points that a round buys; default: p/50.")
    ] = None,
    seed_weight: Annotated[
        float | None, typer.Option(help="s, what a point of the seed set counts for; default: 0.1.")
    ] = None,
    validation: Annotated[
        int | None, typer.Option(min=1, help="m, points of the consumer's validation set.")
    ] = None,
    dimension: Annotated[int | None, typer.Option(min=1, help="d of the feature map; default: 140.")] = None,
    owner_points: Annotated[
        int | None, typer.Option(min=1, help="Points of each owner; default: 10,000.")
    ] = None,
    seed_points: Annotated[
        int | None, typer.Option(min=1, help="Points of the public seed set; default: 150.")
    ] = None,
    columns: Annotated[int | None, typer.Option(min=1, help="Columns of a point; default: 100.")] = None,
    epsilon_owners: Annotated[
        float | None, typer.Option(help="ε of one record of one owner, over all rounds.")
    ] = None,
    epsilon_consumer: Annotated[
        float | None, typer.Option(help="ε of one record of the validation set.")
    ] = None,
    epsilon_asks: Annotated[
        float | None, typer.Option(help="ε of the rules that ask by one: logistic, published.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ of every ε; default: 1e-5.")] = None,
    rule: Annotated[str | None, typer.Option(help="Acquisition rule; default: sealed.")] = None,
    release: Annotated[
        str | None, typer.Option(help="Release mechanism of both sides; default: filtered-gaussian.")
    ] = None,
    wanted: Annotated[
        float | None,
        typer.Option(help="Share of the owners' points that are like the target, in (0, 1]."),
    ] = None,
    round_trip: Annotated[
        float,
        typer.Option(min=0.0, help="Milliseconds that a frame and its answer are under way."),
    ] = 100.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what a session would come to: noise, error, points seen, bytes, time, and whether to run it.

    Options go before what the file says. Without a file --owners, --points, --validation, and both ε, are
    needed.
    """

    def body() -> dict[str, Any]:
        from hushbid.plan.result import make_plan, render
        from hushbid.plan.setting import plan_setting
        from hushbid.plan.speed import measure_speed
        from hushbid.plan.tables import PlanFlags
        from protocol.runtime.party import one_blas_thread

        one_blas_thread()  # as the parties' processes do
        flags = PlanFlags(
            owners=owners,
            points=points,
            batch=batch,
            seed_weight=seed_weight,
            validation=validation,
            dimension=dimension,
            owner_points=owner_points,
            seed_points=seed_points,
            columns=columns,
            epsilon_owners=epsilon_owners,
            epsilon_consumer=epsilon_consumer,
            epsilon_asks=epsilon_asks,
            delta=delta,
            rule=rule,
            release=release,
        )
        setting = plan_setting(file, flags, data=data)
        plan = make_plan(setting, measure_speed(setting), round_trip=round_trip / 1000.0, wanted=wanted)
        render(plan, Console(stderr=as_json))
        return plan

    run_verb(body, as_json=as_json)
