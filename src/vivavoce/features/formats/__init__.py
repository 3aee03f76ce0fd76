"""Formats of other tools: the reader and the writer of each in one file, and `viva convert`."""
