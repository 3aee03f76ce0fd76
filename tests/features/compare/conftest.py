"""An empty store, alone and with a server around it, and the command line."""

from cli.conftest import viva
from report.conftest import store
from server.pages.conftest import empty, url

__all__ = ["empty", "store", "url", "viva"]
