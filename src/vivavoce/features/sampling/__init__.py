"""Sampling: judge some of many conversations so that the rates hold for all, and plan how many samples are needed."""
