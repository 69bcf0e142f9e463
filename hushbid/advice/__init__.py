"""What `hushbid advise` proposes, and what it follows from."""
