"""A session file made into what the parties compute with."""
