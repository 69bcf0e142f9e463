"""What `hushbid --help` says of each verb, without importing any: that took as long as all else it does."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

__all__ = ["SHORT", "import_rich_help"]

_NOT_DRAWN: Final = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""Modules of Rich, and what Typer imports of each."""

SHORT: Final[Mapping[str, str]] = {
    "init": "Begin a session from tables: columns, session file and party files, and the commands to paste.",
    "advise": "Propose γ, d, p, b, ε and δ for a session, each with its reason. No ε is spent.",
    "plan": "Say what a session would come to: noise, error, points seen, bytes, time, and whether "
    "to run it.",
    "schema": "Columns with names, categories and gaps: a public schema, and files by it.",
    "publish": "Publish private releases of a dataset.",
    "screen": "Rank owners by their catalogue entries, by a release of one's own validation set.",
    "keys": "Make a party's key, and collect those of a session.",
    "invite": "Write an invitation for one party of a session, signed by the curator.",
    "preflight": "Check whether a party can take part from this machine. Give it the options that the "
    "party is given.",
    "run": "Run a whole cluster on this machine, every party as its own process.",
    "simulate": "Run a whole cluster in one process: the same machines and messages, no network.",
    "owner": "Take part in a session as an owner, on this machine.",
    "consumer": "Take part in a session as its consumer, on this machine.",
    "curator": "Run a session's rounds as its curator, on this machine.",
    "again": "Begin a session again that was given up, or another like one that is complete: files "
    "of before stay.",
    "results": "Weigh, train on, value and write what a consumer bought, from its state directory alone.",
    "report": "Write a page on a session: how close its points came, who won, what was spent, what "
    "went wrong.",
    "replay": "Write a page that plays a session: who said what to whom, and what each party had at each "
    "moment.",
    "weigh": "Weigh delivered points so that they resemble a validation set. Nothing leaves this machine.",
    "train": "Train a model of scikit-learn on delivered points, and judge it. Nothing leaves this machine.",
    "value": "Work out what each owner's points are worth: gains, leaving one out, Shapley values. "
    "Nothing leaves.",
    "transcript": "Read transcripts, check and compare them, and write them for others.",
    "status": "Say what the parties of a run or of state directories do: round, points, who is missing.",
    "ledger": "Show what was spent of a dataset's privacy, by session and catalogue entry, and what "
    "its budget is.",
    "setup": "Make each party's key, private file and data, and the session file, where they are missing.",
    "evidence": "Attack hushbid, measure it, work out the documents' figures, test other implementations.",
}
"""The first paragraph of each verb's help."""


def import_rich_help() -> None:
    """Import what Typer draws help with, but not what draws Markdown and tracebacks: half of it.

    Typer names these at the top of a module, and we have it draw neither.
    """
    if "typer.rich_utils" in sys.modules:
        return
    missing = {module: name for module, name in _NOT_DRAWN.items() if module not in sys.modules}
    for module, name in missing.items():
        sys.modules[module] = ModuleType(module)
        setattr(sys.modules[module], name, None)
    try:
        import_module("typer.rich_utils")
    finally:
        for module in missing:
            del sys.modules[module]
