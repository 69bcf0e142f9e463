"""A catalogue of private releases that owners publish, and by which a consumer chooses owners."""
