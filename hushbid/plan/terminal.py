"""A plan for people, as tables."""

from __future__ import annotations

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hushbid.plan.prediction import Distance
from hushbid.plan.remedies import Remedy
from hushbid.plan.result import Plan
from hushbid.plan.theory import Theory
from hushbid.protocol.printable import printable
from hushbid.protocol.session.guarantee import privacy_lines

__all__ = ["render"]

_STYLES: Final = {"good": "bold green", "hopeless": "bold red"}
_NO_DATA: Final = (
    "By a rule of thumb, without weights and without the data. A rehearsal decides: `hushbid preflight`, "
    "`advise`, or `plan` with a cluster file. "
)
_CALIBRATED: Final = (
    ("published", "Laplace scale", "laplace_scale"),
    ("published", "sound ε", "epsilon"),
    ("published", "claimed ε", "claimed_epsilon"),
    ("sound", "Laplace scale", "laplace_scale"),
    ("sound", "sound ε", "epsilon"),
)
"""Table rows for `mwem` by each calibration."""


def render(plan: Plan, console: Console) -> None:
    """Print a plan for people."""
    by_rule = plan.verdict_by == "the rule of thumb" and plan.rehearsal is None
    sizes = f"{plan.owners} owners, p = {plan.points:,}, m = {plan.validation:,}"
    parts: list[RenderableType] = [
        Rule(f"{plan.session}: {sizes}", align="left"),
        Text.assemble(
            (plan.called, _STYLES.get(plan.called, "bold yellow")),
            f"  {_NO_DATA if by_rule else ''}{printable(plan.reason)}",
        ),
    ]
    if plan.remedies:
        parts.append(Text("\n".join(f"  or: {_remedy(remedy)}" for remedy in plan.remedies)))
    if (wanted := plan.wanted) is not None:
        parts.append(
            Text(
                f"wanted: {wanted.share:.3g} of the owners' points, so about {wanted.at_random:,.0f} "
                f"of those that are bought at random. {wanted.says}"
            )
        )
    parts += [_releases(plan), _rest(plan)]
    if len(plan.batches) > 1:
        parts.append(_batches(plan))
    if plan.theory is not None:
        parts.append(_theory(plan.theory))
    parts.append(Text("\n".join(privacy_lines(plan.privacy))))
    if assumed := [name for name, source in plan.sources.items() if source == "assumed"]:
        values = {**plan.as_json(), "mmd2_uniform": plan.mmd2.uniform}
        known = ", ".join(f"{name} = {values[name]:g}" for name in assumed)
        parts.append(Text(f"Assumed, as nothing says otherwise: {known}.", style="dim"))
    console.print(Group(*parts))


def _theory(found: Theory) -> Table:
    table, has = Table("DPDS, as printed", "asked for", "here", box=None, pad_edge=False), found.setting
    rows = (
        ("Theorem 2: points of D_v", found.validation_needed, has.validation),
        ("  with the ε_v of its proof", found.validation_needed_proof, has.validation),
        ("Theorem 2: points of D_init", found.seed_points_needed, has.seed_points),
        ("Theorem 2: d, for a = 1", found.dimension_needed, has.dimension),
        ("Theorem 2: Δ below", 1.0, found.additive_error),
        ("Theorem 3: error of the target below √(2/d)", found.zero_error, found.target_error),
        ("Theorem 3: of the last summary", found.zero_error, found.summary_error),
    )
    for name, needed, here in rows:
        table.add_row(name, f"{needed:.3g}", f"{here:.3g}")
    table.add_row("Lemma 5: points that an auction asks for", f"{found.points_accessed:,.0f}", "")
    table.add_row("  corrected", f"{found.points_accessed_corrected:,.0f}", "")
    verdict = "a guarantee" if found.guarantee else f"none: {', '.join(found.unmet)}"
    table.add_row("What Theorem 2 gives", verdict, "")
    return table


