"""A recorded session to look at, step by step: `hushbid replay` writes it as one page."""
