"""Conversations in files and in memory: our own rows, tables of messages, and the registry of all other formats."""
