"""Trends: the scores of a suite over its runs, and what changed between them."""

from vivavoce.extensions import Feature, Page

FEATURE = Feature(
    __name__,
    routes=("api:router", "page:router"),
    tabs=(Page("Trends", "/trends"),),
    suite_links="page:links_of_suite",
)
