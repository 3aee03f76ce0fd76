"""Clusters of failures: what failed in a run, grouped by what the failures have in common."""
