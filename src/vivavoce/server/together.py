"""The routes for what people do together."""

from __future__ import annotations

from vivavoce.server.api import comments, decisions
from vivavoce.server.pages import comments as comment_pages
from vivavoce.server.pages import deciding

SHARED_API = (comments, decisions)
SHARED_PAGES = (comment_pages, deciding)
