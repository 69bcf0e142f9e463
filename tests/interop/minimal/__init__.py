"""Parties and a verifier written from hushbid's documents, without its code: proof that they suffice."""
