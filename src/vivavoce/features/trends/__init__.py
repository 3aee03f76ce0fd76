"""Trends: the scores of a suite over its runs, and what changed between them."""
