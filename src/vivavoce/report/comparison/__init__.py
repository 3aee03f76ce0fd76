"""Graded runs compared: their sides, the pairs of samples, what changed, and whether it is worse."""
