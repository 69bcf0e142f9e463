"""The input of `hushbid advise` from options and files, and the session file that it writes or completes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Final, cast

import tomli_w
import tomlkit

from hushbid.advice.proposal import Advice
from hushbid.advice.trials import Bounds, Request
from hushbid.cluster.file import ClusterFile
from hushbid.cluster.kind import kind_of
from hushbid.plan.tables import names_only, no_network
from hushbid.protocol.config.loading import load_toml_text, read_text, read_toml, validated
from hushbid.protocol.config.section import check_party_name, is_party_name
from hushbid.protocol.config.session import DraftSession, SessionFile
from hushbid.protocol.crypto.commitment import USUAL_DEPTH
from hushbid.protocol.data import DataColumns
from hushbid.protocol.data.column import Column
from hushbid.protocol.data.schema import Schema
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES, herds
from hushbid.protocol.runtime.files.signed_files import read_invitation
from hushbid.protocol.session.session import open_session
from hushbid.text_files import one_at_a_time, replace_file, write_new_file

__all__ = [
    "bounds_of",
    "check_started",
    "complete",
    "next_steps",
    "owners_of",
    "rounds_in",
    "seeds_in",
    "stated_in",
    "write_session",
]

_TEMPLATE: Final = """\
# A session as `hushbid advise` proposes it. Every key: docs/configuration.md. What is still missing is who
# takes part, `hushbid keys approve` adds it, and the curator's address: docs/deploy.md.

[session]
name = "{name}"
points = {points}  # p, the most points that are bought: {bought}
delta = {delta}  # the δ of every ε below
{column_values}{label_kind}nonce = ""  # a session is run once: another nonce makes it another

[features]  # no seed: the consumer draws the map, and the curator never has it
map = "paired"
dimension = {dimension}
gamma = {gamma}  # {gamma_from}
{bounds}
[target]  # how the consumer releases the mean embedding of its validation set, once
mechanism = "filtered-gaussian"
epsilon = {epsilon}  # {epsilon_from}
neighbours = "substitute-one"

{summary}[acquisition]
rule = "{rule}"
{commitment}{labels}
[noise]
source = "secure"

[network]
address = "tcp://curator.example.org:5790"

[roster]  # filled in by `hushbid keys approve`
curator = ""
consumer = ""

[roster.owners]  # their names, as the keys will be approved
{owners}
"""
_LABEL_KIND: Final = """\
labels = "any"  # every point that is offered has a label; "optional" takes points without one, too
"""
_COMMITMENT: Final = f"""\
commitment_depth = {USUAL_DEPTH}  # 2^{USUAL_DEPTH} rows an owner: it commits to them first
"""
_SUMMARY_TEMPLATE: Final = """\
[summary]  # how the curator releases the mean embedding of the summary, in every round
mechanism = "filtered-gaussian"
epsilon = {epsilon}  # over all rounds
neighbours = "add-remove-one"

