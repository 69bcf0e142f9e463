"""``python -m hushbid``."""

from __future__ import annotations

from hushbid.cli.app import main

if __name__ == "__main__":
    main()
