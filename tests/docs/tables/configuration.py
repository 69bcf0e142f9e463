"""Tables of docs/configuration.md: keys of all files with ranges and defaults, variables, figures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from hushbid.cli.app import app
from hushbid.cluster import file as cluster
from hushbid.consumer.learners import MODELS
from hushbid.datasets import DATASETS, PartitionOptions
from hushbid.plan.tables import DEFAULT_RELEASE
from hushbid.protocol.config.labels import LabelsSection
from hushbid.protocol.config.party import BudgetSection, ConsumerFile, CuratorFile, DataSection, OwnerFile
from hushbid.protocol.config.session import SessionFile
from hushbid.protocol.config.wishes import WishesSection
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.acquisition.logistic import Logistic, LogisticParameters
from hushbid.protocol.privacy.releases import RELEASES, Neighbours, Setting, release_mechanism
from hushbid.protocol.space.features import FEATURE_SPACES
from tests.docs.tables.markers import OWN, Made, Table, code, codes, either, first_cells

COMMON: Final = [name for name in CuratorFile.model_fields if name in OwnerFile.model_fields]
"""Keys of all three party files."""
OF_DATA: Final = [
    name
    for name in OwnerFile.model_fields
    if name in ConsumerFile.model_fields and name not in (*COMMON, "columns")
]
"""Keys of the files of parties with private data."""
MAY_NAME: Final[dict[str, Iterable[str] | None]] = {
    "FeatureSection.map": FEATURE_SPACES,
    # What to choose first, and what protects nobody last.
    "MechanismSection.mechanism": dict.fromkeys([DEFAULT_RELEASE, *reversed(RELEASES)]),
    "RuleSection.rule": RULES,
    "DatasetSection.name": DATASETS,
    "ConsumerSection.model": MODELS,
    "ConsumerFile.model": MODELS,
    "OwnerFile.memory_limit": OWN,
}
"""What keys take of which a model does not say it."""
POWERS: Final = {2**63 - 1: "2^63 − 1", 2**32 - 1: "2^32 − 1"}
"""Numbers that people write otherwise."""


def kind_of(schema: Mapping[str, Any], kinds: Mapping[str, Any]) -> str | None:
    """A key's type, as far as its JSON Schema states it in few words."""
    if "anyOf" in schema:
        some = [each for each in schema["anyOf"] if each != {"type": "null"}]
        return kind_of(some[0], kinds) if len(some) == 1 else OWN
    if "$ref" in schema:
        schema = kinds[schema["$ref"].rpartition("/")[2]]
    least, most, above = (schema.get(key) for key in ("minimum", "maximum", "exclusiveMinimum"))
    below = schema.get("exclusiveMaximum")
    match schema:
        case {"enum": names}:
            return either(names)
        case {"type": "boolean"}:
            return "boolean"
        case {"type": "integer"} if least is not None and most is below is None:
            return f"whole number from {least}"
        case {"type": "integer"} if least is not None and below:
            return f"{least:,} to {POWERS.get(int(below - 1), f'{below - 1:,}')}"
        case {"type": "integer" | "number"} if least is not None and most:
            return f"{least:,} to {POWERS.get(int(most or 0), f'{most:,}')}"
        case {"type": "number"} if least is not None and below is not None:
            return f"{least:g} to below {below:g}"
        case {"type": "number"} if least == 0 and most is below is None:
            return "0 or more"
        case {"type": "number"} if above is not None and most is None:
            return f"number > {above:g}" if below is None else f"number in ({above:g}, {below:g})"
    return OWN


FOLLOWS: Final = {"summary": "as `target`"}
"""Keys that follow from others where they are left out (`hushbid.protocol.config.completing`)."""


def shown(default: object) -> str:
    """A default as the page shows it."""
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if isinstance(default, BaseModel):
        return "its own defaults"
    return "empty" if default == {} else code(json.dumps(default))


def keys(model: type[BaseModel], names: Iterable[str] = (), without: Iterable[str] = ()) -> Table:
    """Some keys of a file's table, or all: each with its type and default."""
    schema = model.model_json_schema()
    rows = []
    for name in names or [name for name in model.model_fields if name not in without]:
        kind = kind_of(schema["properties"][name], schema.get("$defs", {}))
        if (place := f"{model.__name__}.{name}") in MAY_NAME:
            kind = either(known) if (known := MAY_NAME[place]) else OWN
        default = model.model_fields[name].get_default(call_default_factory=True)
        rows.append((code(name), kind, FOLLOWS.get(name) or shown(default)))
    return Table(rows)


