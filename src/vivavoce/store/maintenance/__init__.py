"""Looking after a store: what is in it, deleting what is old, copying it into another."""
