"""The transcript: the write-ahead log of one role in one session (DESIGN §5).

`item` says what is recorded, `record` how it becomes bytes, `journal` writes them, `reader` and `verify`
read them back. The byte layout is in docs/transcript-format.md.
"""
