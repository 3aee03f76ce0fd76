"""Capabilities, one folder each: found through `vivavoce.hookspecs`, imported by nobody, independent of each other."""
