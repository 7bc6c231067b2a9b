"""The wire formats: read and written, knowing nothing of pins and sessions."""
