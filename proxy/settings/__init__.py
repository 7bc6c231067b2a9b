"""Settings: which exist (`model.py`), and how files, environment and flags become one value (`loading.py`)."""

from proxy.settings.loading import load_settings, packaged_folder
from proxy.settings.model import Settings, is_loopback

__all__ = ["Settings", "is_loopback", "load_settings", "packaged_folder"]
