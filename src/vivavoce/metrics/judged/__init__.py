"""Metrics that ask a model, one a file, each with its prompt beside it."""
