"""Realism: whether the user's side of a run's conversations is like that of real ones."""
