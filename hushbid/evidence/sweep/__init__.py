"""Sessions in which things go wrong, and whether they come to the same as one in which nothing does."""
