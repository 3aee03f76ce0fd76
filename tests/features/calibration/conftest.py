"""An empty store, alone and with a server around it."""

from report.conftest import store
from server.pages.conftest import empty, url

__all__ = ["empty", "store", "url"]
