"""`hushbid screen`: rank owners by their catalogue entries before a session, and write its owner list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hushbid.catalogue.api import UNACCOUNTED, Catalogue, ScreenOptions
from hushbid.protocol.runtime.command import say, takes, tell, verb

__all__ = ["screen_command"]

_SEARCHES: Final = {"all": "all choices were tried", "greedy": "owners were added one by one"}


def _show(result: Mapping[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Column, Table

    from hushbid.cli.terminal import Terminal

    console = Terminal()
    titles = ("owner", "MMD²", "± s.e.", "weight", "point mass", "size", "ε", "δ", "neighbours")
    columns = [Column(title, overflow="fold", no_wrap=title == "neighbours") for title in titles]
    table = Table(*columns, box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for row in result["owners"]:
        mass = "–" if row["point_mass"] is None else f"{row['point_mass']:.3f}"
        figures = (f"{row['mmd2']:.5f}", f"{row['standard_error']:.5f}", f"{row['weight']:.3f}", mass)
        privacy = (f"{row['epsilon']:.3g}", f"{row['delta']:.1g}", row["neighbours"])
        table.add_row(row["owner"], *figures, f"{row['size']:.0f}", *privacy)
    console.print(table)
    for each in result["refused"]:
        console.print(f"refused  {each['file']}: {each['why']}", highlight=False, soft_wrap=True)
    chosen = next(each for each in result["subsets"] if each["owners"] == result["chosen"])
    lines = [
        f"chosen   {', '.join(result['chosen'])}: MMD² {chosen['mmd2']:.5f} ± {chosen['standard_error']:.5f} "
        f"by the best mixture, {chosen['mmd2_by_size']:.5f} by size; {_SEARCHES[result['search']]}",
        f"how many {result['why_so_many']}",
        f"why      {result['why_these']}",
        *(
            f"key      {row['fingerprint']}  {row['owner']}"
            for row in result["owners"]
            if row["owner"] in result["chosen"]
        ),
        _release_line(result["release"]),
        *(f"{name:<8} {result[name]}" for name in ("session", "plot") if result[name] is not None),
    ]
    tell("\n".join(lines))


@takes(ScreenOptions)
@verb(show=_show)
def screen_command(
    options: ScreenOptions,
    catalogue: Annotated[
        list[Path], typer.Argument(help="Entries, or directories of entries.", metavar="ENTRIES...")
    ],
) -> dict[str, Any]:
    """Rank owners by their catalogue entries, using a release of your own validation set."""
    from hushbid.protocol.session.guarantee import weak_epsilon

    if options.unaccounted:
        say(UNACCOUNTED)
    if options.epsilon is not None and (warning := weak_epsilon(options.epsilon, "the validation set")):
        say(warning)
    result = Catalogue(*catalogue).screen(options)
    written = {"session": options.write_session, "plot": options.plot}
    return result.as_json() | {name: None if path is None else str(path) for name, path in written.items()}


def _release_line(release: Mapping[str, Any] | None) -> str:
    if release is None:
        return "release  none: ranked by the exact validation set, which nothing protects"
    paid = "charged now" if release["charged"] else "kept from before, nothing was charged"
    return (
        f"release  {release['mechanism']}, ε = {release['epsilon']:.3g} at δ = {release['delta']:.1g} "
        f"({release['neighbours']}, {release['noise']} noise), {paid}: {release['file']}"
    )
