"""Facts: what a person said that binds, with its source, and the forms in which people read it."""

from proxy.facts.model import Fact, FactChange, Known, Source, changes
from proxy.facts.place import NOWHERE, Place, place_of, project_of

__all__ = ["NOWHERE", "Fact", "FactChange", "Known", "Place", "Source", "changes", "place_of", "project_of"]
