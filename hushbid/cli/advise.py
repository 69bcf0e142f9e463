"""`hushbid advise`: settings for a session, proposed from a validation set and the owners' sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from hushbid.owner.role import FeaturesOption, IdentifierOption, LabelOption
from hushbid.protocol import ranges
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.printable import printable
from hushbid.protocol.runtime.command import say, verb
from hushbid.protocol.runtime.ranged import ranged
from hushbid.tables.options import OutsideOfTablesOption

if TYPE_CHECKING:
    from rich.table import Table

    from hushbid.advice.proposal import Advice
    from hushbid.advice.trials import Bounds, Trial
    from hushbid.protocol.config.labels import LabelsSection
    from hushbid.protocol.config.session import SessionFile
    from hushbid.protocol.data.dataset import DataColumns, Outside

__all__ = ["advise_command"]

_WIDTH: Final = 80
"""Maximum width of the tables, in terminal columns."""
_YOURS_ALONE: Final = "The results and the kernel depend on the validation set: keep them to yourself."
_YOURS_BESIDE_PUBLIC: Final = (
    "Statements about the validation set itself are for you alone; everything else follows from public rows."
)


def _show(printed: Mapping[str, Any]) -> None:
    from hushbid.advice.proposal import Advice
    from hushbid.cli.terminal import Terminal

    advice, next_steps = Advice.from_json(printed), printed["next_steps"]
    console = Terminal(highlight=False)
    console.width = min(console.width, _WIDTH)
    console.print(_proposals(advice))
    console.print(_trials(advice))
    console.print()
    if advice.effect is not None and not advice.reached:
        first = advice.trials[0]
        where, worse = "", ""
        if first.rehearsal is not None:
            where, worse = " both where 1/10 and where 1/50 is wanted", ", in the worse of the two"
        console.print(
            f"No ε of those tried comes to {advice.effect:g} of a random choice's MMD²{where}; the proposal "
            f"comes to {first.ratio:.2f} at ε = {first.epsilon:g}{worse}. More rows of validation data make "
            "the noise less; or buy at random and weigh (`hushbid weigh`).\n"
        )
    console.print(f"Verdict: {advice.called}. {advice.reason}\n")
    if advice.own is not None:
        own = "\n".join(advice.own.lines())
        console.print(f"The proposal, rehearsed with the validation set itself:\n{own}\n")
    for note in advice.notes:
        console.print(f"{note}\n")
    if advice.disclosed and not next_steps:  # otherwise it was printed when the file was written
        console.print(f"{advice.disclosure}\n")
    console.print(_YOURS_BESIDE_PUBLIC if advice.public else _YOURS_ALONE)
    for step in next_steps:
        console.print(f"  {step}", soft_wrap=True)


def _proposals(advice: Advice) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("setting", no_wrap=True)
    table.add_column("value", justify="right", overflow="fold", max_width=16)
    table.add_column("why", ratio=1)
    for each in advice.proposals:
        own = "*" if each.source == "validation" else ""
        table.add_row(f"{each.setting}{own}", _value(each.value), printable(each.why))
    if advice.disclosed:
        table.caption = "* follows from the validation set"
        table.caption_justify = "left"
    return table


def _value(value: Any) -> str:
    match value:
        case {"lower": float(low), "upper": float(high)}:
            return f"{low:g} to {high:g}"
        case dict():
            return "per column"
        case int() | float():
            return f"{value:,}" if isinstance(value, int) else f"{value:g}"
        case "a part" | "no part":
            return str(value)
        case _:
            return "a file"


def _trials(advice: Advice) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    rehearsed = advice.trials[0].rehearsal is not None
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", caption_justify="left")
    table.title = "Trials: MMD² over a random choice's"
    if rehearsed:
        table.title += ", both with weights, where all, 1/10, 1/50 of the owners' points are wanted"
    else:
        table.title += ", by the rule of thumb of `hushbid plan`"
    ratios = ("all", "1/10", "1/50") if rehearsed else ("MMD²",)
    for head in ("γ", "d", "ε", "kernel", "reach", *ratios, ""):
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    first = advice.trials[0]
    for trial in advice.trials:
        figures = [f"{trial.ratio:.2f}"]
        if trial.rehearsal is not None:
            figures = [f"{each.ratio:.2f}" for each in trial.rehearsal.staged[: len(ratios)]]
        table.add_row(
            f"{trial.gamma:g}",
            str(trial.dimension),
            f"{trial.epsilon:g}",
            f"{trial.kernel:.2f}",
            f"{trial.reach:.2f}",
            *figures,
            _difference(trial, first),
            style="bold" if trial is first else None,
        )
    table.caption = (
        "kernel: mean kernel value of two rows. reach: the distance at which two rows are half alike, on "
        "columns scaled to [0, 1]. Each γ is judged by its own kernel: ratios of two γ do not compare."
    )
    return table


def _difference(trial: Trial, first: Trial) -> str:
    if trial is first:
        return "proposed"
    if trial.gamma != first.gamma:
        return "double width" if trial.gamma < first.gamma else "half width"
    return "other ε" if trial.epsilon != first.epsilon else "other d"


@verb(show=_show)
def advise_command(
    validation: Annotated[
        Path,
        typer.Argument(
            help="D_v: the purchase should resemble it.", metavar="VALIDATION", show_default=False
        ),
    ],
    session: Annotated[
        Path | None,
        typer.Option(
            help="A session or cluster file: its [\\[columns]], if any, and its bounds apply to the tables; "
            "default: the file of --into.",
            metavar="FILE",
        ),
    ] = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    identifier: IdentifierOption = None,
    outside: OutsideOfTablesOption = None,
    public: Annotated[
        Path | None,
        typer.Option(help="Public rows of the same kind, used in place of D_v in every calculation."),
    ] = None,
    seed_set: Annotated[
        Path | None,
        typer.Option(
            help="D_init; default: that of the cluster file, or a drawn one.", envvar="HUSHBID_SEED_SET"
        ),
    ] = None,
    lower: Annotated[
        str | None, typer.Option(help="Public lower bounds: one number, or one per column: 0,0,18.")
    ] = None,
    upper: Annotated[str | None, typer.Option(help="Public upper bounds.")] = None,
    owners: Annotated[
        str | None, typer.Option(help="The owners' sizes: 5000,3000, or north=5000,south=3000.")
    ] = None,
    wanted: Annotated[
        float | None, ranged(ranges.Share, help="Share of the owners' points that resemble D_v.")
    ] = None,
    points: Annotated[int | None, ranged(ranges.Points, help="p, if it is already fixed.")] = None,
    gamma: Annotated[float | None, ranged(ranges.Gamma, help="γ, if it is already fixed.")] = None,
    dimension: Annotated[int | None, ranged(ranges.Dimension, help="d, if it is already fixed.")] = None,
    epsilon: Annotated[
        float | None, ranged(ranges.Epsilon, help="ε of both sides, if it is already fixed.")
    ] = None,
    column_values: Annotated[
        int | None,
        ranged(
            ranges.ColumnValues,
            help="Maximum number of distinct values per column, by its kind: 256 for bytes. Default: any "
            "number.",
        ),
    ] = None,
    effect: Annotated[
        float | None,
        ranged(ranges.Positive, help="The ratio to a random choice's MMD² that ε must reach; default: 0.5."),
    ] = None,
    choice: Annotated[
        Literal["features", "labels"] | None,
        typer.Option(
            help="Whether labels take part in the selection; default: tested on the public rows, if "
            "they have labels."
        ),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="All possible classes of a label, which are public: no,yes.")
    ] = None,
    amounts: Annotated[str | None, typer.Option(help="Range of numeric labels, also public: 0,500.")] = None,
    rehearsal: Annotated[
        bool, typer.Option(help="Simulate each setting with owners made from the validation set.")
    ] = True,
    write: Annotated[
        Path | None, typer.Option("--output", help="A new session file to write.", metavar="FILE")
    ] = None,
    name: Annotated[str, typer.Option(help="The session's name in that file.")] = "advised",
    into: Annotated[
        Path | None,
        typer.Option(help="A session or cluster file to update with the proposals.", metavar="FILE"),
    ] = None,
) -> dict[str, Any]:
    """Propose γ, d, p, b, ε and δ for a session, each with its reason. This spends no ε.

    The printed text is the consumer's own view. The written file is public.
    """
    from hushbid.advice.files import (
        bounds_of,
        check_name,
        check_started,
        next_steps,
        owners_of,
        rounds_in,
        seeds_in,
        stated_in,
    )
    from hushbid.advice.labels import labels_given
    from hushbid.advice.proposal import advise
    from hushbid.advice.trials import SEED_POINTS, Request
    from hushbid.protocol.data import DataColumns, load_dataset
    from hushbid.protocol.data.names import split_names
    from hushbid.protocol.runtime.blas_threads import keep_one_blas_thread
    from hushbid.protocol.session.guarantee import weak_epsilon
    from hushbid.tables.delivery import gaps_told
    from hushbid.text_files import check_new_file

    keep_one_blas_thread()
    if write is not None and into is not None:
        raise ConfigError(
            "--output writes a new file, and --into updates an existing one.", advice="Give one."
        )
    if write is not None:
        check_new_file(write)
        check_name(name)
    if into is not None:
        check_started(into)
    bounds, schema, source = bounds_of(lower, upper), None, session or into
    if source is not None:
        schema, stated = stated_in(source)  # in any case: refuse the impossible before the work
        given, bounds = bounds, bounds or stated
        if schema is not None and given is not None:
            raise ConfigError(
                f"{source} has [[columns]], which say the bounds.",
                advice="Leave out --lower and --upper.",
            )
    seeds, drawn = seed_set, None
    if source is not None and seeds is None:
        seeds, drawn = seeds_in(source)
    columns, section = (
        DataColumns(split_names(features), label, identifier, schema),
        labels_given(classes, amounts),
    )
    with gaps_told(source):
        known = load_dataset(validation, _fitting(columns, outside, bounds, section).with_gaps())
        public_rows, seed_rows = (
            None if path is None else load_dataset(path, columns) for path in (public, seeds)
        )
    request = Request(
        validation=known,
        schema=schema,
        public=public_rows,
        seed_set=seed_rows,
        seed_points=drawn or SEED_POINTS,
        bounds=bounds,
        owners={} if owners is None else owners_of(owners),
        points=points,
        wanted=wanted,
        gamma=gamma,
        dimension=dimension,
        epsilon=epsilon,
        column_values=column_values,
        effect=effect,
        choice=choice,
        labels=section,
        in_rounds=source is not None and rounds_in(source),
        rehearse=rehearsal,
    )
    if epsilon is not None and (warning := weak_epsilon(epsilon)):
        say(warning)
    advice, file = advise(request, say=say)
    written = _written(advice, file, write, into, name, labelled=known.labels is not None)
    steps: list[str] = []
    if written is not None:
        steps = next_steps(
            written,
            validation=validation,
            request=request,
            seed_set=seeds,
            columns=columns,
            rehearsed=advice.trials[0].rehearsal is not None,
        )
    if known.changes is not None:
        say(f"{known.name}: {known.changes.said}")
    return {
        **advice.as_json(),
        "outside": known.changed.as_json(),
        "written": None if written is None else str(written.resolve()),
        "next_steps": steps,
    }


def _fitting(
    columns: DataColumns, outside: Outside | None, bounds: Bounds | None, labels: LabelsSection | None
) -> DataColumns:
    """How D_v is read; public rows and a seed set are read unchanged.

    Raises:
        ConfigError: Rows are to be clipped or dropped, and nothing gives the bounds.
    """
    from dataclasses import replace

    from hushbid.protocol.data.dataset import Allowed

    if outside is None or outside == "refuse":
        return columns
    known = columns.schema or bounds
    if known is None:
        raise ConfigError(
            f"--outside {outside} needs bounds, and there are none but those that public rows would give.",
            advice="Give --lower and --upper, or a file with [[columns]] (--session).",
        )
    allowed = Allowed(known.lower, known.upper, None if labels is None else labels.code)
    return replace(columns, outside=outside, allowed=allowed)


def _written(
    advice: Advice,
    file: SessionFile,
    write: Path | None,
    into: Path | None,
    name: str,
    *,
    labelled: bool,
) -> Path | None:
    from hushbid.advice.files import complete, write_session

    if write is not None:
        write_session(write, advice, file, name=name, labelled=labelled)
    elif into is not None:
        complete(into, file)
    written = write or into
    if written is not None and advice.verdict == "hopeless":
        say(f"WARNING: the proposal is hopeless. {advice.reason}")
    if written is not None and advice.disclosed:
        say(f"WARNING: {advice.disclosure}")
    return written
