"""State diagrams of the machines, drawn from their transition tables (docs/protocol.md)."""

from __future__ import annotations

from typing import Any

from hushbid.protocol.machine.base import TransitionTable


def mermaid(table: TransitionTable[Any]) -> str:
    """A machine's transitions as a Mermaid state diagram.

    Phases stand in the machine's order, and one arrow for each pair of phases carries all its triggers.

    Args:
        table: Its table.

    Returns:
        The diagram's lines, without a final newline.
    """
    order = {phase: place for place, phase in enumerate(table.phases)}
    triggers: dict[tuple[str, str], list[str]] = {}
    for row in table.rows:
        for phase in row.to:
            triggers.setdefault((row.phase, phase), []).append(row.trigger.replace(":", " "))
    lines = ["stateDiagram-v2", f"    [*] --> {table.phases[0]}"]
    for pair in sorted(triggers, key=lambda pair: (order[pair[0]], order[pair[1]])):
        lines.append(f"    {pair[0]} --> {pair[1]}: {', '.join(sorted(triggers[pair]))}")
    ends = [phase for phase in table.phases if not any(pair[0] == phase for pair in triggers)]
    lines += [f"    {phase} --> [*]" for phase in ends]
    return "\n".join(lines)
