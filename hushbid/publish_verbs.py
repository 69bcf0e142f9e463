"""`hushbid publish kme | race | verify`: private releases of a dataset, for a catalogue."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from hushbid.catalogue.api import Catalogue
from owner.role import (
    BudgetOption,
    FeaturesOption,
    IdentifierOption,
    LabelOption,
    LedgerOption,
    LiftOption,
    SessionOption,
    stated_budget,
)
from protocol.errors import ConfigError
from protocol.runtime.command import KeyOption, run_verb

if TYPE_CHECKING:
    from hushbid.catalogue.publishing import Functions
    from protocol.config.session import FeatureSection

__all__ = ["publish_app"]

publish_app = typer.Typer(help="Publish private releases of a dataset.", no_args_is_help=True)


class _Neighbours(StrEnum):
    """`protocol.releases.Neighbours`, as a command line takes it."""

    ADD_REMOVE_ONE = "add-remove-one"
    SUBSTITUTE_ONE = "substitute-one"


class _Family(StrEnum):
    """Hash families of an entry, as a command line takes them."""

    L2 = "l2"
    L1 = "l1"
    SRP = "srp"


_TOO_SMALL: Final = (
    "WARNING: the noisy number of points in this entry cannot be told from none: `hushbid screen` refuses "
    "the entry. It has been charged. Publish more points, or at a larger ε.\n"
)

DataArgument: TypeAlias = Annotated[Path, typer.Argument(help="The dataset.", metavar="DATA")]
NameOption: TypeAlias = Annotated[str, typer.Option(help="The owner's name, as it shall stand on a roster.")]
NeighboursOption: TypeAlias = Annotated[
    _Neighbours,
    typer.Option(help="What ε compares: one record more or less, or one that is another (size public)."),
]
EpsilonOption: TypeAlias = Annotated[
    float, typer.Option(help="ε of the entry, its number of points included.")
]
OutOption: TypeAlias = Annotated[Path, typer.Option(help="The catalogue's directory.")]
LowerOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Public lower bounds: one number, or one per column as in 0,0,18.")
]
UpperOption: TypeAlias = Annotated[str | None, typer.Option(help="Public upper bounds, likewise.")]
ClipOption: TypeAlias = Annotated[
    bool, typer.Option("--clip/--refuse", help="What becomes of rows out of bounds; they are counted.")
]
SimulatedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(help="For experiments: noise of this seed, which protects nobody.", metavar="SEED"),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@publish_app.command("kme")
def _kme(
    data: DataArgument,
    name: NameOption,
    neighbours: NeighboursOption,
    epsilon: EpsilonOption,
    delta: Annotated[float, typer.Option(help="The δ that goes with it.")] = 1e-5,
    session: SessionOption = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the feature map, public; default: the session's.", min=0)
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="γ of the kernel, on columns scaled to [0, 1].")] = None,
    dimension: Annotated[int | None, typer.Option(help="d, coordinates of φ; default: 140.")] = None,
    lower: LowerOption = None,
    upper: UpperOption = None,
    points: Annotated[int, typer.Option(help="Synthetic points; 0: none.", min=0)] = 0,
    clip: ClipOption = False,
    key: KeyOption = None,
    out: OutOption = Path(),
    ledger: LedgerOption = None,
    budget_epsilon: BudgetOption = None,
    lift_budget: LiftOption = False,
    features: FeaturesOption = None,
    label: LabelOption = None,
    identifier: IdentifierOption = None,
    simulated: SimulatedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a kernel mean embedding: from it a consumer tells how near the dataset comes to its own."""

    def body() -> dict[str, Any]:
        columns = _columns(features, label, identifier)
        own = {"seed": seed, "gamma": gamma, "dimension": dimension, **_bounds(lower, upper)}
        section = _feature_section(session, own, data, columns)
        return _published(
            data, columns, name, section, neighbours, epsilon, delta, clip=clip, points=points, key=key,
            out=out, ledger=ledger, budget_epsilon=budget_epsilon, lift_budget=lift_budget,
            simulated=simulated,
        )  # fmt: skip

    run_verb(body, as_json=as_json, show=_show)


