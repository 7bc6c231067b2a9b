"""Profiles of agents: which text is human, which request is a side call, where the session id stands."""

from proxy.clients.loading import load_profiles
from proxy.clients.profile import Profile, Profiles

__all__ = ["Profile", "Profiles", "load_profiles"]
