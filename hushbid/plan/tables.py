"""The command line's options of a plan, and the tables of a session file that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushbid.plan.flags import PlanFlags
from hushbid.protocol import limits
from hushbid.protocol.config.completing import summary_like
from hushbid.protocol.errors import ConfigError
from hushbid.protocol.privacy.acquisition import RULES
from hushbid.protocol.privacy.acquisition.sealed import Sealed
from hushbid.protocol.privacy.acquisition.tender import Tender
from hushbid.protocol.privacy.releases import RELEASES, Neighbours

__all__ = [
    "ASSUMED",
    "DEFAULT_RELEASE",
    "default_rule",
    "names_only",
    "no_network",
    "release_table",
    "rounds_told",
    "too_many_for_a_tender",
    "whole_tables",
    "with_flags",
]

DEFAULT_RELEASE: Final = "filtered-gaussian"

ASSUMED: Final[Mapping[str, float | int]] = {
    "dimension": 140,
    "owner_points": 10_000,
    "seed_points": 150,
    "columns": 100,
    "spread": 0.8,
    "drift": 0.4,
    "mmd2_uniform": 0.04,
}
"""Defaults for figures that neither an option nor a file gives. The last three are those of MNIST."""


_SESSION_KEYS: Final = ("points", "batch", "seed_weight", "delta")
"""Keys of ``[session]`` that the command line can give."""


def _rule_of(flags: PlanFlags) -> str:
    """The default rule of a plan without a file or flag. Options that only rounds have call for `sealed`."""
    return Sealed.name if _in_rounds(flags) else default_rule(flags.points or 1)


def _in_rounds(flags: PlanFlags) -> bool:
    return (
        flags.epsilon_of("owners", charged=False) is not None
        or flags.batch is not None
        or flags.seed_weight is not None
    )


def rounds_told(flags: PlanFlags) -> str:
    """As `too_many_for_a_tender`, for a plan without a file."""
    return "" if flags.rule or _in_rounds(flags) else too_many_for_a_tender(flags.points or 1)


def default_rule(points: int) -> str:
    """The default rule: `tender`, or `sealed` for more points than a tender can choose."""
    return Tender.name if points <= limits.MAX_HERDED else Sealed.name


def too_many_for_a_tender(points: int) -> str:
    """What people are told if `default_rule` is not `tender`, as nobody asked for rounds; empty if it is."""
    if default_rule(points) == Tender.name:
        return ""
    return (
        f"{points:,} points are to be bought, and a tender chooses {limits.MAX_HERDED:,} at most: the rule "
        f"is {Sealed.name}. Owners bid in rounds, and see of each other what an ε allows; in a tender they "
        "see nothing."
    )


def whole_tables(flags: PlanFlags) -> dict[str, Any]:
    """The tables of a session file when there is no file.

    Raises:
        ConfigError: The number of owners, or of points, is missing.
    """
    for name, flag in (("owners", "--owners K"), ("points", "--points p")):
        if getattr(flags, name) is None:
            raise ConfigError(
                "Neither a file nor the command line describes a session to plan.",
                advice=f"Name a session file or a cluster file, or give {flag}.",
            )
    return {
        "session": {"name": "plan", "points": flags.points},
        "features": {
            "dimension": int(ASSUMED["dimension"]),
            "gamma": 1.0,
            "columns": int(ASSUMED["columns"]),
        },
        "target": {},
        "summary": {},
        "acquisition": {"rule": _rule_of(flags)},
        "network": no_network(),
        "roster": {},
    }


def with_flags(values: Mapping[str, Any], flags: PlanFlags) -> dict[str, Any]:
    """The tables of a session file with the command line's values in place of theirs.

    Raises:
        ConfigError: A table or an ε is missing, or a mechanism does not fit the other values.
    """
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in values.items()}
    if "summary" not in tables and isinstance(tables.get("target"), dict):
        tables["summary"] = summary_like(tables["target"])
    _need_tables(tables)
    session, features = tables["session"], tables["features"]
    # Settings that protect nobody are planned too: the statements say so.
    session |= {"allow_nonprivate": True}
    session |= {key: flags.given()[key] for key in _SESSION_KEYS if key in flags.given()}
    if flags.dimension is not None:
        features["dimension"] = flags.dimension
    if flags.columns is not None and flags.columns != features.get("columns"):
        features |= {"columns": flags.columns, "lower": 0.0, "upper": 1.0}
    if flags.owners is not None:
        tables.pop("wishes", None)  # these are owners by name
        tables["roster"] = names_only([f"owner-{number + 1:05}" for number in range(flags.owners)])
        if isinstance(session.get("min_owners"), int):
            session["min_owners"] = min(session["min_owners"], flags.owners)
    tables["acquisition"] = _rule_table(tables["acquisition"], flags)
    # Only the rule decides whether the map is secret; the plan needs no particular map.
    rule = RULES.get(str(tables["acquisition"].get("rule")))
    features["seed"] = None if rule is not None and rule.sealed else 0
    herds = rule is not None and rule.herds
    for name, flag, epsilon in (
        ("target", "--epsilon consumer=E", flags.epsilon_of("consumer")),
        ("summary", "--epsilon owners=E", flags.epsilon_of("owners", charged=not herds)),
    ):
        if name == "summary" and herds and epsilon is None:
            tables[name] = summary_like(tables["target"])  # nothing is released
        else:
            tables[name] = _with_release(name, tables[name], flags.release, epsilon, flag)
    return tables


def _need_tables(tables: Mapping[str, object]) -> None:
    for name in ("session", "features", "target", "summary", "acquisition"):
        if not isinstance(tables.get(name), dict):
            raise ConfigError(
                f"The file has no [{name}].", advice="Name a complete session file or cluster file."
            )


def _rule_table(table: Mapping[str, Any], flags: PlanFlags) -> dict[str, Any]:
    kept = flags.rule is None or flags.rule == table.get("rule")
    rule: dict[str, Any] = dict(table) if kept else {"rule": flags.rule}
    if (asks := flags.epsilon_of("asks")) is not None:
        rule["epsilon"] = asks
    known = RULES.get(str(rule.get("rule")))
    epsilon = None if known is None else known.Parameters.model_fields.get("epsilon")
    if known is not None and epsilon is not None and epsilon.is_required() and "epsilon" not in rule:
        raise ConfigError(
            f"acquisition.epsilon is missing: the rule {known.name} asks by it.",
            advice="Give --epsilon asks=E.",
        )
    return rule


def _with_release(
    name: str, table: Mapping[str, Any], release: str | None, epsilon: float | None, flag: str
) -> dict[str, Any]:
    mechanism = release or (str(table.get("mechanism")) if table else DEFAULT_RELEASE)
    if release is None and epsilon is None and table:
        return dict(table)
    if "epsilon" not in RELEASES.known(mechanism).Parameters.model_fields:
        if epsilon is not None:
            raise ConfigError(f"[{name}]: {mechanism} takes no ε.", advice=f"Leave {flag} out.")
        return {"mechanism": mechanism}
    if epsilon is None:
        epsilon = table.get("epsilon")
    if epsilon is None:
        raise ConfigError(f"[{name}]: the ε of {mechanism} is missing.", advice=f"Give {flag}.")
    if release is None and table:
        if table.get("calibration") == "published":
            raise ConfigError(
                f"[{name}]: the published calibration has an ε per step, and no total ε.",
                advice=f"Leave {flag} out, or give --release mwem for the sound calibration.",
            )
        kept = {key: table[key] for key in table if key not in ("sigma", "step_epsilon", "first_epsilon")}
        return {**kept, "epsilon": epsilon}
    return release_table(name, mechanism, epsilon)


def release_table(name: str, mechanism: str, epsilon: float) -> dict[str, Any]:
    """The table "target" or "summary" of a mechanism with that ε of all releases together."""
    neighbours = Neighbours.SUBSTITUTE_ONE if name == "target" else Neighbours.ADD_REMOVE_ONE
    table: dict[str, Any] = {
        "mechanism": mechanism,
        "epsilon": epsilon,
        "neighbours": neighbours.value,
    }
    return table | dict(RELEASES[mechanism].planned_keys.get(name, {}))


def names_only(names: list[str]) -> dict[str, Any]:
    """``[roster]`` of owners without keys."""
    return {"owners": dict.fromkeys(names, "")}


def no_network() -> dict[str, Any]:
    """``[network]`` of a session that needs no keys."""
    return {"address": "tcp://127.0.0.1:*", "insecure": True}
