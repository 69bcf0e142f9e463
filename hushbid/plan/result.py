"""A plan: every figure of it, for programs as JSON, for people as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hushbid.plan.batches import batches
from hushbid.plan.noise import noise_values, owners_error, release_errors
from hushbid.plan.quality import BY_RULE, predict, refusal, verdict
from hushbid.plan.setting import PlanSetting
from hushbid.plan.speed import Speed, times
from hushbid.plan.submissions import submissions
from hushbid.plan.theory import theory_of
from hushbid.plan.traffic import points_accessed, traffic
from hushbid.plan.wanted import wanted_of
from hushbid.plan.with_data import NOT_REHEARSED, Rehearsed, judge
from hushbid.protocol import platform
from hushbid.protocol.privacy.settlement import SettlementTerms
from hushbid.protocol.session.guarantee import PrivacyStatement, privacy_lines

__all__ = ["make_plan", "render"]

_STYLES = {"good": "bold green", "uncertain": "bold yellow", "poor": "bold yellow", "hopeless": "bold red"}

RULE: Final = "the rule of thumb"
_NO_DATA: Final = (
    "By a rule of thumb, without weights and without the data. A rehearsal decides: `hushbid preflight`, "
    "`advise`, or `plan` with a cluster file. "
)


def make_plan(
    setting: PlanSetting,
    speed: Speed,
    *,
    cores: int | None = None,
    round_trip: float = 0.1,
    wanted: float | None = None,
    theory: bool = False,
    played: Rehearsed | None = None,
) -> dict[str, Any]:
    """Every figure of a plan, under the names of docs/plan.md.

    If a session's acquisition rule is refused, figures that depend on the rule are None.

    Args:
        setting: The planned setting.
        speed, cores: Of the machine that runs it (`measure_speed`); no cores: this machine's.
        round_trip: Seconds for a frame and its answer (`batches`).
        wanted: The share of the owners' points that are like the target; None: unknown.
        theory: Whether to include the conditions and promises of DPDS's theorems.
        played: The rehearsal, if there are data (`hushbid.plan.with_data`); None: it was left out.

    Raises:
        ConfigError: A mechanism is impossible, or a share is invalid.
    """
    cores = cores or platform.cores()
    target, summary = release_errors(setting)
    owners = owners_error(setting)
    by_rule = predict(setting, target, summary)
    judged, prediction = verdict(setting, target, summary, by_rule), by_rule
    if setting.data is not None:
        played = played or NOT_REHEARSED
        judged, prediction = judge(setting, judged, played), played.measured(by_rule)
    available = sum(setting.owner_points)
    share = (
        None
        if wanted is None
        else wanted_of(wanted, points=setting.p, available=available, verdict=judged.verdict)
    )
    accessed = points_accessed(setting)
    refused = bool(setting.refusal)
    wire = None if refused else traffic(setting, accessed)
    taken = None if refused else times(setting, speed, cores=cores)
    file = setting.file
    return {
        "session": file.session.name,
        "verdict": judged.verdict,
        "verdict_by": (by := _judged_by(setting, played)),
        "called": BY_RULE.get(judged.verdict, judged.verdict) if by == RULE else judged.verdict,
        "reason": judged.reason,
        "remedies": [dict(remedy) for remedy in judged.remedies],
        "wanted": None if share is None else asdict(share),
        "owners": len(setting.owner_points),
        "points": setting.p,
        "batch": file.batch,
        "rounds": setting.rounds,
        "seed_weight": file.seed_weight,
        "validation": setting.m,
        "dimension": file.features.dimension,
        "owner_points": max(setting.owner_points),
        "owner_points_total": available,
        "seed_points": setting.seed_points,
        "columns": file.features.columns,
        "rule": file.acquisition.rule,
        "delta": file.session.delta,
        "spread": setting.spread,
        "drift": setting.drift,
        "sources": dict(setting.sources),
        "target": target.as_json(),
        "target_owners": None if owners is None else owners.as_json(),
        "summary": summary.as_json(),
        "mmd2": prediction.as_json(),
        "rehearsal": played.as_json() if played is not None else None,
        "points_accessed_curator": accessed,
        "parsimony": None if accessed is None else accessed / (setting.p + setting.m),
        "bytes": None if wire is None else asdict(wire),
        "noise_values": noise_values(setting),
        "settlement": None if refused else setting.session().settlement_terms.as_json(),
        "seconds": None if taken is None else asdict(taken),
        "round_trip": round_trip,
        "theory": theory_of(setting) if theory else None,
        # Where sessions were played, the MMD² of other batches is in proportion to the outcome.
        "batches": [
            row | {"mmd2": row["mmd2"] * prediction.expected / by_rule.expected}
            for row in (() if refused else batches(setting, speed, cores=cores, round_trip=round_trip))
        ],
        "submissions": None if refused else submissions(setting),
        "speed": asdict(speed),
        "privacy": [] if refused else [statement.as_json() for statement in setting.session().privacy()],
    }


def _judged_by(setting: PlanSetting, played: Rehearsed | None) -> str:
    if refusal(setting):
        return "the session's settings"
    if played is None or played.verdict.word is None:
        return RULE
    return "own rows" if played.verdict.by_model else "a rehearsal"


def render(plan: Mapping[str, Any], console: Console) -> None:
    """Print a plan for people."""
    by_rule = plan["verdict_by"] == RULE and plan["rehearsal"] is None
    parts: list[RenderableType] = [
        Rule(
            f"{plan['session']}: {plan['owners']} owners, p = {plan['points']:,}, m = {plan['validation']:,}",
            align="left",
        ),
        Text.assemble(
            (plan["called"], _STYLES.get(plan["called"], "bold yellow")),
            f"  {_NO_DATA if by_rule else ''}{plan['reason']}",
        ),
    ]
    if plan["remedies"]:
        parts.append(Text("\n".join(f"  or: {_remedy(remedy)}" for remedy in plan["remedies"])))
    if plan["wanted"] is not None:
        wanted = plan["wanted"]
        parts.append(
            Text(
                f"wanted: {wanted['share']:.3g} of the owners' points, so about {wanted['at_random']:,.0f} "
                f"of those that are bought at random. {wanted['says']}"
            )
        )
    parts += [_releases(plan), _rest(plan)]
    if len(plan["batches"]) > 1:
        parts.append(_batches(plan))
    if plan["theory"] is not None:
        parts.append(_theory(plan["theory"]))
    parts.append(Text("\n".join(privacy_lines(map(PrivacyStatement.from_json, plan["privacy"])))))
    assumed = [name for name, source in plan["sources"].items() if source == "assumed"]
    if assumed:
        values = {**plan, "mmd2_uniform": plan["mmd2"]["uniform"]}
        known = ", ".join(f"{name} = {values[name]:g}" for name in assumed)
        parts.append(Text(f"Assumed, as nothing says otherwise: {known}.", style="dim"))
    console.print(Group(*parts))


def _theory(found: Mapping[str, Any]) -> Table:
    table = Table("DPDS, as printed", "asked for", "here", box=None, pad_edge=False)
    rows = (
        ("Theorem 2: points of D_v", found["validation_needed"], found["validation"]),
        ("  with the ε_v of its proof", found["validation_needed_proof"], found["validation"]),
        ("Theorem 2: points of D_init", found["seed_points_needed"], found["seed_points"]),
        ("Theorem 2: d, for a = 1", found["dimension_needed"], found["dimension"]),
        ("Theorem 2: Δ below", 1.0, found["additive_error"]),
        ("Theorem 3: error of the target below √(2/d)", found["zero_error"], found["target_error"]),
        ("Theorem 3: of the last summary", found["zero_error"], found["summary_error"]),
    )
    for name, needed, here in rows:
        table.add_row(name, f"{needed:.3g}", f"{here:.3g}")
    table.add_row("Lemma 5: points that an auction asks for", f"{found['points_accessed']:,.0f}", "")
    table.add_row("  corrected", f"{found['points_accessed_corrected']:,.0f}", "")
    verdict = "a guarantee" if found["guarantee"] else f"none: {', '.join(found['unmet'])}"
    table.add_row("What Theorem 2 gives", verdict, "")
    return table


def _remedy(remedy: Mapping[str, Any]) -> str:
    values = ", ".join(
        f"{name} = {value if isinstance(value, str) else f'{value:.4g}'}"
        for name, value in remedy.items()
        if name not in ("change", "mmd2")
    )
    expected = f" (MMD² of about {remedy['mmd2']:.2g})" if "mmd2" in remedy else ""
    return f"{values}{expected}"


def _releases(plan: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    sides = {"target": plan["target"], "summary, last round": plan["summary"]}
    if plan["target_owners"] is not None:
        sides = {"target, the curator's": plan["target"], "the owners'": plan["target_owners"]} | sides
        del sides["target"]
    if plan["submissions"] is not None:  # of a tender, which releases no summary
        del sides["summary, last round"]
    for name in ("", *sides):
        table.add_column(name, justify="left" if not name else "right")
    both = tuple(sides.values())
    table.add_row("release", *(side["mechanism"] for side in both))
    table.add_row("points in the mean", *(f"{side['count']:,.0f}" for side in both))
    table.add_row("σ of Σφ, each coordinate", *(_figure(side["sigma"]) for side in both))
    table.add_row("noise on Σφ, norm", *(_figure(side["noise"]) for side in both))
    table.add_row("… over the number of points", *(_figure(side["relative_noise"]) for side in both))
    table.add_row("error of the mean, unfiltered", *(_figure(side["error_unfiltered"]) for side in both))
    table.add_row("error of the mean", *(_figure(side["error"]) for side in both))
    calibrations = [side.get("calibrations") for side in both]
    for name in ("published", "sound") if any(calibrations) else ():
        rows = [side[name] if side else None for side in calibrations]
        table.add_row(f"{name}: Laplace scale", *(_figure(row and row["laplace_scale"]) for row in rows))
        table.add_row(f"{name}: sound ε", *(_figure(row and row["epsilon"]) for row in rows))
        if name == "published":
            table.add_row(f"{name}: claimed ε", *(_figure(row and row["claimed_epsilon"]) for row in rows))
    return table


def _rest(plan: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column()
    mmd2 = plan["mmd2"]
    measured = "measured" if mmd2["uniform_is_measured"] else "assumed"
    table.add_row(
        "MMD² of what is bought",
        f"{mmd2['low']:.2g} to {mmd2['high']:.2g}; at random {mmd2['uniform']:.2g} ({measured})",
    )
    if (weighted := mmd2["weighted"]) is not None:
        table.add_row(
            "… with weights",
            f"{weighted['low']:.2g} to {weighted['high']:.2g}; at random {weighted['uniform']:.2g}",
        )
    if plan["points_accessed_curator"] is not None:
        table.add_row(
            "raw points that the curator sees",
            f"{plan['points_accessed_curator']:,.0f}: parsimony {plan['parsimony']:.2f}",
        )
    if plan["settlement"] is not None:
        table.add_row("settlement", SettlementTerms(**plan["settlement"]).planned())
    noise = ", ".join(f"{count:,} {name}" for name, count in plan["noise_values"].items())
    table.add_row("noise values to draw", noise or "none")
    if (submitted := plan["submissions"]) is not None:
        table.add_row("an owner submits", f"{submitted['points']:,} points: {submitted['why']}")
    if plan["bytes"] is not None:
        size = {name: f"{count / 1e6:,.1f} MB" for name, count in plan["bytes"].items()}
        table.add_row("an owner sends, receives", f"{size['owner_sent']}, {size['owner_received']}")
        table.add_row("the curator sends, receives", f"{size['curator_sent']}, {size['curator_received']}")
    if plan["seconds"] is not None:
        seconds = plan["seconds"]
        table.add_row(
            "time, by this machine's speed",
            f"{seconds['rounds']:,.1f} s of rounds on machines of their own, {seconds['rounds_here']:,.1f} s "
            f"here; hashing {seconds['hashing']:,.1f} s",
        )
    return table


def _batches(plan: Mapping[str, Any]) -> Table:
    delay = f"{1000 * plan['round_trip']:g} ms"
    table = Table(box=SIMPLE_HEAD, title="points that a round buys", title_justify="left")
    for name in ("b", "rounds", "MMD²", "an owner sends", "time", f"… at {delay} there and back"):
        table.add_column(name, justify="right")
    for row in plan["batches"]:
        table.add_row(
            f"{row['batch']:,}",
            f"{row['rounds']:,}",
            f"{row['mmd2']:.2g}",
            f"{row['owner_sent'] / 1e6:,.1f} MB",
            f"{row['seconds']:,.1f} s",
            f"{row['seconds_with_network']:,.1f} s",
            style="bold" if row["batch"] == plan["batch"] else None,
        )
    return table


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
