"""Beginning a session: the files of a new one from tables, and of one that is run again."""
