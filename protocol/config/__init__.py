"""Configuration: the public session file that all parties share, and a private file per party.

`hushbid.protocol.config.loading` reads them from disk.
"""
