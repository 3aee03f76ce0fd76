"""The routes for what people do together."""

from __future__ import annotations

from vivavoce.server.api import comments, webhooks
from vivavoce.server.api import views as view_data
from vivavoce.server.pages import comments as comment_pages
from vivavoce.server.pages import views
from vivavoce.server.pages import webhooks as webhook_page

SHARED_API = (comments, view_data, webhooks)
SHARED_PAGES = (comment_pages, views, webhook_page)
