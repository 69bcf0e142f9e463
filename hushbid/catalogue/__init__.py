"""A catalogue of private releases: what owners publish of their data, and how a consumer chooses by it."""
