"""Work with transcripts: show, compare, export, replay, verify (docs/transcripts.md)."""
