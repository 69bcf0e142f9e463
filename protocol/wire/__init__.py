"""Messages, their bytes, and the numbered frames that carry them."""
