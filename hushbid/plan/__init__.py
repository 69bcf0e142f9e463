"""What a session would come to, before anybody takes part in it: by rules of thumb, and by rehearsals."""
