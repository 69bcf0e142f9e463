"""`hushbid report`: a page on one session, made from its parties' transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hushbid.cli.terminal import Terminal
from hushbid.owner.role import FeaturesOption, LabelOption
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.runtime.command import verb

__all__ = ["report_command"]


def _show(result: Mapping[str, Any]) -> None:
    lines = [f"The report is {result['report']}"]
    lines += [f"Not in it: {each['what']} ({each['why']})." for each in result["figures"]["missing"]]
    Terminal().print(Text("\n".join(lines)), soft_wrap=True)


@verb(show=_show)
def report_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Transcripts of one session, one per party; or a state or run directory that contains them.",
            metavar="FILE...",
        ),
    ],
    evaluation: Annotated[
        Path | None,
        typer.Option(
            help="A run's evaluation.json, or the consumer's own result (--json); default: the one in FILE, "
            "if FILE is a directory."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="The page to write; it replaces an older report.")] = Path(
        "report.html"
    ),
    validation: Annotated[
        Path | None,
        typer.Option(
            help="D_v, with the consumer's transcript alone: draw the purchase beside it. The page then "
            "shows private rows."
        ),
    ] = None,
    offered: Annotated[
        list[Path] | None,
        typer.Option(
            help="An owner's file, available to whoever runs all parties: the map also shows its points. "
            "May be repeated.",
            metavar="FILE",
        ),
    ] = None,
    features: FeaturesOption = None,
    label: LabelOption = None,
    image: Annotated[
        str | None,
        typer.Option(
            help="The size of the grey images in the rows, in pixels, as in 28x28.", metavar="WIDTHxHEIGHT"
        ),
    ] = None,
) -> dict[str, Any]:
    """Write a page on a session: how close its points came, who won, what was spent, what went wrong.

    The page is one file that loads nothing else. Redacted transcripts work too, and show less.
    """
    from hushbid.protocol.data import DataColumns
    from hushbid.protocol.data.names import split_names
    from hushbid.report.own_rows import ConsumerRows, read_image
    from hushbid.report.sources import evaluation_in, transcripts_of
    from hushbid.running.report import write_report

    wanted = None
    if validation is not None:
        size = None if image is None else read_image(image)
        wanted = ConsumerRows(
            validation=validation,
            columns=DataColumns(split_names(features), label, None),
            image=size,
            offered=tuple(offered or ()),
        )
    elif image is not None or offered:
        raise ConfigError(
            f"{'--image describes rows' if image is not None else '--offered names points'}, and no rows "
            "are drawn.",
            advice="Name them with --validation.",
        )
    given = transcripts_of(*files)
    evaluation = evaluation or next(filter(None, map(evaluation_in, files)), None)
    figures = write_report(given, output, evaluation=evaluation, wanted=wanted)
    return {"report": str(output.resolve()), "figures": figures.as_json()}
