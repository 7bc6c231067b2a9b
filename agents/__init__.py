"""Real agents behind Goalkeeper, against a scripted model: `make agents`."""
