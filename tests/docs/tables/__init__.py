"""What follows from the code in the documents: `make docs` writes it, test_tables.py compares it."""
