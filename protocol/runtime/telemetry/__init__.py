"""A party's messages to its operator: logs, status, metrics."""
