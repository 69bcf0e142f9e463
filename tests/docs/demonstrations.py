"""The recorded demonstrations of docs/replays, and what docs/protocol.md says about them.

`python -m tests.docs.demonstrations` rewrites the pages after a change of what plays them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from hushbid.protocol.data import Dataset
from hushbid.protocol.names import CONSUMER, CURATOR
from hushbid.protocol.privacy.acquisition import RULES as RULE_CLASSES
from hushbid.protocol.session.session import Session, open_session
from hushbid.replay.facts import Facts
from hushbid.replay.merging import facts_of
from hushbid.replay.page import page_of
from tests.conftest import ROOT
from tests.golden.make_transcripts import recorded_images
from tests.simulation.harness import session_file

__all__ = ["PLACE", "RULES", "facts_of_demonstration", "sequence"]

PLACE: Final = ROOT / "docs" / "replays"
RULES: Final = ("tender", "sealed", "blind")
OWNERS: Final = {"north": 0.2, "south": 0.5, "west": 0.8}
"""Where on the line the points of each owner lie; the consumer's lie about 0.5."""
ROUNDS: Final = 4
POINTS: Final = 12


def facts_of_demonstration(rule: str) -> Facts:
    """The facts of a session of three owners: four rounds that buy twelve points, or one tender."""
    with TemporaryDirectory() as place:
        paths = []
        for party, image in _images(rule).items():
            paths.append(Path(place) / f"{party}.transcript")
            paths[-1].write_bytes(image)
        return facts_of(paths)


def _session(rule: str) -> Session:
    private = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
    herds = RULE_CLASSES[rule].herds
    file = session_file(
        owners=tuple(OWNERS),
        points=POINTS,
        rule=rule,
        dimension=16,
        columns=2,
        batch=1 if herds else POINTS // ROUNDS,
        target=private | {"neighbours": "substitute-one"},
        summary=private | {"neighbours": "add-remove-one"},
    )
    named = file.session.model_copy(update={"name": f"demonstration-{rule}"})
    return open_session(file.model_copy(update={"session": named}))


def _images(rule: str) -> Mapping[str, bytes]:
    generator = np.random.default_rng(0)

    def points(name: str, middle: float, count: int) -> Dataset:
        # On a coarse grid: whatever BLAS sums them, their features are not close to a rounding.
        rows = np.clip(np.round(generator.normal(middle, 0.15, (count, 2)) * 64.0) / 64.0, 0.0, 1.0)
        return Dataset.from_arrays(name, rows)

    owners = {name: points(name, middle, 40) for name, middle in OWNERS.items()}
    return recorded_images(_session(rule), owners, points("validation", 0.5, 60), points("seed-set", 0.5, 10))


@cache
def sequence(rule: str) -> str:
    """The messages of a demonstration as a Mermaid sequence diagram: rounds after the first are one line."""
    facts = facts_of_demonstration(rule)
    steps, short = facts.steps, {facts.parties.index(CURATOR): "C", facts.parties.index(CONSUMER): "V"}
    lines = ["sequenceDiagram", "    participant O as owners", "    participant C as curator"]
    lines.append("    participant V as consumer")
    said: list[tuple[int, str]] = []
    for place, event in enumerate(steps.event):
        sender, receiver = (short.get(end[place], "O") for end in (steps.sender, steps.receiver))
        if event or facts.kinds[steps.kind[place]] == "beat":
            continue
        arrow = f"{sender}->>{receiver}: {facts.kinds[steps.kind[place]]}"
        if (steps.round[place], arrow) not in said:
            said.append((steps.round[place], arrow))
    likewise = f"    Note over O,V: rounds 2 to {facts.rounds}, likewise"
    for number, arrow in said:
        line = f"    {arrow}" if number <= 1 or number > facts.rounds else likewise
        if line != likewise or line not in lines:
            lines.append(line)
    return "\n".join(["```mermaid", *lines, "```", ""])


def main() -> None:
    PLACE.mkdir(exist_ok=True)
    for rule in RULES:
        (PLACE / f"{rule}.html").write_text(page_of(facts_of_demonstration(rule)), encoding="utf-8")


if __name__ == "__main__":
    main()
