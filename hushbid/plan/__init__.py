"""Estimates of a session before anybody takes part in it: by rules of thumb, and by rehearsals."""
