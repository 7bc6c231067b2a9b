"""The store: what was said, forwarded and learnt, in one SQLite file."""
