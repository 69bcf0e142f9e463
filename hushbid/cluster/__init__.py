"""A demonstration cluster: its file, its data, its parties, its baselines."""
