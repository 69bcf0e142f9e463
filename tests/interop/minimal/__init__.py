"""An owner and a consumer written from hushbid's documents, without any of its code: the proof that they are complete."""
