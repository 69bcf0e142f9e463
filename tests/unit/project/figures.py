"""Figures of the code and the documents that a newcomer must read: `make figures` prints them.

test_figures.py holds each to a limit that only falls.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

LINKED = ("protocol", "curator", "owner", "consumer", "lab")
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.S)


def sources() -> list[Path]:
    """The modules of the product and its laboratory, each once: hushbid/ has links to the other folders."""
    tools = [path for path in (ROOT / "hushbid").rglob("*.py") if room(path)[1] not in LINKED]
    return sorted(tools + [path for name in LINKED for path in (ROOT / name).rglob("*.py")])


def room(path: Path) -> tuple[str, ...]:
    """The parts of a module's path in the repository."""
    return path.relative_to(ROOT).parts


def of_parties() -> list[Path]:
    """The modules of the roles, without those of the protocol."""
    return [path for path in sources() if room(path)[0] in ("curator", "owner", "consumer")]


@cache
def parsed(path: Path) -> ast.Module:
    """A module's tree. All stay, and looking for garbage in them would take longer than making them."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


def package(path: Path) -> str:
    """The package by which lines are counted: `protocol`, `hushbid/cli`."""
    parts = room(path)
    return "/".join(parts[:2]) if parts[0] == "hushbid" and len(parts) > 2 else parts[0]


def lines_by_package() -> Counter[str]:
    """Lines of code, comments, docstrings and blank lines."""
    counted: Counter[str] = Counter()
    for path in sources():
        counted[package(path)] += len(path.read_text(encoding="utf-8").splitlines())
    return counted


def docstring_lines() -> int:
    """Lines of docstrings in the product."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for path in sources() for node in ast.walk(parsed(path)) if isinstance(node, scopes)]
    texts = [ast.get_docstring(node, clean=False) for node in nodes]
    return sum(len(text.splitlines()) for text in texts if text is not None)


def classes_by_name() -> dict[str, list[str]]:
    """Where each public class of a module's top level is defined."""
    found = defaultdict(list)
    for path in sources():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(ROOT).as_posix())
    return found


def repeated_classes() -> dict[str, list[str]]:
    """Class names that stand in two modules or more."""
    return {name: places for name, places in sorted(classes_by_name().items()) if len(places) > 1}


def lines_with(pattern: str) -> int:
    """Lines of the product that have a pattern."""
    return sum(
        re.search(pattern, line) is not None
        for path in sources()
        for line in path.read_text(encoding="utf-8").splitlines()
    )


def handlers_by_string() -> Iterator[str]:
    """Attributes that a party finds by a computed name, which no reader and no type checker can follow."""
    for path in [*of_parties(), *sorted((ROOT / "protocol" / "machine").rglob("*.py"))]:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.expr() as name, *_]):
                    if not isinstance(name, ast.Constant):
                        yield f"{path.relative_to(ROOT)}:{node.lineno}"


def deepest_inheritance() -> tuple[int, str]:
    """The longest chain of the parties' own classes, and the name of the last."""
    bases: dict[str, list[str]] = {}
    for path in of_parties():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name] if base in bases and base != name), default=0)

    return max((depth(name), name) for name in bases)


def words_of(page: Path) -> int:
    """Handwritten words: tokens with a letter, without generated parts."""
    text = GENERATED.sub("", page.read_text(encoding="utf-8"))
    return sum(any(letter.isalpha() for letter in token) for token in text.split())


def documents() -> list[Path]:
    return [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def figures() -> dict[str, object]:
    """All of them, by name."""
    depth, deepest = deepest_inheritance()
    laboratory = lines_by_package()["lab"]
    return {
        "lines of the product, without its laboratory": sum(lines_by_package().values()) - laboratory,
        "of these docstrings": docstring_lines(),
        "class names in two modules or more": len(repeated_classes()),
        "lines with Any": lines_with(r"\bAny\b"),
        "lines with Mapping[str, Any]": lines_with(r"Mapping\[str, Any\]"),
        "attributes by a computed name in machines and parties": len(list(handlers_by_string())),
        "deepest inheritance of the parties": f"{depth} ({deepest})",
        "written words of the documents": sum(map(words_of, documents())),
        "words of the change log": words_of(ROOT / "CHANGELOG.md"),
    }


def main() -> None:
    for name, figure in figures().items():
        print(f"{figure!s:>20}  {name}")
    print()
    for name, lines in lines_by_package().most_common():
        print(f"{lines:>20}  {name}")
    print()
    for name, places in repeated_classes().items():
        print(f"{name:>20}  {', '.join(places)}")


if __name__ == "__main__":
    main()
