"""The privacy spent on a dataset: in one session, and in its life."""
