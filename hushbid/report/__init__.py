"""`hushbid report`: the content of one session's transcripts, as a page to read and to print."""
