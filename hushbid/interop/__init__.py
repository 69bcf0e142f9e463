"""Tests for other implementations: vectors of every computation, and a curator that plays a session."""
