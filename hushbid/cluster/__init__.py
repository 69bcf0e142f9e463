"""A demonstration cluster: its file, its data, its processes, its result."""
