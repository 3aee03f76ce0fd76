"""Maintenance of a store: its content, deleting old runs, and copying it into another store."""
