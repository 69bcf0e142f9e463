"""Points, features and scores as whole numbers: what is the same to the last bit on every machine."""
