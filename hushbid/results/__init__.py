"""Results of sessions as typed records, and their presentation to people."""
