"""Write missing golden frames: ``python -m tests.golden.make_frames [--overwrite NAME ...]``.

An existing frame stays: it records what was once on the wire. Only a frame that was never on the wire of a
released version may be rewritten, and must be named.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hushbid.protocol.wire.codec import encode_frame, encode_message
from tests.support.message_cases import CASES, Case

FRAMES = Path(__file__).parent / "frames"


def frame_bytes(case: Case) -> bytes:
    """The whole frame of a case, header included."""
    return encode_frame(case.frame(encode_message(case.message)))


def write_frames(folder: Path, overwrite: frozenset[str]) -> list[str]:
    """Write what is missing or named in `overwrite`; returns the names of kept frames that differ."""
    differ = []
    folder.mkdir(exist_ok=True)
    for name, case in CASES.items():
        path, data = folder / f"{name}.bin", frame_bytes(case)
        if name in overwrite or not path.exists():
            path.write_bytes(data)
        elif path.read_bytes() != data:
            differ.append(name)
    return differ


def main() -> int:
    """Run from the command line; 1 if frames differ from what would be written."""
    parser = argparse.ArgumentParser(description="Write the golden frames that are missing.")
    parser.add_argument("--overwrite", nargs="+", default=[], choices=sorted(CASES), metavar="NAME")
    differ = write_frames(FRAMES, frozenset(parser.parse_args().overwrite))
    for name in differ:
        print(f"{name}: there, and left as it is, though today's encoder writes other bytes", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
