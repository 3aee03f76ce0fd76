"""Metrics that are computed, without a model."""
