"""Groups of conversations: how those of a tag, a target, or a language fare against the others."""
