"""Goalkeeper's own doors: health, metrics, and what it knows as JSON."""
