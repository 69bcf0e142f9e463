"""What a dataset's privacy was spent on: in one session, and in its life."""
