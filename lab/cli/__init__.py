"""The laboratory's verbs below `hushbid evidence`."""
