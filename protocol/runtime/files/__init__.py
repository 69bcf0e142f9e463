"""Files that are durable, private, or signed."""