"""
_BOUNDS_TEMPLATE: Final = """\
columns = {columns}
lower = {lower}  # public bounds of the columns: a point outside is refused
upper = {upper}
"""
_BOUNDS: Final = ("lower", "upper")
_FROM: Final[Mapping[str, str]] = {
    "given": "as the consumer gave it",
    "public": "follows from nothing private",
    "seed set": "read off the consumer's seed set, which no ε protects",
    "validation": "read off the consumer's validation set: the ε of [target] does not cover it",
}


def owners_of(text: str) -> dict[str, int]:
    """Owners' sizes by name, from ``5000,3000`` or ``north=5000,south=3000``.

    Raises:
        ConfigError: It is neither, or only some sizes have a name.
    """
    found: dict[str, int] = {}
    if len({"=" in part for part in text.split(",")}) > 1:
        raise ConfigError(
            f"--owners: {text!r} names only some owners.",
            advice="Write sizes alone, as in 5000,3000, or all names too, as in north=5000,south=3000.",
        )
    for number, part in enumerate(text.split(",")):
        name, _, size = part.rpartition("=")
        name = name.strip() or f"owner-{number + 1}"
        try:
            points = int(size.replace("_", ""))
        except ValueError:
            points = 0
        if points < 1 or name in found or not is_party_name(name):
            raise ConfigError(
                f"--owners: {part.strip()!r} is not an owner's number of points.",
                advice="Write sizes, as in 5000,3000, or names too, as in north=5000,south=3000.",
            )
        found[name] = points
    return found


def bounds_of(lower: str | None, upper: str | None) -> Bounds | None:
    """Bounds from ``0`` and ``255``, or from one number per column, as in ``0,0,18``; None: none is given.

    Raises:
        ConfigError: Only one of the two is given, or a value is not a number.
    """
    if lower is None and upper is None:
        return None
    if lower is None or upper is None:
        raise ConfigError("--lower and --upper must be given together.", advice="Give both.")
    return Bounds(_bound("--lower", lower), _bound("--upper", upper))


def _bound(option: str, text: str) -> float | list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise ConfigError(
            f"{option} is {text!r}.", advice="Give a number, or one for each column, separated by commas."
        )
    return values[0] if len(values) == 1 else values


def stated_in(path: Path) -> tuple[Schema | None, Bounds | None]:
    """The ``[[columns]]`` and the bounds that a session or cluster file states; None where it states none.

    An invitation states those of its session.

    Raises:
        ConfigError: The file cannot be read, or its columns or bounds are invalid.
    """
    values = read_toml(path)
    if kind_of(values) == "invitation":
        session = read_invitation(path).configuration
        return session.rows, Bounds(session.features.lower, session.features.upper)
    if values.get("columns"):
        schema = Schema.read(path)
        return schema, Bounds(list(schema.lower), list(schema.upper))
    features = values.get("features")
    if not isinstance(features, dict) or not set(_BOUNDS) <= features.keys():
        return None, None
    lower, upper = (
        ",".join(map(str, value)) if isinstance(value := features[name], list) else str(value)
        for name in _BOUNDS
    )
    return None, bounds_of(lower, upper)


def write_session(
    path: Path, advice: Advice, file: SessionFile, *, name: str, labelled: bool = False
) -> None:
    """Write a new session file: complete except for the keys of its roster and the curator's address.

    Args:
        advice, file: As `advise` returns them.
        labelled: Whether the validation set has labels, so that the session requires them of every owner.

    Raises:
        ConfigError: The file already exists or cannot be written, or the name is invalid.
    """
    sources = {each.setting: each.source for each in advice.proposals}
    features, values = file.features, file.session.column_values
    text = _TEMPLATE.format(
        name=name,
        points=file.session.points,
        bought=(
            "each owner submits as many, and the curator chooses"
            if file.herds
            else f"{file.batch} in each of {file.rounds} rounds"
        ),
        rule=file.acquisition.rule,
        commitment=_COMMITMENT if RULES[file.acquisition.rule].sealed else "",
        summary="" if file.herds else _SUMMARY_TEMPLATE.format(epsilon=file.summary.parameters["epsilon"]),
        delta=file.session.delta,
        column_values=""
        if values is None
        else f"column_values = {values}  # most of a column, by its kind\n",
        label_kind=_LABEL_KIND if labelled and file.labels is None else "",
        dimension=features.dimension,
        gamma=features.gamma,
        gamma_from=_FROM[sources["γ"]],
        bounds=_columns(file.columns)
        if file.columns
        else _BOUNDS_TEMPLATE.format(
            columns=features.columns, lower=_listed(features.lower), upper=_listed(features.upper)
        ),
        epsilon=file.target.parameters["epsilon"],
        epsilon_from=_FROM[sources["ε"]],
        owners="\n".join(f'{_key(owner)} = ""' for owner in file.roster.owners),
        labels=_labels(file),
    )
    load_toml_text(DraftSession, text, where=str(path))
    write_new_file(path, text)


def check_name(name: str) -> None:
    """Refuse a session name that its file could not hold.

    Raises:
        ConfigError: The name is invalid.
    """
    check_party_name(name, "a session's name", where="--name: ")


def check_started(path: Path) -> None:
    """Refuse a file that proposals cannot complete: one that cannot be read, or lacks a name or a rule.

    Raises:
        ConfigError: The file is such a one.
    """
    values = read_toml(path)
    missing = [
        f"{section}.{key}"
        for section, key in (("session", "name"), ("acquisition", "rule"))
        if not isinstance(values.get(section), dict) or key not in values[section]
    ]
    if missing:
        raise ConfigError(
            f"{path}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, and no "
            "proposal covers it.",
            advice='Add them: `name = "ours"` in [session], `rule = "tender"` in [acquisition]. Or give '
            "a new file with --output, and this one with --session, for its [[columns]].",
        )


def complete(path: Path, proposal: SessionFile) -> None:
    """Put a proposed session's values into a session or cluster file; everything else stays.

    The file's own batch and submission sizes are removed, so that the defaults, as proposed, apply.

    Raises:
        ConfigError: The file cannot be read or written, or does not fit the proposals; it is then unchanged.
    """
    with one_at_a_time(path):
        document = tomlkit.parse(read_text(path))
        tables = cast(MutableMapping[str, Any], document)
        proposed = proposal.model_dump(mode="json", exclude_none=True)
        kept = {
            "session": ("points", "delta", "column_values"),
            # If the file has columns, they determine the rest.
            "features": ("dimension", "gamma", *(() if tables.get("columns") else ("columns", *_BOUNDS))),
        }
        for name, keys in kept.items():
            table = tables.setdefault(name, tomlkit.table())
            for key in keys:
                if key in proposed[name]:
                    _put(table, key, proposed[name][key])
        for key in ("batch", "submission"):
            tables["session"].pop(key, None)
        if "labels" in proposed:
            tables["labels"] = proposed["labels"]
        rule = str(tables["acquisition"].get("rule"))
        for name in ("target",) if herds(rule) else ("target", "summary"):
            table = tables.setdefault(name, tomlkit.table())
            for key in [key for key in table if key not in proposed[name]]:
                table.pop(key)
            for key, value in proposed[name].items():
                _put(table, key, value)
        _check(document.unwrap(), where=str(path))
        replace_file(path, tomlkit.dumps(document))


def _check(values: Mapping[str, Any], *, where: str) -> None:
    """Refuse tables that no session can be made of, whoever takes part."""
    validated(DraftSession if "roster" in values else ClusterFile, values, where=where)
    owners = values["roster"].get("owners") if "roster" in values else values.get("owners")
    tables = {name: values[name] for name in SessionFile.model_fields if name in values}
    tables |= {"roster": names_only(list(owners or ["owner-1"])), "network": no_network()}
    open_session(validated(SessionFile, tables, where=where))


def _put(table: MutableMapping[str, Any], key: str, value: Any) -> None:
    """Set a value unless it is already there: it then keeps its notation."""
    if key not in table or table[key] != value:
        table[key] = value


def _columns(columns: Iterable[Column]) -> str:
    return "".join(f"\n[[columns]]\n{tomli_w.dumps(each.written())}" for each in columns)


def _labels(file: SessionFile) -> str:
    """The [labels] table, if labels take part in the selection."""
    if file.labels is None:
        return ""
    values = tomli_w.dumps(file.labels.model_dump(mode="json"))
    return f"\n[labels]  # they have a part in the choice; which there are is public\n{values}"


def _listed(bound: float | list[float]) -> str:
    return "[" + ", ".join(map(repr, bound)) + "]" if isinstance(bound, list) else repr(bound)


def _key(name: str) -> str:
    """A name as a TOML key: a dot would split a bare key in two."""
    return f'"{name}"' if "." in name else name


def seeds_in(path: Path) -> tuple[Path | None, int | None]:
    """The seed set's file that a cluster file names, or the number of points to draw; None: neither.

    Raises:
        ConfigError: The file cannot be read.
    """
    consumer = read_toml(path).get("consumer")
    named = consumer.get("seed_set") if isinstance(consumer, dict) else None
    points = consumer.get("seed_points") if isinstance(consumer, dict) else None
    return (
        path.parent / named if isinstance(named, str) else None,
        points if isinstance(points, int) and points > 0 else None,
    )


def rounds_in(path: Path) -> bool:
    """Whether a session or cluster file names a rule in rounds.

    Raises:
        ConfigError: The file cannot be read.
    """
    acquisition = read_toml(path).get("acquisition")
    rule = acquisition.get("rule") if isinstance(acquisition, dict) else None
    return isinstance(rule, str) and not herds(rule)


def next_steps(
    path: Path,
    *,
    validation: Path,
    request: Request,
    seed_set: Path | None,
    columns: DataColumns,
    rehearsed: bool,
) -> list[str]:
    """The next steps with a written file; D_v and D_init by their files, the latter None if drawn.

    Args:
        rehearsed: Whether the proposal was rehearsed: `hushbid plan`, without the data, then knows less.
        columns: Statements about the columns of D_v's file, which the consumer's own file must repeat.
    """
    if "roster" not in read_toml(path):
        return [f"hushbid simulate {path}"]
    points = request.seed_points if request.seed_set is None else len(request.seed_set)
    seeds = f"seed_points = {points}" if seed_set is None else f'seed_set = "{seed_set}"'
    sizes = f"--validation {len(request.validation)} --seed-points {points}"
    named = {"features": columns.features, "label": columns.label, "identifier": columns.identifier}
    said = [f"{key} = {tomlkit.item(value).as_string()}" for key, value in named.items() if value is not None]
    if request.owners:
        sizes += f" --owner-points {max(1, sum(request.owners.values()) // len(request.owners))}"
    return [
        *([] if rehearsed else [f"hushbid plan {path} {sizes}"]),
        f'in the consumer\'s file: validation = "{validation}", {seeds}',
        *([f"and below these: [columns] {', '.join(said)}"] if said else []),
        f"in {path}: the curator's address, under [network]",
        "owners and curator: docs/deploy.md; then `hushbid preflight` for everybody",
    ]
