"""``python -m tests.blackbox FIRST COUNT``: run the sessions of these seeds, and report violations."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.blackbox.plan import plan_of
from tests.blackbox.play import play, summary


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    played = {}
    with tempfile.TemporaryDirectory() as place:
        for seed in range(first, first + count):
            directory = Path(place) / str(seed)
            directory.mkdir()
            played[seed] = play(plan_of(seed), directory)
            found = played[seed]
            kinds = ", ".join(f"{fault.kind.name} {fault.party}" for fault in found.plan.faults)
            print(f"{seed} {found.plan.rule} {found.seconds:.1f} s [{kinds}]", *found.violations, flush=True)
    print(summary(played))
    sys.exit(any(each.violations for each in played.values()))


if __name__ == "__main__":
    main()
