"""Penelope, the autonomous tester."""
