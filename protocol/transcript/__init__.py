"""The transcript: the write-ahead log of one role in one session (DESIGN §5, docs/transcript-format.md).

`record` defines its bytes, `journal` writes them, and `reader` and `verify` read them back.
"""
