"""Evidence that hushbid does what it says: audits, sweeps, benchmarks, experiments."""
