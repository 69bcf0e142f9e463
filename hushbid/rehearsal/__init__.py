"""A session rehearsed beforehand, and the verdict on it."""
