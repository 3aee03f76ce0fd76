"""Runs, gradings, attempts and scores: written while a run goes on, and read back."""
