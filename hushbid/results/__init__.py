"""Results of sessions as typed records, and how people are shown them."""
