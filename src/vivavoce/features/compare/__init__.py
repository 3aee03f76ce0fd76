"""Comparisons of runs, sample by sample: what changed, how certain that is, and the samples that show it."""
