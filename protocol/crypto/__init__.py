"""Keys and what is made with them: identities, sealed boxes, signatures."""
