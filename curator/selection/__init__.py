"""The three ways to select points, open, in a tender, and blind, which the curator's machine asks."""
