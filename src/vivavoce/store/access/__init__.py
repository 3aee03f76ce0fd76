"""Who may use a store, and who changed what in it."""
