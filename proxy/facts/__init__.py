"""Facts: what a person said that binds, with its source, and the forms in which people read it."""

from proxy.facts.model import Fact, FactChange, Source, changes
from proxy.facts.place import Place, place_of, project_of

__all__ = ["Fact", "FactChange", "Place", "Source", "changes", "place_of", "project_of"]
