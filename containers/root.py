"""Make the root directory of an image that has no distribution: an interpreter, and what it loads.

    python3.11 root.py ROOT ENVIRONMENT...

It runs where the environments were made, in a stage of the Dockerfile that is of a distribution. ROOT gets

- this interpreter and its standard library, but for what needs a screen or installs packages;
- the shared objects that these and the environments' files are linked to, as the loader finds them here, each
  at its own place and with the links that lead to it, and a cache by which the loader finds them there;
- names for user 0 and the user that all run as, and an empty /tmp.

It gets no shell, no package manager and nothing else that a distribution has. The shared objects are those of
the distribution that this stage is of.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

USER = 10001

OTHER_PACKAGES = {"dist-packages", "ensurepip", "site-packages"}
FOR_PEOPLE = {"_curses", "_curses_panel", "_tkinter", "idlelib", "readline", "test", "tkinter", "turtledemo"}
OF_OTHER_SYSTEMS = {"_dbm", "_gdbm", "nis"}
LEFT_OUT = OTHER_PACKAGES | FOR_PEOPLE | OF_OTHER_SYSTEMS
"""Of the standard library, by the name before the first dot. They would bring a dozen more shared objects."""

LOADED_LATER = ("libgcc_s.so.1",)
"""What nothing is linked to, and the C library opens by name: to end a thread."""

TEXTS = {
    "etc/passwd": f"root:x:0:0::/:/\nhushbid:x:{USER}:{USER}::/tmp:/\n",
    "etc/group": f"root:x:0:\nhushbid:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}


def objects(places: Iterable[Path]) -> Iterator[Path]:
    """Files below these places that the loader may be given: those that begin as ELF files do."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*.so*")):
            if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
                yield path


def linked(objects: list[Path]) -> set[Path]:
    """What the loader finds for these, by its own word.

    What it does not find by itself may be one of them: who is linked to both has then loaded the other first.

    Raises:
        SystemExit: Something is not found here, and would not be found there.
    """
    found: set[Path] = set()
    given = {path.name for path in objects}
    for path in objects:
        told = subprocess.run(["/usr/bin/ldd", str(path)], capture_output=True, text=True, check=False).stdout
        if missing := set(re.findall(r"(\S+) => not found", told)) - given:
            raise SystemExit(f"{path} needs {', '.join(sorted(missing))}, which is not here.")
        found |= {Path(each) for each in re.findall(r"(/\S+) \(0x", told)}
    return found


def place(path: Path, root: Path) -> None:
    """Copy a file to its own place below `root`, with every link on the way to it."""
    at = Path("/")
    for number, part in enumerate(path.parts[1:], start=2):
        at /= part
        there = root / at.relative_to("/")
        if at.is_symlink():
            there.parent.mkdir(parents=True, exist_ok=True)
            if not there.is_symlink():
                there.symlink_to(at.readlink())
            place((at.parent / at.readlink()).joinpath(*path.parts[number:]), root)
            return
        if at.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        elif not there.exists():
            shutil.copy2(at, there)


def main() -> None:
    """Make the directory that the first argument names."""
    root, *environments = map(Path, sys.argv[1:])
    interpreter = Path(sys.executable)
    library = Path(sysconfig.get_path("stdlib"))
    place(interpreter, root)
    shutil.copytree(
        library,
        root / library.relative_to("/"),
        ignore=lambda _, names: {name for name in names if name.partition(".")[0] in LEFT_OUT},
        symlinks=True,
    )
    inside = [interpreter.resolve(), root / library.relative_to("/"), *environments]
    needed = linked(list(objects(inside)))
    directories = {path.parent for path in needed}
    needed |= {found for name in LOADED_LATER for each in directories if (found := each / name).exists()}
    needed = {path for path in needed if not any(path.is_relative_to(each) for each in inside)}
    for path in sorted(needed):
        place(path, root)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    for name, text in TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    places = sorted({str(path.resolve().parent) for path in needed})
    subprocess.run(["/sbin/ldconfig", "-r", str(root), *places], check=True)
    sys.stdout.writelines(f"{path}\n" for path in sorted(needed))


if __name__ == "__main__":
    main()
