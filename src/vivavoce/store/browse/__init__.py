"""Lists for people and pages, a page at a time."""
