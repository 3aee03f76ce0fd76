"""Rules about what happens in a conversation, and in which order: how they are written, and where they are broken."""
