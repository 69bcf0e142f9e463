"""What `hushbid --help` says of each verb, without the imports that would take most of its time."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Final

__all__ = ["SHORT", "import_rich_help"]

_NOT_DRAWN: Final = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
"""Modules of Rich, and what Typer imports from each."""

SHORT: Final[Mapping[str, str]] = {
    "init": "Create a session from tables: columns, session file and party files, and the commands to paste.",
    "advise": "Propose γ, d, p, b, ε and δ for a session, each with its reason. This spends no ε.",
    "plan": "Estimate a session before it runs: noise, error, points seen, bytes, time, and whether to run "
    "it.",
    "schema": "Describe named, categorical and incomplete columns in a public schema, and encode tables by "
    "it.",
    "publish": "Publish private releases of a dataset.",
    "screen": "Rank owners by their catalogue entries, using a release of your own validation set.",
    "keys": "Make a party's key, and collect the keys of a session.",
    "invite": "Write an invitation for one party of a session, signed by the curator.",
    "preflight": "Check whether a party can take part from this machine. Give it the party's own options.",
    "run": "Run a whole cluster on this machine, every party as its own process.",
    "simulate": "Run a whole cluster in one process: the same machines and messages, no network.",
    "owner": "Take part in a session as an owner, on this machine.",
    "consumer": "Take part in a session as its consumer, on this machine.",
    "curator": "Run a session's rounds as its curator, on this machine.",
    "again": "Restart an abandoned session, or repeat a complete one, with the same parties. Old files stay.",
    "results": "Weigh, value, train on and export what a consumer bought, using only its state directory.",
    "report": "Write a page on a session: how close its points came, who won, what was spent, what "
    "went wrong.",
    "replay": "Write a page that replays a session: who sent what to whom, and what each party held at each "
    "moment.",
    "weigh": "Weigh delivered points so that they resemble a validation set. Nothing leaves this machine.",
    "train": "Train a scikit-learn model on delivered points and evaluate it. Nothing leaves this machine.",
    "value": "Value each owner's points: gains, leave-one-out and Shapley values. Nothing leaves this "
    "machine.",
    "transcript": "Read, verify, compare and export transcripts.",
    "status": "Show what the parties of a run or of state directories are doing: round, points, who is "
    "missing.",
    "ledger": "Show the privacy spent on a dataset, by session and catalogue entry, and its budget.",
    "setup": "Create any missing keys, private files and data of the parties, and the session file.",
    "evidence": "Attack hushbid, benchmark it, reproduce the documentation's figures, and test other "
    "implementations.",
}
"""The first paragraph of each verb's help."""


def import_rich_help() -> None:
    """Import what Typer draws help with, but not what it imports for Markdown and tracebacks: half of it."""
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
