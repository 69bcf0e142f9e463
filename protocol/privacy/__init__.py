"""What is released, with which noise, at what cost, and which acquisition rules keep it so."""
