"""The command line, stores in both databases, and a server around an empty one."""

from cli.conftest import viva
from server.pages.conftest import empty, url
from store.conftest import postgresql, store

__all__ = ["empty", "postgresql", "store", "url", "viva"]
