"""Frameworks of agents: one file each says which of its objects can be asked, and how a conversation is held."""
