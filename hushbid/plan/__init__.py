"""`hushbid plan`: what a session would come to, before anybody takes part in it."""
