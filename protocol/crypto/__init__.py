"""Keys and their uses: identities, sealed boxes, signatures."""
