"""The curator: runs the rounds, and holds only what the parties send it."""
