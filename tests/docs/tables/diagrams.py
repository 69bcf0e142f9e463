"""State diagrams of the machines, drawn from their transition tables (docs/protocol.md)."""

from __future__ import annotations

from hushbid.protocol.machine.base import Machine


def mermaid(machine: type[Machine]) -> str:
    """A machine's transitions as a Mermaid state diagram.

    Phases stand in the machine's order, and one arrow for each pair of phases carries all its triggers.

    Args:
        machine: The class; its `PHASES` and `TRANSITIONS` are drawn.

    Returns:
        The diagram's lines, without a final newline.
    """
    order = {phase: place for place, phase in enumerate(machine.PHASES)}
    triggers: dict[tuple[str, str], list[str]] = {}
    for row in machine.TRANSITIONS:
        for phase in row.to:
            triggers.setdefault((row.phase, phase), []).append(row.trigger.replace(":", " "))
    lines = ["stateDiagram-v2", f"    [*] --> {machine.PHASES[0]}"]
    for pair in sorted(triggers, key=lambda pair: (order[pair[0]], order[pair[1]])):
        lines.append(f"    {pair[0]} --> {pair[1]}: {', '.join(sorted(triggers[pair]))}")
    ends = [phase for phase in machine.PHASES if not any(pair[0] == phase for pair in triggers)]
    lines += [f"    {phase} --> [*]" for phase in ends]
    return "\n".join(lines)
