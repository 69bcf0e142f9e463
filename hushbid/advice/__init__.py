"""The proposals of `hushbid advise`, and their sources."""