@publish_app.command("race")
def _race(
    data: DataArgument,
    name: NameOption,
    neighbours: NeighboursOption,
    epsilon: EpsilonOption,
    delta: Annotated[
        float, typer.Option(help="The δ that goes with it: 0 for pure ε, which costs more noise.")
    ] = 1e-5,
    family: Annotated[_Family, typer.Option(help="Hash functions.")] = _Family.L2,
    rows: Annotated[int, typer.Option(help="R, how many of them.", min=1)] = 200,
    width: Annotated[int, typer.Option(help="W, most cells of each.", min=2)] = 100,
    power: Annotated[int, typer.Option(help="Functions of the family that make one.", min=1)] = 1,
    bandwidth: Annotated[
        float | None, typer.Option(help="Of l2 and l1: the distance at which points count as near.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the functions, public.", min=0)] = 0,
    lower: LowerOption = None,
    upper: UpperOption = None,
    clip: ClipOption = False,
    key: KeyOption = None,
    out: OutOption = Path(),
    ledger: LedgerOption = None,
    budget_epsilon: BudgetOption = None,
    lift_budget: LiftOption = False,
    features: FeaturesOption = None,
    label: LabelOption = None,
    identifier: IdentifierOption = None,
    simulated: SimulatedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a RACE sketch: counts of points by hash functions, from which kernel sums are read."""

    def body() -> dict[str, Any]:
        from hushbid.catalogue.race import HashSection
        from protocol.config.loading import validated

        columns = _columns(features, label, identifier)
        own = {
            "family": family.value, "rows": rows, "width": width, "power": power, "bandwidth": bandwidth,
            "seed": seed, "columns": _column_count(data, columns), **_bounds(lower, upper),
        }  # fmt: skip
        given = {option: value for option, value in own.items() if value is not None}
        _require(given, ("lower", "upper"))
        section = validated(HashSection, given, where="the options")
        return _published(
            data, columns, name, section, neighbours, epsilon, delta, clip=clip, points=0, key=key,
            out=out, ledger=ledger, budget_epsilon=budget_epsilon, lift_budget=lift_budget,
            simulated=simulated,
        )  # fmt: skip

    run_verb(body, as_json=as_json, show=_show)


@publish_app.command("verify")
def _verify(
    files: Annotated[
        list[Path], typer.Argument(help="Entries, and directories of entries.", metavar="FILE...")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check entries: signature, functions, and that their noise costs what they state."""

    def body() -> dict[str, Any]:
        found = Catalogue(*files).entries()
        return {"entries": [{"file": str(path), **entry.described()} for path, entry in found.items()]}

    run_verb(body, as_json=as_json, show=_show_verified)


def _published(
    data: Path,
    columns: Any,
    name: str,
    functions: Functions,
    neighbours: _Neighbours,
    epsilon: float,
    delta: float,
    *,
    clip: bool,
    points: int,
    key: Path | None,
    out: Path,
    ledger: Path | None,
    budget_epsilon: float | None,
    lift_budget: bool,
    simulated: int | None,
) -> dict[str, Any]:
    """Publish what the options say."""
    from hushbid.catalogue.candidates import too_small
    from hushbid.catalogue.publishing import Publication, publish
    from protocol.noise import SecureNoise, SimulatedNoise
    from protocol.releases import Neighbours
    from protocol.runtime.keys import read_secret

    pair = read_secret(key or Path(f"{name}.key"))
    what = Publication(
        data=data,
        columns=columns,
        name=name,
        functions=functions,
        neighbours=Neighbours(neighbours.value),
        epsilon=epsilon,
        delta=delta,
        clip=clip,
        points=points,
        directory=out,
        ledger=ledger or data.with_name(f"{data.name}.ledger"),
        budget=stated_budget(None, budget_epsilon, lift=lift_budget),
    )
    noise = SecureNoise() if simulated is None else SimulatedNoise(simulated, name)
    made = publish(what, pair, noise)
    if too_small(made.entry):
        sys.stderr.write(_TOO_SMALL)
    return made.as_json()


def _columns(features: str | None, label: str | None, identifier: str | None) -> Any:
    from protocol.data import DataColumns

    names = None if features is None else tuple(each.strip() for each in features.split(","))
    return DataColumns(names, label, identifier)


def _column_count(data: Path, columns: Any) -> int:
    from protocol.data import load_dataset

    return int(load_dataset(data, columns).features.shape[1])


def _bounds(lower: str | None, upper: str | None) -> dict[str, float | list[float] | None]:
    """Bounds as a session file has them; None where they are not given."""

    def parsed(option: str, text: str | None) -> float | list[float] | None:
        if text is None:
            return None
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise ConfigError(
                f"{option} {text}: these are no numbers.", advice="Write 0, or 0,0,18 for three columns."
            ) from None
        return numbers if len(numbers) > 1 else numbers[0]

    return {"lower": parsed("--lower", lower), "upper": parsed("--upper", upper)}


def _require(given: Mapping[str, Any], names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in given]:
        raise ConfigError(
            f"What entries are made with is public, and these are not given: {', '.join(missing)}.",
            advice="Give them as options, the same at every owner; for `kme` also by a session file.",
        )


def _feature_section(
    session: Path | None, own: Mapping[str, Any], data: Path, columns: Any
) -> FeatureSection:
    """The feature map of the options, or of a session file; a seed may go with one that has none."""
    from hushbid.roster import RosterFile
    from protocol.config.loading import validated
    from protocol.config.session import FeatureSection

    given = {name: value for name, value in own.items() if value is not None}
    if session is None:
        _require(given, ("seed", "gamma", "lower", "upper"))
        given |= {"columns": _column_count(data, columns)}
        return validated(FeatureSection, given, where="the options")
    features = RosterFile(session).draft.features
    if taken := sorted(set(given) - {"seed"}):
        raise ConfigError(
            f"The features come from {session}, and these options too: {', '.join(taken)}.",
            advice="Leave the options out, or the session file.",
        )
    if features.seed is not None and given:
        raise ConfigError(
            f"{session} has a seed of its own.", advice="Leave `--seed` out: all entries need the same."
        )
    if features.seed is None and not given:
        raise ConfigError(
            f"{session} keeps its feature map secret, and an entry's is public.",
            advice="Give a public seed for the catalogue with `--seed`, the same at every owner.",
        )
    return features.model_copy(update=given)


def _show(made: Mapping[str, Any]) -> None:
    size = f"{made['size']:.0f}" + (f" ± {made['size_deviation']:.0f}" if made["size_deviation"] else "")
    lines = {
        "entry": made["entry"],
        "signed by": f"{made['name']}, {made['fingerprint']}",
        "privacy": f"ε = {made['epsilon']:.4g} at δ = {made['delta']:.1g} ({made['neighbours']}, "
        f"{made['noise']} noise)",
        "size": f"{size}, as the entry says it",
        "clipped": f"{made['rows_clipped']} of {made['rows']} rows; this is not in the entry",
        "ledger": f"{made['ledger']}: ε = {made['spent']:.4g} in all at δ = {made['spent_delta']:.1g} "
        f"({made['spent_neighbours']})",
    }
    sys.stdout.write("".join(f"{name:<10} {value}\n" for name, value in lines.items()))


def _show_verified(checked: Mapping[str, Any]) -> None:
    for entry in checked["entries"]:
        sys.stdout.write(
            f"{entry['file']}: holds; {entry['kind']} of {entry['name']} ({entry['fingerprint']}), "
            f"ε = {entry['epsilon']:.4g} at δ = {entry['delta']:.1g} ({entry['neighbours']}), "
            f"{entry['noise']} noise, {entry['date']}\n"
        )
