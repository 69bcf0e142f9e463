"""Whether a party can take part in a session from this machine: one small function per check.

To add a check, write a function ``(Subject) -> str | NotChecked | Warned`` that raises a `HushbidError` for a
problem, and name it in `CHECKS` (`hushbid.preflight.checks`).
"""
