"""From the command to the prompt: ``python -m benchmarks.start --against CHECKOUT``.

Each command is run by this checkout and by another one in turn, with this Python and its packages. Processor
time is that of all processes. Of the repeats the least is told, as whatever else the machine does adds to it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parents[1]


def measured(checkout: Path, arguments: Sequence[str], place: Path) -> tuple[float, float]:
    """Processor and wall seconds of one command, with all processes that it starts.

    Raises:
        RuntimeError: It ends with another code than 0.
    """
    environment = os.environ | {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "hushbid", *arguments],
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{checkout}: hushbid {' '.join(arguments)} ended with {process.returncode}.")
    return used.ru_utime + used.ru_stime, took


def compared(checkouts: Mapping[str, Path], repeats: int) -> None:
    """Print a line for each command and checkout."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        commands = {
            "run digits": ["run", "digits", "--output", "runs"],
            "--help": ["--help"],
            "health": ["health", "runs/digits-1"],
        }
        print(f"{'hushbid':12} {'':8} {'processor, s':>14} {'wall, s':>9}")
        for title, arguments in commands.items():
            found: dict[str, list[tuple[float, float]]] = {each: [] for each in checkouts}
            for _ in range(repeats):
                for each, checkout in checkouts.items():
                    found[each].append(measured(checkout, arguments, place))
            for each, seconds in found.items():
                processor, wall = (min(kind) for kind in zip(*seconds, strict=True))
                print(f"{title:12} {each:8} {processor:14.3f} {wall:9.3f}", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    other = {} if options.against is None else {"against": options.against.resolve()}
    compared({**other, "here": HERE}, options.repeats)


if __name__ == "__main__":
    main()
