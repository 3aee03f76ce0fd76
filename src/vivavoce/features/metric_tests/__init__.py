"""Tests of metrics: which planted defects a metric sees, and which harmless edits move it."""
