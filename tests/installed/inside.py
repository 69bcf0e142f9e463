"""Run by the Python of an environment: all that can be imported there, and what every verb says of itself."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
from typing import Any

import typer
from typer import testing

import hushbid
from hushbid.cli.app import app


def failed(name: str) -> str | None:
    """What importing a module raises: the missing package, or else the error with its advice."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        return f"lacks {error.name}"
    except Exception as error:
        return f"{type(error).__name__}: {error} {getattr(error, 'advice', '')}"
    return None if module.__name__ == name else f"calls itself {module.__name__}"


def public(name: str) -> Any:
    """The module of a public name."""
    try:
        found = getattr(hushbid, name)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return getattr(found, "__module__", None)


def parsers(parser: Any, path: list[str]) -> list[list[str]]:
    """Every verb, and every verb of a verb."""
    below = getattr(parser, "commands", {})
    return [path, *(found for verb in sorted(below) for found in parsers(below[verb], [*path, verb]))]


if __name__ == "__main__":
    there = [each.name for each in pkgutil.walk_packages(hushbid.__path__, "hushbid.", lambda _name: None)]
    command = typer.main.get_command(app)
    # The runner would make the command line of all verbs anew for each of them.
    vars(testing)["_get_command"] = lambda _app: command
    runner = testing.CliRunner()
    helps = {" ".join(path): path for path in parsers(command, [])}
    said = {name: runner.invoke(app, [*path, "--help"]) for name, path in helps.items()}
    found = {
        "file": inspect.getfile(hushbid),
        "version": hushbid.__version__,
        "modules": {name: failed(name) for name in sorted(there)},
        "names": {name: public(name) for name in hushbid.__all__},
        "dir": dir(hushbid),
        "helps": {name: [ended.exit_code, "Usage" in ended.output] for name, ended in said.items()},
        "ours": sorted({"consumer", "curator", "owner", "protocol"} & set(sys.modules)),
    }
    sys.stdout.write(json.dumps(found))
