"""Measurements of the real thing beside its bare ceiling."""
