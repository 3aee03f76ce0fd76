"""How good a conversation was."""
