"""Sweeps: inject faults into sessions, and compare the outcome with that of a session without faults."""
