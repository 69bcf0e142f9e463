"""Experiments that a reader can repeat: each is a function that returns its figures."""
