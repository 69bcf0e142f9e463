"""Releases, their noise and cost, and the acquisition rules that preserve their guarantees."""
