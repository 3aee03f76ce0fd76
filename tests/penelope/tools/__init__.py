"""Tests of the tools of the tester."""
