"""Goalkeeper: an OpenAI-compatible proxy that never lets a compaction lose what the user said."""
