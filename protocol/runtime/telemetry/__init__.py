"""What a party tells its operator: logs, status, metrics."""
