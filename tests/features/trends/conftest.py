"""An empty store, and a server around it."""

from server.pages.conftest import empty, url

__all__ = ["empty", "url"]