def _remedy(remedy: Remedy) -> str:
    values = ", ".join(
        f"{name} = {value if isinstance(value, str) else f'{value:.4g}'}"
        for name, value in remedy.values.items()
    )
    return values if remedy.mmd2 is None else f"{values} (MMD² of about {remedy.mmd2:.2g})"


def _releases(plan: Plan) -> Table:
    table = Table(box=SIMPLE_HEAD)
    sides = {"target": plan.target}
    if plan.target_owners is not None:
        sides = {"target, the curator's": plan.target, "the owners'": plan.target_owners}
    if plan.submissions is None:  # a tender releases no summary
        sides["summary, last round"] = plan.summary
    for name in ("", *sides):
        table.add_column(name, justify="left" if not name else "right")
    both = tuple(sides.values())
    table.add_row("release", *(side.mechanism for side in both))
    table.add_row("points in the mean", *(f"{side.count:,.0f}" for side in both))
    table.add_row("σ of Σφ, each coordinate", *(_figure(side.sigma) for side in both))
    table.add_row("noise on Σφ, norm", *(_figure(side.noise) for side in both))
    table.add_row("error of the mean, unfiltered", *(_figure(side.relative_noise) for side in both))
    table.add_row("error of the mean", *(_figure(side.error) for side in both))
    for name, figure, attribute in _CALIBRATED if any(side.calibrations for side in both) else ():
        found = [None if each.calibrations is None else each.calibrations[name] for each in both]
        table.add_row(f"{name}: {figure}", *(_figure(getattr(each, attribute, None)) for each in found))
    return table


def _rest(plan: Plan) -> Table:
    table = Table(box=SIMPLE_HEAD, show_header=False)
    table.add_column()
    table.add_column()
    measured = "measured" if plan.mmd2.uniform_is_measured else "assumed"
    table.add_row("MMD² of what is bought", f"{_around(plan.mmd2)} ({measured})")
    if plan.mmd2.weighted is not None:
        table.add_row("… with weights", _around(plan.mmd2.weighted))
    if plan.points_accessed_curator is not None:
        table.add_row(
            "raw points that the curator sees",
            f"{plan.points_accessed_curator:,.0f}: parsimony {plan.parsimony:.2f}",
        )
    if plan.settlement is not None:
        table.add_row("settlement", plan.settlement.planned())
    noise = ", ".join(f"{count:,} {name}" for name, count in plan.noise_values.items())
    table.add_row("noise values to draw", noise or "none")
    if plan.submissions is not None:
        table.add_row("an owner submits", f"{plan.submissions.points:,} points: {plan.submissions.why}")
    if (wire := plan.bytes) is not None:
        table.add_row("an owner sends, receives", f"{_size(wire.owner_sent)}, {_size(wire.owner_received)}")
        table.add_row(
            "the curator sends, receives", f"{_size(wire.curator_sent)}, {_size(wire.curator_received)}"
        )
    if (seconds := plan.seconds) is not None:
        table.add_row(
            "time, by this machine's speed",
            f"{seconds.rounds:,.1f} s of rounds on machines of their own, {seconds.rounds_here:,.1f} s "
            f"here; hashing {seconds.hashing:,.1f} s",
        )
    return table


def _batches(plan: Plan) -> Table:
    delay = f"{1000 * plan.round_trip:g} ms"
    table = Table(box=SIMPLE_HEAD, title="points that a round buys", title_justify="left")
    for name in ("b", "rounds", "MMD²", "an owner sends", "time", f"… at {delay} there and back"):
        table.add_column(name, justify="right")
    for row in plan.batches:
        table.add_row(
            f"{row.batch:,}",
            f"{row.rounds:,}",
            f"{row.mmd2:.2g}",
            _size(row.owner_sent),
            f"{row.seconds:,.1f} s",
            f"{row.seconds_with_network:,.1f} s",
            style="bold" if row.batch == plan.batch else None,
        )
    return table


def _around(mmd2: Distance) -> str:
    return f"{mmd2.span.low:.2g} to {mmd2.span.high:.2g}; at random {mmd2.uniform:.2g}"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
