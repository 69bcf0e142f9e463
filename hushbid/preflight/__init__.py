"""Whether a party can take part in a session from this machine: one small function per check.

To add a check, write a function ``(Subject) -> str | NotChecked | Warned`` that raises a `HushbidError` for
what is wrong, and name it in `CHECKS` (`hushbid.preflight.checks`).
"""

from __future__ import annotations

from hushbid.preflight.checks import CHECKS, Check, Finding, Status, exit_code, preflight
from hushbid.preflight.subject import NotChecked, Subject

__all__ = ["CHECKS", "Check", "Finding", "NotChecked", "Status", "Subject", "exit_code", "preflight"]
