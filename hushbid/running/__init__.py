"""A session of a cluster file, run over processes or simulated, and its result."""
