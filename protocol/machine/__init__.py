"""The state machines' interface, and what owners and the consumer have in common."""
