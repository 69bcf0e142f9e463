"""`hushbid publish kme | race | verify`: private releases of a dataset, for a catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from hushbid.catalogue.api import Catalogue
from hushbid.catalogue.publish_options import PublishKme, PublishRace
from hushbid.protocol.runtime.command import say, show_figures, takes, tell, verb

__all__ = ["publish_app"]

publish_app = typer.Typer(help="Publish private releases of a dataset.", no_args_is_help=True)

_TOO_SMALL: Final = (
    "WARNING: the noisy number of points in this entry cannot be told from none: `hushbid screen` refuses "
    "the entry. It has been charged. Publish more points, or at a larger ε."
)

OutOption: TypeAlias = Annotated[Path, typer.Option("--output", help="The catalogue's directory.")]


def _show(made: Mapping[str, Any]) -> None:
    size = f"{made['size']:.0f}" + (f" ± {made['size_deviation']:.0f}" if made["size_deviation"] else "")
    figures = {
        "entry": made["entry"],
        "signed by": f"{made['name']}, {made['fingerprint']}",
        "privacy": f"ε = {made['epsilon']:.4g} at δ = {made['delta']:.1g} ({made['neighbours']}, "
        f"{made['noise']} noise)",
        "size": f"{size}, as the entry says it",
        "clipped": f"{made['rows_clipped']} of {made['rows']} rows; this is not in the entry",
        "ledger": f"{made['ledger']}: ε = {made['spent']:.4g} in all at δ = {made['spent_delta']:.1g} "
        f"({made['spent_neighbours']})",
    }
    show_figures(figures)


@publish_app.command("kme")
@takes(PublishKme)
@verb(show=_show)
def _kme(options: PublishKme, out: OutOption = Path()) -> dict[str, Any]:
    """Publish a kernel mean embedding: a consumer estimates from it how close the dataset is to its own."""
    return _published(options, out)


@publish_app.command("race")
@takes(PublishRace)
@verb(show=_show)
def _race(options: PublishRace, out: OutOption = Path()) -> dict[str, Any]:
    """Publish a RACE sketch: counts of points by hash functions, which estimate kernel sums."""
    return _published(options, out)


def _show_verified(checked: Mapping[str, Any]) -> None:
    for entry in checked["entries"]:
        tell(
            f"{entry['file']}: holds; {entry['kind']} of {entry['name']} ({entry['fingerprint']}), "
            f"ε = {entry['epsilon']:.4g} at δ = {entry['delta']:.1g} ({entry['neighbours']}), "
            f"{entry['noise']} noise, {entry['date']}"
        )


@publish_app.command("verify")
@verb(show=_show_verified)
def _verify(
    files: Annotated[
        list[Path], typer.Argument(help="Entries, or directories of entries.", metavar="FILE...")
    ],
) -> dict[str, Any]:
    """Check entries: their signatures and functions, and that their noise meets the stated ε and δ."""
    found = Catalogue(*files).entries()
    return {"entries": [{"file": str(path), **entry.described()} for path, entry in found.items()]}


def _published(options: PublishKme | PublishRace, out: Path) -> dict[str, Any]:
    from hushbid.catalogue.candidates import too_small
    from hushbid.protocol.session.guarantee import weak_epsilon

    if warning := weak_epsilon(options.epsilon, "the records of the dataset"):
        say(warning)
    made = Catalogue(out).publish(options)
    if too_small(made.entry):
        say(_TOO_SMALL)
    return made.as_json()
