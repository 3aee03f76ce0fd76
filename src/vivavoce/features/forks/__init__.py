"""Forks: continue a stored conversation from one of its turns, and find the turn at which it went wrong."""
