"""A whole session in one process."""
