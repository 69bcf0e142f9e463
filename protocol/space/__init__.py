"""Points, features and scores as integers: identical to the last bit on every machine."""
