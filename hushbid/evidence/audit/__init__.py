"""Attacks on the real machines: lower bounds on ε from many runs on neighbouring datasets."""
