"""The roster of a session file: read, filled in, changed."""
