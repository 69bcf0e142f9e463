"""Run by the Python of an environment: all that can be imported there, and what every verb says of itself.

After that it forks a process for each line that it reads, which has all imports: they take a second.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import runpy
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, cast

import typer
from typer import testing

import hushbid
from hushbid.cli.app import app
from hushbid.running import fork_server

FORKED = Path(__file__).parents[1] / "processes" / "forked.py"


def failed(name: str) -> str | None:
    """What importing a module raises: the missing package, or else the error with its advice."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        return f"lacks {error.name}"
    except (Exception, SystemExit) as error:  # a user's own files next to it exit
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


def look() -> dict[str, Any]:
    """What is there."""
    there = [each.name for each in pkgutil.walk_packages(hushbid.__path__, "hushbid.", lambda _name: None)]
    command = typer.main.get_command(app)
    # The runner would make the command line of all verbs anew for each of them.
    vars(testing)["_get_command"] = lambda _app: command
    runner = testing.CliRunner()
    helps = {" ".join(path): path for path in parsers(command, [])}
    said = {name: runner.invoke(app, [*path, "--help"]) for name, path in helps.items()}
    return {
        "file": inspect.getfile(hushbid),
        "version": hushbid.__version__,
        "modules": {name: failed(name) for name in sorted(there)},
        "names": {name: public(name) for name in hushbid.__all__},
        "dir": dir(hushbid),
        "helps": {name: [ended.exit_code, "Usage" in ended.output] for name, ended in said.items()},
        "ours": sorted({"consumer", "curator", "owner", "protocol"} & set(sys.modules)),
    }


def become(words: list[str], out: str, err: str) -> None:
    """``python WORDS``, or the program ``hushbid``, in this new process."""
    for number, path in enumerate((os.devnull, out, err)):
        opened = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    cast("TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)  # what it forks must not say it again
    sys.argv[:] = words
    if words[0] == "hushbid":
        runpy.run_module("hushbid", run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def serve() -> None:
    """Say the exit code of each process that is asked for, once it has ended."""
    vars(fork_server)["start"] = runpy.run_path(str(FORKED))["_ForkedServer"]  # a run forks its own, too
    for line in sys.stdin:
        if not (child := os.fork()):
            become(**json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    print(json.dumps(look()), flush=True)
    serve()
