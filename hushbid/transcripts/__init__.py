"""What can be done with transcripts: shown, compared, exported, replayed, verified (docs/transcripts.md)."""
