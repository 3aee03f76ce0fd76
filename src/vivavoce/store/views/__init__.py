"""Views: addresses of pages that people keep under a name."""
