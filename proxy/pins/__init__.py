"""Pins: what the user said that still binds. Rules judge a turn, the lifecycle keeps the ledger, `keep` bounds it."""
