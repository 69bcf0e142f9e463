"""Tables of any library in and out."""
