"""Watching production: traces come in, become conversations, and are judged as runs of a store."""
