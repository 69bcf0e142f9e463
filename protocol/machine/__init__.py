"""The interface of state machines, and the common part of owners and the consumer."""
