"""The steps of released schemas: 1001 makes the tables, and each later one changes them; none changes once released."""
