"""How each agent is installed, configured and talked to."""
