"""``python -m owner``."""

from protocol.runtime.interrupts import run_role

if __name__ == "__main__":
    run_role("owner")
