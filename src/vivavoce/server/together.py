"""The routes for what people do together."""

from __future__ import annotations

from vivavoce.server.api import comments, decisions, queues, webhooks
from vivavoce.server.api import views as view_data
from vivavoce.server.pages import comments as comment_pages
from vivavoce.server.pages import deciding, views
from vivavoce.server.pages import queues as queue_pages
from vivavoce.server.pages import webhooks as webhook_page

SHARED_API = (comments, decisions, queues, view_data, webhooks)
SHARED_PAGES = (comment_pages, deciding, views, webhook_page)
LAST_PAGES = (queue_pages,)
"""After the pages of labels, because `/label/{queue}` would take theirs."""
