"""The database behind a store: its tables, reaching it, and writing rows into it."""
