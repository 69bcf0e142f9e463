"""`hushbid report`: what the transcripts of one session tell, as a page to read and to print."""
