"""What tests another implementation: vectors of all that is computed, and a curator that plays a session."""
