"""The documents' tables that follow from the code: `make docs` writes them, test_tables.py compares."""