def sections(model: type[BaseModel]) -> Table:
    """The tables of a file, and the effect of leaving each out."""
    return Table([(key, default) for key, _, default in keys(model).rows])


def variables() -> Table:
    """Environment variables, with the verbs that read them."""
    read: dict[str, dict[str, None]] = {}
    for verb, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for parameter in (each for below in _verbs(command) for each in below.params):
            if variable := getattr(parameter, "envvar", None):
                read.setdefault(variable, {})[verb] = None
    roles = ("curator", "owner", "consumer")
    rows = [
        (code(variable), codes(sorted(verbs, key=lambda verb: verb not in roles)))
        for variable, verbs in read.items()
    ]
    return Table(rows, ordered=False)


def _verbs(command: Any) -> Iterator[Any]:
    """A verb and those below it, such as those of `hushbid keys`."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _verbs(each)


def gaussian(delta: float, *, name: str = "gaussian", releases: int = 1, **parameters: float) -> Any:
    """Gaussian noise on d = 140 coordinates of paired features, every release charged."""
    setting = Setting(dimension=140, releases=releases, norm_bound=1.0, delta=delta)
    return release_mechanism(name, {"neighbours": "add-remove-one", **parameters}, setting)


def epsilon_of_sigma(name: str = "filtered-gaussian") -> Table:
    """ε by σ/√n and δ. As the page says, it depends on σ/√n alone: shown for n = 100 releases."""
    rows = []
    for ratio in (1, 2, 3, 5, 8, 10, 20):
        stated = [
            gaussian(delta, name=name, releases=100, sigma=10.0 * ratio).guarantee(
                neighbours=Neighbours.ADD_REMOVE_ONE, delta=delta
            )
            for delta in (1e-4, 1e-5, 1e-6)
        ]
        rows.append((str(ratio), *(f"{each.epsilon:.4g}" for each in stated)))
    return Table(rows)


def middle_ranks() -> Table:
    """r₀ of `logistic` by ε and the number of rounds."""
    rows = []
    for epsilon in (1, 3, 10):
        parameters = LogisticParameters(epsilon=float(epsilon))
        rules = [Logistic(parameters, owners=10_000, rounds=rounds, delta=1e-5) for rounds in (100, 1000)]
        rows.append((str(epsilon), *(f"{rule.middle:.0f}" for rule in rules)))
    return Table(rows)


PARAMETERS: Final[dict[str, type[BaseModel]]] = {
    **{name: mechanism.Parameters for name, mechanism in RELEASES.items()},
    **{name: rule.Parameters for name, rule in RULES.items()},
}
"""The keys that a release or a rule has of its own."""
SECTIONS: Final[dict[str, Any]] = {
    **{name: field.annotation for name, field in SessionFile.model_fields.items() if name != "summary"},
    "wishes": WishesSection,
    "labels": LabelsSection,
    "budget": BudgetSection,
    "columns": DataSection,
    "dataset": cluster.DatasetSection,
    "owners": cluster.OwnerSection,
    "consumer": cluster.ConsumerSection,
    "run": cluster.RunSection,
    **{f"keys of {name}": own for name, own in PARAMETERS.items() if own.model_fields},
}

CONFIGURATION: Final[dict[str, Made]] = {
    **{name: partial(keys, section) for name, section in SECTIONS.items()},
    "session file": partial(sections, SessionFile),
    "all party files": partial(keys, OwnerFile, COMMON),
    "party files with data": partial(keys, OwnerFile, OF_DATA),
    "curator's file": partial(keys, CuratorFile, without=COMMON),
    "owner's file": partial(keys, OwnerFile, without=[*COMMON, *OF_DATA]),
    "consumer's file": partial(keys, ConsumerFile, without=[*COMMON, *OF_DATA]),
    "cluster file": partial(sections, cluster.ClusterFile),
    "options of a dataset": lambda: Table(
        [(code(field.name), OWN, shown(field.default)) for field in dataclasses.fields(PartitionOptions)]
    ),
    "neighbours": partial(first_cells, Neighbours),
    "middle ranks": middle_ranks,
    "feature maps": partial(first_cells, FEATURE_SPACES),
    "variables": variables,
    "epsilon of sigma": epsilon_of_sigma,
}
