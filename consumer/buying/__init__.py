"""What a consumer has bought so far, open, blind, or without links, which its machine asks."""
