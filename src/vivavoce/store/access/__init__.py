"""Users of a store, and the audit log of changes in it."""
