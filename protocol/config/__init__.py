"""Configuration: the public session file of all parties, and a private file of each (read by `loading`)."""
